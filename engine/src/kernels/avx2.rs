//! The kernel in two 256-bit registers.

#![allow(unsafe_code)] // intrinsics; the token `Avx2` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::slot::{PREFIX_MASKS, Slot, SlotOps, moved_slots};
use crate::kernels::isa::{DetectedKernel, HotLoop, Kernel, TargetIsa, run_avx2};
use crate::memory::Line;

/// Proof that the CPU has AVX2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The token, if that kernel was granted.
    pub(crate) fn new(granted: DetectedKernel) -> Option<Self> {
        (granted.kernel() == Kernel::Avx2).then_some(Self(()))
    }
}

impl TargetIsa for Avx2 {
    #[inline]
    fn run<L: HotLoop>(self, hot_loop: L) -> L::Output {
        debug_assert!(Kernel::Avx2.is_available());
        // SAFETY: `self` proves that the kernel was granted.
        unsafe { run_avx2(hot_loop) }
    }
}

impl SlotOps for Avx2 {
    #[inline(always)]
    fn last_is_taken<S: Slot>(self, line: &Line) -> bool {
        let last = &raw const S::slots(line)[S::COUNT - 1];
        // SAFETY: the pointer is that of a reference. Volatile keeps this a load of its own: taken out of the vector, as the compiler
        // would do it, it costs three instructions more.
        unsafe { last.read_volatile() }.word() != 0
    }

    #[inline(always)]
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64 {
        let word = fingerprint.word();
        // SAFETY: `self` proves AVX2, and a `Line` is 64 bytes aligned to 64, so both halves are aligned loads inside it.
        unsafe {
            let low = _mm256_load_si256((&raw const *line).cast());
            let high = _mm256_load_si256((&raw const *line).cast::<__m256i>().add(1));
            match S::BYTES {
                1 => {
                    let key = _mm256_set1_epi8(word as i8);
                    let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, key)) as u32;
                    let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, key)) as u32;
                    u64::from(low) | u64::from(high) << 32
                }
                2 => {
                    let key = _mm256_set1_epi16(word as i16);
                    let low = _mm256_cmpeq_epi16(low, key);
                    let high = _mm256_cmpeq_epi16(high, key);
                    // Packing works within 128-bit halves; the permutation puts the quarters back in order.
                    let packed = _mm256_packs_epi16(low, high);
                    let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
                    u64::from(_mm256_movemask_epi8(ordered) as u32)
                }
                4 => {
                    let key = _mm256_set1_epi32(word as i32);
                    let low = _mm256_castsi256_ps(_mm256_cmpeq_epi32(low, key));
                    let high = _mm256_castsi256_ps(_mm256_cmpeq_epi32(high, key));
                    let (low, high) = (_mm256_movemask_ps(low), _mm256_movemask_ps(high));
                    low as u64 | (high as u64) << 8
                }
                _ => {
                    let key = _mm256_set1_epi64x(word as i64);
                    let low = _mm256_castsi256_pd(_mm256_cmpeq_epi64(low, key));
                    let high = _mm256_castsi256_pd(_mm256_cmpeq_epi64(high, key));
                    let (low, high) = (_mm256_movemask_pd(low), _mm256_movemask_pd(high));
                    low as u64 | (high as u64) << 4
                }
            }
        }
    }

    #[inline(always)]
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64) {
        let count = moved_slots::<S>(moved);
        debug_assert!(count <= S::COUNT);
        let word = fingerprint.word();
        // SAFETY: `self` proves AVX2; loads and stores stay inside the aligned line; the mask starts at `64 - count * BYTES`, which
        // is 0 to 64 because `count` is at most `COUNT`, and reads 64 of the 128 bytes of the table.
        unsafe {
            let first: *mut __m256i = (&raw mut *line).cast();
            let second = first.add(1);
            let low = _mm256_load_si256(first);
            let high = _mm256_load_si256(second);
            let key = match S::BYTES {
                1 => _mm256_set1_epi8(word as i8),
                2 => _mm256_set1_epi16(word as i16),
                4 => _mm256_set1_epi32(word as i32),
                _ => _mm256_set1_epi64x(word as i64),
            };
            // For each 128-bit quarter the quarter below it, the fingerprint below the first.
            let below_low = _mm256_permute2x128_si256::<0x21>(key, low);
            let below_high = _mm256_permute2x128_si256::<0x21>(low, high);
            let moved_low = up_by_one_slot::<S>(low, below_low);
            let moved_high = up_by_one_slot::<S>(high, below_high);
            let mask: *const __m256i = PREFIX_MASKS.as_ptr().add(64 - count * S::BYTES).cast();
            let mask_low = _mm256_loadu_si256(mask);
            let mask_high = _mm256_loadu_si256(mask.add(1));
            _mm256_store_si256(first, _mm256_blendv_epi8(low, moved_low, mask_low));
            _mm256_store_si256(second, _mm256_blendv_epi8(high, moved_high, mask_high));
        }
    }
}

/// Each 128-bit quarter moved up by one slot, its first slot taken from the top of the quarter below.
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn up_by_one_slot<S: Slot>(quarters: __m256i, below: __m256i) -> __m256i {
    // SAFETY: the caller vouches for AVX2.
    unsafe {
        match S::BYTES {
            1 => _mm256_alignr_epi8::<15>(quarters, below),
            2 => _mm256_alignr_epi8::<14>(quarters, below),
            4 => _mm256_alignr_epi8::<12>(quarters, below),
            _ => _mm256_alignr_epi8::<8>(quarters, below),
        }
    }
}
