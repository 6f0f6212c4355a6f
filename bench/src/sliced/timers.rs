//! The equal-timers heuristic with k' = 1 to 8 (figure 9).
//!
//! **The paper:** 8 timers. Events of which many timers are equal are nearly always true duplicates
//! (9(a), 9(b)); more equal timers required means fewer false positives (9(c)) and more misses
//! (9(d)). Requiring 2 equal timers for vertical and 3 for horizontal slices is a good balance.
//!
//! **Here:** the same shapes: k' = 2 removes most false positives and misses few duplicates, and
//! horizontal slices need one more equal timer for the same rate. The rates of the whole filter
//! agree with [`timers_fpr`] and [`timers_fnr`]. Those take as many keys in every tick; a
//! horizontal slice gets a Poisson number, here 2 in the mean, and equal timers by chance come from
//! the ticks with many. So its rates with k' >= 2 are above the formula and are not compared. The
//! paper's formula for k' = k, (1 - e^(-k/m))^k (the printed one), is that of a single live event
//! and too low by their number at least. Vertical slices have no rows of their own: a vertical cut
//! of timers has the verdicts of the uncut filter.
//!
//! **Differences:** `steady` is a stream of distinct events at a constant rate, in which all events
//! of the window and as many unseen ones are looked up, so that formulas apply. Every event is
//! recorded, so that the filters of all k' have the same timers. The rows of the other streams are
//! runs as in the paper, where an event is a duplicate if it was delivered (reported as fresh) at
//! most a window before (definition 4); their formula takes the mean number of deliveries in a
//! tick, and is not compared. An event that is taken for a duplicate is not recorded, so its next
//! arrival can be a false positive for the same reason: such streams have more of them.

use echoless::{Filter, FilterSpec, KeyHash, Verdicts};
use echoless_lab::oracle::Score;
use echoless_lab::parallel;
use echoless_papers::theory::windows::{timer_fractions, timers_fnr, timers_fpr};

use super::arguments::{Arguments, Part};
use super::deliveries::Deliveries;
use super::inputs::{Input, UNSEEN, cells_for, hashes};
use super::rows::{Row, of_settings};
use crate::failure::Failure;

const HASHES: u32 = 8;
/// Ticks. A key is remembered for ages of 0 to W ticks.
const WINDOW: u64 = 100;
/// Arrivals in each tick.
const PER_TICK: u64 = 20;
/// The rate without the heuristic, with a window full of distinct events.
const RATE: f64 = 0.1;
/// Lookups of events that never arrived, in each run.
const PROBES: u64 = 100_000;
/// Timers of 8 bits hold 191 ticks.
const TIMER_BITS: u64 = 8;
/// The numbers of horizontal slices; 1 is the whole filter.
const SLICES: [u64; 2] = [1, 10];

/// The number of timers, a multiple of 8 in each slice.
fn timers() -> u64 {
    let cells = cells_for((WINDOW + 1) * PER_TICK, HASHES, RATE);
    (cells / 80.0).ceil() as u64 * 80
}

/// The filter, k' of whose timers must be equal. Every slice has a word for access besides.
fn spec(equal: u32, slices: u64, refresh: bool) -> Result<FilterSpec, Failure> {
    let memory = timers() * TIMER_BITS / 8 + 8 * slices;
    let slicing = match slices {
        1 => String::new(),
        slices => format!("horizontal:slices={slices}/"),
    };
    let text = format!(
        "{slicing}tbf:window={WINDOW},k={HASHES},equal={equal},refresh={refresh},\
         bits={TIMER_BITS},memory={memory}B"
    );
    Ok(text.parse()?)
}

fn row(stream: &'static str, slices: u64, figure: &'static str, equal: u32) -> Row {
    Row {
        part: Part::Timers,
        figure,
        stream,
        setting: format!("window {WINDOW}"),
        series: match slices {
            1 => "whole or vertical".into(),
            slices => format!("{slices} horizontal slices"),
        },
        x_name: "equal_timers",
        x: f64::from(equal),
        measure: "",
        measured: 0.0,
        formula: None,
        printed: None,
        trials: None,
    }
}

/// What the lookups of all runs found.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    seen: u64,
    of_seen: u64,
    unseen: u64,
    of_unseen: u64,
}

/// Feeds two windows of distinct events and looks up those of the last one, and unseen ones.
fn steady(equal: u32, slices: u64, seeds: std::ops::Range<u64>) -> Result<Found, Failure> {
    let mut found = Found::default();
    let mut verdicts = Verdicts::new();
    for seed in seeds {
        let mut filter = spec(equal, slices, true)?.build()?;
        let recorded = hashes(0..2 * WINDOW * PER_TICK, seed);
        for (tick, keys) in (0..).zip(recorded.chunks(PER_TICK as usize)) {
            filter.advance_to(tick);
            filter.observe(keys, &mut verdicts);
        }
        let alive = (WINDOW + 1) * PER_TICK;
        let alive = &recorded[recorded.len() - alive as usize..];
        let unseen = hashes(UNSEEN..UNSEEN + PROBES, seed);
        let count = |keys: &[KeyHash]| keys.iter().filter(|key| filter.contains(**key)).count();
        found.seen += count(alive) as u64;
        found.of_seen += alive.len() as u64;
        found.unseen += count(&unseen) as u64;
        found.of_unseen += PROBES;
    }
    Ok(found)
}

