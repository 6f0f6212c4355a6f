package echoless

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/quick"
)

const lines = "fingerprint:fpr=1e-8,memory=1MiB"

// must is the value, in tests where an error is a failure of the test.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newTestFilter(t testing.TB, spec string, options ...Option) *Filter {
	t.Helper()
	filter, err := New(spec, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { filter.Close() })
	return filter
}

func TestVerdictsAreThoseOfASet(t *testing.T) {
	filter := newTestFilter(t, lines)
	// Batches of all sizes, with repeats in them and of earlier ones.
	property := func(raw [][]uint16) bool {
		if err := filter.Clear(); err != nil {
			t.Fatal(err)
		}
		seen := make(map[uint16]struct{})
		for _, batch := range raw {
			ids := make([]uint64, len(batch))
			for i, id := range batch {
				ids[i] = uint64(id % 128)
			}
			verdicts := must(filter.Observe(Numbers(ids)))
			count := 0
			for i, id := range batch {
				_, known := seen[id%128]
				seen[id%128] = struct{}{}
				if verdicts.Duplicate(i) != known {
					return false
				}
				if known {
					count++
				}
			}
			if verdicts.Count() != count || verdicts.Len() != len(batch) {
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 200}); err != nil {
		t.Error(err)
	}
}

func FuzzByteKeysAreThoseOfASet(f *testing.F) {
	f.Add([]byte("a,b,a,,long,,b"), byte(3))
	f.Add([]byte(strings.Repeat("x,yy,zzz,", 2000)), byte(0))
	f.Fuzz(func(t *testing.T, text []byte, batch byte) {
		filter := newTestFilter(t, lines)
		keys := strings.Split(string(text), ",")
		seen := make(map[string]struct{})
		size := int(batch)
		if size == 0 {
			size = len(keys)
		}
		for part := range slices.Chunk(keys, size) {
			verdicts := must(filter.Observe(Strings(part)))
			for i, key := range part {
				_, known := seen[key]
				seen[key] = struct{}{}
				if verdicts.Duplicate(i) != known {
					t.Fatalf("key %q: duplicate %v", key, !known)
				}
			}
		}
	})
}

func TestAllFormsOfKeysAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	// More than two blocks, with a part of a word at the end.
	const count = 5003
	numbers := make([]uint64, count)
	signed := make([]int64, count)
	slicesOf := make([][]byte, count)
	stringsOf := make([]string, count)
	var column []byte
	for i := range numbers {
		numbers[i] = random.Uint64N(3000)
		signed[i] = int64(numbers[i])
		slicesOf[i] = binary.LittleEndian.AppendUint64(nil, numbers[i])
		stringsOf[i] = string(slicesOf[i])
		column = append(column, slicesOf[i]...)
	}
	for _, options := range [][]Option{{}, {Seed(7)}, {Secret([16]byte{1})}} {
		filter := newTestFilter(t, lines, options...)
		hashes := must(filter.Hash(Bytes(slicesOf)))
		var first Verdicts
		for name, keys := range map[string]Keys{
			"bytes": Bytes(slicesOf), "strings": Strings(stringsOf), "fixed": Fixed(column, 8),
			"hashes": Hashes(hashes), "numbers": Numbers(numbers), "signed": Numbers(signed),
		} {
			if err := filter.Clear(); err != nil {
				t.Fatal(err)
			}
			if found := must(filter.Contains(keys)); found.Count() != 0 {
				t.Errorf("%s: %d keys in an empty filter", name, found.Count())
			}
			verdicts := must(filter.Observe(keys))
			if first.Len() == 0 {
				first = verdicts
			}
			if !slices.Equal(verdicts.Words(), first.Words()) || verdicts.Count() != first.Count() {
				t.Errorf("%s: other verdicts", name)
			}
			if found := must(filter.Contains(keys)); found.Count() != count {
				t.Errorf("%s: contains %d of %d", name, found.Count(), count)
			}
			if name != "numbers" && name != "signed" && !slices.Equal(must(filter.Hash(keys)), hashes) {
				t.Errorf("%s: other hashes", name)
			}
		}
		must(filter.Observe(Bytes(slicesOf)))
		one := must(filter.Observe(One(slicesOf[0])))
		fresh := must(filter.Observe(One(nil)))
		if !one.Duplicate(0) || fresh.Duplicate(0) {
			t.Error("a single key")
		}
		if again := must(filter.Observe(Strings([]string{""}))); !again.Duplicate(0) {
			t.Error("the empty key")
		}
	}
}

