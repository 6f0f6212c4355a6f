//! The portable kernel's bits: the plain words of the scalar kernel.
//!
//! Vectors of 128 bits hold two words of a line, too few to gain anything over plain words, so
//! every operation forwards to [`Scalar`].

use super::lanes::{Numbers, Spread};
use super::ops::BitOps;
use crate::kernels::portable::Portable;
use crate::kernels::scalar::Scalar;
use crate::memory::Line;

/// One forwarding method a line.
macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $output:ty)?;)*) => {$(
        #[inline(always)]
        fn $name(self, $($arg: $type),*) $(-> $output)? {
            Scalar.$name($($arg),*)
        }
    )*};
}

impl BitOps for Portable {
    type Bits = Line;
    type Words = u8;

    forward! {
        load(line: &Line) -> Line;
        store(bits: Line, line: &mut Line);
        bit(position: u32, set: bool) -> Line;
        below(end: u32) -> Line;
        at_lanes(lanes: Numbers, spread: &Spread) -> Line;
        and(left: Line, right: Line) -> Line;
        or(left: Line, right: Line) -> Line;
        without(left: Line, right: Line) -> Line;
        words_if(condition: bool) -> u8;
        clear(bits: Line, cleared: Line, words: u8) -> Line;
        minus(left: Line, right: Line) -> Line;
        down(bits: Line, by: u32) -> Line;
        up(bits: Line, by: u32) -> Line;
        covers(bits: Line, mask: Line) -> bool;
        fold(line: &Line) -> u64;
    }

    #[inline(always)]
    fn in_each<const K: u32>(self, positions: u64) -> Line {
        Scalar.in_each::<K>(positions)
    }

    #[inline(always)]
    fn filters_if<const K: u32>(self, condition: bool, found: Line) -> u8 {
        Scalar.filters_if::<K>(condition, found)
    }
}
