package echoless

// #include "bridge.h"
import "C"

import (
	"os"
	"unsafe"
)

// Shared is a filter that all goroutines use at the same time. No call waits for another one, except
// for SaveFile. It has no window.
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
	return newShared(uintptr(result.value)), nil
}

func newShared(number uintptr) *Shared {
	s := new(Shared)
	s.handle.init(number, func(number uintptr) { C.go_shared_free(C.uintptr_t(number)) })
	return s
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

// SaveFile saves the filter as Filter.SaveFile does, while other goroutines use it, of which none
// waits. The state has the keys of the calls that had ended before, and each later key or not: take
// the position first.
func (s *Shared) SaveFile(path string, position []byte) error {
	text, err := cString("path", path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(text))
	_, err = s.handle.call(func(number C.uintptr_t) C.go_result {
		return C.go_shared_save_file(number, text,
			(*C.uint8_t)(unsafe.SliceData(position)), C.size_t(len(position)))
	})
	return err
}

// LoadSharedFile restores a shared filter from a file, as LoadFile does a Filter.
func LoadSharedFile(path string, options ...Option) (*Shared, []byte, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil, &Error{Code: IO, Text: oneLine(err.Error()), cause: err}
	}
	text, err := cString("path", path)
	if err != nil {
		return nil, nil, err
	}
	defer C.free(unsafe.Pointer(text))
	o := gather(options)
	result := C.go_shared_load_file(text, C.uint64_t(o.seed), o.secretData(),
		C.uint64_t(o.memoryLimit))
	defer C.free(unsafe.Pointer(result.bytes))
	if err := failure(&result); err != nil {
		return nil, nil, err
	}
	position := C.GoBytes(unsafe.Pointer(result.bytes), C.int(result.length))
	return newShared(uintptr(result.value)), position, nil
}

// Close frees the filter. Every later call is ErrClosed; calls of other goroutines that run
// meanwhile end as usual.
func (s *Shared) Close() error {
	return s.handle.close()
}
