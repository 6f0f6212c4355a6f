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
// Calls take the number and then keep the object alive to their end (runtime.KeepAlive), or it
// could be freed under them. A close during a call of another goroutine is no danger: the library
// frees what a call uses when the call ends, and finds a freed handle out.
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

// finish is the error of a call that is over. It keeps the object alive up to here.
func (h *handle) finish(result *C.go_result) error {
	return h.explain(failure(result))
}
