// Package bench compares the filter with a map and with a Bloom filter, on one stream of keys.
// Every benchmark checks how many duplicates it finds.
package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"echoless"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	distinct = 2_000_000
	keys     = distinct * 5 / 4
	batch    = 1024
	fpr      = 1e-6
	spec     = "fingerprint:fpr=1e-6,memory=32MiB"
)

// numbers are the keys: a fifth of them are duplicates, of any age.
func numbers(count, distinct int) []uint64 {
	random := rand.New(rand.NewPCG(1, 2))
	stream := make([]uint64, 0, count)
	for next := uint64(0); len(stream) < count; {
		left, fresh := count-len(stream), distinct-int(next)
		if next > 0 && random.IntN(left) >= fresh {
			stream = append(stream, scatter(random.Uint64N(next)))
		} else {
			stream = append(stream, scatter(next))
			next++
		}
	}
	return stream
}

// scatter makes another number of each number, so that keys come in no order.
func scatter(number uint64) uint64 { return number * 0x9e37_79b9_7f4a_7c15 }

// texts are keys of 16 bytes.
func texts(numbers []uint64) [][]byte {
	all := make([]byte, 0, 16*len(numbers))
	list := make([][]byte, len(numbers))
	for i, number := range numbers {
		all = fmt.Appendf(all, "%016x", number)
		list[i] = all[16*i : 16*i+16 : 16*i+16]
	}
	return list
}

// A contender judges a stream and returns its duplicates, and what it remembers the keys in.
type contender struct {
	name  string
	judge func(stream) (duplicates int, seen any)
}

type stream struct {
	distinct int
	numbers  []uint64
	texts    [][]byte
}

func check(t testing.TB, s stream, duplicates int) {
	t.Helper()
	want := len(s.numbers) - s.distinct
	// False duplicates at the rate allowed, with room; misses only past the age that memory allows.
	if high := want + 20 + s.distinct/10_000; duplicates > high || duplicates < want*99/100 {
		t.Errorf("%d duplicates of %d", duplicates, want)
	}
}

var contenders = []contender{
	{"numbers/echoless", func(s stream) (int, any) {
		return observe(s, func(from, to int) echoless.Keys { return echoless.Numbers(s.numbers[from:to]) })
	}},
	{"numbers/map", func(s stream) (duplicates int, seen any) {
		known := make(map[uint64]struct{})
		for _, number := range s.numbers {
			if _, found := known[number]; found {
				duplicates++
			} else {
				known[number] = struct{}{}
			}
		}
		return duplicates, known
	}},
	{"numbers/bloom", func(s stream) (duplicates int, seen any) {
		filter := bloom.NewWithEstimates(uint(s.distinct), fpr)
		var key [8]byte
		for _, number := range s.numbers {
			binary.LittleEndian.PutUint64(key[:], number)
			if filter.TestOrAdd(key[:]) {
				duplicates++
			}
		}
		return duplicates, filter
	}},
	{"bytes16/echoless", func(s stream) (int, any) {
		return observe(s, func(from, to int) echoless.Keys { return echoless.Bytes(s.texts[from:to]) })
	}},
	{"bytes16/map", func(s stream) (duplicates int, seen any) {
		known := make(map[string]struct{})
		for _, text := range s.texts {
			if _, found := known[string(text)]; found {
				duplicates++
			} else {
				known[string(text)] = struct{}{}
			}
		}
		return duplicates, known
	}},
	{"bytes16/bloom", func(s stream) (duplicates int, seen any) {
		filter := bloom.NewWithEstimates(uint(s.distinct), fpr)
		for _, text := range s.texts {
			if filter.TestOrAdd(text) {
				duplicates++
			}
		}
		return duplicates, filter
	}},
}

func observe(s stream, of func(from, to int) echoless.Keys) (duplicates int, seen any) {
	filter, err := echoless.New(spec)
	if err != nil {
		panic(err)
	}
	for from := 0; from < len(s.numbers); from += batch {
		verdicts, err := filter.Observe(of(from, min(from+batch, len(s.numbers))))
		if err != nil {
			panic(err)
		}
		duplicates += verdicts.Count()
	}
	return duplicates, filter
}

// release is the memory of what remembers the keys, which is dropped.
func release(seen *any) uint64 {
	switch filter := (*seen).(type) {
	case *bloom.BloomFilter:
		return uint64(filter.Cap() / 8)
	case *echoless.Filter:
		defer filter.Close()
		report, err := filter.Report()
		if err != nil {
			panic(err)
		}
		return report.MemoryBytes
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	*seen = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	return before.HeapAlloc - after.HeapAlloc
}

// TestCounts runs a short stream, so that the benchmarks stay right.
func TestCounts(t *testing.T) {
	short := numbers(50_000, 40_000)
	s := stream{40_000, short, texts(short)}
	for _, c := range contenders {
		t.Run(c.name, func(t *testing.T) {
			duplicates, seen := c.judge(s)
			check(t, s, duplicates)
			if bytes := release(&seen); bytes < 50_000 {
				t.Errorf("%d bytes", bytes)
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	long := numbers(keys, distinct)
	s := stream{distinct, long, texts(long)}
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) {
			var bytes uint64
			for b.Loop() {
				duplicates, seen := c.judge(s)
				b.StopTimer()
				check(b, s, duplicates)
				bytes = release(&seen)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
			b.ReportMetric(float64(bytes)/(1<<20), "MiB")
		})
	}
}
