package echoless

// #include "bridge.h"
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A handle of the library. It is freed once: by Close, or after the garbage collector has found the
// object around it unreachable.
//
// Calls take the number and then keep the handle alive to their end (runtime.KeepAlive), and with
// it the object around it, or it could be freed under them. A close during a call of another
// goroutine is no danger: the library frees what a call uses when the call ends, and finds a freed
// handle out.
type handle struct {
	number  atomic.Uintptr
	cleanup runtime.Cleanup
}

func free(number uintptr) { C.go_free(C.uintptr_t(number)) }

func (h *handle) init(number C.uint64_t) {
	h.number.Store(uintptr(number))
	h.cleanup = runtime.AddCleanup(h, free, uintptr(number))
}

// Close frees the object. Every later call is ErrClosed; calls of other goroutines that run
// meanwhile end as usual. Without Close, the garbage collector frees it, later.
func (h *handle) Close() error {
	number := h.number.Swap(0)
	if number == 0 {
		return ErrClosed
	}
	h.cleanup.Stop()
	free(number)
	runtime.KeepAlive(h)
	return nil
}

// open is the number, as long as the handle is not closed.
func (h *handle) open() (uintptr, error) {
	number := h.number.Load()
	if number == 0 {
		return 0, ErrClosed
	}
	return number, nil
}

// explain is the error of a call: if the handle was closed meanwhile, that is the reason.
func (h *handle) explain(err error) error {
	if err != nil && h.number.Load() == 0 {
		return ErrClosed
	}
	return err
}

// call runs a call of C. What its result has besides the error is valid only without one, but for
// memory to free.
func (h *handle) call(run func(number C.uintptr_t) C.go_result) (C.go_result, error) {
	defer runtime.KeepAlive(h)
	number, err := h.open()
	if err != nil {
		return C.go_result{}, err
	}
	result := run(C.uintptr_t(number))
	return result, h.explain(failure(&result))
}

// run, set and get run a call of C without a number, with one, and for one.
func (h *handle) run(call C.go_command) error {
	_, err := h.call(func(number C.uintptr_t) C.go_result { return C.go_run(call, number) })
	return err
}

func (h *handle) set(call C.go_setter, value uint64) error {
	_, err := h.call(func(number C.uintptr_t) C.go_result {
		return C.go_set(call, number, C.uint64_t(value))
	})
	return err
}

func (h *handle) get(call C.go_getter) (uint64, error) {
	result, err := h.call(func(number C.uintptr_t) C.go_result { return C.go_get(call, number) })
	return uint64(result.value), err
}

// judge runs a call of C that answers keys with verdicts.
func (h *handle) judge(call C.go_judgement, keys *Keys) (Verdicts, error) {
	defer runtime.KeepAlive(h)
	number, err := h.open()
	if err != nil {
		return Verdicts{}, err
	}
	words := make([]uint64, (keys.count+63)/64)
	count, err := keys.judge(call, number, words)
	if err != nil {
		return Verdicts{}, h.explain(err)
	}
	return Verdicts{words: words, keys: keys.count, count: count}, nil
}

// hash returns the hash of each key.
func (h *handle) hash(keys *Keys) ([]uint64, error) {
	defer runtime.KeepAlive(h)
	number, err := h.open()
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, keys.count)
	if _, err := keys.judge(nil, number, hashes); err != nil {
		return nil, h.explain(err)
	}
	return hashes, nil
}

// anyFilter is what filters of all kinds have.
type anyFilter struct {
	handle
}

// Report returns counters and error estimates. It may read the whole filter.
func (f *anyFilter) Report() (Report, error) { return f.report() }

// MemoryBytes is the memory of the filter's state.
func (f *anyFilter) MemoryBytes() (uint64, error) {
	return f.get(C.go_getter(C.echoless_memory_bytes))
}

// Spec returns the specification, with the defaults that the filter has chosen.
func (f *anyFilter) Spec() (string, error) {
	result, err := f.call(func(number C.uintptr_t) C.go_result { return C.go_spec(number) })
	defer C.free(unsafe.Pointer(result.bytes))
	if err != nil {
		return "", err
	}
	return string(unsafe.Slice((*byte)(result.bytes), int(result.length))), nil
}

// SaveFile saves the filter with a position of the program, such as the offset in a stream, into a
// file that is replaced as a whole: it has the old content or the new one, also after a power cut.
// The secret of the hash is not in it.
//
// Other goroutines use a Shared and an Ordered meanwhile. The state of a Shared has the keys of the
// calls that had ended before, and each later key or not, so take the position first; that of an
// Ordered is at one point of the stream.
func (f *anyFilter) SaveFile(path string, position []byte) error {
	text, err := cString("path", path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(text))
	_, err = f.call(func(number C.uintptr_t) C.go_result {
		return C.go_save_file(number, text,
			(*C.uint8_t)(unsafe.SliceData(position)), C.size_t(len(position)))
	})
	return err
}
