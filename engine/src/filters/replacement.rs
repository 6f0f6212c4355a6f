//! The replacement policies of rows that are queues: which slots move when a key arrives, and
//! therefore which fingerprint a full row evicts. A policy serves rows of any length, scattered or
//! in a cache line.
//!
//! ```text
//! 8 slots, newest first; the key's fingerprint is found in slot 3
//!
//!           | a | b | c | D | e | f | g | h |
//! FIFO      | a | b | c | D | e | f | g | h |    moved = 0           nothing moves
//! LRU       | D | a | b | c | e | f | g | h |    moved = 0000_1111   0 to 3 move, D to the front
//! QQHTD     | D | a | b | c | D | e | f | g |    moved = 1111_1111   all move, h is evicted
//! ```
//!
//! If the fingerprint is not found, every policy moves all slots: a fresh key is always recorded.

use std::fmt;
use std::str::FromStr;

use super::lines::fingerprint::spec::queue_row;
use super::row::FilterRow;
use crate::error::SpecError;
use crate::options::value_of;
use crate::report::AgeOrigin;

/// A replacement policy as a type, so that each policy compiles into a loop of its own: which slots
/// of a row move up by one when a key arrives.
///
/// The content of the last slot that moves falls out, and the key's fingerprint enters slot 0. If
/// no slot moves, the row does not change. Filters count on two things: a key that is not found
/// moves all slots, and a duplicate takes a further slot only if
/// [`RECORDS_DUPLICATES`](Self::RECORDS_DUPLICATES).
pub(super) trait ReplacementPolicy: Copy + fmt::Debug + Send + Sync + 'static {
    /// The name on the command line and in reports.
    const NAME: &'static str;
    /// The name of the filter whose rows use the policy.
    const FILTER: &'static str;
    /// Whether a duplicate is inserted again, so that a row can hold copies of a fingerprint.
    const RECORDS_DUPLICATES: bool;
    /// Whether a duplicate can move slots.
    const CHANGED_BY_DUPLICATES: bool = true;
    /// The moment from which distinct keys bring a key closer to its eviction. `None` if copies of
    /// other keys do so, too.
    const AGE_ORIGIN: Option<AgeOrigin>;

    /// The slots that move up, as a run of bits from bit 0 on; all of them if `found` is 0. Bit `i`
    /// of `found` is set if slot `i` of the `slots` slots (at most 64) holds the key's fingerprint.
    /// Bits of the result past the last slot have no effect.
    ///
    /// Must be `#[inline(always)]`, because the batch loop that it is inlined into is compiled with
    /// the features of a kernel.
    fn moved(found: u64, slots: u32) -> u64;
}

/// A fresh key evicts the oldest one; a duplicate changes nothing (QQHT).
#[derive(Debug, Clone, Copy)]
pub(super) struct Fifo;

/// As FIFO, but a duplicate moves its fingerprint to the front (row-LRU).
#[derive(Debug, Clone, Copy)]
pub(super) struct Lru;

/// Every key is pushed, duplicates too (QQHTD).
#[derive(Debug, Clone, Copy)]
pub(super) struct Qqhtd;

impl ReplacementPolicy for Fifo {
    const NAME: &'static str = "fifo";
    const FILTER: &'static str = "qqht";
    const RECORDS_DUPLICATES: bool = false;
    const CHANGED_BY_DUPLICATES: bool = false;
    const AGE_ORIGIN: Option<AgeOrigin> = Some(AgeOrigin::Recorded);

    #[inline(always)]
    fn moved(found: u64, slots: u32) -> u64 {
        if slots <= 32 {
            debug_assert!(found >> slots == 0);
            // Only 0 - 1 wraps and reaches the bits above the slots, which the shift brings down:
            //
            //   found = 0      0 - 1 = 11..11 11..11    >> slots = 00..00 11..11   all slots move
            //   found > 0      x - 1 = 00..00 0xx..x    >> slots = 0               none moves
            //
            // A comparison would go through the flags register and take longer. The shift leaves 64
            // - slots bits, which covers all slots only up to 32 of them.
            found.wrapping_sub(1) >> slots
        } else {
            u64::from(found == 0).wrapping_neg()
        }
    }
}

impl ReplacementPolicy for Lru {
    const NAME: &'static str = "lru";
    const FILTER: &'static str = "rowlru";
    const RECORDS_DUPLICATES: bool = false;
    const AGE_ORIGIN: Option<AgeOrigin> = Some(AgeOrigin::LastSeen);

    #[inline(always)]
    fn moved(found: u64, _slots: u32) -> u64 {
        // The bits up to and including the lowest set bit; all bits if no bit is set:
        //
        //   found       0010_1000        0000_0000
        //   found - 1   0010_0111        1111_1111
        //   xor         0000_1111        1111_1111
        found ^ found.wrapping_sub(1)
    }
}

