//! A group of keys in one 512-bit register.

#![allow(unsafe_code)] // intrinsics; the token `Avx512` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::ops::{GROUP, SelectOps};
use crate::hash::KeyHash;
use crate::kernels::avx512::Avx512;

impl SelectOps for Avx512 {
    #[inline(always)]
    fn at_least(self, keys: &[KeyHash; GROUP], border: u64) -> u8 {
        // SAFETY: `self` proves AVX-512, and the keys are 64 readable bytes.
        unsafe {
            let keys = _mm512_loadu_si512((&raw const *keys).cast());
            _mm512_cmpge_epu64_mask(keys, _mm512_set1_epi64(border as i64))
        }
    }

    #[inline(always)]
    fn pick(self, keys: &[KeyHash; GROUP], set: u8) -> [KeyHash; GROUP] {
        let mut picked = [KeyHash(0); GROUP];
        // In a register and then stored whole: to compress into memory is slow on some CPUs.
        // SAFETY: `self` proves AVX-512, and both arrays are 64 bytes.
        unsafe {
            let keys = _mm512_loadu_si512((&raw const *keys).cast());
            let together = _mm512_maskz_compress_epi64(set, keys);
            _mm512_storeu_si512((&raw mut picked).cast(), together);
        }
        picked
    }

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves what the kernel needs, BMI2 included.
        unsafe { _pdep_u64(bits, mask) }
    }
}