func TestSeedsAndSecretsGiveOtherHashes(t *testing.T) {
	keys := Strings([]string{"call 17"})
	seen := make(map[uint64]bool)
	for _, options := range [][]Option{
		{}, {Seed(1)}, {Secret([16]byte{})}, {Secret([16]byte{1})},
	} {
		seen[must(newTestFilter(t, lines, options...).Hash(keys))[0]] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d different hashes of 4", len(seen))
	}
}

func TestLongKeysEndABlock(t *testing.T) {
	filter := newTestFilter(t, lines)
	keys := make([][]byte, 300)
	for i := range keys {
		keys[i] = make([]byte, 40_000)
		keys[i][39_999] = byte(i % 200)
	}
	verdicts := must(filter.Observe(Bytes(keys)))
	if verdicts.Count() != 100 || verdicts.Duplicate(199) || !verdicts.Duplicate(200) {
		t.Errorf("%d duplicates of 100", verdicts.Count())
	}
}

func TestWindowForgets(t *testing.T) {
	filter := newTestFilter(t, "clocked:window=60,refresh=false,form=line,memory=1MiB")
	keys := Numbers([]uint64{7, 7, 7})
	verdicts := must(filter.Observe(keys.At([]uint64{100, 160, 221})))
	if got := slices.Collect(verdicts.Duplicates()); !slices.Equal(got, []int{1}) {
		t.Errorf("duplicates %v", got)
	}
	if err := filter.AdvanceTo(1000); err != nil {
		t.Fatal(err)
	}
	if must(filter.Contains(keys)).Count() != 0 {
		t.Error("a key is there after its window")
	}
	report := must(filter.Report())
	if report.Observed != 3 || report.Fresh != 2 || report.WindowTicks != 60 {
		t.Errorf("%+v", report)
	}
	// Ticks go with their keys over the end of a block.
	const count = 5000
	names, ticks := make([]string, count), make([]uint64, count)
	for i := range names {
		names[i], ticks[i] = fmt.Sprint(i/2), uint64(2000+i/2*1000+i%2*100*(i/2%2))
	}
	verdicts = must(filter.Observe(Strings(names).At(ticks)))
	for i := range names {
		if want := i%2 == 1 && i/2%2 == 0; verdicts.Duplicate(i) != want {
			t.Fatalf("key %d at %d: duplicate %v", i, ticks[i], !want)
		}
	}
}

func TestVerdictsIterate(t *testing.T) {
	filter := newTestFilter(t, lines)
	ids := make([]uint64, 130)
	for i := range ids {
		ids[i] = uint64(i % 100)
	}
	verdicts := must(filter.Observe(Numbers(ids)))
	duplicates, fresh := slices.Collect(verdicts.Duplicates()), slices.Collect(verdicts.Fresh())
	if len(duplicates) != 30 || duplicates[0] != 100 || duplicates[29] != 129 {
		t.Errorf("duplicates %v", duplicates)
	}
	if len(fresh) != 100 || fresh[0] != 0 || fresh[99] != 99 {
		t.Errorf("fresh %v", fresh)
	}
	for range verdicts.Duplicates() {
		break
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic behind the last key")
		}
	}()
	verdicts.Duplicate(130)
}

func TestReportAndSpec(t *testing.T) {
	filter := newTestFilter(t, lines)
	must(filter.Observe(Numbers([]uint64{1, 2, 1})))
	report := must(filter.Report())
	if report.Observed != 3 || report.Fresh != 2 || report.MemoryBytes != 1<<20 {
		t.Errorf("%+v", report)
	}
	if report.WindowTicks != 0 || report.Expired != Unknown || !math.IsNaN(report.MostFPR) {
		t.Errorf("a filter without a window: %+v", report)
	}
	if !(report.ExpectedFPR < 1e-8) {
		t.Errorf("%+v", report)
	}
	spec := must(filter.Spec())
	if !strings.Contains(spec, "memory=1MiB") {
		t.Errorf("specification %q", spec)
	}
	// It builds the same filter.
	if again := must(newTestFilter(t, spec).Spec()); again != spec {
		t.Errorf("%q becomes %q", spec, again)
	}
}

