//! The kernel in one 512-bit register: a line is loaded, compared, moved and stored whole.

#![allow(unsafe_code)] // intrinsics; the token `Avx512` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::Token;
use super::avx2::last_is_occupied_by_load;
use super::dispatch::token;
use super::slot::{Slot, SlotOps};
use crate::isa::{Kernel, run_avx512};
use crate::memory::Line;

token! {
    /// Proof that the CPU has the features of [`Kernel::Avx512`]: AVX-512 F, BW, DQ and VL.
    Avx512, Kernel::Avx512, run_avx512
}

impl SlotOps for Avx512 {
    #[inline(always)]
    fn token(self) -> Token {
        Token::Avx512(self)
    }

    #[inline(always)]
    fn last_is_occupied<S: Slot>(self, line: &Line) -> bool {
        last_is_occupied_by_load::<S>(line)
    }

    #[inline(always)]
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64 {
        // SAFETY: `self` proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            let key = broadcast(fingerprint);
            // Comparisons write mask registers, one bit a slot, slot 0 lowest: no movemask.
            match S::BYTES {
                1 => _mm512_cmpeq_epi8_mask(slots, key),
                2 => u64::from(_mm512_cmpeq_epi16_mask(slots, key)),
                4 => u64::from(_mm512_cmpeq_epi32_mask(slots, key)),
                _ => u64::from(_mm512_cmpeq_epi64_mask(slots, key)),
            }
        }
    }

    #[inline(always)]
    fn find_ignoring_high_bits<S: Slot>(self, line: &Line, fingerprint: S, selected: u64) -> u64 {
        const { assert!(S::BYTES >= 4) };
        // SAFETY: `self` proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load.
        // Casting a mask drops the bits past the last slot.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            let differing = _mm512_xor_si512(slots, broadcast(fingerprint));
            let ones = _mm512_set1_epi64(-1);
            if S::BYTES == 4 {
                let high = _mm512_set1_epi32(i32::MIN);
                let compared = _mm512_mask_andnot_epi32(ones, selected as u16, high, ones);
                _mm512_testn_epi32_mask(differing, compared).into()
            } else {
                let high = _mm512_set1_epi64(i64::MIN);
                let compared = _mm512_mask_andnot_epi64(ones, selected as u8, high, ones);
                _mm512_testn_epi64_mask(differing, compared).into()
            }
        }
    }

    #[inline(always)]
    fn find_alive<S: Slot>(self, line: &Line, slot: S, stamp_bits: u32, alive: u64) -> u64 {
        const { assert!(S::BYTES >= 4) };
        // SAFETY: `self` proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            let key = broadcast(slot);
            if S::BYTES == 4 {
                let (bits, most) = (stamp_bits as i32, u32::try_from(alive).unwrap_or(u32::MAX));
                let difference = _mm512_sub_epi32(key, slots);
                let age = _mm512_rolv_epi32(difference, _mm512_set1_epi32(bits));
                _mm512_cmple_epu32_mask(age, _mm512_set1_epi32(most as i32)).into()
            } else {
                let difference = _mm512_sub_epi64(key, slots);
                let age = _mm512_rolv_epi64(difference, _mm512_set1_epi64(stamp_bits.into()));
                _mm512_cmple_epu64_mask(age, _mm512_set1_epi64(alive as i64)).into()
            }
        }
    }

    #[inline(always)]
    fn high_bits<S: Slot>(self, line: &Line) -> u64 {
        const { assert!(S::BYTES >= 4) };
        // SAFETY: `self` proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            if S::BYTES == 4 {
                _mm512_movepi32_mask(slots).into()
            } else {
                _mm512_movepi64_mask(slots).into()
            }
        }
    }

    #[inline(always)]
    fn set_high_bits<S: Slot>(self, line: &mut Line, selected: u64, bits: u64) {
        const { assert!(S::BYTES >= 4) };
        // All of them are cleared first: dense lines pass constants as `selected`, so that is one
        // `and`.
        let set = selected & bits;
        // SAFETY: `self` proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load and
        // one aligned store. Casting a mask drops the bits past the last slot.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            let result = if S::BYTES == 4 {
                let high = _mm512_set1_epi32(i32::MIN);
                let kept = _mm512_mask_andnot_epi32(slots, selected as u16, high, slots);
                _mm512_mask_or_epi32(kept, set as u16, kept, high)
            } else {
                let high = _mm512_set1_epi64(i64::MIN);
                let kept = _mm512_mask_andnot_epi64(slots, selected as u8, high, slots);
                _mm512_mask_or_epi64(kept, set as u8, kept, high)
            };
            _mm512_store_si512((&raw mut *line).cast(), result);
        }
    }

    // For 32-bit slots, slot 0 at the left, K being the fingerprint in every slot:
    //
    //   line       | 0 1 2 3 | 4 5 6 7 | 8 9 a b | c d e f |
    //   below      | K K K K | 0 1 2 3 | 4 5 6 7 | 8 9 a b |    alignr_epi32: a quarter up
    //   pushed     | K 0 1 2 | 3 4 5 6 | 7 8 9 a | b c d e |    alignr_epi8: the seams, as in AVX2
    //   moved      | * * * * | * * * . | . . . . | . . . . |    a mask register, here 7 slots
    //   result     | K 0 1 2 | 3 4 5 7 | 8 9 a b | c d e f |    mask_blend: slot 6 fell out
    //
    // `moved` is the mask as it comes, so it is neither counted nor looked up. Casting it to the
    // width of the mask drops the bits past the last slot.
    #[inline(always)]
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64) {
        // SAFETY: `self` proves AVX-512. A `Line` is 64 bytes aligned to 64, one aligned load and
        // one aligned store.
        unsafe {
            let slots = _mm512_load_si512((&raw const *line).cast());
            // From element 12 of 32: four of the fingerprint, then twelve of the line.
            let below = _mm512_alignr_epi32::<12>(slots, broadcast(fingerprint));
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
unsafe fn broadcast<S: Slot>(fingerprint: S) -> __m512i {
    let word = fingerprint.word();
    // SAFETY: the caller guarantees AVX-512.
    unsafe {
        match S::BYTES {
            1 => _mm512_set1_epi8(word as i8),
            2 => _mm512_set1_epi16(word as i16),
            4 => _mm512_set1_epi32(word as i32),
            _ => _mm512_set1_epi64(word as i64),
        }
    }
}
