//! Routes the keys of a batch to the partitions that own them, and puts the answers of the
//! partitions back into the order of the batch.
//!
//! A port sends [`messages`] to partitions in other threads; a [`RoutedBatch`] passes the partitions
//! one after the other in one thread. For few partitions, [`masks`] compares each key with the
//! bounds of all of them, for both. For many, a port writes each key to a message of its owner
//! ([`offsets`]), and a [`RoutedBatch`] sorts the keys by owner, both at a cost that hardly depends
//! on the number of partitions. All give the same results.

mod batch;
mod masks;
#[cfg(feature = "threads")]
pub(crate) mod messages;
#[cfg(feature = "threads")]
mod offsets;

pub use batch::RoutedBatch;
#[cfg(feature = "threads")]
pub use messages::{Router, RoutingWay, Selections};

/// The most keys of a message.
// One bit of the answer for each key, and the answer is one word. Models need batches of several
// messages, so theirs are small.
pub(crate) const MESSAGE_KEYS: usize = if cfg!(loom) { 2 } else { 64 };

/// Up to this many partitions, each key is compared with the bounds of every partition. Writing
/// keys one by one to messages is faster from 5 or 6 partitions on with AVX-512, from 4 or 5 on with
/// AVX2; where sorting them is was not measured.
const MAX_COMPARED_PARTITIONS: usize = 4;

/// Both ways to route, on every kernel, against a plain model: the keys of a partition are those
/// that `partition_of` assigns to it, in the order of the batch.
#[cfg(test)]
#[cfg(feature = "threads")]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::messages::{Router, RoutingWay, Selections};
    use super::offsets::Offsets;
    use super::*;
    use crate::filters::{Batch, Ticks};
    use crate::hash::KeyHash;
    use crate::isa::Kernel;
    use crate::isa::tested::kernels;
    use crate::partition::Partitioning;
    use crate::verdicts::Verdicts;

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
        let (mut messages, mut index) = (Vec::new(), None);
        loop {
            let (keys, next) = router.message(selections, owner, index);
            messages.extend((!keys.is_empty()).then(|| keys.to_vec()));
            index = next;
            if index.is_none() {
                return messages;
            }
        }
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
