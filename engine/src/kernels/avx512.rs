//! The kernel in one 512-bit register: a line is loaded, compared, moved and stored whole.

#![allow(unsafe_code)] // intrinsics; the token `Avx512` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::slot::{Slot, SlotOps};
use crate::kernels::isa::{DetectedKernel, HotLoop, Kernel, TargetIsa, run_avx512};
use crate::memory::Line;

/// Proof that the CPU has AVX-512 F and BW.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The token, if that kernel was granted.
    pub(crate) fn new(granted: DetectedKernel) -> Option<Self> {
        (granted.kernel() == Kernel::Avx512).then_some(Self(()))
    }
}

impl TargetIsa for Avx512 {
    #[inline]
    fn run<L: HotLoop>(self, hot_loop: L) -> L::Output {
        debug_assert!(Kernel::Avx512.is_available());
        // SAFETY: `self` proves that the kernel was granted.
        unsafe { run_avx512(hot_loop) }
    }
}

impl SlotOps for Avx512 {
    #[inline(always)]
    fn last_is_taken<S: Slot>(self, line: &Line) -> bool {
        let last = &raw const S::slots(line)[S::COUNT - 1];
        // SAFETY: the pointer is that of a reference. Volatile keeps this a load of its own: taken out of the vector, as the compiler
        // would do it, it costs three instructions more.
        unsafe { last.read_volatile() }.word() != 0
    }

    #[inline(always)]
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64 {
        // SAFETY: `self` proves AVX-512, and a `Line` is 64 bytes aligned to 64.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            let key = spread(fingerprint);
            match S::BYTES {
                1 => _mm512_cmpeq_epi8_mask(slots, key),
                2 => u64::from(_mm512_cmpeq_epi16_mask(slots, key)),
                4 => u64::from(_mm512_cmpeq_epi32_mask(slots, key)),
                _ => u64::from(_mm512_cmpeq_epi64_mask(slots, key)),
            }
        }
    }

    #[inline(always)]
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64) {
        // SAFETY: `self` proves AVX-512, and a `Line` is 64 bytes aligned to 64.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            // For each 128-bit quarter the quarter below it, the fingerprint below the first.
            let below = _mm512_alignr_epi32::<12>(slots, spread(fingerprint));
            let result = match S::BYTES {
                1 => {
                    let pushed = _mm512_alignr_epi8::<15>(slots, below);
                    _mm512_mask_blend_epi8(moved, slots, pushed)
                }
                2 => {
                    let pushed = _mm512_alignr_epi8::<14>(slots, below);
                    _mm512_mask_blend_epi16(moved as u32, slots, pushed)
                }
                4 => {
                    let pushed = _mm512_alignr_epi8::<12>(slots, below);
                    _mm512_mask_blend_epi32(moved as u16, slots, pushed)
                }
                _ => {
                    let pushed = _mm512_alignr_epi8::<8>(slots, below);
                    _mm512_mask_blend_epi64(moved as u8, slots, pushed)
                }
            };
            _mm512_store_si512((&raw mut *line).cast(), result);
        }
    }
}

/// The fingerprint in every slot.
///
/// # Safety
/// The CPU must have AVX-512 F and BW.
#[inline(always)]
unsafe fn spread<S: Slot>(fingerprint: S) -> __m512i {
    let word = fingerprint.word();
    // SAFETY: the caller vouches for AVX-512.
    unsafe {
        match S::BYTES {
            1 => _mm512_set1_epi8(word as i8),
            2 => _mm512_set1_epi16(word as i16),
            4 => _mm512_set1_epi32(word as i32),
            _ => _mm512_set1_epi64(word as i64),
        }
    }
}
