//! Routes the keys of a batch to the partitions that own them, and puts the answers of the
//! partitions back into the order of the batch.
//!
//! The way back needs one bit for each key and partition: a mask word for each 64 keys of the
//! batch. In the drawing, partition 1 owns four of eight keys, and its answer has a bit for each of
//! the four:
//!
//! ```text
//!   batch                  k0 k1 k2 k3 k4 k5 k6 k7
//!   mask of partition 1     0  1  1  0  1  0  0  1
//!   route (compress)       [k1 k2 k4 k7]               the message, in the order of the batch
//!   answer                  1  0  1  0                 k1 and k4 are duplicates
//!   deposit (expand)        0  1  0  0  1  0  0  0     OR-ed into the verdicts of the batch
//! ```

use crate::hash::KeyHash;
#[cfg(target_arch = "x86_64")]
use crate::kernels::avx512::Avx512;
use crate::kernels::isa::{DetectedKernel, HotLoop};
use crate::kernels::scalar::Scalar;
use crate::kernels::{GROUP, SelectOps};
use crate::partition::Partitioning;

use super::message::MESSAGE_KEYS;

/// Up to this many partitions, each key is compared with the bounds of every partition. The
/// comparisons of different keys are independent of each other, which pays off while there are few
/// bounds. Beyond it, the partition of each key is computed by [`Partitioning::partition_of`].
const MAX_COMPARED_PARTITIONS: usize = 8;

/// Sorts the keys of one batch by owner. Its buffers are reused from batch to batch.
#[derive(Debug)]
pub(super) struct Router {
    partitioning: Partitioning,
    kernel: DetectedKernel,
    buffers: Vec<KeyBuffer>,
}

/// The keys of a batch that one partition owns, in the order of the batch.
#[derive(Debug, Clone, Default)]
struct KeyBuffer {
    /// Valid up to `count`. Behind it are keys of earlier batches and, in `route_by_comparison`,
    /// space for a whole group to be stored.
    keys: Vec<KeyHash>,
    count: usize,
}

/// Which keys of a batch one partition owns, and how many of them are answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// A word for each 64 keys of the batch; bit `i` is set if the partition owns key `i` of them.
    mask: Vec<u64>,
    /// The index in `mask` of the next key without an answer.
    word: usize,
    /// The bits of `mask[word]` without an answer.
    unanswered: u64,
}

impl Router {
    pub(super) fn new(partitioning: Partitioning) -> Self {
        Self {
            kernel: DetectedKernel::best(),
            buffers: vec![KeyBuffer::default(); partitioning.count()],
            partitioning,
        }
    }

    /// Sorts the keys of a batch by owner, and resets `selections` to one for each partition.
    pub(super) fn route(&mut self, keys: &[KeyHash], selections: &mut Vec<Selection>) {
        selections.resize_with(self.buffers.len(), Selection::default);
        for (buffer, selection) in self.buffers.iter_mut().zip(&mut *selections) {
            buffer.count = 0;
            selection.mask.clear();
            selection.mask.resize(keys.len().div_ceil(64), 0);
        }
        if let ([only], [selection]) = (&mut self.buffers[..], &mut selections[..]) {
            only.keys.clear();
            only.keys.extend_from_slice(keys);
            only.count = keys.len();
            selection.mask.fill(u64::MAX);
            if let Some(last) = selection.mask.last_mut() {
                *last >>= keys.len().wrapping_neg() % 64;
            }
        } else if self.buffers.len() <= MAX_COMPARED_PARTITIONS {
            self.route_by_comparison(keys, selections);
        } else {
            self.route_by_division(keys, selections);
        }
        for selection in selections {
            selection.word = 0;
            selection.unanswered = selection.mask.first().copied().unwrap_or(0);
        }
    }

    pub(super) const fn kernel(&self) -> DetectedKernel {
        self.kernel
    }

    /// The keys of the last routed batch that a partition owns.
    pub(super) fn keys_of(&self, owner: usize) -> &[KeyHash] {
        let buffer = &self.buffers[owner];
        &buffer.keys[..buffer.count]
    }

