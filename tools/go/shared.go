package echoless

// #include "bridge.h"
import "C"

import "unsafe"

// Shared is a filter that all goroutines use at the same time, without locks. It has no window, and
// its state cannot be saved.
type Shared struct {
	handle handle
}

// NewShared builds a shared filter from a specification such as "row4x16:memory=64MiB".
func NewShared(spec string, options ...Option) (*Shared, error) {
	text, err := cString("spec", spec)
	if err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(text))
	o, err := forNew(options)
	if err != nil {
		return nil, err
	}
	result := C.go_shared_new(text, C.uint64_t(o.seed), o.secretData())
	if err := failure(&result); err != nil {
		return nil, err
	}
	s := new(Shared)
	s.handle.init(uintptr(result.value), func(number uintptr) {
		C.go_shared_free(C.uintptr_t(number))
	})
	return s, nil
}

// Observe probes and inserts each key. Of equal keys of several goroutines, exactly one is fresh.
func (s *Shared) Observe(keys Keys) (Verdicts, error) {
	return s.judge(C.GO_SHARED_OBSERVE, &keys)
}

// Contains tells whether each key would be a duplicate now. It changes nothing in the filter.
func (s *Shared) Contains(keys Keys) (Verdicts, error) {
	return s.judge(C.GO_SHARED_CONTAINS, &keys)
}

func (s *Shared) judge(operation C.int, keys *Keys) (Verdicts, error) {
	if keys.timed {
		return Verdicts{}, invalidArgument("invalid ticks: expected none, a shared filter has no window")
	}
	return s.handle.judge(operation, keys)
}

// Clear removes all keys, while no goroutine observes any.
func (s *Shared) Clear() error {
	_, err := s.handle.call(func(number C.uintptr_t) C.go_result {
		return C.go_shared_clear(number)
	})
	return err
}

// Report returns counters and error estimates. It may read the whole filter.
func (s *Shared) Report() (Report, error) {
	return s.handle.report(func(number C.uintptr_t, report *C.echoless_report) C.go_result {
		return C.go_shared_report(number, report)
	})
}

// Close frees the filter. Every later call is ErrClosed; calls of other goroutines that run
// meanwhile end as usual.
func (s *Shared) Close() error {
	return s.handle.close()
}
