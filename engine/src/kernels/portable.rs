//! The kernel in 128-bit vectors of the `wide` crate, which every 64-bit target has: SSE2 on
//! x86-64, NEON on aarch64.

use bytemuck::must_cast;
use wide::{u8x16, u16x8, u32x4, u64x2};

use super::Token;
use super::slot::{PREFIX_MASKS, Slot, SlotOps, moved_slots};
use crate::isa::{HotLoop, TargetIsa};
use crate::memory::Line;

/// The kernel on `wide`: safe code, so it needs no token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl TargetIsa for Portable {
    #[inline]
    fn run<L: HotLoop>(self, hot_loop: L) -> L::Output {
        hot_loop.run()
    }
}

impl SlotOps for Portable {
    #[inline(always)]
    fn token(self) -> Token {
        Token::Portable
    }

    #[inline(always)]
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64 {
        let word = fingerprint.word();
        // A quarter of a line is one vector; `S::COUNT / 4` slots give as many bits of the answer.
        let quarters: [u8x16; 4] = must_cast(line.0);
        let mut found = 0;
        for (index, quarter) in quarters.into_iter().enumerate() {
            let equal = match S::BYTES {
                1 => quarter.simd_eq(u8x16::splat(word as u8)).to_bitmask(),
                2 => must_cast::<_, u16x8>(quarter)
                    .simd_eq(u16x8::splat(word as u16))
                    .to_bitmask(),
                4 => must_cast::<_, u32x4>(quarter)
                    .simd_eq(u32x4::splat(word as u32))
                    .to_bitmask(),
                _ => must_cast::<_, u64x2>(quarter)
                    .simd_eq(u64x2::splat(word))
                    .to_bitmask(),
            };
            found |= u64::from(equal) << (index * S::COUNT / 4);
        }
        found
    }

    #[inline(always)]
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64) {
        // The line with every slot moved up by one, built in memory and read back as vectors.
        let mut pushed = Line::EMPTY;
        let slots = S::slots_mut(&mut pushed);
        slots[0] = fingerprint;
        slots[1..].copy_from_slice(&S::slots(line)[..S::COUNT - 1]);
        // The first `count` slots come from `pushed`, the others from the old line.
        let start = 64 - moved_slots::<S>(moved) * S::BYTES;
        let (masks, _) = PREFIX_MASKS[start..start + 64].as_chunks::<16>();
        let old: [u8x16; 4] = must_cast(line.0);
        let new: [u8x16; 4] = must_cast(pushed.0);
        let blended: [u8x16; 4] =
            std::array::from_fn(|index| u8x16::new(masks[index]).bitselect(new[index], old[index]));
        line.0 = must_cast(blended);
    }
}
