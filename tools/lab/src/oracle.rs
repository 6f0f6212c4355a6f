//! The exact answers: which arrivals are duplicates, and how old these are.

use std::num::NonZeroU32;

use echoless::memory::{Line, LineArray};
use echoless::{BuildError, SpecError};
use serde::Serialize;

use crate::stream::Stream;

/// What an arrival is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// Its key did not arrive before, or not inside the window.
    Fresh,
    /// Its key arrived before.
    Duplicate {
        /// How many arrivals ago it did last; `None` where the oracle does not remember.
        age: Option<NonZeroU32>,
    },
}

impl Truth {
    /// Whether it is a duplicate.
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

/// Remembers every key of a stream exactly.
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
}

/// What is remembered of a key.
#[derive(Debug)]
enum Recall {
    /// One bit: whether it arrived.
    Arrived,
    /// 32 bits: the number of its last arrival, from 1.
    LastArrival { arrivals: u32, window: u32 },
}

impl Oracle {
    /// An oracle that tells duplicates, in one bit for each key of the universe.
    ///
    /// # Errors
    /// [`BuildError`] if the machine refuses the memory.
    pub fn new(stream: &Stream) -> Result<Self, BuildError> {
        Ok(Self {
            memory: LineArray::zeroed(stream.universe().div_ceil(512))?,
            recall: Recall::Arrived,
        })
    }

    /// An oracle that tells the ages of duplicates too, in four bytes for each key of the universe. With a window, only keys that arrived at most so
    /// many arrivals ago make duplicates.
    ///
    /// # Errors
    /// [`BuildError`] if the stream has 2^32 records and more, or the machine refuses the memory.
    pub fn with_ages(stream: &Stream, window: Option<u64>) -> Result<Self, BuildError> {
        if stream.records() >= u64::from(u32::MAX) {
            let asked = stream.records().to_string();
            let allowed = "fewer than 2^32 - 1 when ages or a window are measured";
            return Err(SpecError::new("records", asked, allowed).into());
        }
        let window = window.map_or(u32::MAX, |window| u32::try_from(window).unwrap_or(u32::MAX));
        Ok(Self {
            memory: LineArray::zeroed(stream.universe().div_ceil(16))?,
            recall: Recall::LastArrival {
                arrivals: 0,
                window,
            },
        })
    }

    /// What the next arrival is, being of this key.
    ///
    /// # Panics
    /// If the key is not below the universe (but for rounding up to a cache line).
    #[inline]
    pub fn observe(&mut self, key: u64) -> Truth {
        match &mut self.recall {
            Recall::Arrived => {
                let word = word_mut(&mut self.memory, key / 64);
                let arrived = *word >> (key % 64) & 1 == 1;
                *word |= 1 << (key % 64);
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
                let age = *arrivals - last;
                if last == 0 || age > *window {
                    Truth::Fresh
                } else {
                    Truth::Duplicate {
                        age: NonZeroU32::new(age),
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn word_mut(memory: &mut [Line], word: u64) -> &mut u64 {
    &mut memory[(word / 8) as usize].0[(word % 8) as usize]
}

/// How many arrivals of each kind a filter answered, and how many of them wrongly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Arrivals of new keys.
    pub distinct: u64,
    /// Those of them that were called duplicates.
    pub false_positives: u64,
    /// Arrivals of keys seen before.
    pub duplicates: u64,
    /// Those of them that were called fresh.
    pub false_negatives: u64,
}

impl Score {
    /// Counts one answer.
    #[inline(always)]
    pub fn count(&mut self, duplicate: bool, answered_duplicate: bool) {
        self.distinct += u64::from(!duplicate);
        self.duplicates += u64::from(duplicate);
        self.false_positives += u64::from(!duplicate & answered_duplicate);
        self.false_negatives += u64::from(duplicate & !answered_duplicate);
    }

    /// The arrivals counted.
    #[must_use]
    pub const fn arrivals(&self) -> u64 {
        self.distinct + self.duplicates
    }

    /// False positives as a share of the distinct arrivals; 0 if there were none.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / self.distinct.max(1) as f64
    }

    /// False negatives as a share of the duplicate arrivals; 0 if there were none.
    #[must_use]
    pub fn fnr(&self) -> f64 {
        self.false_negatives as f64 / self.duplicates.max(1) as f64
    }

    /// What was counted in `self` after `earlier`, an earlier state of it.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            distinct: self.distinct - earlier.distinct,
            false_positives: self.false_positives - earlier.false_positives,
            duplicates: self.duplicates - earlier.duplicates,
            false_negatives: self.false_negatives - earlier.false_negatives,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn streams_too_long_for_ages_are_refused() {
        let stream = Stream::uniform(1 << 32, 10).unwrap();
        let error = Oracle::with_ages(&stream, None).unwrap_err();
        assert!(error.to_string().starts_with("invalid records=4294967296"));
        assert!(Oracle::new(&stream).is_ok());
    }

    #[test]
    fn rates_are_conditional() {
        let mut score = Score::default();
        assert_eq!((score.fpr(), score.fnr()), (0.0, 0.0));
        for (duplicate, answer, times) in [
            (false, false, 3),
            (false, true, 1),
            (true, true, 6),
            (true, false, 2),
        ] {
            for _ in 0..times {
                score.count(duplicate, answer);
            }
        }
        assert_eq!((score.distinct, score.duplicates), (4, 8));
        assert_eq!((score.fpr(), score.fnr()), (0.25, 0.25));
        let mut more = score;
        more.count(false, true);
        let step = more.since(&score);
        assert_eq!((step.arrivals(), step.false_positives), (1, 1));
    }

    proptest! {
        #[test]
        fn answers_are_those_of_a_map(
            keys in prop::collection::vec(0_u64..200, 0..2000),
            window in prop::option::of(1_u64..300),
        ) {
            let stream = Stream::uniform(2000, 200).unwrap();
            let mut bits = Oracle::new(&stream).unwrap();
            let mut ages = Oracle::with_ages(&stream, None).unwrap();
            let mut windowed = Oracle::with_ages(&stream, window).unwrap();
            let mut last = HashMap::new();
            for (arrival, key) in keys.into_iter().enumerate() {
                let age = last.insert(key, arrival).map(|last| (arrival - last) as u32);
                prop_assert_eq!(bits.observe(key).is_duplicate(), age.is_some());
                let truth = |age: Option<u32>| match age {
                    Some(age) => Truth::Duplicate { age: NonZeroU32::new(age) },
                    None => Truth::Fresh,
                };
                prop_assert_eq!(ages.observe(key), truth(age));
                let inside = |age: &u32| window.is_none_or(|window| u64::from(*age) <= window);
                prop_assert_eq!(windowed.observe(key), truth(age.filter(inside)));
            }
        }
    }
}
