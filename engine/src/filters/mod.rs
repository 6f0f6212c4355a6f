//! The filters: what every one of them offers, and one module for each family.

pub mod adapters;
pub mod lines;
pub mod scattered;

use crate::hash::KeyHash;
use crate::verdicts::{Verdict, Verdicts};

/// A duplicate filter: it tells of each key of an endless stream whether it was seen before, in fixed memory.
///
/// [`observe_words`](Self::observe_words) is the one call that a filter implements for the stream; the others are sugar on it.
pub trait Filter: Send {
    /// Tests and records each key in order, so that equal keys inside a batch are seen as duplicates.
    ///
    /// Bit `i % 64` of `duplicates[i / 64]` is set where key `i` is a duplicate; every word is overwritten, bits past the end are zero.
    ///
    /// # Panics
    /// If `duplicates` is not `keys.len().div_ceil(64)` words long, or a key belongs to another partition.
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]);

    /// Whether the key would be called a duplicate now. Records nothing.
    ///
    /// # Panics
    /// As [`observe_words`](Self::observe_words), if the key belongs to another partition.
    fn contains(&self, key: KeyHash) -> bool;

    /// Forgets everything.
    fn clear(&mut self);

    /// The memory that the filter's state takes, in bytes.
    fn memory_bytes(&self) -> u64;

    /// The share of the cells (bits, counters, slots) that hold something, 0 to 1; `None` if the filter does not tell. It may have to look at all
    /// of them.
    fn load(&self) -> Option<f64> {
        None
    }

    /// Tests and records a batch; `verdicts` is resized to it.
    fn observe(&mut self, keys: &[KeyHash], verdicts: &mut Verdicts) {
        verdicts.reset(keys.len());
        self.observe_words(keys, verdicts.words_mut());
        verdicts.clear_tail();
    }

    /// Tests and records one key.
    fn observe_one(&mut self, key: KeyHash) -> Verdict {
        let mut word = [0];
        self.observe_words(&[key], &mut word);
        if word[0] == 1 {
            Verdict::Duplicate
        } else {
            Verdict::Fresh
        }
    }
}

/// `Filter` for boxes: the same lines for each, for the filters that are fed key by key already have an implementation for all types.
macro_rules! filter_in_box {
    ($($filter:ty),*) => {$(
        impl Filter for Box<$filter> {
            fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
                (**self).observe_words(keys, duplicates);
            }

            fn contains(&self, key: KeyHash) -> bool {
                (**self).contains(key)
            }

            fn clear(&mut self) {
                (**self).clear();
            }

            fn memory_bytes(&self) -> u64 {
                (**self).memory_bytes()
            }

            fn load(&self) -> Option<f64> {
                (**self).load()
            }
        }
    )*};
}

filter_in_box!(dyn Filter, dyn lines::LineForm);
