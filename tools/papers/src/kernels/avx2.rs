//! The bits of a line in two 256-bit registers, the lower half first.
//!
//! ```text
//!      halves[1]                     halves[0]
//! | w7 | w6 | w5 | w4 |         | w3 | w2 | w1 | w0 |      64-bit words
//! ```

#![allow(unsafe_code)] // intrinsics; the token `Avx2` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::lanes::{LaneOps, Numbers, Spread};
use super::ops::{BitOps, Filters, LINE_BITS, WORD_STARTS};
use echoless::extend::Avx2;
use echoless::memory::Line;

type Halves = [__m256i; 2];

/// Loads a line. The token is the proof that the CPU has AVX2.
#[inline(always)]
fn halves(token: Avx2, line: &Line) -> Halves {
    let _ = token;
    let first: *const __m256i = (&raw const *line).cast();
    // SAFETY: the token proves AVX2. A `Line` is 64 bytes aligned to 64, so both halves are aligned
    // loads inside it.
    unsafe { [_mm256_load_si256(first), _mm256_load_si256(first.add(1))] }
}

/// Applies an operation to each half. `array::map` is not always inlined, and its closures are then
/// compiled without AVX2: a call for each intrinsic.
#[inline(always)]
fn each(halves: Halves, each: impl Fn(__m256i) -> __m256i) -> Halves {
    [each(halves[0]), each(halves[1])]
}

/// Applies an operation to both halves.
#[inline(always)]
fn both(left: Halves, right: Halves, each: impl Fn(__m256i, __m256i) -> __m256i) -> Halves {
    [each(left[0], right[0]), each(left[1], right[1])]
}

impl BitOps for Avx2 {
    type Bits = Halves;

    /// All ones in each word that is chosen.
    type Words = Halves;

    #[inline(always)]
    fn load(self, line: &Line) -> Halves {
        halves(self, line)
    }

    #[inline(always)]
    fn store(self, bits: Halves, line: &mut Line) {
        let first: *mut __m256i = (&raw mut *line).cast();
        // SAFETY: `self` proves AVX2. A `Line` is 64 bytes aligned to 64, so both halves are
        // aligned stores inside it.
        unsafe {
            _mm256_store_si256(first, bits[0]);
            _mm256_store_si256(first.add(1), bits[1]);
        }
    }

    #[inline(always)]
    fn bit(self, position: u32, set: bool) -> Halves {
        debug_assert!(position < LINE_BITS);
        // `position ^ start` is below 64 only in the word of the position, where the high bits are
        // equal. `sllv` by 64 or more gives zero, so that the other words stay empty.
        //
        //   position 130    w3: start 192    w2: start 128    w1: start 64    w0: start 0
        //   xor                       66                2              194             130
        //   set << xor                 0            set<<2               0               0
        each(halves(self, &WORD_STARTS), |starts| {
            registers!({
                let here = _mm256_xor_si256(_mm256_set1_epi64x(i64::from(position)), starts);
                _mm256_sllv_epi64(_mm256_set1_epi64x(i64::from(set)), here)
            })
        })
    }

    #[inline(always)]
    fn below(self, end: u32) -> Halves {
        debug_assert!(end <= LINE_BITS);
        // `end - start` bits of each word: none if it is negative, all 64 if it is 64 or more,
        // since `sllv` then gives zero and 0 - 1 is all ones.
        each(halves(self, &WORD_STARTS), |starts| {
            registers!({
                let here = _mm256_sub_epi64(_mm256_set1_epi64x(i64::from(end)), starts);
                // AVX2 has no 64-bit maximum. A difference of positions fits in 32 bits, and its
                // upper half, -1 or 0, becomes 0 as well.
                let here = _mm256_max_epi32(here, _mm256_setzero_si256());
                let one = _mm256_set1_epi64x(1);
                _mm256_sub_epi64(_mm256_sllv_epi64(one, here), one)
            })
        })
    }

    #[inline(always)]
    fn in_each<const K: u32>(self, positions: u64) -> Halves {
        // In each word: shift the packed positions until that of its filter is lowest, cut it off,
        // then as in `bit`. `starts` counts within the filter, so that only one word of each filter
        // gets a bit.
        let shifts = halves(self, const { &Filters::<K>::SHIFTS });
        let starts = halves(self, const { &Filters::<K>::STARTS });
        both(shifts, starts, |shifts, starts| {
            registers!({
                let mask = _mm256_set1_epi64x(i64::from(Filters::<K>::WIDTH - 1));
                let position = _mm256_srlv_epi64(_mm256_set1_epi64x(positions as i64), shifts);
                let here = _mm256_xor_si256(_mm256_and_si256(position, mask), starts);
                _mm256_sllv_epi64(_mm256_set1_epi64x(1), here)
            })
        })
    }

