package echoless

// #include "bridge.h"
import "C"

import (
	"errors"
	"io"
	"runtime/cgo"
	"unsafe"
)

// A stream of the program that the library writes to or reads from. What fails there is kept here,
// since C gets only a number.
type stream struct {
	writer io.Writer
	reader io.Reader
	err    error
	// A panic must not unwind the frames of C and Rust: it goes on once they have returned.
	panicked any
}

// finish is the error of the call that used the stream.
func (s *stream) finish(err error) error {
	if s.panicked != nil {
		panic(s.panicked)
	}
	if err == nil || s.err == nil {
		return err
	}
	return &Error{Code: IO, Text: s.err.Error(), cause: s.err}
}

// run runs a step, and returns the status for C.
func (s *stream) run(step func() error) (status C.int) {
	defer func() {
		if panicked := recover(); panicked != nil {
			s.panicked, status = panicked, 1
		}
	}()
	if err := step(); err != nil {
		s.err = err
		return 1
	}
	return 0
}

//export echolessGoWrite
func echolessGoWrite(context C.uintptr_t, bytes *C.uint8_t, length C.size_t) C.int {
	s := cgo.Handle(context).Value().(*stream)
	return s.run(func() error {
		data := unsafe.Slice((*byte)(bytes), int(length))
		n, err := s.writer.Write(data)
		if err == nil && n < len(data) {
			err = io.ErrShortWrite
		}
		return err
	})
}

//export echolessGoRead
func echolessGoRead(
	context C.uintptr_t, bytes *C.uint8_t, capacity C.size_t, length *C.size_t,
) C.int {
	s := cgo.Handle(context).Value().(*stream)
	return s.run(func() error {
		// C takes 0 bytes for the end, Go does not.
		n, err := io.ReadAtLeast(s.reader, unsafe.Slice((*byte)(bytes), int(capacity)), 1)
		*length = C.size_t(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
}
