//! The bits of a line in one 512-bit register. The steps are those of the AVX2 form, which draws
//! them.

#![allow(unsafe_code)] // intrinsics; the token `Avx512` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::avx2::fold_half;
use super::ops::{BitOps, Filters, WORD_STARTS};
use crate::kernels::avx512::Avx512;
use crate::memory::Line;

/// Loads a line. The token is the proof that the CPU has AVX-512.
#[inline(always)]
fn register(token: Avx512, line: &Line) -> __m512i {
    let _ = token;
    // SAFETY: the token proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load.
    unsafe { _mm512_load_si512((&raw const *line).cast()) }
}

impl BitOps for Avx512 {
    type Bits = __m512i;

    #[inline(always)]
    fn load(self, line: &Line) -> __m512i {
        register(self, line)
    }

    #[inline(always)]
    fn store(self, bits: __m512i, line: &mut Line) {
        // SAFETY: `self` proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned store.
        unsafe { _mm512_store_si512((&raw mut *line).cast(), bits) }
    }

    #[inline(always)]
    fn bit(self, position: u32, set: bool) -> __m512i {
        let starts = register(self, &WORD_STARTS);
        // Below 64 only in the word of the position; `sllv` by 64 or more gives zero.
        registers!({
            let here = _mm512_xor_si512(_mm512_set1_epi64(i64::from(position)), starts);
            _mm512_sllv_epi64(_mm512_set1_epi64(i64::from(set)), here)
        })
    }

    #[inline(always)]
    fn below(self, end: u32) -> __m512i {
        let starts = register(self, &WORD_STARTS);
        registers!({
            // The bits of each word: a negative number becomes 0, and 64 or more is all of them.
            let here = _mm512_sub_epi64(_mm512_set1_epi64(i64::from(end)), starts);
            let here = _mm512_max_epi64(here, _mm512_setzero_si512());
            let one = _mm512_set1_epi64(1);
            _mm512_sub_epi64(_mm512_sllv_epi64(one, here), one)
        })
    }

    #[inline(always)]
    fn in_each<const K: u32>(self, positions: u64) -> __m512i {
        let shifts = register(self, const { &Filters::<K>::SHIFTS });
        let starts = register(self, const { &Filters::<K>::STARTS });
        registers!({
            let mask = _mm512_set1_epi64(i64::from(Filters::<K>::WIDTH - 1));
            let position = _mm512_srlv_epi64(_mm512_set1_epi64(positions as i64), shifts);
            let here = _mm512_xor_si512(_mm512_and_si512(position, mask), starts);
            _mm512_sllv_epi64(_mm512_set1_epi64(1), here)
        })
    }

    #[inline(always)]
    fn of_filters<const K: u32>(self, bits: __m512i, found: __m512i) -> __m512i {
        registers!({
            // Or the words of each filter into all of its words:
            //
            //   any              | w7 | w6 | w5 | w4 | w3 | w2 | w1 | w0 |
            //   K <= 4: or with  | w6 | w7 | w4 | w5 | w2 | w3 | w0 | w1 |    permutex
            //   K <= 2: or with  | w5 | w4 | w7 | w6 | w1 | w0 | w3 | w2 |    permutex
            //   K = 1: or with   | w3 | w2 | w1 | w0 | w7 | w6 | w5 | w4 |    shuffle_i64x2
            let mut any = found;
            if K <= 4 {
                any = _mm512_or_si512(any, _mm512_permutex_epi64::<0b10_11_00_01>(any));
            }
            if K <= 2 {
                any = _mm512_or_si512(any, _mm512_permutex_epi64::<0b01_00_11_10>(any));
            }
            if K == 1 {
                any = _mm512_or_si512(any, _mm512_shuffle_i64x2::<0b01_00_11_10>(any, any));
            }
            // `test` sets a mask bit for each word that is not zero; the others become zero.
            _mm512_maskz_mov_epi64(_mm512_test_epi64_mask(any, any), bits)
        })
    }

    #[inline(always)]
    fn and(self, left: __m512i, right: __m512i) -> __m512i {
        registers!(_mm512_and_si512(left, right))
    }

    #[inline(always)]
    fn or(self, left: __m512i, right: __m512i) -> __m512i {
        registers!(_mm512_or_si512(left, right))
    }

    #[inline(always)]
    fn without(self, left: __m512i, right: __m512i) -> __m512i {
        registers!(_mm512_andnot_si512(right, left))
    }

    #[inline(always)]
    fn only_if(self, condition: bool, bits: __m512i) -> __m512i {
        // 0 or 1 negated: a mask of no words or of all eight.
        registers!(_mm512_maskz_mov_epi64(
            u8::from(condition).wrapping_neg(),
            bits
        ))
    }

    #[inline(always)]
    fn minus(self, left: __m512i, right: __m512i) -> __m512i {
        registers!(_mm512_sub_epi64(left, right))
    }

    #[inline(always)]
    fn down(self, bits: __m512i, by: u32) -> __m512i {
        registers!(_mm512_srl_epi64(bits, _mm_cvtsi32_si128(by as i32)))
    }

    #[inline(always)]
    fn up(self, bits: __m512i, by: u32) -> __m512i {
        registers!(_mm512_sll_epi64(bits, _mm_cvtsi32_si128(by as i32)))
    }

    #[inline(always)]
    fn covers(self, bits: __m512i, mask: __m512i) -> bool {
        registers!({
            let missing = _mm512_andnot_si512(bits, mask);
            _mm512_test_epi64_mask(missing, missing) == 0
        })
    }

    #[inline(always)]
    fn fold(self, bits: __m512i) -> u64 {
        registers!({
            fold_half(_mm256_xor_si256(
                _mm512_castsi512_si256(bits),
                _mm512_extracti64x4_epi64::<1>(bits),
            ))
        })
    }
}
