package echoless

// #include "bridge.h"
import "C"

import (
	"os"
	"path/filepath"
	"unsafe"
)

// An Exact is a filter without errors: keys that its filter may have seen are compared with the
// digests, of 128 bits, of all keys. It has no window and never forgets a key. A key takes 17 to 40
// bytes of memory until the first SaveFile, and from then on 16.1 in its folder.
//
// Keys of all forms but Hashes are compared, and ticks have no effect. One goroutine at a time may
// use it, as a Filter.
type Exact struct {
	anyFilter
}

// NewExact builds a filter without errors from the specification of one in lines, such as
// "fingerprint:fpr=1e-8,memory=64MiB". Give it 10 bytes for each key: once it is full, all keys are
// looked up.
func NewExact(spec string, options ...Option) (*Exact, error) {
	return build(new(Exact), C.ECHOLESS_KIND_EXACT, spec, 1, options)
}

// LoadExact opens a folder as SaveFile has left it, with the position that was saved with it: what
// was observed since is gone. If there is no folder, or none that a filter was saved in,
// errors.Is(err, fs.ErrNotExist) holds; if another filter or process uses it, the code is Busy.
func LoadExact(folder string, options ...Option) (*Exact, []byte, error) {
	if _, err := os.Stat(filepath.Join(folder, "filter")); err != nil {
		// The lock of a folder that was saved has a note, also where its filter is lost.
		lock, noted := os.Stat(filepath.Join(folder, "lock"))
		if noted != nil || lock.Size() == 0 {
			return nil, nil, &Error{Code: IO, Text: oneLine(err.Error()), cause: err}
		}
	}
	o := gather(options)
	text, err := cString("folder", folder)
	if err != nil {
		return nil, nil, err
	}
	defer C.free(unsafe.Pointer(text))
	result := C.go_load(C.ECHOLESS_KIND_EXACT, text, nil, 0,
		C.uint64_t(o.seed), o.secretData(), 1, C.uint64_t(o.memoryLimit))
	defer C.free(unsafe.Pointer(result.bytes))
	if err := failure(&result); err != nil {
		return nil, nil, err
	}
	e := new(Exact)
	e.init(result.value)
	return e, C.GoBytes(unsafe.Pointer(result.bytes), C.int(result.length)), nil
}

// SaveFile saves the filter with a position of the program in a folder, which is made if necessary.
// The first call moves the digests of all keys there; later ones, of the same folder, write what is
// new, and the filter. After a kill or a power cut, the folder is as it was last saved. The secret
// of the digests is in it, and that of the hash is not. If it fails, so do all later calls.
func (e *Exact) SaveFile(folder string, position []byte) error {
	return e.anyFilter.SaveFile(folder, position)
}

// Observe probes and inserts each key in order. If the folder fails, so do all later calls: load it
// as it was last saved.
func (e *Exact) Observe(keys Keys) (Verdicts, error) {
	return e.judge(C.go_judgement(C.echoless_observe), &keys)
}

// Contains tells whether each key would be a duplicate now. It changes nothing.
func (e *Exact) Contains(keys Keys) (Verdicts, error) {
	return e.judge(C.go_judgement(C.echoless_contains), &keys)
}

// Clear removes all keys of a filter that was never saved.
func (e *Exact) Clear() error { return e.run(C.go_command(C.echoless_clear)) }