    #[inline(always)]
    fn at_lanes(self, lanes: __m128i, spread: &Spread) -> Halves {
        let first = halves(self, &spread.first);
        let second = halves(self, &spread.second);
        let starts = halves(self, &WORD_STARTS);
        registers!({
            let lanes = _mm256_broadcastsi128_si256(lanes);
            // In words that a position is not in, the difference is at least 64, or negative and
            // so huge without a sign: `sllv` gives zero for both.
            let bits = |shuffle, starts| {
                let position = _mm256_shuffle_epi8(lanes, shuffle);
                _mm256_sllv_epi64(_mm256_set1_epi64x(1), _mm256_sub_epi64(position, starts))
            };
            [
                _mm256_or_si256(bits(first[0], starts[0]), bits(second[0], starts[0])),
                _mm256_or_si256(bits(first[1], starts[1]), bits(second[1], starts[1])),
            ]
        })
    }

    #[inline(always)]
    fn words_if(self, condition: bool) -> Halves {
        // 0 or 1 negated: no bits or all bits.
        let mask = registers!(_mm256_set1_epi64x(i64::from(condition).wrapping_neg()));
        [mask; 2]
    }

    #[inline(always)]
    fn filters_if<const K: u32>(self, condition: bool, found: Halves) -> Halves {
        let chosen = self.words_if(condition);
        registers!({
            // Or the words of each filter into all of its words, then take those that are not zero.
            // Each step exchanges neighbours and doubles the group:
            //
            //   any              | w3 | w2 | w1 | w0 |
            //   K = 1: or of the two halves
            //   K <= 4: or with  | w2 | w3 | w0 | w1 |    words of a pair
            //   K <= 2: or with  | w1 | w0 | w3 | w2 |    pairs of a half
            //
            // With K = 8 each word is a filter of its own.
            let mut any = found;
            if K == 1 {
                any = [_mm256_or_si256(any[0], any[1]); 2];
            }
            if K <= 4 {
                any = each(any, |any| {
                    _mm256_or_si256(any, _mm256_permute4x64_epi64::<0b10_11_00_01>(any))
                });
            }
            if K <= 2 {
                any = each(any, |any| {
                    _mm256_or_si256(any, _mm256_permute4x64_epi64::<0b01_00_11_10>(any))
                });
            }
            both(any, chosen, |any, chosen| {
                // AVX2 compares for equality only, so the mask is of the words to drop.
                let none = _mm256_cmpeq_epi64(any, _mm256_setzero_si256());
                _mm256_andnot_si256(none, chosen)
            })
        })
    }

    #[inline(always)]
    fn clear(self, bits: Halves, cleared: Halves, words: Halves) -> Halves {
        self.without(bits, self.and(cleared, words))
    }

    #[inline(always)]
    fn and(self, left: Halves, right: Halves) -> Halves {
        both(left, right, |left, right| {
            registers!(_mm256_and_si256(left, right))
        })
    }

    #[inline(always)]
    fn or(self, left: Halves, right: Halves) -> Halves {
        both(left, right, |left, right| {
            registers!(_mm256_or_si256(left, right))
        })
    }

    #[inline(always)]
    fn without(self, left: Halves, right: Halves) -> Halves {
        both(left, right, |left, right| {
            registers!(_mm256_andnot_si256(right, left))
        })
    }

    #[inline(always)]
    fn minus(self, left: Halves, right: Halves) -> Halves {
        both(left, right, |left, right| {
            registers!(_mm256_sub_epi64(left, right))
        })
    }

    #[inline(always)]
    fn down(self, bits: Halves, by: u32) -> Halves {
        each(bits, |half| {
            registers!(_mm256_srl_epi64(half, _mm_cvtsi32_si128(by as i32)))
        })
    }

    #[inline(always)]
    fn up(self, bits: Halves, by: u32) -> Halves {
        each(bits, |half| {
            registers!(_mm256_sll_epi64(half, _mm_cvtsi32_si128(by as i32)))
        })
    }

    #[inline(always)]
    fn covers(self, bits: Halves, mask: Halves) -> bool {
        registers!({
            let missing = both(mask, bits, |mask, bits| _mm256_andnot_si256(bits, mask));
            let missing = _mm256_or_si256(missing[0], missing[1]);
            _mm256_testz_si256(missing, missing) == 1
        })
    }

