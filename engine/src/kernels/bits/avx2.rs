//! The bits of a line in two 256-bit registers, the lower half first.

#![allow(unsafe_code)] // intrinsics; the token `Avx2` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::ops::{BitOps, Filters};
use crate::kernels::avx2::Avx2;
use crate::memory::Line;

type Halves = [__m256i; 2];

/// The first bit of each word.
static STARTS: Line = Filters::<1>::STARTS;

/// Bodies of safe methods that only compute on registers.
macro_rules! registers {
    ($body:expr) => {
        // SAFETY: `self` proves AVX2, and nothing but registers is touched.
        unsafe { $body }
    };
}

#[inline(always)]
fn halves(token: Avx2, line: &Line) -> Halves {
    let _ = token;
    let first: *const __m256i = (&raw const *line).cast();
    // SAFETY: the token proves AVX2, and a `Line` is 64 bytes aligned to 64, so both halves are aligned loads inside it.
    unsafe { [_mm256_load_si256(first), _mm256_load_si256(first.add(1))] }
}

/// The same on both halves.
#[inline(always)]
fn both(left: Halves, right: Halves, each: impl Fn(__m256i, __m256i) -> __m256i) -> Halves {
    [each(left[0], right[0]), each(left[1], right[1])]
}

impl BitOps for Avx2 {
    type Bits = Halves;

    #[inline(always)]
    fn load(self, line: &Line) -> Halves {
        halves(self, line)
    }

    #[inline(always)]
    fn store(self, bits: Halves, line: &mut Line) {
        let first: *mut __m256i = (&raw mut *line).cast();
        // SAFETY: `self` proves AVX2, and a `Line` is 64 bytes aligned to 64, so both halves are aligned stores inside it.
        unsafe {
            _mm256_store_si256(first, bits[0]);
            _mm256_store_si256(first.add(1), bits[1]);
        }
    }

    #[inline(always)]
    fn bit(self, position: u32, set: bool) -> Halves {
        // Below 64 only in the word that the position lies in; a shift by more gives zero.
        halves(self, &STARTS).map(|starts| {
            registers!({
                let here = _mm256_xor_si256(_mm256_set1_epi64x(i64::from(position)), starts);
                _mm256_sllv_epi64(_mm256_set1_epi64x(i64::from(set)), here)
            })
        })
    }

    #[inline(always)]
    fn below(self, end: u32) -> Halves {
        halves(self, &STARTS).map(|starts| {
            registers!({
                let here = _mm256_sub_epi64(_mm256_set1_epi64x(i64::from(end)), starts);
                // In 32 bits, which a difference of positions fits in: its upper half, -1 or 0, becomes 0 as well.
                let here = _mm256_max_epi32(here, _mm256_setzero_si256());
                let one = _mm256_set1_epi64x(1);
                _mm256_sub_epi64(_mm256_sllv_epi64(one, here), one)
            })
        })
    }

    #[inline(always)]
    fn in_each<const K: u32>(self, positions: u64) -> Halves {
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
    fn of_filters<const K: u32>(self, bits: Halves, found: Halves) -> Halves {
        registers!({
            // Words of one filter are or-ed: across the halves, then in pairs, then pairs of pairs.
            let mut any = found;
            if K == 1 {
                any = [_mm256_or_si256(any[0], any[1]); 2];
            }
            if K <= 4 {
                any = any.map(|any| {
                    _mm256_or_si256(any, _mm256_permute4x64_epi64::<0b10_11_00_01>(any))
                });
            }
            if K <= 2 {
                any = any.map(|any| {
                    _mm256_or_si256(any, _mm256_permute4x64_epi64::<0b01_00_11_10>(any))
                });
            }
            both(any, bits, |any, bits| {
                let none = _mm256_cmpeq_epi64(any, _mm256_setzero_si256());
                _mm256_andnot_si256(none, bits)
            })
        })
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
    fn only_if(self, taken: bool, bits: Halves) -> Halves {
        let mask = registers!(_mm256_set1_epi64x(i64::from(taken).wrapping_neg()));
        self.and(bits, [mask; 2])
    }

    #[inline(always)]
    fn minus(self, left: Halves, right: Halves) -> Halves {
        both(left, right, |left, right| {
            registers!(_mm256_sub_epi64(left, right))
        })
    }

    #[inline(always)]
    fn down(self, bits: Halves, by: u32) -> Halves {
        bits.map(|half| registers!(_mm256_srl_epi64(half, _mm_cvtsi32_si128(by as i32))))
    }

    #[inline(always)]
    fn up(self, bits: Halves, by: u32) -> Halves {
        bits.map(|half| registers!(_mm256_sll_epi64(half, _mm_cvtsi32_si128(by as i32))))
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
    fn fold(self, bits: Halves) -> u64 {
        registers!({
            let half = _mm256_xor_si256(bits[0], bits[1]);
            let quarter = _mm_xor_si128(
                _mm256_castsi256_si128(half),
                _mm256_extracti128_si256::<1>(half),
            );
            (_mm_cvtsi128_si64(quarter) ^ _mm_extract_epi64::<1>(quarter)) as u64
        })
    }
}
