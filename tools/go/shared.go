package echoless

// #include "bridge.h"
import "C"

// Shared is a filter that all goroutines use at the same time. No call waits for another one, and of
// equal keys of several goroutines, exactly one is fresh. One such as
// "stamped:window=600,memory=64MiB" has a window, whose clock is the latest tick of all goroutines.
type Shared struct {
	wholeFilter
}

// NewShared builds a shared filter from a specification such as "row4x16:memory=64MiB".
func NewShared(spec string, options ...Option) (*Shared, error) {
	return build(new(Shared), C.ECHOLESS_KIND_SHARED, spec, 1, options)
}
