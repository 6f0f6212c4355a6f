//! A group of keys in two 256-bit registers, four keys each.
//!
//! AVX2 has neither a compress nor a comparison of unsigned numbers. A permutation from a table
//! takes the place of the first, a flipped sign bit that of the second.

#![allow(unsafe_code)] // intrinsics; the token `Avx2` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::{BITMAP_WORDS, GROUP, SelectOps};
use crate::hash::KeyHash;
use crate::kernels::avx2::Avx2;

/// For each set of four keys, the permutation of their 32-bit halves that moves the keys of the set
/// to the front, in their order. (AVX2 permutes 64-bit elements only by a constant.)
///
/// ```text
///   set 0b1010    keys    k0     k1     k2     k3
///                 halves  0 1    2 3    4 5    6 7
///                 row     2 3    6 7    0 0    0 0      k1 k3, then unused keys
/// ```
static PERMUTATIONS: [[u32; 8]; 16] = permutations();

const fn permutations() -> [[u32; 8]; 16] {
    let mut rows = [[0; 8]; 16];
    let mut set = 0;
    while set < 16 {
        let (mut key, mut count) = (0, 0);
        while key < 4 {
            if set >> key & 1 == 1 {
                rows[set][2 * count] = 2 * key as u32;
                rows[set][2 * count + 1] = 2 * key as u32 + 1;
                count += 1;
            }
            key += 1;
        }
        set += 1;
    }
    rows
}

/// One bit for each of four keys, set where its hash is below the border.
///
/// # Safety
/// The CPU must have AVX2.
// A function and not a closure, here and below: closures are not compiled for AVX2 unless they are
// inlined, and then no intrinsic is inlined into them.
#[inline(always)]
unsafe fn below(keys: &[KeyHash; 4], border: u64) -> u8 {
    // SAFETY: the caller guarantees AVX2. `KeyHash` is a transparent u64, so the keys are 32
    // readable bytes; the load needs no alignment.
    unsafe {
        // With the highest bit flipped, signed numbers are in the order of unsigned ones.
        let flip = _mm256_set1_epi64x(i64::MIN);
        let border = _mm256_set1_epi64x(border as i64 ^ i64::MIN);
        let keys = _mm256_loadu_si256((&raw const *keys).cast());
        let below = _mm256_cmpgt_epi64(border, _mm256_xor_si256(keys, flip));
        _mm256_movemask_pd(_mm256_castsi256_pd(below)) as u8
    }
}

/// One bit for each of four keys, set where its bit of the bitmap is set.
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn with_bits(keys: &[KeyHash; 4], bitmap: &[u64; BITMAP_WORDS]) -> u8 {
    const { assert!(BITMAP_WORDS.is_power_of_two()) };
    // SAFETY: the caller guarantees AVX2. The keys are 32 readable bytes; the load needs no
    // alignment. Each index is masked to less than the number of words, a power of two, and the scale
    // is the size of a word, so that every gathered word is one of the bitmap.
    unsafe {
        let keys = _mm256_loadu_si256((&raw const *keys).cast());
        let mask = _mm256_set1_epi64x(BITMAP_WORDS as i64 - 1);
        let index = _mm256_and_si256(_mm256_srli_epi64::<32>(keys), mask);
        let words = _mm256_i64gather_epi64::<8>(bitmap.as_ptr().cast(), index);
        // Each bit moved to the highest place of its word, where the mask is taken.
        let above = _mm256_andnot_si256(keys, _mm256_set1_epi64x(63));
        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_sllv_epi64(words, above))) as u8
    }
}

/// Writes the keys of a set of four to the front of `picked`, in their order.
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn pick_of_four(keys: &[KeyHash; 4], set: usize, picked: &mut [KeyHash; 4]) {
    // SAFETY: the caller guarantees AVX2. `KeyHash` is a transparent u64, so keys, row and target
    // are 32 bytes each; loads and store need no alignment.
    unsafe {
        let keys = _mm256_loadu_si256((&raw const *keys).cast());
        let row = _mm256_loadu_si256((&raw const PERMUTATIONS[set]).cast());
        let front = _mm256_permutevar8x32_epi32(keys, row);
        _mm256_storeu_si256((&raw mut *picked).cast(), front);
    }
}

/// The lower and the upper four keys of a group.
#[inline(always)]
fn halves(keys: &[KeyHash; GROUP]) -> [&[KeyHash; 4]; 2] {
    let (halves, _) = keys.as_chunks();
    [&halves[0], &halves[1]]
}

impl SelectOps for Avx2 {
    #[inline(always)]
    fn at_least(self, keys: &[KeyHash; GROUP], border: u64) -> u8 {
        let [low, high] = halves(keys);
        // SAFETY: `self` proves AVX2.
        unsafe { !(below(low, border) | below(high, border) << 4) }
    }

    #[inline(always)]
    fn have_bits(self, keys: &[KeyHash; GROUP], bitmap: &[u64; BITMAP_WORDS]) -> u8 {
        let [low, high] = halves(keys);
        // SAFETY: `self` proves AVX2.
        unsafe { with_bits(low, bitmap) | with_bits(high, bitmap) << 4 }
    }

    // For the set 0b10010110:
    //
    //   keys      | k0 k1 k2 k3 |  | k4 k5 k6 k7 |
    //   set          .  *  *  .       *  .  .  *
    //   permuted  | k1 k2  -  - |  | k4 k7  -  - |
    //   picked    | k1 k2  -  - |                       the first store
    //                   | k4 k7  -  - |                 the second, behind the keys of the first
    #[inline(always)]
    fn pick(self, keys: &[KeyHash; GROUP], set: u8, picked: &mut [KeyHash; GROUP]) {
        let [low, high] = halves(keys);
        let sets = [usize::from(set & 0xf), usize::from(set >> 4)];
        let behind = sets[0].count_ones() as usize;
        // SAFETY: `self` proves AVX2.
        unsafe {
            pick_of_four(
                low,
                sets[0],
                (&mut picked[..4]).try_into().expect("four keys"),
            );
            let rest = picked[behind..].first_chunk_mut();
            pick_of_four(
                high,
                sets[1],
                rest.expect("at most four of eight are in front"),
            );
        }
    }

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves every feature of the kernel, BMI2 among them.
        unsafe { _pdep_u64(bits, mask) }
    }
}
