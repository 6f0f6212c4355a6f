package echoless

// #cgo LDFLAGS: -L${SRCDIR}/../../target/dist -l:libecholess_c.a -lpthread -ldl -lm
// #include "bridge.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// An Option of New, NewShared and Load.
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

// forNew are the options of a new filter.
func forNew(list []Option) (options, error) {
	o := gather(list)
	if o.memoryLimit != Unknown {
		return o, invalidArgument("invalid MemoryLimit: expected memory= in the specification")
	}
	return o, nil
}

func (o *options) secretData() *C.uint8_t {
	if o.secret == nil {
		return nil
	}
	return (*C.uint8_t)(&o.secret[0])
}

// A Filter of any kind. One goroutine at a time may use it; a call while another one runs is an
// error with the code Busy, and judges nothing or the first blocks of 2,048 keys. After any other
// error of a call nothing has changed, unless the method says otherwise.
type Filter struct {
	handle handle
}

// New builds a filter from a specification such as "fingerprint:fpr=1e-8,memory=64MiB". Close it,
// or leave that to the garbage collector, which sees nothing of the filter's memory.
func New(spec string, options ...Option) (*Filter, error) {
	text, err := cString("spec", spec)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(text))
	o, err := forNew(options)
	if err != nil {
		return nil, err
	}
	result := C.go_filter_new(text, C.uint64_t(o.seed), o.secretData())
	if err := failure(&result); err != nil {
		return nil, err
	}
	return newFilter(uintptr(result.value)), nil
}

func newFilter(number uintptr) *Filter {
	f := new(Filter)
	f.handle.init(number, func(number uintptr) { C.go_filter_free(C.uintptr_t(number)) })
	return f
}

// Observe probes and inserts each key in order: a key is a duplicate if the filter has seen it
// before, in this call or an earlier one.
func (f *Filter) Observe(keys Keys) (Verdicts, error) {
	return f.handle.judge(C.GO_FILTER_OBSERVE, &keys)
}

// Contains tells whether each key would be a duplicate now. It changes nothing in the filter, and
// ticks have no effect.
func (f *Filter) Contains(keys Keys) (Verdicts, error) {
	return f.handle.judge(C.GO_FILTER_CONTAINS, &keys)
}

// Hash returns the hash of each key as the filter hashes it, for a program that passes Hashes to
// several filters with the same seed or secret.
func (f *Filter) Hash(keys Keys) ([]uint64, error) {
	defer runtime.KeepAlive(f)
	number, err := f.handle.open()
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, keys.count)
	if _, err := keys.judge(C.GO_FILTER_HASH, number, hashes); err != nil {
		return nil, f.handle.explain(err)
	}
	return hashes, nil
}

// AdvanceTo moves the clock of a window to a tick. An earlier tick has no effect, and neither has
// any without a window.
func (f *Filter) AdvanceTo(tick uint64) error {
	_, err := f.handle.call(func(number C.uintptr_t) C.go_result {
		return C.go_filter_advance(number, C.uint64_t(tick))
	})
	return err
}

// Clear removes all keys, and resets the counters and the clock.
func (f *Filter) Clear() error {
	_, err := f.handle.call(func(number C.uintptr_t) C.go_result {
		return C.go_filter_clear(number)
	})
	return err
}

// Report returns counters and error estimates. It may read the whole filter.
func (f *Filter) Report() (Report, error) {
	return f.handle.report(func(number C.uintptr_t, report *C.echoless_report) C.go_result {
		return C.go_filter_report(number, report)
	})
}

// Spec returns the specification, with the defaults that the filter has chosen.
func (f *Filter) Spec() (string, error) {
	result, err := f.handle.call(func(number C.uintptr_t) C.go_result {
		return C.go_filter_spec(number)
	})
	defer C.free(unsafe.Pointer(result.bytes))
	if err != nil {
		return "", err
	}
	return string(unsafe.Slice((*byte)(result.bytes), int(result.length))), nil
}

// Close frees the filter. Every later call is ErrClosed; a call of another goroutine that runs
// meanwhile ends as usual.
func (f *Filter) Close() error {
	return f.handle.close()
}
