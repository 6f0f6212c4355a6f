//! Sorts the keys of a batch by the partitions that own them, and puts the answers of the partitions back in the order of the batch.
//!
//! Where a key went is one bit: for each partition and each 64 keys of the batch there is a word that says which of them it owns.

use crate::hash::KeyHash;
#[cfg(target_arch = "x86_64")]
use crate::kernels::avx512::Avx512;
use crate::kernels::isa::{DetectedKernel, HotLoop};
use crate::kernels::scalar::Scalar;
use crate::kernels::{GROUP, SelectOps};
use crate::partition::Partitioning;

use super::message::MESSAGE_KEYS;

/// Up to how many partitions are told apart by comparing every key with every border: no step waits for another, which pays while there
/// are few borders.
const FEW: usize = 8;

/// The keys of one batch by owner; the memory is kept from batch to batch.
#[derive(Debug)]
pub(super) struct Router {
    partitioning: Partitioning,
    kernel: DetectedKernel,
    shares: Vec<Share>,
}

/// The keys of a batch that one partition owns, in the order of the batch.
#[derive(Debug, Clone, Default)]
struct Share {
    /// With room behind them for a group to be stored whole.
    keys: Vec<KeyHash>,
    count: usize,
}

/// Which keys of a batch went to one partition, and how far its answers have come.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// For each 64 keys of the batch, those that went there.
    owned: Vec<u64>,
    /// The word of the next key without answer.
    word: usize,
    /// What is without answer in that word.
    rest: u64,
}

impl Router {
    pub(super) fn new(partitioning: Partitioning) -> Self {
        Self {
            kernel: DetectedKernel::best(),
            shares: vec![Share::default(); partitioning.count()],
            partitioning,
        }
    }

    /// Sorts the keys of a batch.
    pub(super) fn route(&mut self, keys: &[KeyHash], selections: &mut Vec<Selection>) {
        selections.resize_with(self.shares.len(), Selection::default);
        for (share, selections) in self.shares.iter_mut().zip(&mut *selections) {
            share.count = 0;
            selections.owned.clear();
            selections.owned.resize(keys.len().div_ceil(64), 0);
        }
        if let ([only], [selections]) = (&mut self.shares[..], &mut selections[..]) {
            only.keys.clear();
            only.keys.extend_from_slice(keys);
            only.count = keys.len();
            selections.owned.fill(u64::MAX);
            if let Some(last) = selections.owned.last_mut() {
                *last >>= keys.len().wrapping_neg() % 64;
            }
        } else if self.shares.len() <= FEW {
            self.route_by_borders(keys, selections);
        } else {
            self.route_by_division(keys, selections);
        }
        for selections in selections {
            selections.word = 0;
            selections.rest = selections.owned.first().copied().unwrap_or(0);
        }
    }

    /// What it runs on.
    pub(super) const fn kernel(&self) -> DetectedKernel {
        self.kernel
    }

    /// The keys of a partition.
    pub(super) fn keys_of(&self, owner: usize) -> &[KeyHash] {
        let share = &self.shares[owner];
        &share.keys[..share.count]
    }

    /// One partition after the other picks its own out of each few keys.
    fn route_by_borders(&mut self, keys: &[KeyHash], selections: &mut [Selection]) {
        for share in &mut self.shares {
            // Room for all keys, so that the loop has no growing in it. Only ever longer: what is left of earlier batches is behind the count.
            if share.keys.len() < keys.len() + GROUP {
                share.keys.resize(keys.len() + GROUP, KeyHash(0));
            }
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = Avx512::new(self.kernel) {
            return self.kernel.run(self.by_borders(ops, keys, selections));
        }
        self.kernel.run(self.by_borders(Scalar, keys, selections));
    }

    fn by_borders<'a, O>(
        &'a mut self,
        ops: O,
        keys: &'a [KeyHash],
        selections: &'a mut [Selection],
    ) -> ByBorders<'a, O> {
        ByBorders {
            ops,
            starts: self.partitioning.starts(),
            keys,
            shares: &mut self.shares,
            selections,
        }
    }

    /// Each key finds its partition.
    fn route_by_division(&mut self, keys: &[KeyHash], selections: &mut [Selection]) {
        for (index, key) in keys.iter().enumerate() {
            let owner = self.partitioning.partition_of(*key);
            let share = &mut self.shares[owner];
            // Room for what comes only, for many partitions with room for all keys would be much memory.
            match share.keys.get_mut(share.count) {
                Some(slot) => *slot = *key,
                None => share.keys.push(*key),
            }
            share.count += 1;
            selections[owner].owned[index / 64] |= 1 << (index % 64);
        }
    }
}

