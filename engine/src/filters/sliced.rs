//! Slices that fail and are restored while the filter is in use, and the counters of a sliced
//! filter.

use crate::error::SpecError;

/// The [slices](crate::Filter::slices) of a filter.
///
/// A slice is named by a path: `[2]` is slice 2, and in a diced filter `[2, 5]` is piece 5 of slice
/// 2. A slice that fails loses its keys, and the policy of the filter decides the keys that need
/// it. It is restored empty. Failing a failed slice or restoring a live one has no effect.
pub trait Sliced {
    /// S, the number of slices.
    fn slice_count(&self) -> usize;

    /// Fails a slice, or a piece of one. Its keys are lost.
    ///
    /// # Errors
    /// [`SpecError`] if there is no slice of this path.
    fn fail(&mut self, path: &[usize]) -> Result<(), SpecError>;

    /// Restores a slice, empty; a slice of pieces with all of them.
    ///
    /// # Errors
    /// [`SpecError`] if there is no slice of this path.
    fn restore(&mut self, path: &[usize]) -> Result<(), SpecError>;

    /// Whether a slice, or every piece of it, has failed.
    ///
    /// # Errors
    /// [`SpecError`] if there is no slice of this path.
    fn is_failed(&self, path: &[usize]) -> Result<bool, SpecError>;

    /// The counters since the filter was built or cleared.
    fn counts(&self) -> SliceCounts;

    /// The number of keys that each slice was probed for, in the order of the slices; of pieces, in
    /// the order of the slices and then of their pieces.
    fn loads(&self) -> &[u64];
}

/// The counters of a sliced filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SliceCounts {
    /// Keys observed.
    pub observed: u64,
    /// Slices probed, summed over the keys. Failed slices are not probed.
    pub probed: u64,
    /// Messages between the producer of the keys and the slices.
    pub messages: u64,
    /// Keys that needed a failed slice.
    pub unavailable: u64,
}
