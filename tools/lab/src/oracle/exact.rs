//! The exact oracle: which arrivals are duplicates, and how old they are.
//!
//! Keys of a [`Stream`] are numbers below its universe, so the oracle is an array with one entry
//! for each key and needs no hashing.
//!
//! ```text
//! without ages   1 bit per key     | key 63 .. 0 | key 127 .. 64 | ...   set: the key arrived
//! with ages      32 bits per key   | key 1, 0    | key 3, 2      | ...   index of the last arrival
//! ```
//!
//! Where the universe is so large that few of its keys arrive, a hash map holds their last arrivals
//! instead.

use std::collections::HashMap;
use std::num::NonZeroU32;

use echoless::memory::{Line, LineArray};
use echoless::{BuildError, SpecError};

use crate::stream::Stream;

/// The exact verdict on an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// The key did not arrive before.
    Fresh,
    /// The key arrived before, but not within the window: it is fresh again.
    Expired {
        /// The number of arrivals since its last one, more than the window.
        age: u32,
    },
    /// The key arrived before, within the window if there is one.
    Duplicate {
        /// The number of arrivals since its last one; `None` if the oracle keeps no ages.
        age: Option<NonZeroU32>,
    },
}

impl Truth {
    /// Returns `true` for [`Duplicate`](Self::Duplicate).
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

/// An exact record of the keys of a stream that have arrived.
///
/// # Examples
/// ```
/// use std::num::NonZeroU32;
/// use echoless_lab::oracle::{Oracle, Truth};
/// use echoless_lab::stream::Stream;
/// let mut oracle = Oracle::with_ages(&Stream::uniform(100, 10)?, None)?;
/// assert_eq!(oracle.observe(3), Truth::Fresh);
/// assert_eq!(oracle.observe(7), Truth::Fresh);
/// assert_eq!(oracle.observe(3), Truth::Duplicate { age: NonZeroU32::new(2) });
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Oracle {
    memory: LineArray,
    recall: Recall,
    distinct_keys: u64,
}

/// The entry that is stored for each key.
#[derive(Debug)]
enum Recall {
    /// One bit, set once the key has arrived.
    Arrived,
    /// 32 bits: the number of its last arrival in the stream, counted from 1; 0 before the first.
    LastArrival { arrivals: u32, window: u32 },
    /// The number of the last arrival of every key that has arrived. Without ages, the verdict
    /// contains none.
    Sparse {
        last: HashMap<u64, u64>,
        arrivals: u64,
        window: u64,
        ages: bool,
    },
}

/// The bytes of an array for each record of the stream from which on a hash map takes less.
const SPARSE_BYTES: u64 = 64;

impl Oracle {
    /// An oracle without ages, in one bit for each key of the universe, and at most about 64 bytes
    /// for each record.
    ///
    /// # Errors
    /// [`BuildError`] if the memory cannot be allocated.
    pub fn new(stream: &Stream) -> Result<Self, BuildError> {
        if is_sparse(stream, stream.universe() / 8) {
            return Self::sparse(u64::MAX, false);
        }
        Ok(Self {
            memory: LineArray::zeroed(stream.universe().div_ceil(512))?,
            recall: Recall::Arrived,
            distinct_keys: 0,
        })
    }

    /// An oracle with ages, in four bytes for each key of the universe, and at most about 64 for
    /// each record. With a window, a key is a duplicate only if its last arrival is at most
    /// `window` arrivals ago.
    ///
    /// # Errors
    /// [`BuildError`] if the stream has 2^32 - 1 or more records, or the memory cannot be
    /// allocated.
    pub fn with_ages(stream: &Stream, window: Option<u64>) -> Result<Self, BuildError> {
        if stream.records() >= u64::from(u32::MAX) {
            let asked = stream.records().to_string();
            let allowed = "fewer than 2^32 - 1 when ages or a window are measured";
            return Err(SpecError::new("records", asked, allowed).into());
        }
        if is_sparse(stream, stream.universe().saturating_mul(4)) {
            return Self::sparse(window.unwrap_or(u64::MAX), true);
        }
        let window = window.map_or(u32::MAX, |window| u32::try_from(window).unwrap_or(u32::MAX));
        Ok(Self {
            memory: LineArray::zeroed(stream.universe().div_ceil(16))?,
            recall: Recall::LastArrival {
                arrivals: 0,
                window,
            },
            distinct_keys: 0,
        })
    }

    fn sparse(window: u64, ages: bool) -> Result<Self, BuildError> {
        Ok(Self {
            memory: LineArray::zeroed(1)?,
            recall: Recall::Sparse {
                last: HashMap::new(),
                arrivals: 0,
                window,
                ages,
            },
            distinct_keys: 0,
        })
    }

