//! Routes the keys of a batch to the partitions that own them, and puts the answers of the
//! partitions back into the order of the batch.
//!
//! There are two ways, with the same results. For few partitions, [`masks`] compares each key with
//! the bounds of all of them. For many, [`positions`] sorts the keys by owner, at a cost that
//! hardly depends on their number.

mod masks;
mod positions;
mod round_trip;

use crate::hash::KeyHash;
use crate::kernels::isa::DetectedKernel;
use crate::partition::Partitioning;

use masks::{KeyBuffer, KeyMask};
use positions::{Positions, Sort, SortedKeys};
pub use round_trip::RoundTrip;

/// Up to this many partitions, each key is compared with the bounds of every partition.
const MAX_COMPARED_PARTITIONS: usize = 8;

/// Sorts the keys of one batch by owner. Its buffers are reused from batch to batch.
#[derive(Debug)]
pub(super) struct Router {
    partitioning: Partitioning,
    kernel: DetectedKernel,
    /// A buffer for each partition; empty if there are too many to be compared.
    buffers: Vec<KeyBuffer>,
    /// In use if `buffers` is empty.
    sorted: SortedKeys,
}

/// Which keys of a batch each partition owns, and how many of them are answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Selections {
    /// A mask for each partition; empty if there are too many to be compared.
    masks: Vec<KeyMask>,
    /// In use if `masks` is empty.
    positions: Positions,
}

impl Router {
    pub(super) fn new(partitioning: Partitioning) -> Self {
        let compared = partitioning.count() <= MAX_COMPARED_PARTITIONS;
        Self::with(partitioning, DetectedKernel::best(), compared)
    }

    /// A router that compares keys with all bounds, or sorts them.
    fn with(partitioning: Partitioning, kernel: DetectedKernel, compared: bool) -> Self {
        let buffers = if compared { partitioning.count() } else { 0 };
        Self {
            buffers: vec![KeyBuffer::default(); buffers],
            sorted: SortedKeys::default(),
            partitioning,
            kernel,
        }
    }

    /// Sorts the keys of a batch, of fewer than 2^32 keys, by owner, and resets `selections` to
    /// them.
    pub(super) fn route(&mut self, keys: &[KeyHash], selections: &mut Selections) {
        let Selections { masks, positions } = selections;
        masks.resize_with(self.buffers.len(), KeyMask::default);
        if self.buffers.is_empty() {
            self.kernel.run(Sort {
                partitioning: &self.partitioning,
                keys,
                sorted: &mut self.sorted,
                positions,
            });
        } else {
            let starts = self.partitioning.starts();
            masks::route(self.kernel, starts, keys, &mut self.buffers, masks);
        }
    }

    pub(super) const fn kernel(&self) -> DetectedKernel {
        self.kernel
    }

    /// The keys of the last routed batch that a partition owns.
    pub(super) fn keys_of(&self, owner: usize) -> &[KeyHash] {
        match self.buffers.get(owner) {
            Some(buffer) => buffer.keys(),
            None => self.sorted.keys_of(owner),
        }
    }
}

impl Selections {
    /// Deposits the answer to the next message of a partition, one bit for each of its keys, into
    /// the verdicts of the batch.
    pub(super) fn deposit(
        &mut self,
        owner: usize,
        kernel: DetectedKernel,
        answer: u64,
        verdicts: &mut [u64],
    ) {
        match self.masks.get_mut(owner) {
            Some(mask) => mask.deposit(kernel, answer, verdicts),
            None => self.positions.deposit(owner, answer, verdicts),
        }
    }

    /// Whether a partition owns no key of the batch.
    pub(super) fn is_empty(&self, owner: usize) -> bool {
        match self.masks.get(owner) {
            Some(mask) => mask.is_empty(),
            None => self.positions.is_empty(owner),
        }
    }

    /// Sets the bits of all keys of a partition behind the first `sent` ones: those of the messages
    /// that were not sent.
    #[cold]
    pub(super) fn mark_unsent(&self, owner: usize, sent: usize, unknown: &mut [u64]) {
        match self.masks.get(owner) {
            Some(mask) => mask.mark_unsent(sent, unknown),
            None => self.positions.mark_unsent(owner, sent, unknown),
        }
    }
}

#[cfg(test)]
mod tests;
