//! Runs all candidates in turn.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::{Args, ValueEnum};
use echoless::SharedLayout;

use super::candidates::{Candidate, engine, inline, ordered, separate, shared};
use super::rows::COLUMNS;
use super::threads::Timing;
use super::{cores, partitions, ports, slow};
use crate::clock::{median_of, seconds_of};
use crate::failure::Failure;
use crate::machine::SIZES_MIB;
use crate::streams::{BATCH, StreamKind};
use crate::table::{Outputs, Table};
use crate::turns::measure_in_turn;

/// The parts of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// More threads against one, by memory size.
    Threads,
    /// Routing alone, by the number of partitions.
    Routing,
    /// One active port of an engine, by the number of ports.
    Ports,
    /// CPU time of the command for each line of a slow stream, by the number of threads.
    Slow,
}

/// The options of `scaling`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::value_variants().iter().copied())]
    only: Vec<Part>,
    /// Sizes of the filters, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "64,512", value_parser = clap::value_parser!(u64).range(SIZES_MIB))]
    sizes: Vec<u64>,
    /// Numbers of threads of the separate filters, the ordered filter and the shared filter.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<NonZeroUsize>,
    /// A number of threads above the number of cores, for engine and ordered filter; 0 leaves it
    /// out.
    #[arg(long, default_value_t = 2 * available_parallelism().map_or(1, NonZeroUsize::get))]
    oversubscribed: usize,
    /// Keys for each measurement, in millions.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    keys: u64,
    /// Measurements of each candidate; the table has the median.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Keys in a batch of `threads`: a power of two from 1024 to 65536.
    #[arg(long, default_value_t = BATCH as u64, value_parser = parse_thread_batch)]
    thread_batch_keys: u64,
    /// Numbers of partitions that `routing` routes to.
    #[arg(long, value_delimiter = ',', default_value = "2,4,8,64,256,1024")]
    partitions: Vec<usize>,
    /// Route in both ways: keys compared with the bounds of all partitions, on every kernel, and
    /// written to messages one by one.
    #[arg(long)]
    each_way: bool,
    /// Keys in a batch of `routing`.
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(1..=partitions::MAX_BATCH_KEYS))]
    batch_keys: u64,
    /// Numbers of ports of an engine.
    #[arg(long, value_delimiter = ',', default_value = "1,64,1024,4096")]
    ports: Vec<NonZeroUsize>,
    /// Numbers of threads of the command on a slow stream.
    #[arg(long, value_delimiter = ',', default_value = "1,2,64", value_parser = clap::value_parser!(u64).range(1..=1024))]
    slow_threads: Vec<u64>,
    /// Lines of a slow stream.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    slow_lines: u64,
    /// Milliseconds between two lines of a slow stream.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slow_gap: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// The fewest and the most keys in a batch of `threads`.
const THREAD_BATCHES: RangeInclusive<u64> = BATCH as u64..=1 << 16;

fn parse_thread_batch(text: &str) -> Result<u64, String> {
    let keys = text.parse().ok();
    keys.filter(|keys: &u64| keys.is_power_of_two() && THREAD_BATCHES.contains(keys))
        .ok_or_else(|| {
            let (fewest, most) = THREAD_BATCHES.into_inner();
            format!("expected a power of two from {fewest} to {most}")
        })
}

impl Arguments {
    fn oversubscribed(&self) -> Option<usize> {
        (self.oversubscribed > 0).then_some(self.oversubscribed)
    }
}

