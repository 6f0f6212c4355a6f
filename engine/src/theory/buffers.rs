//! Exact buffers that guess (paper 004, section 5.2).

/// The FPR and FNR of `FPBuffering` that answers a miss with "duplicate" with probability q, given the FNR of the plain LRU buffer: (q, (1 - q) FNR).
///
/// # Examples
/// ```
/// assert_eq!(echoless::theory::buffers::guessing_rates(0.25, 0.5), (0.25, 0.375));
/// ```
#[must_use]
pub fn guessing_rates(guess: f64, lru_fnr: f64) -> (f64, f64) {
    (guess, (1.0 - guess) * lru_fnr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;
    use crate::filters::scattered::buffers::{Accounting, BufferSpec};
    use crate::theory::trial::{fnr_at_gap, fresh_keys};
    use crate::verdicts::Verdict;

    #[test]
    fn guesses_trade_the_rates_as_computed() {
        let build = |guess| {
            let accounting = Accounting::Full;
            let buffer = BufferSpec { accounting, guess };
            buffer.build(240_000, 4).expect("valid")
        };
        // Nothing of age 60,001 is left in 10,000 entries, everything of age 9,000 is.
        for (gap, lru_fnr) in [(9000, 0.0), (60_001, 1.0)] {
            for guess in [0.0, 0.1, 0.4] {
                let (fpr, fnr) = guessing_rates(guess, lru_fnr);
                let missed = fnr_at_gap(&mut build(guess), gap, 60_000);
                assert!(
                    (missed - fnr).abs() < 0.01,
                    "gap {gap}, q {guess}: {missed}"
                );
                let mut filter = build(guess);
                let wrong = fresh_keys(60_000)
                    .filter(|key| filter.observe_one(*key) == Verdict::Duplicate)
                    .count();
                assert!(
                    (wrong as f64 / 60_000.0 - fpr).abs() < 0.01,
                    "q {guess}: {wrong}"
                );
            }
        }
    }
}
