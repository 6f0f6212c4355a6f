//! A group of keys in one 512-bit register.

#![allow(unsafe_code)] // intrinsics; the token `Avx512` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::{BITMAP_WORDS, GROUP, SelectOps};
use crate::hash::KeyHash;
use crate::kernels::avx512::Avx512;

impl SelectOps for Avx512 {
    #[inline(always)]
    fn at_least(self, keys: &[KeyHash; GROUP], border: u64) -> u8 {
        // SAFETY: `self` proves AVX-512. `KeyHash` is a transparent u64, so the keys are 64
        // readable bytes; the load needs no alignment.
        unsafe {
            let keys = _mm512_loadu_si512((&raw const *keys).cast());
            // AVX-512 compares unsigned numbers and returns the mask.
            _mm512_cmpge_epu64_mask(keys, _mm512_set1_epi64(border as i64))
        }
    }

    #[inline(always)]
    fn have_bits(self, keys: &[KeyHash; GROUP], bitmap: &[u64; BITMAP_WORDS]) -> u8 {
        const { assert!(BITMAP_WORDS.is_power_of_two()) };
        // SAFETY: `self` proves AVX-512. The keys are 64 readable bytes; the load needs no alignment.
        // Each index is masked to less than the number of words, a power of two, and the scale is the
        // size of a word, so that every gathered word is one of the bitmap.
        unsafe {
            let keys = _mm512_loadu_si512((&raw const *keys).cast());
            let mask = _mm512_set1_epi64(BITMAP_WORDS as i64 - 1);
            let index = _mm512_and_si512(_mm512_srli_epi64::<32>(keys), mask);
            let words = _mm512_i64gather_epi64::<8>(index, bitmap.as_ptr().cast());
            let bit = _mm512_and_si512(keys, _mm512_set1_epi64(63));
            _mm512_test_epi64_mask(_mm512_srlv_epi64(words, bit), _mm512_set1_epi64(1))
        }
    }

    // Compressed in a register and stored whole: compressing into memory is slow on some CPUs.
    //
    //   keys      | k0 k1 k2 k3 k4 k5 k6 k7 |
    //   set         .  *  *  .  .  *  .  *
    //   together  | k1 k2 k5 k7  0  0  0  0 |
    #[inline(always)]
    fn pick(self, keys: &[KeyHash; GROUP], set: u8, picked: &mut [KeyHash; GROUP]) {
        // SAFETY: `self` proves AVX-512. Both arrays are 64 bytes; load and store need no
        // alignment.
        unsafe {
            let keys = _mm512_loadu_si512((&raw const *keys).cast());
            let together = _mm512_maskz_compress_epi64(set, keys);
            _mm512_storeu_si512((&raw mut *picked).cast(), together);
        }
    }

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves every feature of the kernel, BMI2 among them.
        unsafe { _pdep_u64(bits, mask) }
    }
}
