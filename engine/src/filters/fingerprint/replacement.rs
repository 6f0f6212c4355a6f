//! Which fingerprint of a full line gives way: three policies over one operation, a push in front.

use std::fmt;
use std::str::FromStr;

use crate::error::SpecError;

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
            .ok_or_else(|| SpecError::new("replacement", name, "fifo, lru, qqhtd"))
    }
}

/// A policy as the hot loop sees it: how many slots move when a key was found (or not).
pub(super) trait Policy {
    /// The slots to move up: from 0 (nothing changes) to `slots` (the last falls out). `found` has bit `i` set if slot `i` matched.
    fn moved(found: u64, slots: usize) -> usize;
}

pub(super) struct Fifo;
pub(super) struct Lru;
pub(super) struct Qqhtd;

impl Policy for Fifo {
    #[inline(always)]
    fn moved(found: u64, slots: usize) -> usize {
        if found == 0 { slots } else { 0 }
    }
}

impl Policy for Lru {
    #[inline(always)]
    fn moved(found: u64, slots: usize) -> usize {
        // Up to the slot that matched, or up to the last one.
        (found | 1 << (slots - 1)).trailing_zeros() as usize + 1
    }
}

impl Policy for Qqhtd {
    #[inline(always)]
    fn moved(_found: u64, slots: usize) -> usize {
        slots
    }
}
