package echoless

// #include "bridge.h"
import "C"

import (
	"runtime"
	"sync/atomic"
)

// A handle of the library. It is freed once: by close, or after the garbage collector has found the
// object around it unreachable.
//
// Calls take the number and then keep the handle alive to their end (runtime.KeepAlive), and with
// it the object around it, or it could be freed under them. A close during a call of another
// goroutine is no danger: the library frees what a call uses when the call ends, and finds a freed
// handle out.
type handle struct {
	number  atomic.Uintptr
	free    func(uintptr)
	cleanup runtime.Cleanup
}

func (h *handle) init(number uintptr, free func(uintptr)) {
	h.number.Store(number)
	h.free = free
	h.cleanup = runtime.AddCleanup(h, free, number)
}

// open is the number, as long as the handle is not closed.
func (h *handle) open() (uintptr, error) {
	number := h.number.Load()
	if number == 0 {
		return 0, ErrClosed
	}
	return number, nil
}

func (h *handle) close() error {
	number := h.number.Swap(0)
	if number == 0 {
		return ErrClosed
	}
	h.cleanup.Stop()
	h.free(number)
	runtime.KeepAlive(h)
	return nil
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

// judge runs a call of C that answers keys with verdicts.
func (h *handle) judge(operation C.int, keys *Keys) (Verdicts, error) {
	defer runtime.KeepAlive(h)
	number, err := h.open()
	if err != nil {
		return Verdicts{}, err
	}
	words := make([]uint64, (keys.count+63)/64)
	count, err := keys.judge(operation, number, words)
	if err != nil {
		return Verdicts{}, h.explain(err)
	}
	return Verdicts{words: words, keys: keys.count, count: count}, nil
}
