package echoless

// #cgo CFLAGS: -I${SRCDIR}/../capi/include
// #cgo LDFLAGS: -L${SRCDIR} -L${SRCDIR}/../../target/dist -l:libecholess_c.a -lpthread -ldl -lm
// #include "bridge.h"
import "C"

import "unsafe"

// An Option of New, NewShared, NewExact and Load.
type Option func(*options)

type options struct {
	seed        uint64
	secret      *[16]byte
	memoryLimit uint64
}

// Seed sets the seed of the hash of keys; 0 if this is not given. Filters find the keys of each
// other only with equal seeds.
func Seed(seed uint64) Option {
	return func(o *options) { o.seed = seed }
}

// Secret selects a slower hash of keys, for which nobody without the secret can choose keys that
// collide. The seed has no effect then.
func Secret(secret [16]byte) Option {
	return func(o *options) { o.secret = &secret }
}

// MemoryLimit makes Load reject a filter of more bytes of memory before it is built. It has no
// meaning for new filters, whose specification has their memory.
func MemoryLimit(bytes uint64) Option {
	return func(o *options) { o.memoryLimit = bytes }
}

func gather(list []Option) options {
	o := options{memoryLimit: Unknown}
	for _, option := range list {
		option(&o)
	}
	return o
}

func (o *options) secretData() *C.uint8_t {
	if o.secret == nil {
		return nil
	}
	return (*C.uint8_t)(&o.secret[0])
}

// An unmade filter has no handle yet.
type unmade interface{ init(number C.uint64_t) }

// build makes a filter of a kind.
func build[F unmade](
	filter F, kind C.uint32_t, spec string, partitions int, list []Option,
) (none F, err error) {
	o := gather(list)
	if o.memoryLimit != Unknown {
		return none, invalidArgument("invalid MemoryLimit: expected memory= in the specification")
	}
	text, err := cString("spec", spec)
	if err != nil {
		return none, err
	}
	defer C.free(unsafe.Pointer(text))
	result := C.go_new(kind, text, C.uint64_t(o.seed), o.secretData(), C.size_t(partitions))
	if err := failure(&result); err != nil {
		return none, err
	}
	filter.init(result.value)
	return filter, nil
}

// A wholeFilter judges keys itself, and is one for all of them.
type wholeFilter struct {
	anyFilter
}

// Observe probes and inserts each key in order: a key is a duplicate if the filter has seen it
// before, in this call or an earlier one.
func (f *wholeFilter) Observe(keys Keys) (Verdicts, error) {
	return f.judge(C.go_judgement(C.echoless_observe), &keys)
}

// Contains tells whether each key would be a duplicate now. It changes nothing in the filter, and
// ticks have no effect.
func (f *wholeFilter) Contains(keys Keys) (Verdicts, error) {
	return f.judge(C.go_judgement(C.echoless_contains), &keys)
}

// AdvanceTo moves the clock of a window to tick. An earlier tick has no effect, and neither has
// any without a window.
func (f *wholeFilter) AdvanceTo(tick uint64) error {
	return f.set(C.go_setter(C.echoless_advance), tick)
}

// Clear removes all keys, and resets the counters and the clock. No goroutine observes any
// meanwhile.
func (f *wholeFilter) Clear() error { return f.run(C.go_command(C.echoless_clear)) }

// A Filter of any kind. One goroutine at a time may use it; a call while another one runs is an
// error with the code Busy, and judges nothing or the first blocks of 2,048 keys. After any other
// error of a call nothing has changed, unless the method says otherwise.
type Filter struct {
	wholeFilter
}

// New builds a filter from a specification such as "fingerprint:fpr=1e-8,memory=64MiB". Close it,
// or leave that to the garbage collector, which sees nothing of the filter's memory.
func New(spec string, options ...Option) (*Filter, error) {
	return build(new(Filter), C.ECHOLESS_KIND_FILTER, spec, 1, options)
}

// Hash returns the hash of each key as the filter hashes it, for a program that passes Hashes to
// several filters with the same seed or secret.
func (f *Filter) Hash(keys Keys) ([]uint64, error) { return f.hash(&keys) }

// Lines is the number of lines of the filter. The parts of a state are ranges of them.
func (f *Filter) Lines() (uint64, error) { return f.get(C.go_getter(C.echoless_lines)) }
