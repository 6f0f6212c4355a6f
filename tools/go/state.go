package echoless

// #include "bridge.h"
import "C"

import (
	"errors"
	"io"
	"os"
	"runtime/cgo"
	"unsafe"
)

// SaveFile saves the filter with a position of the program, such as the offset in a stream, into a
// file that is replaced as a whole: it has the old content or the new one, also after a power cut.
// The secret of the hash is not in it. Only filters in lines (form=line) can be saved.
func (f *Filter) SaveFile(path string, position []byte) error {
	text, err := cString("path", path)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(text))
	_, err = f.handle.call(func(number C.uintptr_t) C.go_result {
		return C.go_filter_save_file(number, text,
			(*C.uint8_t)(unsafe.SliceData(position)), C.size_t(len(position)))
	})
	return err
}

// Save writes the state with a position of the program. The writer must not use the filter. It is
// called in the goroutine of the caller; if it panics or ends the goroutine, the filter is as before.
func (f *Filter) Save(w io.Writer, position []byte) error {
	lines, err := f.Lines()
	if err != nil {
		return err
	}
	return f.SaveLines(w, 0, lines, position)
}

// Lines is the number of lines of the filter. The parts of a state are ranges of them.
func (f *Filter) Lines() (uint64, error) {
	result, err := f.handle.call(func(number C.uintptr_t) C.go_result {
		return C.go_filter_lines(number)
	})
	return uint64(result.value), err
}

// SaveLines writes a part of a state: the lines from first to before end. Load restores a filter
// from all its parts.
func (f *Filter) SaveLines(w io.Writer, first, end uint64, position []byte) error {
	stream := &stream{writer: w, steps: newSteps()}
	context := cgo.NewHandle(stream)
	defer context.Delete()
	_, err := f.handle.call(func(number C.uintptr_t) C.go_result {
		return stream.steps.serve(func() C.go_result {
			return C.go_filter_save_part(number, C.uint64_t(first), C.uint64_t(end),
				(*C.uint8_t)(unsafe.SliceData(position)), C.size_t(len(position)),
				C.uintptr_t(context))
		})
	})
	return stream.finish(err)
}

// LoadFile restores a filter from a file, with the position that was saved with it. If there is no
// file, errors.Is(err, fs.ErrNotExist) holds.
func LoadFile(path string, options ...Option) (*Filter, []byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, &Error{Code: IO, Text: oneLine(err.Error()), cause: err}
	}
	defer file.Close()
	filter, position, err := Load([]io.Reader{file}, options...)
	var failed *Error
	if errors.As(err, &failed) {
		failed.Text = oneLine(path) + ": " + failed.Text
	}
	return filter, position, err
}

// Load restores a filter from the states of all its parts, in any order, or from a single one that
// has all lines. The position is those of the parts behind each other, in the order of their lines.
// Seed or Secret are those that the filter was built with. A reader may be read past the end of its
// state.
func Load(parts []io.Reader, options ...Option) (*Filter, []byte, error) {
	o := gather(options)
	steps := newSteps()
	streams := make([]*stream, len(parts))
	contexts := make([]C.uintptr_t, len(parts))
	for i, part := range parts {
		streams[i] = &stream{reader: part, steps: steps}
		context := cgo.NewHandle(streams[i])
		defer context.Delete()
		contexts[i] = C.uintptr_t(context)
	}
	result := steps.serve(func() C.go_result {
		return C.go_filter_load(unsafe.SliceData(contexts), C.size_t(len(parts)),
			C.uint64_t(o.seed), o.secretData(), C.uint64_t(o.memoryLimit))
	})
	defer C.free(unsafe.Pointer(result.bytes))
	err := failure(&result)
	for _, stream := range streams {
		err = stream.finish(err)
	}
	if err != nil {
		return nil, nil, err
	}
	position := C.GoBytes(unsafe.Pointer(result.bytes), C.int(result.length))
	return newFilter(uintptr(result.value)), position, nil
}
