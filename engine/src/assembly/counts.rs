//! What an engine or an ordered filter has counted so far, while it is in use.

use std::iter::Sum;

/// Counts of an engine or an ordered filter in use; see [`Engine::counts`](super::Engine::counts)
/// and [`OrderedFilter::counts`](super::OrderedFilter::counts).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EngineCounts {
    /// The number of keys that filters have judged.
    pub judged: u64,
    /// The number of these that were duplicates.
    pub duplicates: u64,
    /// The number of keys without a verdict, because their partition was lost.
    pub unknown: u64,
}

impl Sum for EngineCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| Self {
            judged: sum.judged + counts.judged,
            duplicates: sum.duplicates + counts.duplicates,
            unknown: sum.unknown + counts.unknown,
        })
    }
}
