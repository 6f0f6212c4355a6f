//! Routes the keys of a batch to the partitions that own them, and puts the answers of the
//! partitions back into the order of the batch.
//!
//! There are two ways, with the same results. For few partitions, [`masks`] compares each key with
//! the bounds of all of them. For many, [`offsets`] writes each key to a message of its owner, at a
//! cost that hardly depends on their number.

mod masks;
mod offsets;
mod round_trip;

use crate::hash::KeyHash;
use crate::isa::DetectedKernel;
use crate::partition::Partitioning;
use crate::verdicts::Verdicts;

use masks::{KeyBuffer, KeyMask};
use offsets::{Offsets, WriteMessages};
pub use round_trip::RoundTrip;

/// Up to this many partitions, each key is compared with the bounds of every partition. Writing
/// keys one by one is faster from 5 or 6 partitions on with AVX-512, from 4 or 5 on with AVX2.
const MAX_COMPARED_PARTITIONS: usize = 4;

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
pub(super) struct Router {
    partitioning: Partitioning,
    kernel: DetectedKernel,
    /// A buffer for each partition; empty if there are too many to be compared.
    buffers: Vec<KeyBuffer>,
    /// In use if `buffers` is empty.
    messages: Vec<KeyHash>,
    /// The ticks of the keys in `messages`, if they have some.
    ticks: Vec<u64>,
}

/// Which keys of a batch each partition owns, and how many of them are answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Selections {
    /// A mask for each partition; empty if there are too many to be compared.
    masks: Vec<KeyMask>,
    /// In use if `masks` is empty.
    offsets: Offsets,
}

/// A message of an owner that is not its first: the index of its first key among the keys of the
/// owner where there is a mask, the number of the message where there are offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageIndex(u32);

/// Goes through the messages of the last routed batch to one partition. Not an iterator, because
/// callers change the selections between two messages.
#[derive(Debug)]
pub(super) struct Messages {
    owner: usize,
    /// The message that follows; the first one for `None`.
    index: Option<MessageIndex>,
    at_end: bool,
}

impl Messages {
    pub(super) const fn to(owner: usize) -> Self {
        Self {
            owner,
            index: None,
            at_end: false,
        }
    }

    /// The keys of the next message: at least one.
    #[inline]
    pub(super) fn next<'a>(
        &mut self,
        router: &'a Router,
        selections: &Selections,
    ) -> Option<&'a [KeyHash]> {
        if self.at_end {
            return None;
        }
        let (keys, next) = router.message(selections, self.owner, self.index);
        self.index = next;
        self.at_end = next.is_none();
        (!keys.is_empty()).then_some(keys)
    }
}

impl MessageIndex {
    const fn number(self) -> usize {
        self.0 as usize
    }
}

impl Router {
    pub(super) fn new(partitioning: Partitioning) -> Self {
        let way = if partitioning.count() <= MAX_COMPARED_PARTITIONS {
            RoutingWay::Compare
        } else {
            RoutingWay::Write
        };
        Self::with(partitioning, DetectedKernel::best(), way)
    }

    /// A router that uses this kernel and this way.
    fn with(partitioning: Partitioning, kernel: DetectedKernel, way: RoutingWay) -> Self {
        let buffers = match way {
            RoutingWay::Compare => partitioning.count(),
            RoutingWay::Write => 0,
        };
        Self {
            buffers: vec![KeyBuffer::default(); buffers],
            messages: Vec::new(),
            ticks: Vec::new(),
            partitioning,
            kernel,
        }
    }

    /// Gives back the memory of the last batch, all messages of which are sent.
    pub(super) fn release(&mut self) {
        self.buffers.fill_with(KeyBuffer::default);
        (self.messages, self.ticks) = (Vec::new(), Vec::new());
    }

    /// Divides the keys of a batch, of fewer than 2^31 keys, into messages, and resets `selections`
    /// to them.
    pub(super) fn route(&mut self, keys: &[KeyHash], selections: &mut Selections) {
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

    /// Prepares to divide the ticks of the last routed batch as its keys.
    pub(super) fn route_ticks(&mut self, ticks: &[u64], selections: &Selections) {
        if self.buffers.is_empty() {
            self.ticks.resize(self.messages.len(), 0);
            selections.offsets.write_ticks(ticks, &mut self.ticks);
        }
    }

    /// The ticks of the keys of a partition, in the order of [`keys_of`](Self::keys_of). `ticks`
    /// are those that were [routed](Self::route_ticks).
    pub(super) fn ticks_of<'a>(
        &self,
        ticks: &[u64],
        selections: &Selections,
        owner: usize,
        copied: &'a mut Vec<u64>,
    ) -> &'a [u64] {
        copied.clear();
        if let Some(mask) = selections.masks.get(owner) {
            mask.copy_owned(ticks, copied);
        } else {
            let mut index = None;
            loop {
                let (keys, next) = selections.offsets.message(owner, index);
                copied.extend_from_slice(&self.ticks[keys]);
                if next.is_none() {
                    break;
                }
                index = next;
            }
        }
        copied
    }

    pub(super) const fn kernel(&self) -> DetectedKernel {
        self.kernel
    }

    /// The keys of a message of the last routed batch to a partition, and the next message to it.
    /// `None` is the first one, which is empty if the partition owns no key.
    pub(super) fn message(
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

    /// All keys of a partition in the last routed batch, in the order of its messages. `copied`
    /// takes them if the messages are not in one place.
    pub(super) fn keys_of<'a>(
        &'a self,
        selections: &Selections,
        owner: usize,
        copied: &'a mut Vec<KeyHash>,
    ) -> &'a [KeyHash] {
        if let Some(buffer) = self.buffers.get(owner) {
            return buffer.keys();
        }
        copied.clear();
        let mut messages = Messages::to(owner);
        while let Some(keys) = messages.next(self, selections) {
            copied.extend_from_slice(keys);
        }
        copied
    }
}

impl Selections {
    /// Takes the answer to the next message of a partition, one bit for each of its keys.
    pub(super) fn answer(
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
    pub(super) fn answer_unknown(
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
    pub(super) fn mark_unsent(
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
    pub(super) fn finish(&self, kernel: DetectedKernel, verdicts: &mut Verdicts) {
        if self.masks.is_empty() {
            self.offsets.look_up(kernel, verdicts);
        }
    }

    /// Whether a partition owns no key of the batch.
    pub(super) fn is_empty(&self, owner: usize) -> bool {
        match self.masks.get(owner) {
            Some(mask) => mask.is_empty(),
            None => self.offsets.message(owner, None).0.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests;
