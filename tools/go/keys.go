package echoless

// #include "bridge.h"
// #cgo noescape go_judge
// #cgo nocallback go_judge
import "C"

import (
	"math"
	"runtime"
	"sync"
	"unsafe"
)

// Keys are the keys of one call. They are made by Numbers, Hashes, Bytes, Strings, Fixed, Packed
// and PacketKeys.Of, which only point to them, so they must not change before the call has ended.
type Keys struct {
	form    uint32
	count   int
	numbers []uint64
	bytes   [][]byte
	strings []string
	column  []byte
	// Of 32 or 64 bits, as the form says.
	offsets *int32
	width   int
	packets []Packet
	reader  *PacketKeys
	timed   bool
	ticks   []uint64
	wrong   error
}

// Numbers are keys of 64 bits, such as ids.
func Numbers[T ~uint64 | ~int64](numbers []T) Keys {
	// The same bits, whether they have a sign or not.
	data := (*uint64)(unsafe.Pointer(unsafe.SliceData(numbers)))
	return Keys{
		form:    C.ECHOLESS_FORM_NUMBERS,
		count:   len(numbers),
		numbers: unsafe.Slice(data, len(numbers)),
	}
}

// Hashes are keys that a program has hashed itself, to values that are uniform in all 64 bits. Ids
// and counters are not: they are Numbers.
func Hashes(hashes []uint64) Keys {
	return Keys{form: C.ECHOLESS_FORM_HASHES, count: len(hashes), numbers: hashes}
}

// Bytes are keys of any length.
func Bytes(keys [][]byte) Keys {
	return Keys{form: C.ECHOLESS_FORM_PACKED64, count: len(keys), bytes: keys}
}

// Strings are keys of any length. A string and a byte slice of the same bytes are the same key.
func Strings(keys []string) Keys {
	return Keys{form: C.ECHOLESS_FORM_PACKED64, count: len(keys), strings: keys}
}

// Fixed are keys of width bytes each behind each other, without a copy of them.
func Fixed(keys []byte, width int) Keys {
	if width <= 0 || len(keys)%width != 0 {
		return Keys{wrong: invalidArgument(
			"invalid width=%d: expected a divisor of the %d bytes", width, len(keys))}
	}
	return Keys{
		form: C.ECHOLESS_FORM_FIXED, count: len(keys) / width, column: keys, width: width,
	}
}

// Packed are keys behind each other, without a copy of them, as in a column of Arrow: key i is
// bytes[offsets[i]:offsets[i+1]], so there is one offset more than keys. Offsets of 32 bits are those
// of utf8 and binary.
func Packed[T ~int32 | ~int64](bytes []byte, offsets []T) Keys {
	if len(offsets) == 0 {
		return Keys{wrong: invalidArgument("invalid offsets: expected one more than keys")}
	}
	// The engine checks those before.
	if end := int64(offsets[len(offsets)-1]); end > int64(len(bytes)) {
		return Keys{wrong: invalidArgument(
			"invalid offset=%d: expected at most %d, the number of bytes", end, len(bytes))}
	}
	form := uint32(C.ECHOLESS_FORM_PACKED64)
	if unsafe.Sizeof(offsets[0]) == 4 {
		form = C.ECHOLESS_FORM_PACKED32
	}
	return Keys{
		form: form, count: len(offsets) - 1, column: bytes,
		offsets: (*int32)(unsafe.Pointer(unsafe.SliceData(offsets))),
	}
}

// One is a single key.
func One(key []byte) Keys {
	return Keys{form: C.ECHOLESS_FORM_FIXED, count: 1, column: key, width: len(key)}
}

// At are the same keys, each at its own tick, for a filter with a window: in any unit, ascending
// but for a lateness that the window forgives. There are as many ticks as keys.
func (k Keys) At(ticks []uint64) Keys {
	k.timed, k.ticks = true, ticks
	return k
}

// Len is the number of keys.
func (k Keys) Len() int { return k.count }

// check is the error of keys that do not fit.
func (k *Keys) check() error {
	if k.wrong != nil {
		return k.wrong
	}
	if k.form == 0 {
		return invalidArgument("invalid Keys: expected those of Numbers, Bytes or another function")
	}
	if k.timed && len(k.ticks) != k.count {
		return invalidArgument(
			"invalid number of ticks=%d: expected %d, one for each key", len(k.ticks), k.count)
	}
	for i, packet := range k.packets {
		if len(packet.Data) > math.MaxUint32 || uint64(packet.Length) > math.MaxUint32 {
			return invalidArgument("invalid length of packet %d: expected 0 to 4294967295", i)
		}
	}
	return nil
}

