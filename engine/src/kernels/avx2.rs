//! The kernel in two 256-bit registers.
//!
//! ```text
//! slot 0                                                        last slot
//! |    q0    |    q1    |    q2    |    q3    |     four 128-bit quarters
//! |<-------- low ------>|<-------- high ----->|     two registers
//! ```
//!
//! Most byte shuffles of AVX2 work within 128-bit quarters, so moving a line up by one slot takes
//! two steps: fetch the quarter below, then shift across the seam.

#![allow(unsafe_code)] // intrinsics; the token `Avx2` is the proof that the CPU has them

use std::arch::x86_64::*;

use super::Token;
use super::dispatch::token;
use super::slot::{PREFIX_MASKS, Slot, SlotOps, moved_slots};
use crate::isa::{Kernel, run_avx2};
use crate::memory::Line;

token! {
    /// Proof that the CPU has the features of [`Kernel::Avx2`].
    Avx2, Kernel::Avx2, run_avx2
}

/// Whether the last slot is occupied, by a load of its own.
///
/// The line is in a register at this point, so the compiler would extract the slot from there,
/// which takes three instructions more than a second load of the cached line. `volatile` keeps the
/// loads apart.
#[inline(always)]
pub(super) fn last_is_occupied_by_load<S: Slot>(line: &Line) -> bool {
    let last = &raw const S::slots(line)[S::COUNT - 1];
    // SAFETY: the pointer comes from a reference, so it is aligned and readable.
    unsafe { last.read_volatile() }.word() != 0
}

impl SlotOps for Avx2 {
    #[inline(always)]
    fn token(self) -> Token {
        Token::Avx2(self)
    }

    #[inline(always)]
    fn last_is_occupied<S: Slot>(self, line: &Line) -> bool {
        last_is_occupied_by_load::<S>(line)
    }

