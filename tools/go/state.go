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

// Save writes the state with a position of the program. The writer must not use the filter. It is
// called in the goroutine of the caller; if it panics or ends the goroutine, the filter is as before.
func (f *Filter) Save(w io.Writer, position []byte) error {
	lines, err := f.Lines()
	if err != nil {
		return err
	}
	return f.SaveLines(w, 0, lines, position)
}

// SaveLines writes a part of a state: the lines from first to before end. Load restores a filter
// from all its parts.
func (f *Filter) SaveLines(w io.Writer, first, end uint64, position []byte) error {
	stream := &stream{writer: w, steps: newSteps()}
	context := cgo.NewHandle(stream)
	defer context.Delete()
	_, err := f.call(func(number C.uintptr_t) C.go_result {
		return stream.steps.serve(func() C.go_result {
			return C.go_save_lines(number, C.uint64_t(first), C.uint64_t(end),
				(*C.uint8_t)(unsafe.SliceData(position)), C.size_t(len(position)),
				C.uintptr_t(context))
		})
	})
	return stream.finish(err)
}

// LoadFile restores a filter from a file, with the position that was saved with it. If there is no
// file, errors.Is(err, fs.ErrNotExist) holds.
func LoadFile(path string, options ...Option) (*Filter, []byte, error) {
	return loadFile(new(Filter), C.ECHOLESS_KIND_FILTER, path, 1, options)
}

// LoadSharedFile restores a shared filter from a file, as LoadFile does a Filter.
func LoadSharedFile(path string, options ...Option) (*Shared, []byte, error) {
	return loadFile(new(Shared), C.ECHOLESS_KIND_SHARED, path, 1, options)
}

// LoadOrderedFile restores an ordered filter of so many partitions, from the file of one with any
// number of them or of a Filter, as LoadFile does.
func LoadOrderedFile(path string, partitions int, options ...Option) (*Ordered, []byte, error) {
	return loadFile(new(Ordered), C.ECHOLESS_KIND_ORDERED, path, partitions, options)
}

func loadFile[F unmade](
	filter F, kind C.uint32_t, path string, partitions int, options []Option,
) (none F, position []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return none, nil, &Error{Code: IO, Text: oneLine(err.Error()), cause: err}
	}
	defer file.Close()
	filter, position, err = load(filter, kind, []io.Reader{file}, partitions, options)
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
	return load(new(Filter), C.ECHOLESS_KIND_FILTER, parts, 1, options)
}

func load[F unmade](
	filter F, kind C.uint32_t, parts []io.Reader, partitions int, options []Option,
) (none F, position []byte, err error) {
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
		return C.go_load(kind, nil, unsafe.SliceData(contexts), C.size_t(len(parts)),
			C.uint64_t(o.seed), o.secretData(), C.size_t(partitions), C.uint64_t(o.memoryLimit))
	})
	defer C.free(unsafe.Pointer(result.bytes))
	err = failure(&result)
	for _, stream := range streams {
		err = stream.finish(err)
	}
	if err != nil {
		return none, nil, err
	}
	filter.init(result.value)
	return filter, C.GoBytes(unsafe.Pointer(result.bytes), C.int(result.length)), nil
}