// judge runs a call, or hashes without one, on all keys: at once where C can read them, else in packed blocks.
func (k *Keys) judge(call C.go_judgement, handle uintptr, out []uint64) (int, error) {
	if err := k.check(); err != nil {
		return 0, err
	}
	next := block{
		call: call, handle: handle, form: k.form, width: k.width,
		count: k.count, out: out, ticks: k.ticks,
	}
	switch {
	case k.form == C.ECHOLESS_FORM_FIXED || k.offsets != nil:
		next.data, next.offsets = unsafe.SliceData(k.column), k.offsets
		return next.run()
	case k.form == C.ECHOLESS_FORM_NUMBERS || k.form == C.ECHOLESS_FORM_HASHES:
		next.data = (*byte)(unsafe.Pointer(unsafe.SliceData(k.numbers)))
		return next.run()
	case k.form == C.ECHOLESS_FORM_PACKETS:
		number, err := k.reader.open()
		if err != nil {
			return 0, err
		}
		next.reader = number
		defer runtime.KeepAlive(k.reader)
	}
	packed := pool.Get().(*packed)
	defer packed.put()
	found := 0
	for from := 0; from < k.count; from += next.count {
		next.count = packed.fill(k, from)
		next.data = unsafe.SliceData(packed.bytes)
		next.offsets = (*int32)(unsafe.Pointer(unsafe.SliceData(packed.offsets)))
		next.lengths = unsafe.SliceData(packed.lengths)
		if k.timed {
			next.ticks = k.ticks[from:]
		}
		more, err := next.run()
		if err != nil {
			return 0, err
		}
		found += more
		if call == nil {
			next.out = next.out[next.count:]
		} else {
			next.out = next.out[(next.count+63)/64:]
		}
	}
	return found, nil
}

// A block is one call of C.
type block struct {
	call    C.go_judgement
	handle  uintptr
	form    uint32
	width   int
	count   int
	data    *byte
	offsets *int32
	lengths *uint32
	reader  uintptr
	ticks   []uint64
	out     []uint64
}

func (b *block) run() (int, error) {
	if b.count == 0 {
		return 0, nil
	}
	// Pointers to memory without pointers pass without a check.
	result := C.go_judge(
		b.call,
		C.uintptr_t(b.handle),
		C.uint32_t(b.form),
		C.size_t(b.width),
		C.size_t(b.count),
		(*C.uint8_t)(b.data),
		(*C.int32_t)(b.offsets),
		(*C.uint32_t)(b.lengths),
		C.uintptr_t(b.reader),
		(*C.uint64_t)(unsafe.SliceData(b.ticks)),
		(*C.uint64_t)(unsafe.SliceData(b.out)),
	)
	return int(result.value), failure(&result)
}

// packed is a copy of keys behind each other: Go pointers in Go memory may not pass to C, unless
// each key is pinned, which costs as much as to copy 1,000 bytes.
type packed struct {
	bytes   []byte
	offsets []int64
	lengths []uint32
}

// Blocks of so many bytes stay in the second-level cache until C reads them.
const blockBytes = 256 << 10

var pool = sync.Pool{New: func() any { return new(packed) }}

func (p *packed) put() {
	// Memory for unusually long keys is given back.
	if cap(p.bytes) <= 4*blockBytes {
		pool.Put(p)
	}
}

// fill copies the keys of a block from number from on, and returns how many. Only the last block is
// not one of whole words of verdicts.
func (p *packed) fill(keys *Keys, from int) int {
	p.bytes, p.lengths = p.bytes[:0], p.lengths[:0]
	p.offsets = append(p.offsets[:0], 0)
	switch {
	case keys.bytes != nil:
		fill(p, keys.bytes[from:])
	case keys.strings != nil:
		fill(p, keys.strings[from:])
	default:
		for i, packet := range keys.packets[from:] {
			if p.full(i) {
				break
			}
			p.bytes = append(p.bytes, packet.Data...)
			p.offsets = append(p.offsets, int64(len(p.bytes)))
			length := packet.Length
			if length == 0 {
				length = len(packet.Data)
			}
			p.lengths = append(p.lengths, uint32(length))
		}
	}
	return len(p.offsets) - 1
}

func fill[K []byte | string](p *packed, keys []K) {
	for i, key := range keys {
		if p.full(i) {
			break
		}
		p.bytes = append(p.bytes, key...)
		p.offsets = append(p.offsets, int64(len(p.bytes)))
	}
}

// full reports whether the block ends in front of its key number i.
func (p *packed) full(i int) bool {
	return i%64 == 0 && (i == C.GO_BLOCK_KEYS || len(p.bytes) >= blockBytes)
}
