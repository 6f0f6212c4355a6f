//! Routes the keys of a batch to the partitions that own them, and puts the answers of the
//! partitions back into the order of the batch.
//!
//! For few partitions, [`masks`] compares each key with the bounds of all of them. For many, a port
//! writes each key to a message of its owner ([`offsets`]), and a [`RoutedBatch`], whose partitions
//! have their turns in one thread, sorts the keys by owner, both at a cost that hardly depends on
//! the number of partitions. All give the same results.

mod batch;
mod masks;
mod offsets;
#[cfg(feature = "threads")]
mod round_trip;

use crate::hash::KeyHash;
use crate::isa::DetectedKernel;
use crate::partition::Partitioning;
use crate::verdicts::Verdicts;

pub use batch::RoutedBatch;
use masks::{KeyBuffer, KeyMask};
use offsets::{Offsets, WriteMessages};
#[cfg(feature = "threads")]
pub use round_trip::RoundTrip;

/// The most keys of a message.
// One bit of the answer for each key, and the answer is one word. Models need batches of several
// messages, so theirs are small.
pub(crate) const MESSAGE_KEYS: usize = if cfg!(loom) { 2 } else { 64 };

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
pub(crate) struct Router {
    partitioning: Partitioning,
    kernel: DetectedKernel,
    /// A buffer for each partition; empty if there are too many to be compared.
    buffers: Vec<KeyBuffer>,
    /// In use if `buffers` is empty.
    messages: Vec<KeyHash>,
}

/// Which keys of a batch each partition owns, and how many of them are answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selections {
    /// A mask for each partition; empty if there are too many to be compared.
    masks: Vec<KeyMask>,
    /// In use if `masks` is empty.
    offsets: Offsets,
}

/// A message of an owner that is not its first: the index of its first key among the keys of the
/// owner where there is a mask, the number of the message where there are offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageIndex(u32);

/// Goes through the messages of the last routed batch to one partition. Not an iterator, because
/// callers change the selections between two messages.
#[derive(Debug)]
pub(crate) struct Messages {
    owner: usize,
    /// The message that follows; the first one for `None`.
    index: Option<MessageIndex>,
    at_end: bool,
}

impl Messages {
    pub(crate) const fn to(owner: usize) -> Self {
        Self {
            owner,
            index: None,
            at_end: false,
        }
    }

