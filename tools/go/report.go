package echoless

// #include "bridge.h"
import "C"

import (
	"math"
)

// Unknown is a count that a filter does not keep. A rate or an age that is unknown is NaN.
const Unknown = math.MaxUint64

// A Report has the counters and error estimates of a filter.
type Report struct {
	// MemoryBytes is the memory of the filter's state.
	MemoryBytes uint64
	// Observed are the keys observed, fresh and duplicate.
	Observed uint64
	// Fresh are the keys reported as fresh.
	Fresh uint64
	// Evictions are the keys evicted, in a filter with a window before they expired. While this is
	// 0, no duplicate of a recorded key was missed.
	Evictions uint64
	// Expired are the keys that were forgotten because their window was over.
	Expired uint64
	// Fill is the fraction of the cells (bits, counters or slots) that is occupied.
	Fill float64
	// ExpectedFPR is the probability that a key that was never seen would be reported as a
	// duplicate now.
	ExpectedFPR float64
	// MostFPR is the highest ExpectedFPR, that with every cell occupied, of a filter with a window.
	MostFPR float64
	// ExpectedFalseDuplicates is an upper bound of the expected number of keys so far that were
	// reported as duplicates but never seen before.
	ExpectedFalseDuplicates float64
	// MissAge is the age, in distinct keys, up to which at most 1 duplicate in 1000 is missed.
	MissAge float64
	// WindowTicks is the window, 0 without one.
	WindowTicks uint64
}

func (h *handle) report() (Report, error) {
	report := C.echoless_report{size: C.sizeof_echoless_report}
	_, err := h.call(func(number C.uintptr_t) C.go_result { return C.go_report(number, &report) })
	if err != nil {
		return Report{}, err
	}
	return Report{
		MemoryBytes:             uint64(report.memory_bytes),
		Observed:                uint64(report.observed),
		Fresh:                   uint64(report.fresh),
		Evictions:               uint64(report.evictions),
		Expired:                 uint64(report.expired),
		Fill:                    float64(report.fill),
		ExpectedFPR:             float64(report.expected_fpr),
		MostFPR:                 float64(report.most_fpr),
		ExpectedFalseDuplicates: float64(report.expected_false_duplicates),
		MissAge:                 float64(report.miss_age),
		WindowTicks:             uint64(report.window_ticks),
	}, nil
}
