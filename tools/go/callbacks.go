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
	before func()
	err    error
	steps  steps
}

// steps are what streams do during a call of C. The call runs in a goroutine of its own, and the
// steps in that of the caller: a panic or a runtime.Goexit in a stream must unwind no frames of C
// and Rust, which would leave the filter locked. The call gets an error for such a step and ends,
// and the panic goes on.
type steps struct {
	next chan func()
	// Closed once no step runs any more.
	ended chan struct{}
}

// serve runs a call of C, and the steps of its streams.
func (s steps) serve(call func() C.go_result) (result C.go_result) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		result = call()
	}()
	defer func() {
		close(s.ended)
		<-done
	}()
	for {
		select {
		case step := <-s.next:
			step()
		case <-done:
			return result
		}
	}
}

func newSteps() steps {
	return steps{next: make(chan func()), ended: make(chan struct{})}
}

// run runs a step in the goroutine of the caller, and returns the status for C.
func (s *stream) run(step func() error) C.int {
	finished := make(chan error, 1)
	inCaller := func() {
		// Also if the step does not return.
		defer close(finished)
		finished <- step()
	}
	select {
	case s.steps.next <- inCaller:
	case <-s.steps.ended:
		return 1
	}
	err, returned := <-finished
	if err != nil {
		s.err = err
	}
	if err != nil || !returned {
		return 1
	}
	return 0
}

// finish is the error of the call that used the stream.
func (s *stream) finish(err error) error {
	if err == nil || s.err == nil {
		return err
	}
	return &Error{Code: IO, Text: oneLine(s.err.Error()), cause: s.err}
}

//export echolessGoWrite
func echolessGoWrite(context C.uintptr_t, bytes *C.uint8_t, length C.size_t) C.int {
	s := cgo.Handle(context).Value().(*stream)
	return s.run(func() error {
		data := unsafe.Slice((*byte)(bytes), int(length))
		n, err := s.writer.Write(data)
		if err == nil && n != len(data) {
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

//export echolessGoBefore
func echolessGoBefore(context C.uintptr_t) {
	s := cgo.Handle(context).Value().(*stream)
	s.run(func() error {
		s.before()
		return nil
	})
}