/// FPR and FNR with k' equal timers, in the steady stream. Each slice has its share of the keys and
/// of the timers.
fn steady_formulas(equal: u32, slices: u64) -> (f64, f64) {
    let (keys, cells) = (PER_TICK as f64 / slices as f64, timers() / slices);
    let shares = timer_fractions(HASHES, keys, WINDOW as usize + 1, cells);
    let misses = (0..=WINDOW as usize).map(|age| timers_fnr(HASHES, equal, keys, age, cells));
    let fnr = misses.sum::<f64>() / (WINDOW + 1) as f64;
    (timers_fpr(HASHES, equal, &shares), fnr)
}

fn steady_rows(slices: u64, found: &[Found]) -> Vec<Row> {
    let mut rows = Vec::new();
    // k' of 9 finds nothing.
    let rates = |equal: u32| match equal {
        equal if equal > HASHES => (0.0, 1.0),
        equal => steady_formulas(equal, slices),
    };
    for (equal, here) in (1..).zip(found) {
        let next = found.get(equal as usize).copied().unwrap_or_default();
        let (fpr, fnr) = rates(equal);
        let (next_fpr, next_fnr) = rates(equal + 1);
        let measured = here.unseen as f64 / here.of_unseen as f64;
        let mut false_positives = Row {
            measure: "fpr",
            measured,
            ..row("steady", slices, "9(c)", equal)
        }
        .formula(fpr);
        let mut misses = Row {
            measure: "fnr",
            measured: (here.of_seen - here.seen) as f64 / here.of_seen as f64,
            ..row("steady", slices, "9(d)", equal)
        }
        .formula(fnr);
        // Keys come evenly to the whole filter; without the heuristic that does not matter.
        if slices == 1 || equal == 1 {
            false_positives.trials = Some(here.of_unseen as f64);
            misses.trials = Some(here.of_seen as f64);
        }
        if equal == HASHES {
            let single = -(-f64::from(HASHES) / (timers() / slices) as f64).exp_m1();
            false_positives = false_positives.printed(single.powi(HASHES as i32));
        }
        rows.push(false_positives);
        rows.push(misses);
        // Of the events of which exactly so many timers are equal, those that were seen, if as many
        // unseen ones are looked up.
        let share = |seen: f64, unseen: f64| seen / (seen + unseen).max(f64::MIN_POSITIVE);
        let seen = (here.seen - next.seen) as f64 / here.of_seen as f64;
        let unseen = (here.unseen - next.unseen) as f64 / here.of_unseen as f64;
        rows.push(
            Row {
                measure: "true_share",
                measured: share(seen, unseen),
                ..row("steady", slices, "9(a), 9(b)", equal)
            }
            .formula(share(next_fnr - fnr, fpr - next_fpr)),
        );
    }
    rows
}

/// Runs a filter over a stream. Returns its score and the number of events delivered.
fn run(filter: &mut dyn Filter, input: &Input, seed: u64) -> (Score, u64) {
    let keys = input.keys(seed);
    let mut deliveries = Deliveries::new(input.counts.len(), WINDOW);
    let (mut total, mut delivered) = (Score::default(), 0);
    let batch = PER_TICK as usize;
    for (tick, (keys, events)) in (0..).zip(keys.chunks(batch).zip(input.events.chunks(batch))) {
        let (score, more) = deliveries.observe(filter, tick, keys, events);
        total = total.plus(&score);
        delivered += more;
    }
    (total, delivered)
}

fn stream_rows(
    input: &Input,
    equal: u32,
    slices: u64,
    seeds: std::ops::Range<u64>,
) -> Result<[Row; 2], Failure> {
    let runs = seeds.end - seeds.start;
    let (mut fpr, mut fnr, mut deliveries) = (0.0, 0.0, 0);
    for seed in seeds {
        let mut filter = spec(equal, slices, false)?.build()?;
        let (score, delivered) = run(&mut *filter, input, seed);
        fpr += score.fpr() / runs as f64;
        fnr += score.fnr() / runs as f64;
        deliveries += delivered;
    }
    let ticks = (input.events.len() as u64).div_ceil(PER_TICK) * runs;
    let keys = deliveries as f64 / ticks as f64 / slices as f64;
    let shares = timer_fractions(HASHES, keys, WINDOW as usize + 1, timers() / slices);
    Ok([
        Row {
            measure: "fpr",
            measured: fpr,
            ..row(input.name, slices, "9(c)", equal)
        }
        .formula(timers_fpr(HASHES, equal, &shares)),
        Row {
            measure: "fnr",
            measured: fnr,
            ..row(input.name, slices, "9(d)", equal)
        },
    ])
}

/// The rates for each number of equal timers.
pub(super) fn rows(arguments: &Arguments, inputs: &[Input]) -> Result<Vec<Row>, Failure> {
    let settings: Vec<(u64, u32)> = SLICES
        .iter()
        .flat_map(|slices| (1..=HASHES).map(|equal| (*slices, equal)))
        .collect();
    let seeds = arguments.few_seeds();
    let found = parallel::map(&settings, arguments.threads, |(slices, equal)| {
        steady(*equal, *slices, seeds.clone()).map_err(|error| error.to_string())
    })?;
    let mut rows = Vec::new();
    for (slices, found) in SLICES.iter().zip(found.chunks(HASHES as usize)) {
        rows.extend(steady_rows(*slices, found));
    }
    // The streams are long enough for a few runs.
    let seeds = seeds.start..seeds.end.min(seeds.start + 4);
    for input in inputs {
        let measured = of_settings(&settings, arguments.threads, |(slices, equal)| {
            stream_rows(input, *equal, *slices, seeds.clone())
        })?;
        rows.extend(measured);
    }
    Ok(rows)
}
