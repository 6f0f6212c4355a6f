//! Exact buffers that guess on a miss.

use echoless::{Filter, FilterSpec, Verdict};
use echoless_papers::theory::buffers::guessing_rates;

use crate::trial::{fnr_at_gap, fresh_keys};

/// A buffer of 10,000 entries.
fn build(guess: f64) -> Box<dyn Filter> {
    let text = format!("fpbuffer:q={guess},memory=240000,seed=4");
    let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
    spec.build().expect("small")
}

#[test]
fn guesses_trade_the_rates_as_computed() {
    // The buffer holds every key of age 9,000 and no key of age 60,001.
    for (gap, lru_fnr) in [(9000, 0.0), (60_001, 1.0)] {
        for guess in [0.0, 0.1, 0.4] {
            let (fpr, fnr) = guessing_rates(guess, lru_fnr);
            let missed = fnr_at_gap(&mut *build(guess), gap, 60_000);
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
