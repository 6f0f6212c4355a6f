package echoless

// #include "bridge.h"
import "C"

// Shared is a filter that all goroutines use at the same time. No call waits for another one. One such
// as "stamped:window=600,memory=64MiB" has a window, whose clock is the latest tick of all goroutines.
type Shared struct {
	anyFilter
}

// NewShared builds a shared filter from a specification such as "row4x16:memory=64MiB".
func NewShared(spec string, options ...Option) (*Shared, error) {
	s := new(Shared)
	if err := build(C.ECHOLESS_KIND_SHARED, spec, 1, options, s.init); err != nil {
		return nil, err
	}
	return s, nil
}

// Observe probes and inserts each key. Of equal keys of several goroutines, exactly one is fresh.
func (s *Shared) Observe(keys Keys) (Verdicts, error) {
	return s.judge(C.go_judgement(C.echoless_observe), &keys)
}

// Contains tells whether each key would be a duplicate now. It changes nothing in the filter.
func (s *Shared) Contains(keys Keys) (Verdicts, error) {
	return s.judge(C.go_judgement(C.echoless_contains), &keys)
}

// AdvanceTo moves the clock of a window to tick. An earlier tick has no effect, and neither has
// any without a window.
func (s *Shared) AdvanceTo(tick uint64) error {
	return s.set(C.go_setter(C.echoless_advance), tick)
}

// Clear removes all keys, while no goroutine observes any.
func (s *Shared) Clear() error { return s.run(C.go_command(C.echoless_clear)) }
