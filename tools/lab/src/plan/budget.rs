//! How much the planner may simulate: a nominal time, turned into numbers of records; and the time
//! that a filter takes on this machine.
//!
//! A plan must not depend on the speed of the machine, so no clock is read. A model of the cost of
//! a simulated record turns the budget into records, the same on every machine. Its constants are
//! those of `echoless eval --stream uniform:records=500k,distinct=0.6 -m 64KiB SPEC` for 25
//! filters, and with 200k records for 6 of a window, on one core of a shared machine, 2026-11-22,
//! rounded up and raised by a quarter, because what else runs on the cores slows a simulation down.
//! A plan took 1 to 10 s of CPU time there with a budget of 10 s.

use std::time::{Duration, Instant};

use echoless::theory::RateModel;
use echoless::{BuildError, FilterSpec, KeyHash, KeyHasher, Verdicts};

use super::request::PlanRequest;

/// Nanoseconds for a key that touches no line: the draw, the hash, the exact oracle, the score.
const KEY: f64 = 50.0;
/// Nanoseconds for each cache line that a key touches.
const LINE: f64 = 18.0;
/// Nanoseconds for each cell that a key decrements.
const DECREMENTED_CELL: f64 = 6.0;
/// Nanoseconds for a key that is a tick of its own.
const TICK: f64 = 100.0;
/// Nanoseconds for each byte of a filter: its pages are cleared, and its fill is counted.
const BYTE: f64 = 0.5;

/// The fewest records of a simulation, however small the budget. The rates of shorter ones are
/// meaningless.
const LEAST_RECORDS: u64 = 1 << 12;

/// The parts of the plan, and the fraction of the budget that each may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Coarse,
    Track,
    Refine,
    /// One candidate.
    Confirm,
    /// One candidate that decides whether a memory is enough.
    Decide,
}

impl Stage {
    fn fraction(self) -> f64 {
        match self {
            Self::Coarse => 0.4,
            Self::Track => 0.2,
            Self::Refine => 0.2,
            Self::Confirm => 0.2 / f64::from(MAX_CONFIRMATIONS),
            Self::Decide => 1.0 / f64::from(MAX_DECISIONS),
        }
    }

    /// The records up to which a short stream is repeated. The first stages only sort out.
    pub(super) const fn repeated_records(self) -> u64 {
        match self {
            Self::Coarse | Self::Track => 1,
            Self::Refine => 1 << 14,
            Self::Confirm | Self::Decide => 1 << 18,
        }
    }

    /// The most records that a simulation of this stage can use.
    pub(super) const fn most_records(self) -> u64 {
        match self {
            Self::Coarse | Self::Track => 1 << 18,
            Self::Refine => 1 << 21,
            Self::Confirm => 1 << 23,
            Self::Decide => 1 << 24,
        }
    }
}

/// The most candidates to confirm.
pub(super) const MAX_CONFIRMATIONS: u32 = 6;

/// The most candidates that decide whether a memory is enough. They take the budget once more.
pub(super) const MAX_DECISIONS: u32 = 2;

/// The bytes of a simulated filter for each simulated record, at most: with more, a filter is so
/// far from full that its rates are below those in this memory, which are measured instead.
pub(super) const ENOUGH_BYTES: u64 = 64;

/// The nominal nanoseconds of a simulated record in this filter.
fn cost(spec: &FilterSpec, bytes_per_record: f64) -> f64 {
    let tick = if spec.facts().window.is_some() {
        TICK
    } else {
        0.0
    };
    let decremented = match spec.facts().rate_model {
        Some(RateModel::Stable { decrements, .. }) => decrements as f64,
        Some(RateModel::Bloom { .. } | RateModel::LineBloom { .. }) | None => 0.0,
    };
    KEY + LINE * spec.facts().cache_lines
        + DECREMENTED_CELL * decremented
        + tick
        + BYTE * bytes_per_record
}

/// The records of each simulation of these filters, so that all take the stage's fraction of the
/// budget or less.
pub(super) fn records(request: &PlanRequest, stage: Stage, specs: &[FilterSpec]) -> u64 {
    // The fraction of the memory that a record gets, with or without a scale.
    let records = request.window.unwrap_or(request.records).max(1);
    let bytes = request.memory as f64 / records as f64;
    let bytes = bytes.min(ENOUGH_BYTES as f64);
    let total: f64 = specs.iter().map(|spec| cost(spec, bytes)).sum();
    let nanoseconds = nanoseconds(request.budget) * stage.fraction();
    let affordable = nanoseconds / total.max(1.0);
    (affordable as u64).clamp(LEAST_RECORDS, stage.most_records())
}

fn nanoseconds(budget: Duration) -> f64 {
    budget.as_secs_f64() * 1e9
}

/// Measures the filter in its full memory on distinct keys, on one thread: nanoseconds per key.
/// Other load on the machine slows it down.
///
/// # Errors
/// [`BuildError`] if the filter cannot be built.
pub fn nanoseconds_per_key(spec: &FilterSpec) -> Result<f64, BuildError> {
    const KEYS: u64 = 1 << 18;
    let mut filter = spec.build()?;
    let hasher = KeyHasher::seeded(spec.seed);
    let mut verdicts = Verdicts::new();
    let mut numbers = [0; 1024];
    let mut keys = [KeyHash::from_uniform(0); 1024];
    let mut seconds = 0.0;
    // The first half is not timed: its writes make the system provide the pages.
    for first in (0..2 * KEYS).step_by(numbers.len()) {
        for (number, value) in numbers.iter_mut().zip(first..) {
            *number = value;
        }
        hasher.hash_u64s(&numbers, &mut keys);
        let begin = Instant::now();
        // The number of the record is the time of a filter with a window.
        filter.advance_to(first);
        filter.observe(&keys, &mut verdicts);
        if first >= KEYS {
            seconds += begin.elapsed().as_secs_f64();
        }
    }
    Ok(seconds * 1e9 / KEYS as f64)
}
