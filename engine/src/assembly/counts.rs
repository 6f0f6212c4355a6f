//! What an engine has counted so far, while it runs.

use std::iter::Sum;

/// Counts of a running engine; see [`Engine::counts`](super::Engine::counts).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Counts {
    /// The number of keys that filters have judged.
    pub judged: u64,
    /// The number of these that were duplicates.
    pub duplicates: u64,
    /// The number of keys without a verdict, because their partition was lost.
    pub unknown: u64,
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| Self {
            judged: sum.judged + counts.judged,
            duplicates: sum.duplicates + counts.duplicates,
            unknown: sum.unknown + counts.unknown,
        })
    }
}
