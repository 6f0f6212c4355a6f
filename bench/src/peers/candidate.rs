//! What every peer can do, and what it declares about itself.

use std::fmt;

use echoless::{Kernel, KeyHash};

use crate::failure::Failure;

/// A structure that reports whether it has seen a key before, and inserts the key.
pub trait Peer {
    /// Observes the keys in order. Bit `i % 64` of `seen[i / 64]` becomes 1 if key `i` was seen
    /// before, else 0.
    fn observe(&mut self, keys: &[KeyHash], seen: &mut [u64]);

    /// Whether the key would be reported as seen now. Inserts nothing.
    fn holds(&self, key: KeyHash) -> bool;

    /// The memory of the structure in bytes, if the crate reports it.
    fn memory_bytes(&self) -> Option<u64>;
}

/// What happens to a structure on an endless stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ages {
    /// It evicts old keys for new ones.
    Forgets,
    /// It fails, or reports every key as seen.
    FillsUp,
    /// It allocates more memory.
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

/// What every candidate is sized for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The memory in bytes. Exact sets take what the keys need.
    pub bytes: u64,
    /// The distinct keys of the stream.
    pub keys: u64,
}

impl Budget {
    pub(super) fn bits(self) -> f64 {
        self.bytes as f64 * 8.0
    }
}

/// A peer that can be built, and the error rates that it must not exceed.
pub struct Candidate {
    /// The crate, or `echoless`.
    pub name: &'static str,
    /// The structure of that crate, and its parameters.
    pub variant: String,
    /// The kernel, if the structure has several.
    pub kernel: Option<Kernel>,
    /// The hash function that the peer applies to the key hash; `given` if none.
    pub hashing: &'static str,
    /// What happens to it on an endless stream.
    pub ages: Ages,
    /// The highest false positive rate that its mathematics allows at the end of the stream.
    pub max_fpr: f64,
    /// The highest fraction of repeats within the window of the stream that it may miss.
    pub max_fnr: f64,
    /// Builds an empty one.
    pub build: Box<dyn Fn() -> Result<Box<dyn Peer>, Failure>>,
}

/// A candidate with what most peers share: it takes the hash as it is, misses no repeat, and fills
/// up. Its name, variant and rate are still to be set.
pub(super) fn filling_up<P: Peer + 'static>(
    build: impl Fn() -> Result<P, Failure> + 'static,
) -> Candidate {
    Candidate {
        name: "",
        variant: String::new(),
        kernel: None,
        hashing: "given",
        ages: Ages::FillsUp,
        max_fpr: 0.0,
        max_fnr: 0.0,
        build: Box::new(move || Ok(Box::new(build()?))),
    }
}

/// A peer made of the calls of a crate that takes one key at a time.
pub(super) struct Calls<T, I, H, M> {
    pub(super) state: T,
    /// Inserts a key; returns whether it was seen before.
    pub(super) insert: I,
    /// Whether a key would be reported as seen.
    pub(super) holds: H,
    /// The bytes of the structure, if the crate reports them.
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
                *seen |= u64::from((self.insert)(&mut self.state, key.get())) << index;
            }
        }
    }

    fn holds(&self, key: KeyHash) -> bool {
        (self.holds)(&self.state, key.get())
    }

    fn memory_bytes(&self) -> Option<u64> {
        (self.memory)(&self.state)
    }
}
