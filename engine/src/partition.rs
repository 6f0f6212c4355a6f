//! Partitions: contiguous ranges of buckets with one owner each, the map from keys to partitions,
//! and the filters that own them.

use std::ops::Range;

use crate::error::SpecError;
use crate::hash::KeyHash;

/// The buckets of a filter cut into partitions, whose sizes differ by at most one bucket. A bucket
/// is what the hash of a key selects: a line, or in dense filters a page of 64 lines.
///
/// All keys of a bucket belong to one partition, so the verdicts of its owner equal those of an
/// undivided filter.
///
/// ```text
///   buckets      0 . . . . 500 | 501 . . . . 1000
///   partition          0       |        1
///   key hashes   0 ... starts[1] - 1 | starts[1] ... u64::MAX
/// ```
///
/// # Examples
/// ```
/// use echoless::{KeyHash, Partitioning};
/// let halves = Partitioning::new(1001, 2).unwrap();
/// assert_eq!(halves.buckets_of(0), 0..501);
/// assert_eq!(halves.buckets_of(1), 501..1001);
/// assert_eq!(halves.partition_of(KeyHash::from_uniform(0)), 0);
/// assert_eq!(halves.partition_of(KeyHash::from_uniform(u64::MAX)), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitioning {
    buckets: u64,
    /// The lowest hash of each partition, in ascending order; the first is 0.
    starts: Vec<u64>,
}

impl Partitioning {
    /// Cuts `buckets` buckets into `count` partitions.
    ///
    /// # Errors
    /// [`SpecError`] if `buckets` or `count` is 0, or there are more partitions than buckets.
    pub fn new(buckets: u64, count: usize) -> Result<Self, SpecError> {
        if buckets == 0 {
            return Err(SpecError::new("buckets", "0", "at least 1"));
        }
        if count == 0 || count as u64 > buckets {
            let allowed = format!("1 to {buckets} (one line each)");
            return Err(SpecError::new("partitions", count.to_string(), allowed));
        }
        let starts = (0..count)
            .map(|index| lowest_hash(first_bucket(buckets, count, index), buckets))
            .collect();
        Ok(Self { buckets, starts })
    }

    /// The number of partitions, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The buckets of one partition, by their numbers in the undivided filter.
    ///
    /// # Panics
    /// If `index` is not less than [`count`](Self::count).
    #[must_use]
    pub fn buckets_of(&self, index: usize) -> Range<u64> {
        let count = self.count();
        assert!(index < count, "partition {index} of {count}");
        first_bucket(self.buckets, count, index)..first_bucket(self.buckets, count, index + 1)
    }

    /// The lowest hash of each partition, in ascending order; the first is 0.
    pub(crate) fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The partition that owns the bucket of a key.
    #[must_use]
    #[inline(always)]
    pub fn partition_of(&self, key: KeyHash) -> usize {
        // Cutting the range of hashes evenly gives the right partition, except that a partition
        // starts with a whole bucket: its even start can lie up to a bucket below `starts`. Hashes
        // in between belong to the partition before.
        let share = ((u128::from(key.0) * self.starts.len() as u128) >> 64) as usize;
        share - usize::from(key.0 < self.starts[share])
    }

    /// Writes the [partition](Self::partition_of) of each key to `owners`, as its distance from the
    /// partition `first`. There must be fewer than 2^32 partitions.
    ///
    /// The loop over a block has no branch and no lookup, so the compiler turns it into vectors.
    #[inline(always)]
    pub(crate) fn partitions_of(&self, keys: &[KeyHash], first: u32, owners: &mut [u32]) {
        let count = self.starts.len() as u32;
        // In 2^-32 of an even share, rounded up: a partition starts less than this behind its even
        // start, by the length of a bucket.
        let bucket = (u64::from(count) << 32).div_ceil(self.buckets) + 1;
        // Nearer to an even start than this, a key may belong to the partition before, or to the
        // next one, because the product below leaves out the low half of the hash.
        let near = u32::try_from(bucket + u64::from(count)).unwrap_or(u32::MAX);
        for (keys, owners) in keys.chunks(64).zip(owners.chunks_mut(64)) {
            let mut nearest = u32::MAX;
            for (key, owner) in keys.iter().zip(&mut *owners) {
                // The high half of the hash times `count`: products of 32-bit numbers are what
                // vectors have. The low half would add less than `count`.
                //
                //   | share (32) | offset in it (32) |
                let product = (key.0 >> 32) * u64::from(count);
                *owner = ((product >> 32) as u32).wrapping_sub(first);
                nearest = nearest.min((product as u32).wrapping_add(count));
            }
            // Rare, as a partition has many buckets.
            if nearest <= near {
                for (key, owner) in keys.iter().zip(owners) {
                    *owner = (self.partition_of(*key) as u32).wrapping_sub(first);
                }
            }
        }
    }
}

/// The partitions of one filter, and the map from keys to them.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdict};
/// let mut halves = FingerprintSpec::new(1 << 20).build_partitions(2).unwrap();
/// let key = KeyHasher::seeded(0).hash(b"call 17");
/// let owner = halves.partitioning().partition_of(key);
/// assert_eq!(halves.filters_mut()[owner].observe_one(key), Verdict::Fresh);
/// ```
#[derive(Debug)]
pub struct Partitioned<F> {
    partitioning: Partitioning,
    filters: Vec<F>,
}