    #[inline(always)]
    fn fold(self, line: &Line) -> u64 {
        // SAFETY: the token proves AVX2.
        unsafe { fold(line) }
    }
}

/// The exclusive or of the words of a line, in quarters: extracting the high half of a register
/// would take longer than to load it again.
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
pub(super) unsafe fn fold(line: &Line) -> u64 {
    let first: *const __m128i = (&raw const *line).cast();
    // SAFETY: the caller guarantees AVX2. A `Line` is 64 bytes aligned to 64, so these are four
    // aligned loads inside it.
    unsafe {
        let low = _mm_xor_si128(_mm_load_si128(first), _mm_load_si128(first.add(1)));
        let high = _mm_xor_si128(_mm_load_si128(first.add(2)), _mm_load_si128(first.add(3)));
        let quarter = _mm_xor_si128(low, high);
        (_mm_cvtsi128_si64(quarter) ^ _mm_extract_epi64::<1>(quarter)) as u64
    }
}

/// Lanes in a register of 128 bits: all kernels with AVX2 have the instructions.
macro_rules! vectors {
    ($token:ident) => {
        impl LaneOps for $token {
            type Lanes = __m128i;

            const SIDE_BY_SIDE: bool = true;

            #[inline(always)]
            fn lanes(self, numbers: &Numbers) -> __m128i {
                const { assert!(size_of::<Numbers>() == size_of::<__m128i>()) };
                // SAFETY: `self` proves AVX2. The array has 16 bytes, which an unaligned load
                // reads.
                unsafe { _mm_loadu_si128(numbers.as_ptr().cast()) }
            }

            #[inline(always)]
            fn pieces(self, words: [u64; 2], below: __m128i) -> __m128i {
                let (low, high) = (words[0].cast_signed(), words[1].cast_signed());
                registers!(_mm_mulhi_epu16(_mm_set_epi64x(high, low), below))
            }

            #[inline(always)]
            fn plus(self, left: __m128i, right: __m128i) -> __m128i {
                registers!(_mm_add_epi16(left, right))
            }

            #[inline(always)]
            fn wrapped(self, left: __m128i, right: __m128i) -> __m128i {
                // A negative difference is a large number without a sign.
                registers!(_mm_min_epu16(left, _mm_sub_epi16(left, right)))
            }

            #[inline(always)]
            fn where_set(self, line: &Line, at: __m128i, then: __m128i) -> __m128i {
                let first: *const __m256i = (&raw const *line).cast();
                debug_assert!(first.is_aligned());
                // Every position is below 512.
                debug_assert!(registers!(_mm_testz_si128(at, _mm_set1_epi16(!0x1ff)) == 1));
                // SAFETY: `self` proves AVX2. A `Line` is 64 bytes aligned to 64, so both
                // halves are aligned loads inside it.
                let halves = unsafe { [_mm256_load_si256(first), _mm256_load_si256(first.add(1))] };
                registers!({
                    // The byte of the position, from the four quarters of the line. `xor` leaves
                    // the index within a quarter below 16 in that quarter alone. Plus 112 the
                    // others have their highest bit set, and the shuffle gives 0 for them.
                    let byte = _mm256_broadcastsi128_si256(_mm_srli_epi16::<3>(at));
                    let bias = _mm256_set1_epi8(0x70);
                    let quarters =
                        _mm256_set_epi64x(0x1010_1010_1010_1010, 0x1010_1010_1010_1010, 0, 0);
                    let low = _mm256_xor_si256(byte, quarters);
                    let high = _mm256_xor_si256(low, _mm256_set1_epi8(0x20));
                    let low = _mm256_shuffle_epi8(halves[0], _mm256_adds_epu8(low, bias));
                    let high = _mm256_shuffle_epi8(halves[1], _mm256_adds_epu8(high, bias));
                    let bytes = _mm256_or_si256(low, high);
                    let bytes = _mm_or_si128(
                        _mm256_castsi256_si128(bytes),
                        _mm256_extracti128_si256::<1>(bytes),
                    );
                    // The bit of it. The upper byte of a lane gets none.
                    let bits = _mm_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
                    let lowest = _mm_and_si128(at, _mm_set1_epi16(7));
                    let index = _mm_or_si128(lowest, _mm_set1_epi16(i16::MIN));
                    let bit = _mm_shuffle_epi8(bits, index);
                    let unset = _mm_cmpeq_epi16(_mm_and_si128(bytes, bit), _mm_setzero_si128());
                    _mm_or_si128(then, unset)
                })
            }
        }
    };
}

pub(super) use vectors;

vectors!(Avx2);
