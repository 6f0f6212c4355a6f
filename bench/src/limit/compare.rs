//! The look-ahead that a filter chose by measuring, against every fixed one, in turns.

use echoless::memory::LINE_BYTES;
use echoless::{KeyHash, LookAhead};

use super::arguments::Arguments;
use super::candidates::Candidate;
use super::measure::{TICK_KEYS, WARM_UP};
use super::rate::rate;
use crate::clock::median;
use crate::failure::Failure;
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::Table;

/// The columns of the table.
pub(super) const COLUMNS: &[&str] = &[
    "name",
    "kernel",
    "memory_mib",
    "look_ahead",
    "keys_per_second",
    "best_fixed",
    "best_fixed_keys_per_second",
    "ratio_to_best_fixed",
];

/// Measures one filter of `mebibytes`. All rates are of the same filter, so of the same pages.
pub(super) fn compare(
    arguments: &Arguments,
    mebibytes: u64,
    candidate: &Candidate,
    table: &mut Table,
) -> Result<(), Failure> {
    let bytes = mebibytes << 20;
    let mut filter = (candidate.build)(bytes)?;
    let mut stream = Stream::new(StreamKind::Distinct, 0);
    let mut words = vec![0; BATCH / 64];
    let mut observed = 0;
    let mut observe = |keys: &[KeyHash]| {
        if candidate.timed {
            filter.advance_to(observed / TICK_KEYS);
        }
        filter.observe_words(keys, &mut words);
        observed += keys.len() as u64;
    };
    let warm_up = bytes / LINE_BYTES * WARM_UP;
    rate(&mut stream, warm_up, &mut observe);
    let keys = arguments.keys * 1_000_000;
    let ways: Vec<Option<LookAhead>> = [None]
        .into_iter()
        .chain(LookAhead::all().map(Some))
        .collect();
    let mut rates = vec![Vec::new(); ways.len()];
    for _ in 0..arguments.rounds {
        for (way, rates) in ways.iter().zip(&mut rates) {
            LookAhead::fix(*way);
            rates.push(rate(&mut stream, keys, &mut observe));
        }
    }
    LookAhead::fix(None);
    let mut medians = rates.into_iter().map(median);
    let chosen = medians.next().unwrap_or(f64::NAN);
    let fixed = LookAhead::all().zip(medians);
    let best = fixed.max_by(|one, other| one.1.total_cmp(&other.1));
    let (best, best_rate) = best.ok_or("there is no fixed look-ahead")?;
    let report = filter.report();
    table.push(vec![
        candidate.name.clone().into(),
        candidate.kernel.name().into(),
        mebibytes.into(),
        report
            .look_ahead
            .map_or_else(String::new, |chosen| chosen.to_string())
            .into(),
        chosen.into(),
        best.to_string().into(),
        best_rate.into(),
        (chosen / best_rate).into(),
    ]);
    Ok(())
}
