package echoless

// #include "bridge.h"
import "C"

import (
	"io"
	"runtime/cgo"
	"time"
	"unsafe"
)

// Ordered is a filter in lines for several goroutines whose verdicts are those of one: batches apply
// in the order of their tickets. All goroutines may use it at the same time; each observes through a
// Thread of its own.
type Ordered struct {
	anyFilter
}

// NewOrdered builds an ordered filter of so many partitions from the specification of a filter in
// lines. Goroutines that do nothing but judge need a partition each; verdicts do not depend on the
// number.
func NewOrdered(spec string, partitions int, options ...Option) (*Ordered, error) {
	return build(new(Ordered), C.ECHOLESS_KIND_ORDERED, spec, partitions, options)
}

// Thread opens the access of one more goroutine.
func (f *Ordered) Thread() (*Thread, error) {
	result, err := f.call(func(number C.uintptr_t) C.go_result { return C.go_open(number) })
	if err != nil {
		return nil, err
	}
	t := new(Thread)
	t.init(result.value)
	return t, nil
}

// SaveFileAt saves the filter as SaveFile does, with the position of the point of the stream where
// the state ends. There before is called, then the ticket of the point is taken, then position
// returns the bytes of the program, at most 65,536: so before can lock the input, and position read
// its position and unlock it. Both are called in the goroutine of the caller, which holds no ticket;
// position must not use the filter, which would wait for it without end.
func (f *Ordered) SaveFileAt(path string, before func(), position func() ([]byte, error)) error {
	text, err := cString("path", path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(text))
	stream := &stream{reader: positionReader(position), before: before, steps: newSteps()}
	context := cgo.NewHandle(stream)
	defer context.Delete()
	_, err = f.call(func(number C.uintptr_t) C.go_result {
		return stream.steps.serve(func() C.go_result {
			return C.go_save_at(number, text, C.uintptr_t(context))
		})
	})
	return stream.finish(err)
}

// A positionReader is read once.
type positionReader func() ([]byte, error)

func (p positionReader) Read(into []byte) (int, error) {
	position, err := p()
	if err == nil && len(position) > len(into) {
		err = invalidArgument("invalid position of %d bytes: expected at most %d", len(position), len(into))
	}
	if err != nil {
		return 0, err
	}
	return copy(into, position), io.EOF
}

// A Thread is the access of one goroutine at a time to an ordered filter.
type Thread struct {
	handle
}

// Take takes the next ticket: the batch of the next Observe of this thread applies after those of
// all tickets that were taken before. Usually under the lock of the input, so that both have one
// order. It does not block, and has no effect if the thread holds a ticket.
//
// All later tickets wait until the batch has passed, so a thread that holds a ticket must Observe,
// or Leave it out.
func (t *Thread) Take() error { return t.run(C.go_command(C.echoless_take)) }

// Leave leaves out the ticket that the thread holds, if it holds one.
func (t *Thread) Leave() error { return t.run(C.go_command(C.echoless_leave)) }

// Wait waits for the turn of the ticket that the thread holds, which it takes if it holds none. If
// the time is over, that is TimedOut, and the thread still holds its ticket.
func (t *Thread) Wait(timeout time.Duration) error {
	milliseconds := max(0, timeout.Milliseconds())
	return t.set(C.go_setter(C.echoless_wait), uint64(milliseconds))
}

// Observe probes and inserts each key in order, with the ticket that the thread holds, or else the
// next one. It waits at each partition for the batches of lower tickets. A batch is one call of the
// engine, so packed keys that are copied in blocks (Bytes, Strings, packets) are hashed first.
func (t *Thread) Observe(keys Keys) (Verdicts, error) {
	if keys.count == 0 {
		if err := keys.check(); err != nil {
			return Verdicts{}, err
		}
		// C gets no call without keys, and the ticket must pass.
		return Verdicts{}, t.Leave()
	}
	if keys.bytes == nil && keys.strings == nil && keys.packets == nil {
		return t.judge(C.go_judgement(C.echoless_observe), &keys)
	}
	hashes, err := t.hash(&keys)
	if err != nil {
		return Verdicts{}, err
	}
	hashed := Hashes(hashes)
	hashed.timed, hashed.ticks = keys.timed, keys.ticks
	return t.judge(C.go_judgement(C.echoless_observe), &hashed)
}
