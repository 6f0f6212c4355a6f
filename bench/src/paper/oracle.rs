//! The exact answer for keys of a finite universe: one bit each.

/// Which of the keys below `universe` have been seen.
#[derive(Debug)]
pub(super) struct Oracle {
    seen: Vec<u64>,
}

impl Oracle {
    pub(super) fn new(universe: u64) -> Self {
        let words = usize::try_from(universe.div_ceil(64)).expect("the universe fits into memory");
        Self {
            seen: vec![0; words],
        }
    }

    /// Whether the key was seen before; it is from now on.
    #[inline]
    pub(super) fn observe(&mut self, key: u64) -> bool {
        let (word, bit) = (&mut self.seen[(key / 64) as usize], key % 64);
        let before = *word >> bit & 1 == 1;
        *word |= 1 << bit;
        before
    }
}

/// How many arrivals of each kind a filter answered, and how many of them wrongly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Score {
    pub(super) distinct: u64,
    pub(super) false_positives: u64,
    pub(super) duplicates: u64,
    pub(super) false_negatives: u64,
}

impl Score {
    #[inline]
    pub(super) fn count(&mut self, duplicate: bool, answered_duplicate: bool) {
        self.distinct += u64::from(!duplicate);
        self.duplicates += u64::from(duplicate);
        self.false_positives += u64::from(!duplicate & answered_duplicate);
        self.false_negatives += u64::from(duplicate & !answered_duplicate);
    }

    /// False positives in percent of the distinct arrivals.
    pub(super) fn fpr(&self) -> f64 {
        100.0 * self.false_positives as f64 / self.distinct as f64
    }

    /// False negatives in percent of the duplicate arrivals.
    pub(super) fn fnr(&self) -> f64 {
        100.0 * self.false_negatives as f64 / self.duplicates as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_arrival_is_new() {
        let mut oracle = Oracle::new(130);
        for key in [0, 64, 129] {
            assert!(!oracle.observe(key));
            assert!(oracle.observe(key));
        }
        assert!(!oracle.observe(128));
    }

    #[test]
    fn rates_are_conditional() {
        let mut score = Score::default();
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
        assert!((score.fpr() - 25.0).abs() < 1e-9 && (score.fnr() - 25.0).abs() < 1e-9);
    }
}
