//! Few partitions: the bounds of each are compared with every key, and one bit for each key and
//! partition remembers which keys it owns.
//!
//! In the drawing, partition 1 owns four of eight keys, and its answer has a bit for each of the
//! four:
//!
//! ```text
//!   batch                  k0 k1 k2 k3 k4 k5 k6 k7
//!   mask of partition 1     0  1  1  0  1  0  0  1
//!   route (compress)       [k1 k2 k4 k7]               the message, in the order of the batch
//!   answer                  1  0  1  0                 k1 and k4 are duplicates
//!   deposit (expand)        0  1  0  0  1  0  0  0     OR-ed into the verdicts of the batch
//! ```
//!
//! The comparisons of different keys are independent of each other, eight at a time in a vector.
//! Their number grows with the partitions, and so does the memory. A batch in flight has a bit of
//! each key in every mask. The batch that is being sent has a buffer for each partition with space
//! for all of its keys, any of which may be the partition's: 8 bytes a key, and 32 with 4
//! partitions. A port has these buffers once, and a routed batch, and they keep the size of the
//! largest batch.

use super::MESSAGE_KEYS;
#[cfg(feature = "threads")]
use super::messages::MessageIndex;
use crate::hash::KeyHash;
use crate::isa::DetectedKernel;
use crate::kernels::select::{GROUP, SelectLoop, SelectOps, run_with_ops};

/// The keys of a batch that one partition owns, in the order of the batch.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyBuffer {
    /// Valid up to `count`. Behind it are keys of earlier batches, and space for a whole group to
    /// be stored.
    keys: Vec<KeyHash>,
    count: usize,
}

/// Which keys of a batch one partition owns, and how many of them are answered.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyMask {
    /// A word for each 64 keys of the batch; bit `i` is set if the partition owns key `i` of them.
    mask: Vec<u64>,
    /// The index in `mask` of the next key without an answer.
    word: usize,
    /// The bits of `mask[word]` without an answer.
    unanswered: u64,
}

impl KeyBuffer {
    /// The keys of all messages.
    pub(super) fn keys(&self) -> &[KeyHash] {
        &self.keys[..self.count]
    }
}

#[cfg(feature = "threads")]
impl KeyBuffer {
    /// The keys of a message, the first one for `None`, and the next message.
    pub(super) fn message(
        &self,
        index: Option<MessageIndex>,
    ) -> (&[KeyHash], Option<MessageIndex>) {
        let start = index.map_or(0, MessageIndex::number);
        let end = self.count.min(start + MESSAGE_KEYS);
        let next = (end < self.count).then_some(MessageIndex(end as u32));
        (&self.keys[start..end], next)
    }
}

/// Copies the keys of each partition to its buffer, and marks them in its mask. Partition `i` owns
/// the hashes from `starts[i]` up to the next start.
pub(super) fn route(
    kernel: DetectedKernel,
    starts: &[u64],
    keys: &[KeyHash],
    buffers: &mut [KeyBuffer],
    masks: &mut [KeyMask],
) {
    for (buffer, mask) in buffers.iter_mut().zip(&mut *masks) {
        mask.mask.clear();
        mask.mask.resize(keys.len().div_ceil(64), 0);
        // Space for all keys and one group, so that the loop always stores whole groups. Buffers
        // never shrink: keys of earlier batches stay behind `count`.
        if buffer.keys.len() < keys.len() + GROUP {
            buffer.keys.resize(keys.len() + GROUP, KeyHash(0));
        }
    }
    if let ([only], [mask]) = (&mut *buffers, &mut *masks) {
        only.keys[..keys.len()].copy_from_slice(keys);
        only.count = keys.len();
        mask.mask.fill(u64::MAX);
        if let Some(last) = mask.mask.last_mut() {
            *last >>= keys.len().wrapping_neg() % 64;
        }
    } else {
        let compare = Compare {
            starts,
            keys,
            buffers,
            masks,
        };
        run_with_ops(kernel, compare);
    }
    for mask in masks {
        mask.word = 0;
        mask.unanswered = mask.mask.first().copied().unwrap_or(0);
    }
}

/// Goes through the batch once for each partition, and picks the keys between its bounds from each
/// group of 8.
struct Compare<'a> {
    starts: &'a [u64],
    keys: &'a [KeyHash],
    buffers: &'a mut [KeyBuffer],
    masks: &'a mut [KeyMask],
}

