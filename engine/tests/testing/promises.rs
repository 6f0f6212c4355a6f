//! What a window promises of the verdicts on a stream.

use std::collections::HashMap;
use std::fmt::Display;

use echoless::{Filter, KeyHash, Verdicts, Window};
use proptest::prelude::*;

use crate::arrivals::Arrival;

/// The verdicts on a stream, observed in batches of `length` keys with their own ticks.
pub(crate) fn observe_at(filter: &mut dyn Filter, stream: &[Arrival], length: usize) -> Vec<bool> {
    let mut verdicts = Verdicts::new();
    let mut all = Vec::new();
    for batch in stream.chunks(length) {
        let keys: Vec<KeyHash> = batch.iter().map(|arrival| arrival.key).collect();
        let ticks: Vec<u64> = batch.iter().map(|arrival| arrival.tick).collect();
        filter.observe_at(&keys, &ticks, &mut verdicts);
        all.extend((0..keys.len()).map(|index| verdicts.is_duplicate(index)));
    }
    all
}

/// Asserts what a window promises of the verdicts on a stream in which no key is taken for another
/// and no key is evicted.
pub(crate) fn assert_promise(
    spec: &impl Display,
    promised: Window,
    refresh: bool,
    stream: &[Arrival],
    verdicts: &[bool],
) -> Result<(), TestCaseError> {
    // For each key, the tick from which its age counts.
    let mut times = HashMap::new();
    let mut clock = 0;
    for (arrival, duplicate) in stream.iter().zip(verdicts) {
        clock = clock.max(arrival.tick);
        let age = times.get(&arrival.key).map(|time| clock - time);
        match age {
            Some(age) if age <= promised.ticks => {
                prop_assert!(*duplicate, "{} at age {}", spec, age);
            }
            Some(age) if age < promised.ticks + promised.granule => {}
            _ => prop_assert!(!*duplicate, "{} at age {:?}", spec, age),
        }
        if refresh || !*duplicate {
            times.insert(arrival.key, clock);
        }
    }
    Ok(())
}
