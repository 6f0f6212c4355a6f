//! Which fingerprint of a full line gives way: three policies over one operation, a push in front.

use std::fmt;
use std::str::FromStr;

use crate::error::SpecError;
use crate::kernels::Slot;

/// How a line ages. Source: paper 002, section 3 (QQHT and QQHTD); LRU is ours.
///
/// # Examples
/// ```
/// use echoless::Replacement;
/// assert_eq!("lru".parse::<Replacement>(), Ok(Replacement::Lru));
/// assert_eq!(Replacement::Fifo.to_string(), "fifo");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Replacement {
    /// A fresh key pushes the oldest out; a duplicate changes nothing, so a key is forgotten at a known age (QQHT).
    #[default]
    Fifo,
    /// As FIFO, but a duplicate moves its key to the front, so keys that keep coming back stay.
    Lru,
    /// Every key is pushed in, duplicates too (QQHTD): a key that comes back is renewed at the price of a second slot.
    Qqhtd,
}

impl Replacement {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Fifo, Self::Lru, Self::Qqhtd];

    /// The name used on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::Qqhtd => "qqhtd",
        }
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Replacement {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Self, SpecError> {
        Self::ALL
            .into_iter()
            .find(|replacement| replacement.name() == name)
            .ok_or_else(|| SpecError::new("replacement", name, "one of fifo, lru, qqhtd"))
    }
}

/// A policy as the hot loop sees it: which slots move when a key was found (or not).
pub(super) trait Policy {
    /// The slots that move up, as a run of bits from bit 0 on: none, those up to the match, or all (the last falls out).
    /// `found` has bit `i` set if slot `i` of type `S` matched.
    fn moved<S: Slot>(found: u64) -> u64;

    /// Of 64 visits, whose bits say which found their key, those in which the key took a slot that it did not have.
    #[inline(always)]
    fn pushes(found: u64) -> u64 {
        !found
    }
}

pub(super) struct Fifo;
pub(super) struct Lru;
pub(super) struct Qqhtd;

impl Policy for Fifo {
    #[inline(always)]
    fn moved<S: Slot>(found: u64) -> u64 {
        if S::COUNT < 64 {
            debug_assert!(found >> S::COUNT == 0);
            // Ones only if the subtraction wrapped, without a detour over the flags.
            found.wrapping_sub(1) >> S::COUNT
        } else {
            u64::from(found == 0).wrapping_neg()
        }
    }
}

impl Policy for Lru {
    #[inline(always)]
    fn moved<S: Slot>(found: u64) -> u64 {
        // The bits up to the lowest set one; all bits if there is none.
        found ^ found.wrapping_sub(1)
    }
}

impl Policy for Qqhtd {
    #[inline(always)]
    fn moved<S: Slot>(_found: u64) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    fn pushes(_found: u64) -> u64 {
        u64::MAX
    }
}