struct ByBorders<'a, O> {
    ops: O,
    starts: &'a [u64],
    keys: &'a [KeyHash],
    shares: &'a mut [Share],
    selections: &'a mut [Selection],
}

impl<O: SelectOps> HotLoop for ByBorders<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            ops,
            starts,
            keys,
            shares,
            selections,
        } = self;
        for (owner, (share, selections)) in shares.iter_mut().zip(selections).enumerate() {
            let (start, end) = (starts[owner], starts.get(owner + 1).copied());
            let owned = |keys: &[KeyHash; GROUP]| {
                let beyond = end.map_or(0, |end| ops.at_least(keys, end));
                ops.at_least(keys, start) & !beyond
            };
            let mut count = 0;
            let mut take = |keys: &[KeyHash; GROUP], own: u8| {
                share.keys[count..count + GROUP].copy_from_slice(&ops.pick(keys, own));
                count += own.count_ones() as usize;
            };
            for (block, word) in keys.chunks(64).zip(&mut selections.owned) {
                let (groups, rest) = block.as_chunks::<GROUP>();
                for (group, keys) in groups.iter().enumerate() {
                    let own = owned(keys);
                    take(keys, own);
                    *word |= u64::from(own) << (group * GROUP);
                }
                if !rest.is_empty() {
                    let mut last = [KeyHash(0); GROUP];
                    last[..rest.len()].copy_from_slice(rest);
                    let own = owned(&last) & !(u8::MAX << rest.len());
                    take(&last, own);
                    *word |= u64::from(own) << (groups.len() * GROUP);
                }
            }
            share.count = count;
        }
    }
}

impl Selection {
    /// Enters the answer to the next message, one bit for each of its keys, in the verdicts of the batch.
    pub(super) fn enter(&mut self, kernel: DetectedKernel, answer: u64, verdicts: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = Avx512::new(kernel) {
            return kernel.run(DepositAnswer {
                ops,
                selections: self,
                answer,
                verdicts,
            });
        }
        kernel.run(DepositAnswer {
            ops: Scalar,
            selections: self,
            answer,
            verdicts,
        });
    }
}

struct DepositAnswer<'a, O> {
    ops: O,
    selections: &'a mut Selection,
    answer: u64,
    verdicts: &'a mut [u64],
}

impl<O: SelectOps> HotLoop for DepositAnswer<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            ops,
            selections,
            mut answer,
            verdicts,
        } = self;
        let mut left = MESSAGE_KEYS as u32;
        while left > 0
            && let Some(verdicts) = verdicts.get_mut(selections.word)
        {
            let here = selections.rest.count_ones();
            *verdicts |= ops.deposit(answer, selections.rest);
            if here > left {
                selections.rest &= !ops.deposit(u64::MAX >> (64 - left), selections.rest);
                return;
            }
            left -= here;
            answer = answer.checked_shr(here).unwrap_or(0);
            selections.word += 1;
            selections.rest = selections.owned.get(selections.word).copied().unwrap_or(0);
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
        fn keys_go_to_their_owners_in_order_and_answers_come_back_to_their_places(
            hashes in prop::collection::vec(any::<u64>(), 0..600),
            second in prop::collection::vec(any::<u64>(), 0..600),
            lines in 20u64..1000,
            count in 1usize..=12,
        ) {
            let partitioning = Partitioning::new(lines, count).unwrap();
            let mut router = Router::new(partitioning.clone());
            let mut selections = Vec::new();
            // The second batch runs in the memory of the first.
            for hashes in [hashes, second] {
                let keys: Vec<KeyHash> = hashes.into_iter().map(KeyHash).collect();
                router.route(&keys, &mut selections);
                let mut verdicts = vec![0; keys.len().div_ceil(64)];
                for (owner, selections) in selections.iter_mut().enumerate() {
                    let expected: Vec<KeyHash> =
                        keys.iter().copied().filter(|key| partitioning.partition_of(*key) == owner).collect();
                    prop_assert_eq!(router.keys_of(owner), &expected[..]);
                    for message in expected.chunks(MESSAGE_KEYS) {
                        let answer = message.iter().rev().fold(0, |bits, key| bits << 1 | key.0 & 1);
                        selections.enter(router.kernel, answer, &mut verdicts);
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
        fn every_kernel_routes_alike(hashes in prop::collection::vec(any::<u64>(), 0..300), count in 2usize..=FEW) {
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
                    prop_assert_eq!(&others[owner].owned, &selections[owner].owned);
                }
            }
        }
    }
}