// An IPv4 packet in front of a router and behind it: the time to live and the checksum differ.
func routed(ttl byte) []byte {
	frame := make([]byte, 60)
	frame[12] = 8
	copy(frame[14:], []byte{0x45, 0, 0, 46, 0, 7, 0, 0, ttl, 17, 100 + ttl, 0})
	copy(frame[26:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	return frame
}

func TestPackets(t *testing.T) {
	filter := newTestFilter(t, lines)
	reader := must(NewPacketKeys(Ethernet, PacketOptions{}))
	packets := []Packet{{Data: routed(64)}, {Data: routed(63), Length: 60}}
	if must(filter.Observe(reader.Of(packets))).Count() != 1 {
		t.Error("a routed copy is no duplicate")
	}
	exact := must(NewPacketKeys(Ethernet, PacketOptions{Ignore: "mac"}))
	defer exact.Close()
	if must(filter.Observe(exact.Of(packets))).Count() != 0 {
		t.Error("with the time to live compared, a routed copy is a duplicate")
	}
	// More than a block.
	many := make([]Packet, 5000)
	for i := range many {
		data := routed(64)
		binary.BigEndian.PutUint16(data[50:], uint16(i%4000))
		many[i] = Packet{Data: data}
	}
	if count := must(filter.Observe(exact.Of(many))).Count(); count != 1001 {
		t.Errorf("%d duplicates of 1001", count)
	}
	if _, err := NewPacketKeys(Ethernet, PacketOptions{Ignore: "nonsense"}); !errors.Is(err, InvalidSpec) {
		t.Error(err)
	}
	many[0].Length = -1
	if _, err := filter.Observe(exact.Of(many)); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if _, err := filter.Observe(reader.Of(packets)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestSharedWindowForgets(t *testing.T) {
	shared := must(NewShared("stamped:window=60,memory=1MiB"))
	defer shared.Close()
	keys := Numbers([]uint64{7, 7, 7})
	verdicts := must(shared.Observe(keys.At([]uint64{100, 160, 221})))
	if got := slices.Collect(verdicts.Duplicates()); !slices.Equal(got, []int{1}) {
		t.Errorf("duplicates %v", got)
	}
	if err := shared.AdvanceTo(1000); err != nil {
		t.Fatal(err)
	}
	if must(shared.Contains(keys)).Count() != 0 {
		t.Error("a key is there after its window")
	}
	if report := must(shared.Report()); report.Fresh != 2 || report.WindowTicks != 60 {
		t.Errorf("%+v", report)
	}
}

func TestSharedHasOneFreshForEachKey(t *testing.T) {
	shared := must(NewShared("row4x16:memory=1MiB", Seed(3)))
	defer shared.Close()
	const keys, goroutines = 20_000, 8
	var wait sync.WaitGroup
	fresh := make([]int, goroutines)
	for g := range goroutines {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for from := 0; from < keys; from += 100 {
				names := make([]string, 100)
				for i := range names {
					names[i] = fmt.Sprint(from + i)
				}
				fresh[g] += 100 - must(shared.Observe(Strings(names))).Count()
			}
		}()
	}
	wait.Wait()
	total := 0
	for _, count := range fresh {
		total += count
	}
	// Each key once; at 16 bits some keys are taken for others.
	if total > keys || total < keys*99/100 {
		t.Errorf("%d fresh of %d keys", total, keys)
	}
	if report := must(shared.Report()); report.Observed != keys*goroutines && report.Observed != Unknown {
		t.Errorf("%+v", report)
	}
	if must(shared.Contains(Strings([]string{"17"}))).Count() != 1 {
		t.Error("a key is lost")
	}
	if err := shared.Clear(); err != nil {
		t.Fatal(err)
	}
	if must(shared.Contains(Strings([]string{"17"}))).Count() != 0 {
		t.Error("a key is there after Clear")
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, batch := range []int{1, 32, 1024, 65536} {
		random := rand.New(rand.NewPCG(1, 2))
		numbers := make([]uint64, batch)
		slicesOf := make([][]byte, batch)
		var column []byte
		for i := range numbers {
			numbers[i] = random.Uint64N(1 << 20)
			slicesOf[i] = fmt.Appendf(nil, "%016x", numbers[i])
			column = append(column, slicesOf[i]...)
		}
		for _, form := range []struct {
			name string
			keys Keys
		}{
			{"hashes", Hashes(numbers)}, {"numbers", Numbers(numbers)},
			{"fixed16", Fixed(column, 16)}, {"bytes16", Bytes(slicesOf)},
		} {
			b.Run(fmt.Sprintf("%s/%d", form.name, batch), func(b *testing.B) {
				filter := newTestFilter(b, "fingerprint:fpr=1e-8,memory=16MiB")
				for range b.N {
					must(filter.Observe(form.keys))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/key")
			})
		}
	}
}
