//! The slots of dense lines: where the fingerprints are and where the load of the line is.

use crate::hash::KeyHash;
use crate::kernels::{Slot, SlotOps};
use crate::memory::Line;
use crate::theory::fingerprints::SlotWidth;

/// A slot of a dense line, whose layout leaves room for the load of the line.
pub(super) trait DenseSlot: Slot {
    /// The width of a slot.
    const WIDTH: SlotWidth;

    /// The number of slots that hold fingerprints, from slot 0 on.
    const KEYS: usize;

    /// The bits of the load.
    const LOAD_BITS: u32;

    /// What an insertion adds to the load, at least. A wider load counts in smaller fractions of
    /// an insertion.
    const INSERTION: u64;

    /// An insertion also adds the difference of the two loads over 2^`CATCH_UP`. Measured:
    /// with few slots 1/4 keeps most keys, with many 1/8.
    const CATCH_UP: u32;

    /// The fingerprint of a key, never that of an empty slot.
    fn fingerprint(key: KeyHash) -> Self;

    /// The slots that hold the fingerprint, one bit each.
    fn find<O: SlotOps>(self, ops: O, line: &Line) -> u64;

    /// The load of the line, below 2^`LOAD_BITS`.
    fn load<O: SlotOps>(ops: O, line: &Line) -> u64;

    /// Sets the load to the low bits of `load`. Pushing slots may have overwritten it.
    fn set_load<O: SlotOps>(ops: O, line: &mut Line, load: u64);

    /// Whether the slot holds a fingerprint.
    fn is_occupied(self) -> bool;
}

/// The last of 32 slots holds the load. At 16 bits, a bit taken from each of several fingerprints
/// would raise the false positive rate by more than a slot is worth.
impl DenseSlot for u16 {
    const WIDTH: SlotWidth = SlotWidth::Bits16;
    const KEYS: usize = 31;
    const LOAD_BITS: u32 = 16;
    const INSERTION: u64 = 32;
    const CATCH_UP: u32 = 3;

    #[inline(always)]
    fn fingerprint(key: KeyHash) -> Self {
        Self::from_key(key)
    }

    #[inline(always)]
    fn find<O: SlotOps>(self, ops: O, line: &Line) -> u64 {
        ops.find(line, self) & (u64::MAX >> (64 - Self::KEYS))
    }

    #[inline(always)]
    fn load<O: SlotOps>(_: O, line: &Line) -> u64 {
        Self::slots(line)[Self::KEYS].into()
    }

    #[inline(always)]
    fn set_load<O: SlotOps>(_: O, line: &mut Line, load: u64) {
        Self::slots_mut(line)[Self::KEYS] = load as Self;
    }

    #[inline(always)]
    fn is_occupied(self) -> bool {
        self != 0
    }
}

/// `DenseSlot` for slots whose highest bits, in the last `$load_bits` slots, are the load. There a
/// fingerprint is compared without its highest bit, so no fingerprint is 0 without it.
///
/// ```text
/// slot    | 0 | 1 | ...                  | n - 2       | n - 1       |
/// load                                     bit of load , next bit         the highest bits
/// ```
macro_rules! load_in_high_bits {
    ($($int:ty: $width:expr, $load_bits:expr, $insertion:expr, $catch_up:expr;)*) => {$(
        impl DenseSlot for $int {
            const WIDTH: SlotWidth = $width;
            const KEYS: usize = Self::COUNT;
            const LOAD_BITS: u32 = $load_bits;
            const INSERTION: u64 = $insertion;
            const CATCH_UP: u32 = $catch_up;

            #[inline(always)]
            fn fingerprint(key: KeyHash) -> Self {
                let low = key.0 as $int;
                // The comparison is added as 0 or 1, without a branch.
                low + <$int>::from(!low.is_occupied())
            }

            #[inline(always)]
            fn find<O: SlotOps>(self, ops: O, line: &Line) -> u64 {
                const LOAD: u64 = load_slots(<$int>::COUNT, $load_bits);
                ops.find_ignoring_high_bits(line, self, LOAD)
            }

            #[inline(always)]
            fn load<O: SlotOps>(ops: O, line: &Line) -> u64 {
                ops.high_bits::<Self>(line) >> (Self::COUNT - $load_bits)
            }

            #[inline(always)]
            fn set_load<O: SlotOps>(ops: O, line: &mut Line, load: u64) {
                const LOAD: u64 = load_slots(<$int>::COUNT, $load_bits);
                ops.set_high_bits::<Self>(line, LOAD, load << (Self::COUNT - $load_bits));
            }

            #[inline(always)]
            fn is_occupied(self) -> bool {
                self << 1 != 0
            }
        }
    )*};
}

/// The last `load_bits` of `count` slots.
const fn load_slots(count: usize, load_bits: u32) -> u64 {
    (u64::MAX >> (64 - load_bits)) << (count - load_bits as usize)
}

load_in_high_bits! {
    // Five bits are the most with which the false positive rate stays below 1e-8, the default.
    u32: SlotWidth::Bits32, 5, 2, 2;
    // 63 bits of fingerprint are more than the hash has left once it has selected the line.
    u64: SlotWidth::Bits64, 8, 8, 2;
}
