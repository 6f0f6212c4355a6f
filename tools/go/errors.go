package echoless

// #include "bridge.h"
import "C"

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unsafe"
)

// A Code says what went wrong, with a number that is the same in every version. It is an error
// itself, so that errors.Is(err, echoless.InvalidSpec) works.
type Code int

const (
	// InvalidArgument: an argument is too long, or of another length than the others.
	InvalidArgument Code = C.ECHOLESS_STATUS_INVALID_ARGUMENT
	// InvalidSpec: a specification or an option has a value that is not allowed.
	InvalidSpec Code = C.ECHOLESS_STATUS_INVALID_SPEC
	// OutOfMemory: the memory could not be allocated.
	OutOfMemory Code = C.ECHOLESS_STATUS_OUT_OF_MEMORY
	// IO: a file, a writer or a reader failed.
	IO Code = C.ECHOLESS_STATUS_IO
	// InvalidState: a saved state is damaged, truncated, or no state.
	InvalidState Code = C.ECHOLESS_STATUS_INVALID_STATE
	// StateMismatch: a saved state is of another filter or of other key hashes.
	StateMismatch Code = C.ECHOLESS_STATUS_STATE_MISMATCH
	// PartitionLost: a partition of an ordered filter is lost, since its filter panicked.
	PartitionLost Code = C.ECHOLESS_STATUS_PARTITION_LOST
	// TimedOut: the time of a wait is over.
	TimedOut Code = C.ECHOLESS_STATUS_TIMED_OUT
	// Busy: another goroutine uses the filter, which one at a time may use.
	Busy Code = C.ECHOLESS_STATUS_BUSY
	// Unsupported: the filter cannot do this, such as save its lines if it has none.
	Unsupported Code = C.ECHOLESS_STATUS_UNSUPPORTED
	// Panicked: the library panicked, a defect. The filter rejects all later calls.
	Panicked Code = C.ECHOLESS_STATUS_PANICKED
)

var codeNames = map[Code]string{
	InvalidArgument: "invalid argument",
	InvalidSpec:     "invalid specification",
	OutOfMemory:     "out of memory",
	IO:              "input or output failed",
	InvalidState:    "invalid state",
	StateMismatch:   "state of another filter",
	PartitionLost:   "partition lost",
	TimedOut:        "time is over",
	Busy:            "filter in use",
	Unsupported:     "not supported by the filter",
	Panicked:        "the library panicked",
}

// Error returns the name of the code.
func (c Code) Error() string {
	if name, ok := codeNames[c]; ok {
		return "echoless: " + name
	}
	return fmt.Sprintf("echoless: status %d", int(c))
}

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("echoless: use after Close")

// An Error is the error of a call: a code that programs compare, and a text for people.
type Error struct {
	Code Code
	// Text is one line: what, where, what is allowed.
	Text string
	// cause is the error of the writer or reader that the program passed.
	cause error
}

// Error returns the text.
func (e *Error) Error() string { return "echoless: " + e.Text }

// Is reports whether target is the code of the error.
func (e *Error) Is(target error) bool { return target == e.Code }

// Unwrap returns the error of the writer or reader that the program passed, if that failed.
func (e *Error) Unwrap() error { return e.cause }

func invalidArgument(format string, values ...any) error {
	return &Error{Code: InvalidArgument, Text: fmt.Sprintf(format, values...)}
}

// failure is the error of a call, or nil. It frees the text.
func failure(result *C.go_result) error {
	if result.status == C.ECHOLESS_OK {
		return nil
	}
	text := C.GoString(result.error)
	C.free(unsafe.Pointer(result.error))
	return &Error{Code: Code(result.status), Text: text}
}

// oneLine is the text with escapes in place of control characters, of line and paragraph separators,
// and of the characters that change the direction of the text behind them, as in texts of the engine.
func oneLine(text string) string {
	var line strings.Builder
	for _, character := range text {
		if unicode.In(character, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			quoted := strconv.QuoteRune(character)
			line.WriteString(quoted[1 : len(quoted)-1])
		} else {
			line.WriteRune(character)
		}
	}
	return line.String()
}

// cString is a copy for C, to be freed. A NUL would end it early.
func cString(name, value string) (*C.char, error) {
	if strings.IndexByte(value, 0) >= 0 {
		return nil, invalidArgument("invalid %s=%q: expected no NUL", name, value)
	}
	return C.CString(value), nil
}
