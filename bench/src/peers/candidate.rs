//! What every peer is asked, and what it declares of itself.

use std::fmt;

use echoless::{Filter, Kernel, KeyHash, LineFilter, SharedFilter, Verdicts};

use crate::table::Failure;

/// A structure that tells whether a key was seen before and records it.
pub trait Peer {
    /// Takes the keys in order; bit `i % 64` of `seen[i / 64]` becomes 1 where key `i` was seen before, else 0.
    fn observe(&mut self, keys: &[KeyHash], seen: &mut [u64]);

    /// Whether the key would be called seen now. Records nothing.
    fn holds(&self, key: KeyHash) -> bool;

    /// The memory of the structure in bytes, if it can be known.
    fn memory_bytes(&self) -> Option<u64>;
}

/// What becomes of a structure on a stream that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ages {
    /// It forgets the old for the new.
    Forgets,
    /// It fails, or calls everything seen.
    FillsUp,
    /// It takes more memory.
    Grows,
}

impl fmt::Display for Ages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Forgets => "yes",
            Self::FillsUp => "fills up",
            Self::Grows => "grows",
        })
    }
}

/// A peer that can be built, with what it must keep to.
pub struct Candidate {
    /// The crate, or `echoless`.
    pub name: &'static str,
    /// Which of its forms.
    pub form: String,
    /// The kernel, of those that have several.
    pub kernel: Option<Kernel>,
    /// What is computed from the key hash that it is given.
    pub hashing: &'static str,
    /// What becomes of it in the long run.
    pub ages: Ages,
    /// The highest false positive rate its form allows at the end of the stream.
    pub max_fpr: f64,
    /// The highest share of repeats it may miss within the stream's window.
    pub max_fnr: f64,
    /// Builds it empty.
    pub build: Box<dyn Fn() -> Result<Box<dyn Peer>, Failure>>,
}

/// A peer made of single calls.
pub(super) struct Calls<T, I, H, M> {
    pub(super) state: T,
    /// Was it seen? Recorded if not.
    pub(super) insert: I,
    pub(super) holds: H,
    pub(super) memory: M,
}

impl<T, I, H, M> Peer for Calls<T, I, H, M>
where
    I: Fn(&mut T, u64) -> bool,
    H: Fn(&T, u64) -> bool,
    M: Fn(&T) -> Option<u64>,
{
    fn observe(&mut self, keys: &[KeyHash], seen: &mut [u64]) {
        for (keys, seen) in keys.chunks(64).zip(seen) {
            *seen = 0;
            for (index, key) in keys.iter().enumerate() {
                *seen |= u64::from((self.insert)(&mut self.state, key.0)) << index;
            }
        }
    }

    fn holds(&self, key: KeyHash) -> bool {
        (self.holds)(&self.state, key.0)
    }

    fn memory_bytes(&self) -> Option<u64> {
        (self.memory)(&self.state)
    }
}

impl Peer for Box<dyn LineFilter> {
    fn observe(&mut self, keys: &[KeyHash], seen: &mut [u64]) {
        self.observe_words(keys, seen);
    }

    fn holds(&self, key: KeyHash) -> bool {
        self.contains(key)
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(Filter::memory_bytes(self))
    }
}

/// The shared filter, which hands its verdicts out in a type of its own.
pub(super) struct Shared {
    pub(super) filter: SharedFilter,
    pub(super) verdicts: Verdicts,
}

impl Peer for Shared {
    fn observe(&mut self, keys: &[KeyHash], seen: &mut [u64]) {
        self.filter.observe(keys, &mut self.verdicts);
        seen.copy_from_slice(self.verdicts.words());
    }

    fn holds(&self, key: KeyHash) -> bool {
        self.filter.contains(key)
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.filter.memory_bytes())
    }
}