impl SelectLoop for Compare<'_> {
    type Output = ();

    #[inline(always)]
    fn run<O: SelectOps>(self, ops: O) {
        let Self {
            starts,
            keys,
            buffers,
            masks,
        } = self;
        for (owner, (buffer, mask)) in buffers.iter_mut().zip(masks).enumerate() {
            // The last partition has no end: its keys reach up to `u64::MAX`.
            let (start, end) = (starts[owner], starts.get(owner + 1).copied());
            let mut count = 0;
            for (block, word) in keys.chunks(64).zip(&mut mask.mask) {
                let (groups, rest) = block.as_chunks::<GROUP>();
                for (group, keys) in groups.iter().enumerate() {
                    let own = owned(ops, keys, start, end);
                    take(ops, keys, own, &mut buffer.keys, &mut count);
                    *word |= u64::from(own) << (group * GROUP);
                }
                if !rest.is_empty() {
                    // Padded with hash 0, which partition 0 owns; the mask drops the padding again.
                    let mut last = [KeyHash(0); GROUP];
                    last[..rest.len()].copy_from_slice(rest);
                    let own = owned(ops, &last, start, end) & !(u8::MAX << rest.len());
                    take(ops, &last, own, &mut buffer.keys, &mut count);
                    *word |= u64::from(own) << (groups.len() * GROUP);
                }
            }
            buffer.count = count;
        }
    }
}

/// One bit for each key of a group, set where its hash is between the bounds of a partition.
#[inline(always)]
fn owned<O: SelectOps>(ops: O, keys: &[KeyHash; GROUP], start: u64, end: Option<u64>) -> u8 {
    // Not `map_or`: its closure is not compiled for the kernel unless it is inlined, and it is not.
    let beyond = match end {
        Some(end) => ops.at_least(keys, end),
        None => 0,
    };
    ops.at_least(keys, start) & !beyond
}

/// Adds the owned keys of a group to a buffer of `count` keys.
///
/// Stores a whole group, but counts only the owned keys, which `pick` moves to the front; the next
/// group overwrites the others:
///
/// ```text
///   group, own    k0 k1 k2 k3 k4 k5 k6 k7    0b10010110
///   stored        k1 k2 k4 k7  -  -  -  -
///   next group                ^ stored from here
/// ```
#[inline(always)]
fn take<O: SelectOps>(
    ops: O,
    keys: &[KeyHash; GROUP],
    own: u8,
    buffer: &mut [KeyHash],
    count: &mut usize,
) {
    let free = buffer[*count..].first_chunk_mut();
    ops.pick(keys, own, free.expect("space for one more group"));
    *count += own.count_ones() as usize;
}

impl KeyMask {
    /// Deposits the answer to the next message, one bit for each of its keys, into the verdicts of
    /// the batch.
    pub(super) fn deposit(&mut self, kernel: DetectedKernel, answer: u64, verdicts: &mut [u64]) {
        let deposit = Deposit {
            mask: self,
            answer,
            verdicts,
        };
        run_with_ops(kernel, deposit);
    }

    /// Appends the items of owned keys to `owned`. There is an item for each key of the batch.
    pub(super) fn copy_owned(&self, items: &[u64], owned: &mut Vec<u64>) {
        for (mask, items) in self.mask.iter().zip(items.chunks(64)) {
            let mut rest = *mask;
            while rest != 0 {
                owned.push(items[rest.trailing_zeros() as usize]);
                rest &= rest - 1;
            }
        }
    }
}

#[cfg(feature = "threads")]
impl KeyMask {
    /// Whether the partition owns no key of the batch.
    pub(super) fn is_empty(&self) -> bool {
        self.mask.iter().all(|word| *word == 0)
    }

    /// Sets the bits of all owned keys from this message on.
    #[cold]
    pub(super) fn mark_unsent(&self, index: Option<MessageIndex>, unknown: &mut [u64]) {
        let mut sent = index.map_or(0, MessageIndex::number);
        for (mask, unknown) in self.mask.iter().zip(unknown) {
            let mut rest = *mask;
            while sent > 0 && rest != 0 {
                rest &= rest - 1;
                sent -= 1;
            }
            *unknown |= rest;
        }
    }
}

/// Spreads an answer over the bits of a mask. Both vector kernels have the same instruction for it.
struct Deposit<'a> {
    mask: &'a mut KeyMask,
    answer: u64,
    verdicts: &'a mut [u64],
}

impl SelectLoop for Deposit<'_> {
    type Output = ();

    #[inline(always)]
    fn run<O: SelectOps>(self, ops: O) {
        let Self {
            mask,
            mut answer,
            verdicts,
        } = self;
        // Every message but the last of a batch is full, so the answer covers the next
        // `MESSAGE_KEYS` owned keys, or all that are left.
        let mut left = MESSAGE_KEYS as u32;
        while left > 0
            && let Some(verdicts) = verdicts.get_mut(mask.word)
        {
            let here = mask.unanswered.count_ones();
            *verdicts |= ops.deposit(answer, mask.unanswered);
            if here > left {
                // The message ends within this word: drop its `left` lowest keys from the word.
                mask.unanswered &= !ops.deposit(u64::MAX >> (64 - left), mask.unanswered);
                return;
            }
            left -= here;
            // A full word consumes all 64 bits, and a shift by 64 would overflow.
            answer = answer.checked_shr(here).unwrap_or(0);
            mask.word += 1;
            mask.unanswered = mask.mask.get(mask.word).copied().unwrap_or(0);
        }
    }
}
