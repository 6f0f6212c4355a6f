//! Divides batches into messages to partitions in other threads: at most [so many
//! keys](super::MESSAGE_KEYS) each, which are answered in one word.

use super::MAX_COMPARED_PARTITIONS;
use super::masks::{self, KeyBuffer, KeyMask};
use super::offsets::{Offsets, WriteMessages};
use crate::hash::KeyHash;
use crate::isa::DetectedKernel;
use crate::partition::Partitioning;
use crate::verdicts::Verdicts;

/// How a router finds the keys of each partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutingWay {
    /// It compares each key with the bounds of every partition.
    Compare,
    /// It writes each key to a message of its owner.
    Write,
}

/// Divides the keys of one batch into messages to their owners. Its buffers are reused from batch
/// to batch.
#[derive(Debug)]
pub struct Router {
    partitioning: Partitioning,
    kernel: DetectedKernel,
    /// A buffer for each partition; empty if there are too many to be compared.
    pub(super) buffers: Vec<KeyBuffer>,
    /// In use if `buffers` is empty.
    pub(super) messages: Vec<KeyHash>,
}

/// Which keys of a batch each partition owns, and how many of them are answered.
#[derive(Debug, Clone, Default)]
pub struct Selections {
    /// A mask for each partition; empty if there are too many to be compared.
    pub(super) masks: Vec<KeyMask>,
    /// In use if `masks` is empty.
    offsets: Offsets,
}

/// A message of an owner that is not its first: the index of its first key among the keys of the
/// owner where there is a mask, the number of the message where there are offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageIndex(pub(super) u32);

impl MessageIndex {
    pub(super) const fn number(self) -> usize {
        self.0 as usize
    }
}

impl Router {
    /// The router that ports use, on the best kernel.
    pub fn new(partitioning: Partitioning) -> Self {
        let way = if partitioning.count() <= MAX_COMPARED_PARTITIONS {
            RoutingWay::Compare
        } else {
            RoutingWay::Write
        };
        Self::with(partitioning, DetectedKernel::best(), way)
    }

    /// A router that uses this kernel and this way.
    pub fn with(partitioning: Partitioning, kernel: DetectedKernel, way: RoutingWay) -> Self {
        let buffers = match way {
            RoutingWay::Compare => partitioning.count(),
            RoutingWay::Write => 0,
        };
        Self {
            buffers: vec![KeyBuffer::default(); buffers],
            messages: Vec::new(),
            partitioning,
            kernel,
        }
    }

    /// Gives back the memory of the last batch, all messages of which are sent.
    pub(crate) fn release(&mut self) {
        self.buffers.fill_with(KeyBuffer::default);
        self.messages = Vec::new();
    }

    /// Divides the keys of a batch, of fewer than 2^31 keys, into messages, and resets `selections`
    /// to them.
    pub fn route(&mut self, keys: &[KeyHash], selections: &mut Selections) {
        assert!(keys.len() < 1 << 31, "a batch of {} keys", keys.len());
        let Selections { masks, offsets } = selections;
        masks.resize_with(self.buffers.len(), KeyMask::default);
        if self.buffers.is_empty() {
            self.kernel.run(WriteMessages {
                partitioning: &self.partitioning,
                keys,
                messages: &mut self.messages,
                offsets,
            });
        } else {
            let starts = self.partitioning.starts();
            masks::route(self.kernel, starts, keys, &mut self.buffers, masks);
        }
    }

    /// The kernel that it uses.
    pub const fn kernel(&self) -> DetectedKernel {
        self.kernel
    }

    /// The keys of a message of the last routed batch to a partition, and the next message to it.
    /// `None` is the first one, which is empty if the partition owns no key.
    pub fn message(
        &self,
        selections: &Selections,
        owner: usize,
        index: Option<MessageIndex>,
    ) -> (&[KeyHash], Option<MessageIndex>) {
        match self.buffers.get(owner) {
            Some(buffer) => buffer.message(index),
            None => {
                let (keys, next) = selections.offsets.message(owner, index);
                (&self.messages[keys], next)
            }
        }
    }
}

impl Selections {
    /// Takes the answer to the next message of a partition, one bit for each of its keys.
    pub fn answer(
        &mut self,
        owner: usize,
        kernel: DetectedKernel,
        answer: u64,
        verdicts: &mut Verdicts,
    ) {
        match self.masks.get_mut(owner) {
            Some(mask) => mask.deposit(kernel, answer, verdicts.words_mut()),
            None => self.offsets.answer(owner, answer),
        }
    }

    /// The keys of the next message of a partition have no verdict.
    #[cold]
    pub(crate) fn answer_unknown(
        &mut self,
        owner: usize,
        kernel: DetectedKernel,
        verdicts: &mut Verdicts,
    ) {
        match self.masks.get_mut(owner) {
            Some(mask) => mask.deposit(kernel, u64::MAX, verdicts.unknown_words_mut()),
            None => self.offsets.answer_unknown(owner),
        }
    }

    /// The keys of a partition from this message on were not sent, so they have no verdict.
    #[cold]
    pub(crate) fn mark_unsent(
        &mut self,
        owner: usize,
        index: Option<MessageIndex>,
        verdicts: &mut Verdicts,
    ) {
        match self.masks.get(owner) {
            Some(mask) => mask.mark_unsent(index, verdicts.unknown_words_mut()),
            None => self.offsets.mark_unsent(owner, index),
        }
    }

    /// Completes the verdicts of the batch, once every message is answered or has none.
    pub fn finish(&self, kernel: DetectedKernel, verdicts: &mut Verdicts) {
        if self.masks.is_empty() {
            self.offsets.look_up(kernel, verdicts);
        }
    }

    /// Whether a partition owns no key of the batch.
    pub(crate) fn is_empty(&self, owner: usize) -> bool {
        match self.masks.get(owner) {
            Some(mask) => mask.is_empty(),
            None => self.offsets.message(owner, None).0.is_empty(),
        }
    }
}