    #[inline(always)]
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64 {
        let word = fingerprint.word();
        // SAFETY: `self` proves AVX2. A `Line` is 64 bytes aligned to 64, so both halves are
        // aligned loads inside it.
        unsafe {
            let low = _mm256_load_si256((&raw const *line).cast());
            let high = _mm256_load_si256((&raw const *line).cast::<__m256i>().add(1));
            // A comparison makes equal slots all ones; `movemask` collects the sign bit of each
            // element. Its 32 bits of bytes pass through u32: an i32 would be sign-extended.
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
                    // There is no movemask of 16-bit elements. Packing halves them to bytes, which
                    // keeps all ones and all zeros, but works within 128-bit lanes:
                    //
                    //   low            | q0     | q1     |
                    //   high           | q2     | q3     |
                    //   packs          | q0  q2 | q1  q3 |    64-bit words 0 1 2 3
                    //   permute4x64    | q0  q1 | q2  q3 |    takes words 0 2 1 3
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
    fn find_ignoring_high_bits<S: Slot>(self, line: &Line, fingerprint: S, selected: u64) -> u64 {
        const { assert!(S::BYTES >= 4) };
        // SAFETY: `self` proves AVX2. A `Line` is 64 bytes aligned to 64, so both halves are
        // aligned loads inside it.
        unsafe {
            let first: *const __m256i = (&raw const *line).cast();
            let mut found = 0;
            for half in 0..2 {
                let slots = _mm256_load_si256(first.add(half));
                let shift = half * S::COUNT / 2;
                let ignored = high_bits::<S>(selected >> shift);
                let zero = _mm256_setzero_si256();
                let equal = if S::BYTES == 4 {
                    let key = _mm256_set1_epi32(fingerprint.word() as i32);
                    let compared = _mm256_andnot_si256(ignored, _mm256_xor_si256(slots, key));
                    let equal = _mm256_cmpeq_epi32(compared, zero);
                    _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u64
                } else {
                    let key = _mm256_set1_epi64x(fingerprint.word() as i64);
                    let compared = _mm256_andnot_si256(ignored, _mm256_xor_si256(slots, key));
                    let equal = _mm256_cmpeq_epi64(compared, zero);
                    _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u64
                };
                found |= equal << shift;
            }
            found
        }
    }

    #[inline(always)]
    fn find_alive<S: Slot>(self, line: &Line, slot: S, stamp_bits: u32, alive: u64) -> u64 {
        const { assert!(S::BYTES >= 4) };
        // SAFETY: `self` proves AVX2. A `Line` is 64 bytes aligned to 64, so both halves are
        // aligned loads inside it.
        unsafe {
            let low = _mm256_load_si256((&raw const *line).cast());
            let high = _mm256_load_si256((&raw const *line).cast::<__m256i>().add(1));
            let width = 8 * S::BYTES as u32;
            let up = _mm_cvtsi32_si128(stamp_bits as i32);
            let down = _mm_cvtsi32_si128((width - stamp_bits) as i32);
            if S::BYTES == 4 {
                let key = _mm256_set1_epi32(slot.word() as i32);
                let most = u32::try_from(alive).unwrap_or(u32::MAX);
                let most = _mm256_set1_epi32(most as i32);
                // AVX2 has no rotation and no unsigned comparison: an age is at most `most` if it
                // is the smaller of both.
                let alive = |slots| {
                    let age = _mm256_sub_epi32(key, slots);
                    let age =
                        _mm256_or_si256(_mm256_sll_epi32(age, up), _mm256_srl_epi32(age, down));
                    let equal = _mm256_cmpeq_epi32(_mm256_min_epu32(age, most), age);
                    _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u64
                };
                alive(low) | alive(high) << 8
            } else {
                let key = _mm256_set1_epi64x(slot.word() as i64);
                // With the highest bit flipped, signed numbers are in the order of unsigned ones.
                let flip = _mm256_set1_epi64x(i64::MIN);
                let most = _mm256_set1_epi64x(alive as i64 ^ i64::MIN);
                let dead = |slots| {
                    let age = _mm256_sub_epi64(key, slots);
                    let age =
                        _mm256_or_si256(_mm256_sll_epi64(age, up), _mm256_srl_epi64(age, down));
                    let later = _mm256_cmpgt_epi64(_mm256_xor_si256(age, flip), most);
                    _mm256_movemask_pd(_mm256_castsi256_pd(later)) as u64
                };
                !(dead(low) | dead(high) << 4) & 0xff
            }
        }
    }

    #[inline(always)]
    fn high_bits<S: Slot>(self, line: &Line) -> u64 {
        const { assert!(S::BYTES >= 4) };
        // SAFETY: `self` proves AVX2. A `Line` is 64 bytes aligned to 64, so both halves are
        // aligned loads inside it.
        unsafe {
            let low = _mm256_load_si256((&raw const *line).cast());
            let high = _mm256_load_si256((&raw const *line).cast::<__m256i>().add(1));
            // The highest bit of an element is the sign that `movemask` collects.
            if S::BYTES == 4 {
                let low = _mm256_movemask_ps(_mm256_castsi256_ps(low)) as u64;
                low | (_mm256_movemask_ps(_mm256_castsi256_ps(high)) as u64) << 8
            } else {
                let low = _mm256_movemask_pd(_mm256_castsi256_pd(low)) as u64;
                low | (_mm256_movemask_pd(_mm256_castsi256_pd(high)) as u64) << 4
            }
        }
    }

    // Bit i of a mask becomes the highest bit of element i by a shift of its own, 31 - i, and an
    // `and` drops the other bits of the mask:
    //
    //   mask in each element    | ..b3 b2 b1 b0 | ..b3 b2 b1 b0 | ...
    //   shifted by 31 - i       | b0 0 0 0 ...  | b1 b0 0 0 ... | ...
    //   and the highest bit     | b0 0 0 0 ...  | b1 0 0 0 ...  | ...
    #[inline(always)]
    fn set_high_bits<S: Slot>(self, line: &mut Line, selected: u64, bits: u64) {
        const { assert!(S::BYTES >= 4) };
        // SAFETY: `self` proves AVX2. Loads and stores stay inside the aligned line.
        unsafe {
            let first: *mut __m256i = (&raw mut *line).cast();
            for half in 0..2 {
                let slots = _mm256_load_si256(first.add(half));
                let shift = half * S::COUNT / 2;
                let kept = _mm256_andnot_si256(high_bits::<S>(selected >> shift), slots);
                let set = high_bits::<S>((selected & bits) >> shift);
                _mm256_store_si256(first.add(half), _mm256_or_si256(kept, set));
            }
        }
    }

    // For 32-bit slots, slot 0 at the left, K being the fingerprint in every slot:
    //
    //              low                    high
    //   line       | 0 1 2 3 | 4 5 6 7 |  | 8 9 a b | c d e f |
    //   below      | K K K K | 0 1 2 3 |  | 4 5 6 7 | 8 9 a b |    permute2x128
    //   pushed     | K 0 1 2 | 3 4 5 6 |  | 7 8 9 a | b c d e |    alignr
    //   mask       | * * * * | * * * . |  | . . . . | . . . . |    here 7 slots move
    //   result     | K 0 1 2 | 3 4 5 7 |  | 8 9 a b | c d e f |    blendv: slot 6 fell out
    #[inline(always)]
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64) {
        let count = moved_slots::<S>(moved);
        debug_assert!(count <= S::COUNT);
        let word = fingerprint.word();
        // SAFETY: `self` proves AVX2. Loads and stores stay inside the aligned line. The mask
        // starts at `64 - count * BYTES`, which is 0 to 64 because `count` is at most `COUNT`, and
        // takes 64 of the 128 bytes of the table.
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
            // 0x21: the upper half of the first operand, then the lower half of the second.
            let below_low = _mm256_permute2x128_si256::<0x21>(key, low);
            let below_high = _mm256_permute2x128_si256::<0x21>(low, high);
            let pushed_low = up_by_one_slot::<S>(low, below_low);
            let pushed_high = up_by_one_slot::<S>(high, below_high);
            // AVX2 has no mask registers: a mask of `count` slots is a load from the table.
            let mask: *const __m256i = PREFIX_MASKS.as_ptr().add(64 - count * S::BYTES).cast();
            let mask_low = _mm256_loadu_si256(mask);
            let mask_high = _mm256_loadu_si256(mask.add(1));
            // Both halves are stored even if no slot moves: a branch on it could not be predicted.
            _mm256_store_si256(first, _mm256_blendv_epi8(low, pushed_low, mask_low));
            _mm256_store_si256(second, _mm256_blendv_epi8(high, pushed_high, mask_high));
        }
    }
}