/// Measures and prints the table.
///
/// # Errors
/// If the memory is not available, a count is wrong, or an output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut table = Table::new(&COLUMNS);
    let rounds = arguments.rounds;
    if arguments.only.contains(&Part::Slow) {
        // Not only after the other parts: their results would be lost.
        seconds_of(std::process::id())?;
    }
    for part in Part::value_variants() {
        if !arguments.only.contains(part) {
            continue;
        }
        match part {
            Part::Threads => {
                for size in &arguments.sizes {
                    measure_size(arguments, *size, &mut table)?;
                }
            }
            Part::Routing => {
                let keys = arguments.batch_keys as usize;
                let each = arguments.each_way;
                partitions::measure(&arguments.partitions, keys, each, rounds, &mut table)?;
            }
            Part::Ports => {
                let counts: Vec<usize> = arguments.ports.iter().map(|ports| ports.get()).collect();
                ports::measure(&counts, rounds, &mut table)?;
            }
            Part::Slow => {
                let gap = Duration::from_millis(arguments.slow_gap);
                let (threads, lines) = (&arguments.slow_threads, arguments.slow_lines);
                slow::measure(threads, lines, gap, rounds, &mut table)?;
            }
        }
    }
    table.publish(&arguments.outputs)
}

fn measure_size(arguments: &Arguments, mebibytes: u64, table: &mut Table) -> Result<(), Failure> {
    let batch = arguments.thread_batch_keys as usize;
    let mut candidates = vec![inline(mebibytes, batch)?];
    let threads = || arguments.threads.iter().map(|threads| threads.get());
    for threads in threads().filter(|threads| *threads > 1) {
        candidates.push(separate(mebibytes, threads, batch)?);
    }
    for workers in [1].into_iter().chain(arguments.oversubscribed()) {
        candidates.push(engine(mebibytes, workers, batch)?);
    }
    for threads in threads().chain(arguments.oversubscribed()) {
        candidates.push(ordered(mebibytes, threads, batch)?);
    }
    for layout in [
        SharedLayout::Row4x16,
        SharedLayout::Bloom { k: 4 },
        SharedLayout::Ageing { k: 2 },
    ] {
        for kind in [StreamKind::Distinct, StreamKind::Zipf, StreamKind::Hot] {
            // One layout shows the effect of skew; the others differ in the atomic operation only.
            if kind != StreamKind::Distinct && layout != SharedLayout::Row4x16 {
                continue;
            }
            for threads in threads() {
                candidates.push(shared(mebibytes, layout, kind, threads, batch)?);
            }
        }
    }
    let batches = (arguments.keys * 1_000_000)
        .div_ceil(batch as u64)
        .next_multiple_of(64);
    // The round that warms up also touches every page.
    let timings = measure_in_turn(&mut candidates, arguments.rounds, |candidate| {
        Ok((candidate.run)(batches)?.of_a_key(batches * batch as u64))
    })?;
    let medians = timings.iter().map(|timings| Timing {
        wall: median_of(timings, |timing| timing.wall),
        cpu: median_of(timings, |timing| timing.cpu),
    });
    let measured: Vec<(Candidate, Timing)> = candidates.into_iter().zip(medians).collect();
    let inline = measured[0].1.wall;
    for (candidate, timing) in &measured {
        let seconds = timing.wall;
        let single = measured.iter().find(|(other, _)| {
            other.threads == 1
                && (other.name, &other.variant, other.stream)
                    == (candidate.name, &candidate.variant, candidate.stream)
                || other.name == "ordered" && candidate.name == "ordered" && other.threads == 1
        });
        let single = single.map(|(_, timing)| timing.wall);
        let gain = single.map(|single| single / seconds);
        // Recorded runs have the usual batches, unless a row names others.
        let variant = match batch {
            BATCH => candidate.variant.clone(),
            batch => format!("{}, batches of {batch} keys", candidate.variant),
        };
        table.push(vec![
            candidate.name.into(),
            variant.into(),
            candidate.stream.name().into(),
            (candidate.threads as u64).into(),
            mebibytes.into(),
            (1.0 / seconds).into(),
            (inline / seconds).into(),
            gain.into(),
            (timing.cpu * 1e9).into(),
            "measured".into(),
        ]);
    }
    cores::simulate(inline, mebibytes, table)
}

#[cfg(test)]
mod tests {
    use super::parse_thread_batch;

    #[test]
    fn batches_are_powers_of_two_within_bounds() {
        assert_eq!(parse_thread_batch("4096"), Ok(4096));
        for text in ["512", "131072", "5000", "x", ""] {
            assert!(parse_thread_batch(text).is_err(), "{text}");
        }
    }
}
