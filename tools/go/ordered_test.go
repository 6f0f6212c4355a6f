package echoless

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Goroutines take tickets under the lock of the input: the verdicts are those of one filter.
func TestAnOrderedFilterHasTheVerdictsOfOne(t *testing.T) {
	filter := newTestFilter(t, lines)
	ordered := must(NewOrdered(lines, 2))
	defer ordered.Close()
	const batches, size = 200, 150
	batch := func(number int) []string {
		keys := make([]string, size)
		for i := range keys {
			keys[i] = string(rune('a'+i%26)) + time.Duration(number*size/2+i).String()
		}
		return keys
	}
	var input sync.Mutex
	next := 0
	found := make([]Verdicts, batches)
	var wait sync.WaitGroup
	for range 3 {
		thread := must(ordered.Thread())
		wait.Add(1)
		go func() {
			defer wait.Done()
			defer thread.Close()
			for {
				input.Lock()
				number := next
				next++
				if number >= batches {
					input.Unlock()
					return
				}
				err := thread.Take()
				input.Unlock()
				verdicts, failed := thread.Observe(Strings(batch(number)))
				if err := errors.Join(err, failed); err != nil {
					t.Error(err)
					return
				}
				found[number] = verdicts
			}
		}()
	}
	wait.Wait()
	for number := range batches {
		want := must(filter.Observe(Strings(batch(number))))
		for i := range size {
			if found[number].Duplicate(i) != want.Duplicate(i) {
				t.Fatalf("batch %d, key %d: duplicate %v", number, i, !want.Duplicate(i))
			}
		}
	}
	if one, all := must(filter.Report()), must(ordered.Report()); one.Fresh != all.Fresh {
		t.Errorf("%d fresh of %d", all.Fresh, one.Fresh)
	}
	for _, f := range []interface{ MemoryBytes() (uint64, error) }{filter, ordered} {
		if bytes := must(f.MemoryBytes()); bytes != 1<<20 {
			t.Errorf("%d bytes", bytes)
		}
	}
}

func TestTicketsOfThreads(t *testing.T) {
	ordered := must(NewOrdered(lines, 2))
	one, two := must(ordered.Thread()), must(ordered.Thread())
	keys := Numbers([]uint64{7})
	if err := one.Take(); err != nil {
		t.Fatal(err)
	}
	if err := two.Wait(time.Millisecond); !errors.Is(err, TimedOut) {
		t.Error(err)
	}
	if err := errors.Join(one.Leave(), two.Wait(time.Minute)); err != nil {
		t.Error(err)
	}
	if must(two.Observe(keys)).Count() != 0 || must(one.Observe(keys)).Count() != 1 {
		t.Error("the second batch is not behind the first")
	}
	if _, err := one.Observe(Strings([]string{"a"}).At(nil)); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	// A batch without keys passes with its ticket.
	for _, none := range []Keys{Strings(nil), Numbers[uint64](nil), Bytes(nil)} {
		if err := one.Take(); err != nil {
			t.Fatal(err)
		}
		if must(one.Observe(none)).Count() != 0 || must(two.Observe(keys)).Count() != 1 {
			t.Error("verdicts of no keys")
		}
	}
	if _, err := NewOrdered(lines, 0); !errors.Is(err, InvalidSpec) {
		t.Error(err)
	}
	if err := errors.Join(one.Close(), two.Close(), ordered.Close()); err != nil {
		t.Error(err)
	}
	if _, err := ordered.Thread(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestAnOrderedFilterIsSavedAtAPoint(t *testing.T) {
	ordered := must(NewOrdered(lines, 2))
	defer ordered.Close()
	thread := must(ordered.Thread())
	must(thread.Observe(Numbers([]uint64{1, 2})))
	path := filepath.Join(t.TempDir(), "ordered.state")
	var called []string
	position := func() ([]byte, error) { called = append(called, "position"); return []byte("line 2"), nil }
	if err := ordered.SaveFileAt(path, func() { called = append(called, "before") }, position); err != nil {
		t.Fatal(err)
	}
	if len(called) != 2 || called[0] != "before" {
		t.Errorf("called %v", called)
	}
	again, bytes, err := LoadOrderedFile(path, 3)
	if err != nil || string(bytes) != "line 2" {
		t.Fatal(string(bytes), err)
	}
	defer again.Close()
	whole, _, err := LoadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	for _, observer := range []Observer{must(again.Thread()), whole} {
		if count := must(observer.Observe(Numbers([]uint64{1, 2, 3}))).Count(); count != 2 {
			t.Errorf("%d duplicates", count)
		}
	}
	failed := errors.New("no position")
	err = ordered.SaveFileAt(path, func() {}, func() ([]byte, error) { return nil, failed })
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	for _, stop := range []func() ([]byte, error){func() ([]byte, error) { panic(1) }, func() ([]byte, error) { return make([]byte, 70_000), nil }} {
		ending(func() {
			if err := ordered.SaveFileAt(path, func() {}, stop); err == nil {
				t.Error("saved without a position")
			}
		})
	}
	// The file of before is there, and the filter goes on.
	if _, bytes, err := LoadOrderedFile(path, 1); err != nil || string(bytes) != "line 2" {
		t.Error(err)
	}
	must(thread.Observe(Numbers([]uint64{3})))
	if err := ordered.SaveFile(path, []byte("line 3")); err != nil {
		t.Error(err)
	}
	if _, bytes, err := LoadOrderedFile(path, 1); err != nil || string(bytes) != "line 3" {
		t.Error(err)
	}
	if _, _, err := LoadOrderedFile(path+"none", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
