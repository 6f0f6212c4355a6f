//! The bits of a line in one 512-bit register. The AVX2 form draws the steps; where masks or tables
//! take fewer instructions here, the comments say so.

#![allow(unsafe_code)] // intrinsics; the token `Avx512` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::avx2::{fold, vectors};
use super::lanes::{LaneOps, Numbers, Spread};
use super::ops::{BitOps, Filters, LINE_BITS, WORD_STARTS};
use echoless::extend::Avx512;
use echoless::memory::Line;

/// Loads a line. The token is the proof that the CPU has AVX-512.
#[inline(always)]
fn register(token: Avx512, line: &Line) -> __m512i {
    let _ = token;
    // SAFETY: the token proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load.
    unsafe { _mm512_load_si512((&raw const *line).cast()) }
}

impl BitOps for Avx512 {
    type Bits = __m512i;

    /// A bit for each word, word 0 lowest.
    type Words = u8;

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
        debug_assert!(position < LINE_BITS);
        let starts = register(self, &WORD_STARTS);
        // Below 64 only in the word of the position; `sllv` by 64 or more gives zero.
        registers!({
            let here = _mm512_xor_si512(_mm512_set1_epi64(i64::from(position)), starts);
            _mm512_sllv_epi64(_mm512_set1_epi64(i64::from(set)), here)
        })
    }

    #[inline(always)]
    fn below(self, end: u32) -> __m512i {
        debug_assert!(end <= LINE_BITS);
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
            // In place of `xor`, which the compiler turns into two instructions with the `and`. In
            // other words the difference is at least 64, or negative and so huge without a sign:
            // `sllv` gives zero for both.
            let here = _mm512_sub_epi64(_mm512_and_si512(position, mask), starts);
            _mm512_sllv_epi64(_mm512_set1_epi64(1), here)
        })
    }

    #[inline(always)]
    fn at_lanes(self, lanes: __m128i, spread: &Spread) -> __m512i {
        let first = register(self, &spread.first);
        let second = register(self, &spread.second);
        let starts = register(self, &WORD_STARTS);
        registers!({
            let lanes = _mm512_broadcast_i32x4(lanes);
            let bits = |shuffle| {
                let position = _mm512_shuffle_epi8(lanes, shuffle);
                _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_sub_epi64(position, starts))
            };
            _mm512_or_si512(bits(first), bits(second))
        })
    }

    #[inline(always)]
    fn words_if(self, condition: bool) -> u8 {
        // 0 or 1 negated: no words or all eight.
        u8::from(condition).wrapping_neg()
    }

    #[inline(always)]
    fn filters_if<const K: u32>(self, condition: bool, found: __m512i) -> u8 {
        // `test` sets a mask bit for each word that is not zero. A table of 256 bytes extends them
        // to whole filters in fewer steps than shuffles of the words, and the mask stays in a
        // general register until it is complete.
        let words = registers!(_mm512_test_epi64_mask(found, found));
        let whole = const { &Filters::<K>::WHOLE }[usize::from(words)];
        whole & self.words_if(condition)
    }

    #[inline(always)]
    fn clear(self, bits: __m512i, cleared: __m512i, words: u8) -> __m512i {
        registers!(_mm512_mask_andnot_epi64(bits, words, cleared, bits))
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
        // The union is what a filter then stores, so in a visit it costs nothing.
        registers!({
            let union = _mm512_or_si512(bits, mask);
            _mm512_cmpneq_epi64_mask(union, bits) == 0
        })
    }

    #[inline(always)]
    fn fold(self, line: &Line) -> u64 {
        // SAFETY: the token proves AVX-512, and every CPU with it has AVX2.
        unsafe { fold(line) }
    }
}

vectors!(Avx512);
