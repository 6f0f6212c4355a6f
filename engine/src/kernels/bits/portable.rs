//! The portable kernel's bits: the plain words of the scalar kernel.
//!
//! Vectors of 128 bits hold two words of a line, too few to gain anything over plain words, so
//! every operation forwards to [`Scalar`].

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

    forward! {
        load(line: &Line) -> Line;
        store(bits: Line, line: &mut Line);
        bit(position: u32, set: bool) -> Line;
        below(end: u32) -> Line;
        and(left: Line, right: Line) -> Line;
        or(left: Line, right: Line) -> Line;
        without(left: Line, right: Line) -> Line;
        only_if(taken: bool, bits: Line) -> Line;
        minus(left: Line, right: Line) -> Line;
        down(bits: Line, by: u32) -> Line;
        up(bits: Line, by: u32) -> Line;
        covers(bits: Line, mask: Line) -> bool;
        fold(bits: Line) -> u64;
    }

    #[inline(always)]
    fn in_each<const K: u32>(self, positions: u64) -> Line {
        Scalar.in_each::<K>(positions)
    }

    #[inline(always)]
    fn of_filters<const K: u32>(self, bits: Line, found: Line) -> Line {
        Scalar.of_filters::<K>(bits, found)
    }
}
