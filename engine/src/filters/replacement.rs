//! Which fingerprint leaves a full row that is a queue: one policy for rows of any length,
//! scattered or in a cache line.
//!
//! To add a policy, write a type with [`Policy`] and add it to the list in `policies!`.

use std::fmt;
use std::str::FromStr;

use crate::error::SpecError;
use crate::options::one_of;

/// A replacement policy as the loops see it: which slots of a row move up by one when a key arrives.
///
/// The last slot that moves falls out, and the key's fingerprint enters slot 0. Where no slot moves,
/// the row stays as it is.
pub(super) trait Policy: Copy + fmt::Debug + Send + 'static {
    /// The name on the command line and in reports.
    const NAME: &'static str;
    /// The name of the filter whose rows use the policy.
    const FILTER: &'static str;
    /// Whether a duplicate is recorded once more, so that a row may hold copies of a fingerprint.
    const RECORDS_DUPLICATES: bool;

    /// The slots that move up, as a run of bits from bit 0 on. Bit `i` of `found` is set where slot
    /// `i` of the `slots` slots (at most 64) holds the key's fingerprint. Bits of the result past
    /// the last slot have no effect. Must be `#[inline(always)]`.
    fn moved(found: u64, slots: u32) -> u64;
}

/// A fresh key pushes the oldest out; a duplicate changes nothing (QQHT).
#[derive(Debug, Clone, Copy)]
pub(super) struct Fifo;

/// As FIFO, but a duplicate moves its fingerprint to the front (row-LRU).
#[derive(Debug, Clone, Copy)]
pub(super) struct Lru;

/// Every key is pushed in, duplicates too (QQHTD).
#[derive(Debug, Clone, Copy)]
pub(super) struct Qqhtd;

impl Policy for Fifo {
    const NAME: &'static str = "fifo";
    const FILTER: &'static str = "qqht";
    const RECORDS_DUPLICATES: bool = false;

    #[inline(always)]
    fn moved(found: u64, slots: u32) -> u64 {
        if slots <= 32 {
            debug_assert!(found >> slots == 0);
            // The slots and more if `found` is 0, for only then does the subtraction wrap and reach
            // the bits above the slots. A comparison would go through the flags and take longer.
            found.wrapping_sub(1) >> slots
        } else {
            u64::from(found == 0).wrapping_neg()
        }
    }
}

impl Policy for Lru {
    const NAME: &'static str = "lru";
    const FILTER: &'static str = "rowlru";
    const RECORDS_DUPLICATES: bool = false;

    #[inline(always)]
    fn moved(found: u64, _slots: u32) -> u64 {
        // The bits up to the lowest set one; all bits if there is none.
        found ^ found.wrapping_sub(1)
    }
}

impl Policy for Qqhtd {
    const NAME: &'static str = "qqhtd";
    const FILTER: &'static str = "qqhtd";
    const RECORDS_DUPLICATES: bool = true;

    #[inline(always)]
    fn moved(_found: u64, _slots: u32) -> u64 {
        u64::MAX
    }
}

/// Something to do with a policy as a type, for [`Replacement::dispatch`].
pub(super) trait ForPolicy {
    type Output;
    fn call<P: Policy>(self) -> Self::Output;
}

/// The list of policies: the public name of each, and everything that has to know all of them.
macro_rules! policies {
    ($($(#[$doc:meta])* $policy:ident),* $(,)?) => {
        /// Which key a full row of fingerprints forgets.
        ///
        /// Source: paper 002, section 3 (QQHT and QQHTD); LRU is ours.
        ///
        /// # Examples
        /// ```
        /// use echoless::Replacement;
        /// assert_eq!("lru".parse::<Replacement>(), Ok(Replacement::Lru));
        /// assert_eq!(Replacement::Fifo.to_string(), "fifo");
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[non_exhaustive]
        pub enum Replacement {
            $($(#[$doc])* $policy,)*
        }

        impl Replacement {
            /// Every policy.
            pub const ALL: &'static [Self] = &[$(Self::$policy),*];

            /// Calls `with` with the policy as a type. Filters do this once, when they are built.
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

            /// The slots that move up; see [`Policy::moved`].
            pub(super) fn moved(self, found: u64, slots: u32) -> u64 {
                match self {
                    $(Self::$policy => $policy::moved(found, slots),)*
                }
            }
        }
    };
}

policies! {
    /// A fresh key pushes the oldest one out; a duplicate changes nothing, so a key is forgotten at
    /// a known age since it was recorded (QQHT).
    #[default]
    Fifo,
    /// As FIFO, but a duplicate moves its key to the front, so keys that keep coming back stay.
    Lru,
    /// Every key is pushed in, duplicates too (QQHTD): a key that comes back is renewed at the
    /// price of a second slot.
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
        let found = Self::ALL.iter().find(|policy| policy.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|policy| policy.name()).collect();
            SpecError::new("replacement", name, one_of(&names))
        })
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
                for found in (0..slots).map(|slot| 1 << slot).chain([0]) {
                    let expected = match (policy, found) {
                        (Replacement::Fifo, 1..) => 0,
                        (Replacement::Lru, 1..) => found | (found - 1),
                        _ => row,
                    };
                    let moved = policy.moved(found, slots) & row;
                    assert_eq!(moved, expected, "{policy}, {slots} slots, {found:b}");
                }
            }
        }
    }
}