    /// Goes through the batch once for each partition, and picks the keys between its bounds from
    /// each group of 8.
    fn route_by_comparison(&mut self, keys: &[KeyHash], selections: &mut [Selection]) {
        for buffer in &mut self.buffers {
            // Space for all keys and one group, so that the loop stores whole groups without a
            // check. Buffers never shrink: keys of earlier batches stay behind `count`.
            if buffer.keys.len() < keys.len() + GROUP {
                buffer.keys.resize(keys.len() + GROUP, KeyHash(0));
            }
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = Avx512::new(self.kernel) {
            return self.kernel.run(self.comparison(ops, keys, selections));
        }
        self.kernel.run(self.comparison(Scalar, keys, selections));
    }

    fn comparison<'a, O>(
        &'a mut self,
        ops: O,
        keys: &'a [KeyHash],
        selections: &'a mut [Selection],
    ) -> RouteByComparison<'a, O> {
        RouteByComparison {
            ops,
            starts: self.partitioning.starts(),
            keys,
            buffers: &mut self.buffers,
            selections,
        }
    }

    /// Goes through the batch once, and computes the partition of each key.
    fn route_by_division(&mut self, keys: &[KeyHash], selections: &mut [Selection]) {
        for (index, key) in keys.iter().enumerate() {
            let owner = self.partitioning.partition_of(*key);
            let buffer = &mut self.buffers[owner];
            // Buffers grow with their keys: space for the whole batch in each of many buffers would
            // waste memory.
            match buffer.keys.get_mut(buffer.count) {
                Some(slot) => *slot = *key,
                None => buffer.keys.push(*key),
            }
            buffer.count += 1;
            selections[owner].mask[index / 64] |= 1 << (index % 64);
        }
    }
}

struct RouteByComparison<'a, O> {
    ops: O,
    starts: &'a [u64],
    keys: &'a [KeyHash],
    buffers: &'a mut [KeyBuffer],
    selections: &'a mut [Selection],
}

impl<O: SelectOps> HotLoop for RouteByComparison<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            ops,
            starts,
            keys,
            buffers,
            selections,
        } = self;
        for (owner, (buffer, selection)) in buffers.iter_mut().zip(selections).enumerate() {
            // The last partition has no end: its keys reach up to `u64::MAX`.
            let (start, end) = (starts[owner], starts.get(owner + 1).copied());
            let owned = |keys: &[KeyHash; GROUP]| {
                let beyond = end.map_or(0, |end| ops.at_least(keys, end));
                ops.at_least(keys, start) & !beyond
            };
            let mut count = 0;
            // Stores a whole group, but counts only the owned keys, which `pick` moves to the
            // front; the next group overwrites the others:
            //
            //   group, own    k0 k1 k2 k3 k4 k5 k6 k7    0b10010110
            //   stored        k1 k2 k4 k7  -  -  -  -
            //   next group                ^ stored from here
            let mut take = |keys: &[KeyHash; GROUP], own: u8| {
                buffer.keys[count..count + GROUP].copy_from_slice(&ops.pick(keys, own));
                count += own.count_ones() as usize;
            };
            for (block, word) in keys.chunks(64).zip(&mut selection.mask) {
                let (groups, rest) = block.as_chunks::<GROUP>();
                for (group, keys) in groups.iter().enumerate() {
                    let own = owned(keys);
                    take(keys, own);
                    *word |= u64::from(own) << (group * GROUP);
                }
                if !rest.is_empty() {
                    // Padded with hash 0, which partition 0 owns; the mask drops the padding again.
                    let mut last = [KeyHash(0); GROUP];
                    last[..rest.len()].copy_from_slice(rest);
                    let own = owned(&last) & !(u8::MAX << rest.len());
                    take(&last, own);
                    *word |= u64::from(own) << (groups.len() * GROUP);
                }
            }
            buffer.count = count;
        }
    }
}

impl Selection {
    /// Deposits the answer to the next message, one bit for each of its keys, into the verdicts of
    /// the batch.
    pub(super) fn deposit(&mut self, kernel: DetectedKernel, answer: u64, verdicts: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = Avx512::new(kernel) {
            return kernel.run(DepositAnswer {
                ops,
                selection: self,
                answer,
                verdicts,
            });
        }
        kernel.run(DepositAnswer {
            ops: Scalar,
            selection: self,
            answer,
            verdicts,
        });
    }
}

impl Selection {
    /// Whether the partition owns no key of the batch.
    pub(super) fn is_empty(&self) -> bool {
        self.mask.iter().all(|word| *word == 0)
    }