impl ReplacementPolicy for Qqhtd {
    const NAME: &'static str = "qqhtd";
    const FILTER: &'static str = "qqhtd";
    const RECORDS_DUPLICATES: bool = true;
    const AGE_ORIGIN: Option<AgeOrigin> = None;

    #[inline(always)]
    fn moved(_found: u64, _slots: u32) -> u64 {
        u64::MAX
    }
}

/// A computation that is generic over the policy, for [`Replacement::dispatch`].
pub(super) trait ForPolicy {
    type Output;
    fn call<P: ReplacementPolicy>(self) -> Self::Output;
}

/// Generates [`Replacement`] from the list of policy types: the enum, its names, the dispatch to
/// the types, and the rows of their filters.
macro_rules! policies {
    ($($(#[$doc:meta])* $policy:ident),* $(,)?) => {
        /// Which key a full row of fingerprints evicts.
        ///
        /// Source: paper 002, section 3 (QQHT and QQHTD). LRU has no source; it is our own.
        ///
        /// # Examples
        /// ```
        /// use echoless::Replacement;
        /// assert_eq!("lru".parse::<Replacement>(), Ok(Replacement::Lru));
        /// assert_eq!(Replacement::Fifo.to_string(), "fifo");
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum Replacement {
            $($(#[$doc])* $policy,)*
        }

        impl Replacement {
            /// Every policy.
            pub const ALL: &'static [Self] = &[$(Self::$policy),*];

            /// Every policy by its name.
            pub(crate) const NAMED: [(&'static str, Self); Self::ALL.len()] =
                [$(($policy::NAME, Self::$policy)),*];

            /// Calls `with` with the policy as a type. Filters do this once, when they are built,
            /// so that no loop branches on the policy.
            pub(super) fn dispatch<W: ForPolicy>(self, with: W) -> W::Output {
                match self {
                    $(Self::$policy => with.call::<$policy>(),)*
                }
            }

            /// The name used on the command line and in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$policy => $policy::NAME,)*
                }
            }

            /// The name of the filter whose rows use the policy (`qqht`, `rowlru`, `qqhtd`).
            #[must_use]
            pub const fn filter_name(self) -> &'static str {
                match self {
                    $(Self::$policy => $policy::FILTER,)*
                }
            }

            /// Whether a duplicate is inserted again and takes a further slot, so that the number
            /// of distinct keys does not bound how full the filter gets.
            #[must_use]
            pub const fn records_duplicates(self) -> bool {
                match self {
                    $(Self::$policy => $policy::RECORDS_DUPLICATES,)*
                }
            }

            /// The slots that move up, as a run of bits from bit 0 on; all of them if `found` is 0.
            /// Bit `i` of `found` is set if slot `i` of `slots` (at most 64) holds the key.
            pub fn moved(self, found: u64, slots: u32) -> u64 {
                match self {
                    $(Self::$policy => $policy::moved(found, slots),)*
                }
            }
        }

        /// The filters whose rows are queues, one for each policy.
        pub(in crate::filters) static QUEUES: [FilterRow; Replacement::ALL.len()] =
            [$(queue_row($policy::FILTER)),*];
    };
}

policies! {
    /// A fresh key evicts the oldest one; a duplicate changes nothing. The age at which a key is
    /// evicted therefore counts from its insertion (QQHT).
    Fifo,
    /// As FIFO, but a duplicate moves its key to the front, so that a key in use stays. The age at
    /// which a key is evicted counts from its last arrival.
    #[default]
    Lru,
    /// Every key is pushed, duplicates too (QQHTD). A duplicate renews its key, but takes a second
    /// slot.
    Qqhtd,
}

impl fmt::Display for Replacement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Replacement {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Self, SpecError> {
        value_of("replacement", &Self::NAMED, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_slots_are_those_of_a_list() {
        for slots in [1_u32, 3, 7, 8, 16, 32, 33, 63, 64] {
            let row = u64::MAX >> (64 - slots);
            for policy in Replacement::ALL {
                // No match, one, or one and the last slot.
                let (single, last) = ((0..slots).map(|slot| 1 << slot), 1 << (slots - 1));
                let several = single.clone().map(|found: u64| found | last);
                for found in single.chain(several).chain([0]) {
                    let newest = found.trailing_zeros();
                    let expected = match (policy, found) {
                        (_, 0) => row,
                        (Replacement::Fifo, _) => 0,
                        (Replacement::Lru, _) => u64::MAX >> (63 - newest),
                        (Replacement::Qqhtd, _) => row,
                    };
                    let moved = policy.moved(found, slots) & row;
                    assert_eq!(moved, expected, "{policy}, {slots} slots, {found:b}");
                }
            }
        }
    }
}