impl<F> Partitioned<F> {
    /// Combines a partitioning with its filters: filter `i` holds the buckets of partition `i`.
    /// Only the number of filters is checked; filters of lines in another order panic at the first
    /// key of another partition.
    ///
    /// # Errors
    /// [`SpecError`] if the number of filters is not the number of partitions.
    pub fn new(partitioning: Partitioning, filters: Vec<F>) -> Result<Self, SpecError> {
        if filters.len() != partitioning.count() {
            let allowed = format!("{}, one for each partition", partitioning.count());
            return Err(SpecError::new(
                "filters",
                filters.len().to_string(),
                allowed,
            ));
        }
        Ok(Self {
            partitioning,
            filters,
        })
    }

    /// The map from keys to partitions.
    #[must_use]
    pub const fn partitioning(&self) -> &Partitioning {
        &self.partitioning
    }

    /// The filters, in the order of their partitions.
    #[must_use]
    pub fn filters(&self) -> &[F] {
        &self.filters
    }

    /// The filters, in the order of their partitions, to observe keys with.
    #[must_use]
    pub fn filters_mut(&mut self) -> &mut [F] {
        &mut self.filters
    }

    /// The map, and the filters in the order of their partitions.
    #[must_use]
    pub fn into_parts(self) -> (Partitioning, Vec<F>) {
        (self.partitioning, self.filters)
    }
}

/// The first bucket of partition `index`; `buckets` if `index` is `count`.
fn first_bucket(buckets: u64, count: usize, index: usize) -> u64 {
    (u128::from(buckets) * index as u128).div_ceil(count as u128) as u64
}

/// The lowest hash whose bucket among `buckets` is `bucket`.
fn lowest_hash(bucket: u64, buckets: u64) -> u64 {
    (u128::from(bucket) << 64).div_ceil(u128::from(buckets)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_belongs_to_the_partition_of_its_bucket(
            buckets in prop_oneof![1u64..200, 1u64..1 << 40],
            count in 1usize..70,
            hash: u64,
        ) {
            prop_assume!(count as u64 <= buckets);
            let partitioning = Partitioning::new(buckets, count).unwrap();
            let mut keys = vec![KeyHash(hash), KeyHash(0), KeyHash(u64::MAX)];
            // An error would show at the hashes around the start of a partition.
            for start in &partitioning.starts {
                keys.extend([start.wrapping_sub(1), *start, start.wrapping_add(1)].map(KeyHash));
            }
            let mut owners = vec![u32::MAX; keys.len()];
            partitioning.partitions_of(&keys, 0, &mut owners);
            for (key, of_batch) in keys.into_iter().zip(owners) {
                let owner = partitioning.partition_of(key);
                prop_assert!(partitioning.buckets_of(owner).contains(&key.line(buckets)));
                prop_assert_eq!(of_batch as usize, owner);
            }
        }

        #[test]
        fn keys_near_a_start_have_the_partition_of_their_bucket(
            buckets in prop_oneof![70u64..5000, 1u64 << 20..1 << 40],
            count in 1usize..70,
            offsets in proptest::collection::vec(-3i64..4, 200),
        ) {
            // Even starts and true ones, in batches in which other keys are far from both.
            let partitioning = Partitioning::new(buckets, count).unwrap();
            let mut keys: Vec<KeyHash> = Vec::new();
            for (index, offset) in offsets.into_iter().enumerate() {
                let even = (((index % count) as u128) << 64).div_ceil(count as u128) as u64;
                let start = partitioning.starts[index % count];
                for border in [even, start, even + (start - even) / 2] {
                    keys.push(KeyHash(border.wrapping_add_signed(offset)));
                }
            }
            let mut owners = vec![u32::MAX; keys.len()];
            partitioning.partitions_of(&keys, 0, &mut owners);
            let expected: Vec<u32> =
                keys.iter().map(|key| partitioning.partition_of(*key) as u32).collect();
            prop_assert_eq!(owners, expected);
        }

        #[test]
        fn partitions_cover_all_buckets_in_nearly_equal_shares(buckets in 1u64..1 << 40, count in 1usize..70) {
            prop_assume!(count as u64 <= buckets);
            let partitioning = Partitioning::new(buckets, count).unwrap();
            let mut next = 0;
            for index in 0..count {
                let range = partitioning.buckets_of(index);
                prop_assert_eq!(range.start, next);
                let size = range.end - range.start;
                prop_assert!(size.abs_diff(buckets / count as u64) <= 1);
                next = range.end;
            }
            prop_assert_eq!(next, buckets);
        }
    }

    #[test]
    fn partitions_without_buckets_are_rejected() {
        for count in [0, 11] {
            let error = Partitioning::new(10, count).unwrap_err();
            assert_eq!(error.asked, count.to_string());
            assert_eq!(error.allowed, "1 to 10 (one line each)");
        }
        let error = Partitioning::new(0, 1).unwrap_err();
        assert_eq!(error, SpecError::new("buckets", "0", "at least 1"));
    }
}
