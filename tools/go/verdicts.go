package echoless

import (
	"iter"
	"math/bits"
)

// Verdicts are the answers for the keys of one call, in their order.
type Verdicts struct {
	// Bit i%64 of words[i/64] is set if key i is a duplicate. Bits past the last key are zero.
	words []uint64
	keys  int
	count int
}

// Len is the number of keys.
func (v Verdicts) Len() int { return v.keys }

// Count is the number of duplicates.
func (v Verdicts) Count() int { return v.count }

// Duplicate reports whether key i is a duplicate. It panics if there is no such key.
func (v Verdicts) Duplicate(i int) bool {
	if uint(i) >= uint(v.keys) {
		panic("echoless: index of a verdict out of range")
	}
	return v.words[i/64]>>(i%64)&1 == 1
}

// Words are the bits: bit i%64 of word i/64 is set if key i is a duplicate.
func (v Verdicts) Words() []uint64 { return v.words }

// Duplicates are the indices of the duplicates, ascending.
func (v Verdicts) Duplicates() iter.Seq[int] { return v.indices(0) }

// Fresh are the indices of the keys that are no duplicates, ascending.
func (v Verdicts) Fresh() iter.Seq[int] { return v.indices(^uint64(0)) }

// indices are those of the bits that differ from those of flip.
func (v Verdicts) indices(flip uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for number, word := range v.words {
			for rest := word ^ flip; rest != 0; rest &= rest - 1 {
				i := number*64 + bits.TrailingZeros64(rest)
				if i >= v.keys || !yield(i) {
					return
				}
			}
		}
	}
}