    /// The number of keys that have arrived, each counted once, also with a window.
    #[must_use]
    pub const fn distinct_keys(&self) -> u64 {
        self.distinct_keys
    }

    /// Records the next arrival, which has this key, and returns its exact verdict.
    ///
    /// # Panics
    /// If the key is not below the universe, rounded up to a whole cache line of entries, unless
    /// the universe is very large.
    #[inline]
    pub fn observe(&mut self, key: u64) -> Truth {
        match &mut self.recall {
            Recall::Arrived => {
                let word = word_mut(&mut self.memory, key / 64);
                let arrived = *word >> (key % 64) & 1 == 1;
                *word |= 1 << (key % 64);
                self.distinct_keys += u64::from(!arrived);
                if arrived {
                    Truth::Duplicate { age: None }
                } else {
                    Truth::Fresh
                }
            }
            Recall::LastArrival { arrivals, window } => {
                *arrivals += 1;
                let word = word_mut(&mut self.memory, key / 2);
                let shift = key % 2 * 32;
                let last = (*word >> shift) as u32;
                *word &= !(u64::from(u32::MAX) << shift);
                *word |= u64::from(*arrivals) << shift;
                self.distinct_keys += u64::from(last == 0);
                let age = *arrivals - last;
                if last == 0 {
                    Truth::Fresh
                } else if age > *window {
                    Truth::Expired { age }
                } else {
                    Truth::Duplicate {
                        age: NonZeroU32::new(age),
                    }
                }
            }
            Recall::Sparse {
                last,
                arrivals,
                window,
                ages,
            } => {
                *arrivals += 1;
                let before = last.insert(key, *arrivals);
                self.distinct_keys += u64::from(before.is_none());
                match before.map(|before| *arrivals - before) {
                    Some(age) if age <= *window => Truth::Duplicate {
                        // Streams with ages have fewer than 2^32 records.
                        age: NonZeroU32::new(if *ages { age as u32 } else { 0 }),
                    },
                    Some(age) => Truth::Expired { age: age as u32 },
                    None => Truth::Fresh,
                }
            }
        }
    }
}

/// Whether an array of `bytes` is much larger than a hash map of the keys of all records.
fn is_sparse(stream: &Stream, bytes: u64) -> bool {
    bytes / SPARSE_BYTES > stream.records()
}

#[inline(always)]
fn word_mut(memory: &mut [Line], word: u64) -> &mut u64 {
    &mut memory[(word / 8) as usize].0[(word % 8) as usize]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn streams_too_long_for_ages_are_rejected() {
        let stream = Stream::uniform(1 << 32, 10).unwrap();
        let error = Oracle::with_ages(&stream, None).unwrap_err();
        assert!(error.to_string().starts_with("invalid records=4294967296"));
        assert!(Oracle::new(&stream).is_ok());
    }

    proptest! {
        #[test]
        fn verdicts_match_a_hash_map(
            keys in prop::collection::vec(0_u64..200, 0..2000),
            window in prop::option::of(1_u64..300),
        ) {
            let stream = Stream::uniform(2000, 200).unwrap();
            let mut bits = Oracle::new(&stream).unwrap();
            let mut ages = Oracle::with_ages(&stream, None).unwrap();
            let mut windowed = Oracle::with_ages(&stream, window).unwrap();
            // The same keys in a universe that is too large for an array.
            let wide = Stream::uniform(2000, u64::MAX).unwrap();
            let mut sparse = Oracle::new(&wide).unwrap();
            let mut aged = Oracle::with_ages(&wide, window).unwrap();
            let mut last = HashMap::new();
            for (arrival, key) in keys.into_iter().enumerate() {
                let age = last.insert(key, arrival).map(|last| (arrival - last) as u32);
                let bits_truth = bits.observe(key);
                prop_assert_eq!(bits_truth.is_duplicate(), age.is_some());
                let truth = |age: Option<u32>| match age {
                    Some(age) => Truth::Duplicate { age: NonZeroU32::new(age) },
                    None => Truth::Fresh,
                };
                prop_assert_eq!(ages.observe(key), truth(age));
                let in_window = match (age, window) {
                    (Some(age), Some(window)) if u64::from(age) > window => Truth::Expired { age },
                    _ => truth(age),
                };
                prop_assert_eq!(windowed.observe(key), in_window);
                prop_assert_eq!(sparse.observe(key << 50), bits_truth);
                prop_assert_eq!(aged.observe(key << 50), in_window);
            }
        }
    }
}
