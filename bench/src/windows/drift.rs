//! Whether the rates of line filters with a window change over a long stream.

use clap::Args;
use echoless::memory::LINE_BYTES;
use echoless::{FilterSpec, KeyHash, KeyHasher, Verdicts};
use echoless_lab::oracle::Score;
use echoless_lab::parallel;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::load::TICKS;
use crate::failure::Failure;
use crate::table::{Outputs, Table};

/// The options of `window-drift`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Length of the stream, in millions of keys.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    keys: u64,
    /// Memory of each filter, in MiB.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory_mib: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// The filters: how they are specified without window and memory, and the keys of a window for each
/// line, at which about 1 in 1000 is missed.
const FILTERS: [(&str, f64); 6] = [
    ("clocked:bits=16", 17.6),
    ("clocked:bits=16,refresh=false", 17.6),
    ("clocked:bits=32", 6.7),
    ("stamped:bits=32", 8.2),
    ("stamped:bits=32,refresh=false", 8.2),
    ("stamped:bits=64", 2.7),
];

/// One key in so many repeats a key of the window.
const REPEATS: u64 = 4;

/// The stream is judged in so many parts.
const PARTS: u64 = 10;

/// Runs a filter over a stream and counts its errors in each part. In the stream, every fourth key
/// repeats one that was new at most a window before, of all ages alike.
fn parts(spec: &FilterSpec, window_keys: u64, keys: u64) -> Result<Vec<Score>, Failure> {
    let mut filter = spec.build()?;
    let hasher = KeyHasher::seeded(1);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut verdicts = Verdicts::new();
    let per_tick = (window_keys / TICKS * REPEATS / (REPEATS - 1)).max(2);
    let fresh_per_tick = per_tick - per_tick.div_ceil(REPEATS);
    let ticks_of_part = (keys / PARTS / per_tick).max(1);
    let mut numbers = vec![0; per_tick as usize];
    let mut hashes = vec![KeyHash::from_uniform(0); per_tick as usize];
    let mut next = 0_u64;
    let mut tick = 0;
    // The first window fills the filter and is not counted.
    let mut part = |ticks: u64| {
        let mut score = Score::default();
        for _ in 0..ticks {
            tick += 1;
            // New keys are numbered in order, so a number below `begin` is a repeat.
            let begin = next;
            for (index, number) in (0_u64..).zip(numbers.iter_mut()) {
                let oldest = begin.saturating_sub(fresh_per_tick * (TICKS - 1));
                *number = if index % REPEATS == 0 && oldest < begin {
                    random.random_range(oldest..begin)
                } else {
                    next += 1;
                    next - 1
                };
            }
            hasher.hash_u64s(&numbers, &mut hashes);
            filter.advance_to(tick);
            filter.observe(&hashes, &mut verdicts);
            for (index, number) in numbers.iter().enumerate() {
                score.count(*number < begin, verdicts.is_duplicate(index));
            }
        }
        score
    };
    part(2 * TICKS);
    Ok((0..PARTS).map(|_| part(ticks_of_part)).collect())
}

/// Measures and prints the table.
///
/// # Errors
/// If a filter cannot be built or a file cannot be written, or the rates of the first and the last
/// part differ by more than their noise.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let memory = arguments.memory_mib << 20;
    let threads = std::thread::available_parallelism()?;
    let measured = parallel::map(&FILTERS, threads, |(text, load)| {
        let spec: FilterSpec = format!("{text},window={TICKS}")
            .parse()
            .map_err(|error| format!("{text}: {error}"))?;
        let window_keys = (memory / LINE_BYTES) as f64 * load;
        parts(
            &spec.memory(memory),
            window_keys as u64,
            arguments.keys * 1_000_000,
        )
        .map_err(|error| format!("{text}: {error}"))
    })?;
    let columns = ["filter", "part", "fresh", "fpr", "repeats", "misses"];
    let mut table = Table::new(&columns);
    let mut drifting = Vec::new();
    for ((text, _), parts) in FILTERS.iter().zip(&measured) {
        for (score, part) in parts.iter().zip(1_u64..) {
            table.push(vec![
                (*text).into(),
                part.into(),
                score.distinct.into(),
                score.fpr().into(),
                score.duplicates.into(),
                score.fnr().into(),
            ]);
        }
        let (first, last) = (&parts[0], &parts[parts.len() - 1]);
        let counts = [
            ("fpr", first.false_positives, last.false_positives),
            ("misses", first.false_negatives, last.false_negatives),
        ];
        for (rate, first, last) in counts {
            if !is_noise(first, last) {
                drifting.push(format!("{rate} of {text}: {first} errors, then {last}"));
            }
        }
    }
    table.publish(&arguments.outputs)?;
    if drifting.is_empty() {
        return Ok(());
    }
    Err(drifting.join("; ").into())
}

/// Whether two counts of one Poisson process differ by at most six standard deviations.
fn is_noise(first: u64, last: u64) -> bool {
    let (difference, sum) = (first.abs_diff(last) as f64, (first + last) as f64);
    difference <= 6.0 * sum.sqrt() + 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_do_not_drift_and_are_those_of_the_load() {
        let text = format!("clocked:bits=16,refresh=false,window={TICKS},memory=64KiB");
        let spec: FilterSpec = echoless_papers::parse(&text).unwrap();
        let parts = parts(&spec, 1024 * 22, 1_000_000).unwrap();
        assert_eq!(parts.len(), PARTS as usize);
        for part in &parts {
            // 19.5 new keys in a window and 28 slots; 65,536 fingerprints.
            let misses = part.fnr();
            assert!((0.003..0.02).contains(&misses), "{part:?}");
            let fpr = part.fpr();
            assert!((2e-4..4.3e-4).contains(&fpr), "{part:?}");
        }
    }

    #[test]
    fn drift_is_more_than_noise() {
        assert!(is_noise(0, 3) && is_noise(10_000, 10_500));
        assert!(!is_noise(0, 60) && !is_noise(10_000, 11_000));
    }
}
