package echoless

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestErrorsHaveACodeAndTheTextOfTheEngine(t *testing.T) {
	for _, wrong := range []struct {
		spec, words string
		code        Code
	}{
		{"fingerprint:fpr=1e-8", "memory", InvalidSpec},
		{"fingerprint:fpr=2,memory=1MiB", "invalid fpr=2", InvalidSpec},
		{"nonsense", "nonsense", InvalidSpec},
		{"\xff", "UTF-8", InvalidArgument},
		{"dense\x00:memory=1MiB", "NUL", InvalidArgument},
	} {
		filter, err := New(wrong.spec)
		var typed *Error
		if filter != nil || !errors.Is(err, wrong.code) || !errors.As(err, &typed) {
			t.Errorf("%q: %v", wrong.spec, err)
		} else if typed.Code != wrong.code || !strings.Contains(typed.Text, wrong.words) {
			t.Errorf("%q: %v, code %v", wrong.spec, err, typed.Code)
		}
	}
	if _, err := NewShared("row4x16"); !errors.Is(err, InvalidSpec) {
		t.Error(err)
	}
	if _, err := New(lines, MemoryLimit(1)); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if errors.Is(must2(New("nonsense")), Busy) {
		t.Error("another code")
	}
}

func must2[T any](_ T, err error) error { return err }

func TestErrorsOfManyGoroutinesKeepTheirText(t *testing.T) {
	var wait sync.WaitGroup
	for _, name := range []string{"apple", "pear", "plum", "cherry"} {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 500 {
				if _, err := New(name); !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %v", name, err)
				}
				runtime.Gosched()
			}
		}()
	}
	wait.Wait()
}

func TestWrongKeysAreErrors(t *testing.T) {
	filter := newTestFilter(t, lines)
	for name, keys := range map[string]Keys{
		"zero":       {},
		"few ticks":  Numbers([]uint64{1, 2}).At([]uint64{1}),
		"nil ticks":  Strings([]string{"a"}).At(nil),
		"odd width":  Fixed(make([]byte, 10), 3),
		"no width":   Fixed(make([]byte, 10), 0),
		"negative":   Fixed(make([]byte, 10), -5),
		"packet len": must(NewPacketKeys(Ethernet, PacketOptions{})).Of([]Packet{{Length: 1 << 33}}),
	} {
		for _, call := range []func(Keys) error{
			func(keys Keys) error { return must2(filter.Observe(keys)) },
			func(keys Keys) error { return must2(filter.Contains(keys)) },
			func(keys Keys) error { return must2(filter.Hash(keys)) },
		} {
			if err := call(keys); !errors.Is(err, InvalidArgument) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, keys := range map[string]Keys{
		"numbers": Numbers[uint64](nil), "bytes": Bytes(nil), "strings": Strings([]string{}),
		"fixed": Fixed(nil, 8), "timed": Numbers([]int64{}).At(nil),
	} {
		if verdicts, err := filter.Observe(keys); err != nil || verdicts.Len() != 0 {
			t.Errorf("no %s: %v", name, err)
		}
	}
	if report := must(filter.Report()); report.Observed != 0 {
		t.Errorf("%d keys were judged", report.Observed)
	}
}

func TestUseAfterCloseIsAnError(t *testing.T) {
	filter, shared := must(New(lines)), must(NewShared("row4x16:memory=1MiB"))
	if err := errors.Join(filter.Close(), shared.Close()); err != nil {
		t.Fatal(err)
	}
	keys := Numbers([]uint64{1})
	for name, err := range map[string]error{
		"Close":           filter.Close(),
		"Observe":         must2(filter.Observe(keys)),
		"Contains":        must2(filter.Contains(keys)),
		"Hash":            must2(filter.Hash(keys)),
		"AdvanceTo":       filter.AdvanceTo(1),
		"Clear":           filter.Clear(),
		"Report":          must2(filter.Report()),
		"Spec":            must2(filter.Spec()),
		"Lines":           must2(filter.Lines()),
		"Save":            filter.Save(io.Discard, nil),
		"SaveFile":        filter.SaveFile("never", nil),
		"SaveLines":       filter.SaveLines(io.Discard, 0, 1, nil),
		"MemoryBytes":     must2(filter.MemoryBytes()),
		"shared Close":    shared.Close(),
		"shared Observe":  must2(shared.Observe(keys)),
		"shared Contains": must2(shared.Contains(keys)),
		"shared Clear":    shared.Clear(),
		"shared Report":   must2(shared.Report()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A goroutine that closes a filter while others use it: a verdict or ErrClosed, nothing else.
func TestCloseRacesCalls(t *testing.T) {
	for range 50 {
		shared := must(NewShared("row4x16:memory=64KiB"))
		var wait sync.WaitGroup
		for range 4 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for {
					_, err := shared.Observe(Strings([]string{"a", "b"}))
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		runtime.Gosched()
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
		wait.Wait()
	}
}

func TestAFilterInUseIsBusy(t *testing.T) {
	filter := newTestFilter(t, lines)
	// The writer of a state runs in the middle of a call.
	var inside error
	err := filter.Save(writerFunc(func(p []byte) (int, error) {
		inside = must2(filter.Observe(Numbers([]uint64{1})))
		return len(p), nil
	}), nil)
	if err != nil || !errors.Is(inside, Busy) {
		t.Errorf("%v; inside: %v", err, inside)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Filters that nobody closes are freed, and never under a call.
func TestCleanupsRaceCalls(t *testing.T) {
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Add(1)
	go func() {
		defer collector.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	var wait sync.WaitGroup
	for range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range uint64(300) {
				filter := must(New("fingerprint:fpr=1e-3,memory=64KiB"))
				// The last use is in the middle of the call.
				if verdicts := must(filter.Observe(Numbers([]uint64{i, i}))); verdicts.Count() != 1 {
					t.Error("other verdicts")
				}
			}
		}()
	}
	wait.Wait()
	close(stop)
	collector.Wait()
}

func TestAFilterThatNobodyClosesIsFreed(t *testing.T) {
	filter := must(New(lines))
	// The same handle, without a cleanup of its own.
	copied := new(Filter)
	copied.handle.number.Store(filter.handle.number.Load())
	must(copied.Lines())
	runtime.KeepAlive(filter)
	filter = nil
	for range 1000 {
		runtime.GC()
		runtime.Gosched()
		if _, err := copied.Lines(); errors.Is(err, InvalidArgument) {
			return
		}
	}
	t.Error("the filter is still there")
}