/// Each 128-bit quarter moved up by one slot; its first slot is the last one of the quarter below.
///
/// `alignr` joins a quarter and the one below it to 32 bytes and takes 16 of them, from byte
/// 16 - `S::BYTES` on:
///
/// ```text
/// below            quarter
/// | . . . z |      | a b c d |
///         |<-------------->|
///         | z a b c |
/// ```
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn up_by_one_slot<S: Slot>(quarters: __m256i, below: __m256i) -> __m256i {
    // SAFETY: the caller guarantees AVX2. The offset is a constant of the instruction, hence the
    // four cases.
    unsafe {
        match S::BYTES {
            1 => _mm256_alignr_epi8::<15>(quarters, below),
            2 => _mm256_alignr_epi8::<14>(quarters, below),
            4 => _mm256_alignr_epi8::<12>(quarters, below),
            _ => _mm256_alignr_epi8::<8>(quarters, below),
        }
    }
}

/// The highest bit of each 32- or 64-bit element, from the bits of the mask, element 0 from bit 0.
///
/// A function, and not a closure around the intrinsics: closures are not compiled for AVX2.
///
/// # Safety
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn high_bits<S: Slot>(mask: u64) -> __m256i {
    // SAFETY: the caller guarantees AVX2.
    unsafe {
        if S::BYTES == 4 {
            let shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
            let bits = _mm256_sllv_epi32(_mm256_set1_epi32(mask as i32), shifts);
            _mm256_and_si256(bits, _mm256_set1_epi32(i32::MIN))
        } else {
            let shifts = _mm256_setr_epi64x(63, 62, 61, 60);
            let bits = _mm256_sllv_epi64(_mm256_set1_epi64x(mask as i64), shifts);
            _mm256_and_si256(bits, _mm256_set1_epi64x(i64::MIN))
        }
    }
}