    /// The keys of the next message: at least one.
    #[inline]
    pub(crate) fn next<'a>(
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
    pub(crate) fn new(partitioning: Partitioning) -> Self {
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
    pub(crate) fn route(&mut self, keys: &[KeyHash], selections: &mut Selections) {
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

    pub(crate) const fn kernel(&self) -> DetectedKernel {
        self.kernel
    }

    /// The keys of a message of the last routed batch to a partition, and the next message to it.
    /// `None` is the first one, which is empty if the partition owns no key.
    pub(crate) fn message(
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
    pub(crate) fn answer(
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
    pub(crate) fn finish(&self, kernel: DetectedKernel, verdicts: &mut Verdicts) {
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

/// Both ways to route, on every kernel, against a plain model: the keys of a partition are those
/// that `partition_of` assigns to it, in the order of the batch.
#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::filters::{Batch, Ticks};
    use crate::isa::Kernel;
    use crate::isa::tested::kernels;

    /// Numbers of partitions: few, many, and far more.
    fn partitions() -> impl Strategy<Value = usize> {
        prop_oneof![1usize..=12, 60usize..=70, 200usize..=600]
    }

    /// Hashes of a batch. In one of two, all but their low bits are equal, so that a few owners get
    /// several messages.
    fn hashes(most: usize) -> impl Strategy<Value = Vec<u64>> {
        let hash = prop_oneof![8 => any::<u64>(), 1 => Just(0), 1 => Just(u64::MAX)];
        prop_oneof![
            vec(hash, 0..=most),
            vec(7u64 << 61..(7 << 61) + 50, 0..=most)
        ]
    }

    /// Keys with these hashes, some of which are moved to the bounds of partitions or beside them.
    fn keys(hashes: &[u64], partitioning: &Partitioning) -> Vec<KeyHash> {
        let starts = partitioning.starts();
        let moved = |hash: u64| match hash % 8 {
            6 => starts[(hash >> 32) as usize % starts.len()],
            7 => starts[(hash >> 32) as usize % starts.len()].wrapping_sub(1),
            _ => hash,
        };
        hashes.iter().map(|hash| KeyHash(moved(*hash))).collect()
    }

    /// The model: the positions in the batch of the keys of each partition.
    fn owned(partitioning: &Partitioning, keys: &[KeyHash]) -> Vec<Vec<usize>> {
        let mut owned = vec![Vec::new(); partitioning.count()];
        for (position, key) in keys.iter().enumerate() {
            owned[partitioning.partition_of(*key)].push(position);
        }
        owned
    }

    /// The router that ports use, and both ways on every kernel.
    fn routers(partitioning: &Partitioning) -> Vec<Router> {
        let mut routers = vec![Router::new(partitioning.clone())];
        for kernel in kernels() {
            let kernel = kernel.detect().unwrap();
            let with = |way| Router::with(partitioning.clone(), kernel, way);
            routers.extend([RoutingWay::Compare, RoutingWay::Write].map(with));
        }
        routers
    }

    /// The keys of the messages to an owner, none if it owns no key.
    fn messages(router: &Router, selections: &Selections, owner: usize) -> Vec<Vec<KeyHash>> {
        let mut messages = Messages::to(owner);
        std::iter::from_fn(|| messages.next(router, selections).map(<[_]>::to_vec)).collect()
    }

    /// The positions of the bits that are set.
    fn ones(words: &[u64]) -> Vec<usize> {
        let is_set = |index: &usize| words[index / 64] >> (index % 64) & 1 == 1;
        (0..64 * words.len()).filter(is_set).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn keys_reach_their_owners_in_order_and_answers_return_to_their_positions(
            batches in vec(hashes(600), 1..=3),
            lines in 600u64..1000,
            count in partitions(),
            behind: u64,
        ) {
            let partitioning = Partitioning::new(lines, count).unwrap();
            let mut routers = routers(&partitioning);
            let mut selections = vec![Selections::default(); routers.len()];
            // Later batches reuse the buffers of the first.
            for hashes in &batches {
                let keys = keys(hashes, &partitioning);
                let owned = owned(&partitioning, &keys);
                let expected: Vec<usize> = (0..keys.len()).filter(|index| keys[*index].0 & 1 == 1).collect();
                for (router, selections) in routers.iter_mut().zip(&mut selections) {
                    router.route(&keys, selections);
                    let mut verdicts = Verdicts::new();
                    verdicts.reset(keys.len());
                    for (owner, owned) in owned.iter().enumerate() {
                        let sent: Vec<KeyHash> = owned.iter().map(|position| keys[*position]).collect();
                        let messages = messages(router, selections, owner);
                        prop_assert_eq!(messages.concat(), &sent[..]);
                        let lengths: Vec<usize> = messages.iter().map(Vec::len).collect();
                        let expected: Vec<usize> = sent.chunks(MESSAGE_KEYS).map(<[_]>::len).collect();
                        prop_assert_eq!(lengths, expected);
                        prop_assert_eq!(selections.is_empty(owner), sent.is_empty());
                        for message in messages {
                            let odd = message.iter().rev().fold(0, |bits, key| bits << 1 | key.0 & 1);
                            // The bits behind the keys of a message must not count.
                            let free = u64::MAX.checked_shl(message.len() as u32).unwrap_or(0);
                            selections.answer(owner, router.kernel(), odd | behind & free, &mut verdicts);
                        }
                    }
                    selections.finish(router.kernel(), &mut verdicts);
                    prop_assert_eq!(ones(verdicts.words()), &expected[..]);
                    prop_assert_eq!(verdicts.count_unknown(), 0);
                }
            }
        }

        #[test]
        fn batches_of_some_partitions_are_divided_as_those_of_all(
            batches in vec(hashes(300), 1..=2),
            lines in 600u64..1000,
            count in partitions(),
            cuts in any::<[prop::sample::Index; 2]>(),
        ) {
            let partitioning = Partitioning::new(lines, count).unwrap();
            let [one, other] = cuts.map(|cut| cut.index(count));
            let range = one.min(other)..one.max(other) + 1;
            let routed = |kernel: &Kernel| {
                RoutedBatch::with(partitioning.clone(), range.clone(), kernel.detect().unwrap())
            };
            let mut all: Vec<RoutedBatch> = kernels().iter().map(routed).collect();
            for hashes in &batches {
                for routed in &mut all {
                    let mut keys = keys(hashes, &partitioning);
                    keys.retain(|key| range.contains(&partitioning.partition_of(*key)));
                    let ticks: Vec<u64> = (7..).take(keys.len()).collect();
                    let batch = Batch::at_each(&keys, &ticks);
                    routed.route(batch);
                    let owned = &owned(&partitioning, &keys)[range.clone()];
                    for (index, owned) in owned.iter().enumerate() {
                        let sent: Vec<KeyHash> = owned.iter().map(|position| keys[*position]).collect();
                        prop_assert_eq!((routed.count(index), routed.keys(index)), (sent.len(), &sent[..]));
                        let (part, words) = routed.part(index, batch.ticks());
                        prop_assert_eq!(part.keys(), &sent[..]);
                        let of_part: Vec<u64> = owned.iter().map(|position| ticks[*position]).collect();
                        prop_assert_eq!(part.ticks(), Ticks::Each(&of_part));
                        part.observe_each(words, |key| key.0 & 1 == 1);
                        routed.answer(index);
                    }
                    let expected: Vec<usize> =
                        (0..keys.len()).filter(|index| keys[*index].0 & 1 == 1).collect();
                    prop_assert_eq!(ones(routed.finish().words()), expected);
                }
            }
        }

        #[test]
        fn keys_of_messages_without_an_answer_are_unknown(
            batches in vec((hashes(300), 0usize..5, any::<u8>()), 1..=3),
            count in partitions(),
        ) {
            let partitioning = Partitioning::new(600, count).unwrap();
            for mut router in routers(&partitioning) {
                let mut selections = Selections::default();
                // Later batches must not inherit what is unknown of the first, nor its answers.
                for (hashes, sent, lost) in &batches {
                    let (sent, lost) = (*sent, *lost);
                    let keys = keys(hashes, &partitioning);
                    router.route(&keys, &mut selections);
                    let (mut verdicts, mut expected) = (Verdicts::new(), Vec::new());
                    verdicts.reset(keys.len());
                    for (owner, owned) in owned(&partitioning, &keys).iter().enumerate() {
                        // The first few messages are sent, one of them finds its partition lost, and
                        // the others are answered: all keys are duplicates.
                        let mut index = None;
                        for (number, keys) in owned.chunks(MESSAGE_KEYS).enumerate() {
                            if number == sent {
                                selections.mark_unsent(owner, index, &mut verdicts);
                            }
                            index = router.message(&selections, owner, index).1;
                            if number >= sent || number == usize::from(lost) % 4 {
                                expected.extend_from_slice(keys);
                            }
                            if number < sent && number == usize::from(lost) % 4 {
                                selections.answer_unknown(owner, router.kernel(), &mut verdicts);
                            } else if number < sent {
                                selections.answer(owner, router.kernel(), u64::MAX, &mut verdicts);
                            }
                        }
                    }
                    selections.finish(router.kernel(), &mut verdicts);
                    expected.sort_unstable();
                    prop_assert_eq!(ones(verdicts.unknown_words()), &expected[..]);
                    let known = (0..keys.len()).filter(|index| expected.binary_search(index).is_err());
                    prop_assert_eq!(ones(verdicts.words()), known.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn both_ways_are_in_use() {
        for (count, compared) in [
            (1, true),
            (MAX_COMPARED_PARTITIONS, true),
            (MAX_COMPARED_PARTITIONS + 1, false),
        ] {
            let router = Router::new(Partitioning::new(100, count).unwrap());
            assert_eq!(router.buffers.len(), if compared { count } else { 0 });
        }
    }

    #[test]
    fn many_partitions_take_memory_in_proportion_to_partitions_and_keys() {
        let keys: Vec<KeyHash> = (0..1000).map(|number| KeyHash(number << 54)).collect();
        let mut router = Router::new(Partitioning::new(5000, 5000).unwrap());
        let mut selections = Selections::default();
        router.route(&keys, &mut selections);
        let sent = (0..5000).map(|owner| router.message(&selections, owner, None).0.len());
        assert_eq!(sent.sum::<usize>(), 1000);
        assert_eq!((router.buffers.len(), selections.masks.len()), (0, 0));
        assert_eq!(router.messages.len(), 5000 * MESSAGE_KEYS + 960);
    }

    #[test]
    #[should_panic(expected = "a batch of 2147483648 keys")]
    fn more_keys_than_offsets_are_rejected() {
        Offsets::default().reset(1 << 26, 1 << 31);
    }
}
