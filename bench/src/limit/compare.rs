//! The look-ahead that a filter chose by measuring, against every fixed one, in turns.

use echoless::LookAhead;

use super::arguments::Arguments;
use super::candidates::Candidate;
use crate::clock::median;
use crate::failure::Failure;
use crate::streams::{Stream, StreamKind};
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

/// Measures one filter of `mebibytes`. All rates are of the same filter, so of the same pages. Many
/// short rounds are better than few long ones: the machine's speed changes from second to second.
pub(super) fn compare(
    arguments: &Arguments,
    mebibytes: u64,
    candidate: &Candidate,
    table: &mut Table,
) -> Result<(), Failure> {
    let mut stream = Stream::new(StreamKind::Distinct, 0);
    let mut measured = candidate.filled(mebibytes << 20, &mut stream)?;
    let keys = arguments.keys * 1_000_000;
    let ways: Vec<Option<LookAhead>> = [None]
        .into_iter()
        .chain(LookAhead::all().map(Some))
        .collect();
    // For each round, the rates of all ways.
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for _ in 0..arguments.rounds.max(2) {
        let mut rates = Vec::new();
        for way in &ways {
            LookAhead::fix(*way);
            rates.push(measured.rate(&mut stream, keys));
        }
        rounds.push(rates);
    }
    LookAhead::fix(None);
    // The best one of a dozen is partly the luckiest one. So one half of the rounds names it, and
    // the other half compares.
    let (naming, comparing): (Vec<_>, Vec<_>) = rounds
        .iter()
        .enumerate()
        .partition(|(round, _)| round % 2 == 0);
    let rates_of = |half: &[(usize, &Vec<f64>)], way: usize| {
        median(half.iter().map(|(_, rates)| rates[way]).collect())
    };
    let best = (1..ways.len())
        .max_by(|one, other| rates_of(&naming, *one).total_cmp(&rates_of(&naming, *other)))
        .ok_or("there is no fixed look-ahead")?;
    let ratios = comparing.iter().map(|(_, rates)| rates[0] / rates[best]);
    let ratio = median(ratios.collect());
    let report = measured.filter.report();
    table.push(vec![
        candidate.name.clone().into(),
        candidate.kernel.name().into(),
        mebibytes.into(),
        report
            .look_ahead
            .map_or_else(String::new, |chosen| chosen.to_string())
            .into(),
        rates_of(&comparing, 0).into(),
        ways[best]
            .map_or_else(String::new, |way| way.to_string())
            .into(),
        rates_of(&comparing, best).into(),
        ratio.into(),
    ]);
    Ok(())
}
