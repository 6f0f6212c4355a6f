//! Finds keys that are in more than one partition, in a sample of all keys.
//!
//! Duplicates are found within a partition. Records with one key in two partitions mean that the
//! producer keys by something else, or that the topic got more partitions, and then duplicates pass
//! without a trace. A member sees this if it has both partitions.

use std::collections::HashMap;

use echoless::KeyHash;

/// The most keys of the sample.
const MOST_KEYS: usize = 1 << 16;

/// Selects the sample by other bits than those that select lines.
const STREAM: u64 = 1;

/// The partitions in which the keys of a sample were seen first.
///
/// A key is in the sample by its hash alone, so all its records are. When the sample is full, half
/// of the keys leave it, and as many of all later ones are not in it.
#[derive(Debug, Default)]
pub(crate) struct SharedKeys {
    partitions: HashMap<u64, i32>,
    /// Keys whose remixed hash ends with so many zeros are in the sample.
    zeros: u32,
}

impl SharedKeys {
    /// Notes a record. Returns another partition that has its key, if one is known.
    pub(crate) fn note(&mut self, key: KeyHash, partition: i32) -> Option<i32> {
        let mixed = key.remix(STREAM);
        if mixed.trailing_zeros() < self.zeros {
            return None;
        }
        let first = *self.partitions.entry(mixed).or_insert(partition);
        if self.partitions.len() > MOST_KEYS {
            self.zeros += 1;
            let zeros = self.zeros;
            self.partitions
                .retain(|mixed, _| mixed.trailing_zeros() >= zeros);
        }
        (first != partition).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use echoless::KeyHasher;

    use super::*;

    #[test]
    fn a_key_in_two_partitions_is_found_and_others_are_not() {
        let (mut shared, hasher) = (SharedKeys::default(), KeyHasher::seeded(0));
        for number in 0..1_000 {
            let key = hasher.hash_u64(number);
            assert_eq!(shared.note(key, (number % 3) as i32), None);
            assert_eq!(shared.note(key, (number % 3) as i32), None);
        }
        assert_eq!(shared.note(hasher.hash_u64(5), 0), Some(2));
    }

    #[test]
    fn of_many_keys_a_sample_is_kept() {
        let (mut shared, hasher) = (SharedKeys::default(), KeyHasher::seeded(0));
        for number in 0..1_000_000 {
            assert_eq!(shared.note(hasher.hash_u64(number), 0), None);
            assert!(shared.partitions.len() <= MOST_KEYS);
        }
        // If the producer keys by something else, most keys are in two partitions.
        let numbers = 0..1_000_000;
        let found = numbers.filter(|number| shared.note(hasher.hash_u64(*number), 1).is_some());
        let found = found.count();
        assert!((MOST_KEYS / 3..=MOST_KEYS).contains(&found), "{found}");
    }
}