    /// Sets the bits of all owned keys behind the first `sent` ones: those of the messages that
    /// were not sent.
    #[cold]
    pub(super) fn mark_unsent(&self, mut sent: usize, unknown: &mut [u64]) {
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

struct DepositAnswer<'a, O> {
    ops: O,
    selection: &'a mut Selection,
    answer: u64,
    verdicts: &'a mut [u64],
}

impl<O: SelectOps> HotLoop for DepositAnswer<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            ops,
            selection,
            mut answer,
            verdicts,
        } = self;
        // Every message but the last of a batch is full, so the answer covers the next
        // `MESSAGE_KEYS` owned keys, or all that are left.
        let mut left = MESSAGE_KEYS as u32;
        while left > 0
            && let Some(verdicts) = verdicts.get_mut(selection.word)
        {
            let here = selection.unanswered.count_ones();
            *verdicts |= ops.deposit(answer, selection.unanswered);
            if here > left {
                // The message ends within this word: drop its `left` lowest keys from the word.
                selection.unanswered &= !ops.deposit(u64::MAX >> (64 - left), selection.unanswered);
                return;
            }
            left -= here;
            // A full word consumes all 64 bits, and a shift by 64 would overflow.
            answer = answer.checked_shr(here).unwrap_or(0);
            selection.word += 1;
            selection.unanswered = selection.mask.get(selection.word).copied().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::isa::tested::kernels;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_reach_their_owners_in_order_and_answers_return_to_their_positions(
            hashes in prop::collection::vec(any::<u64>(), 0..600),
            second in prop::collection::vec(any::<u64>(), 0..600),
            lines in 20u64..1000,
            count in 1usize..=12,
        ) {
            let partitioning = Partitioning::new(lines, count).unwrap();
            let mut router = Router::new(partitioning.clone());
            let mut selections = Vec::new();
            // The second batch reuses the buffers of the first.
            for hashes in [hashes, second] {
                let keys: Vec<KeyHash> = hashes.into_iter().map(KeyHash).collect();
                router.route(&keys, &mut selections);
                let mut verdicts = vec![0; keys.len().div_ceil(64)];
                for (owner, selection) in selections.iter_mut().enumerate() {
                    let expected: Vec<KeyHash> =
                        keys.iter().copied().filter(|key| partitioning.partition_of(*key) == owner).collect();
                    prop_assert_eq!(router.keys_of(owner), &expected[..]);
                    for message in expected.chunks(MESSAGE_KEYS) {
                        let answer = message.iter().rev().fold(0, |bits, key| bits << 1 | key.0 & 1);
                        selection.deposit(router.kernel, answer, &mut verdicts);
                    }
                }
                let expected: Vec<u64> = keys
                    .chunks(64)
                    .map(|keys| keys.iter().rev().fold(0, |bits, key| bits << 1 | key.0 & 1))
                    .collect();
                prop_assert_eq!(verdicts, expected);
            }
        }

        #[test]
        fn keys_that_were_not_sent_are_marked(
            hashes in prop::collection::vec(any::<u64>(), 0..300), count in 1usize..=12, sent in 0usize..200,
        ) {
            let partitioning = Partitioning::new(20, count).unwrap();
            let keys: Vec<KeyHash> = hashes.into_iter().map(KeyHash).collect();
            let mut selections = Vec::new();
            Router::new(partitioning.clone()).route(&keys, &mut selections);
            for (owner, selection) in selections.iter().enumerate() {
                let mut unknown = vec![0; keys.len().div_ceil(64)];
                selection.mark_unsent(sent, &mut unknown);
                let owned = (0..keys.len()).filter(|index| partitioning.partition_of(keys[*index]) == owner);
                let unsent: Vec<usize> = owned.skip(sent).collect();
                for index in 0..keys.len() {
                    prop_assert_eq!(unknown[index / 64] >> (index % 64) & 1 == 1, unsent.contains(&index));
                }
            }
        }

        #[test]
        fn every_kernel_routes_alike(hashes in prop::collection::vec(any::<u64>(), 0..300), count in 2usize..=MAX_COMPARED_PARTITIONS) {
            let keys: Vec<KeyHash> = hashes.into_iter().map(KeyHash).collect();
            let mut plain = Router::new(Partitioning::new(100, count).unwrap());
            let mut selections = Vec::new();
            plain.route(&keys, &mut selections);
            for kernel in kernels() {
                let kernel = kernel.detect().unwrap();
                let mut router = Router::new(Partitioning::new(100, count).unwrap());
                router.kernel = kernel;
                let mut others = Vec::new();
                router.route(&keys, &mut others);
                for owner in 0..count {
                    prop_assert_eq!(router.keys_of(owner), plain.keys_of(owner));
                    prop_assert_eq!(&others[owner].mask, &selections[owner].mask);
                }
            }
        }
    }
}
