//! Runs all candidates in turn, and predicts the speed on more cores.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use clap::Args;
use echoless::SharedLayout;

use super::candidates::{Candidate, engine, inline, mesh, shared};
use crate::clock::median;
use crate::failure::Failure;
use crate::machine::SIZES_MIB;
use crate::streams::{BATCH, StreamKind};
use crate::table::{Cell, Outputs, Table};

/// The options of `scaling`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Sizes of the filters, in MiB.
    #[arg(long, value_delimiter = ',', default_value = "64,512", value_parser = clap::value_parser!(u64).range(SIZES_MIB))]
    sizes: Vec<u64>,
    /// Numbers of threads of the mesh and the shared filter.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<NonZeroUsize>,
    /// A number of threads above the number of cores, for engine and mesh; 0 leaves it out.
    #[arg(long, default_value_t = 2 * available_parallelism().map_or(1, NonZeroUsize::get))]
    oversubscribed: usize,
    /// Keys for each measurement, in millions.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    keys: u64,
    /// Measurements of each candidate; the table has the median.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    #[command(flatten)]
    outputs: Outputs,
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
    let mut table = Table::new(&[
        "name",
        "variant",
        "stream",
        "threads",
        "memory_mib",
        "keys_per_second",
        "ratio_to_inline",
        "ratio_to_one_thread",
        "cpu_ns_per_key",
        "kind",
    ]);
    for size in &arguments.sizes {
        measure_size(arguments, *size, &mut table)?;
    }
    table.publish(&arguments.outputs)
}

fn measure_size(arguments: &Arguments, mebibytes: u64, table: &mut Table) -> Result<(), Failure> {
    let mut candidates = vec![inline(mebibytes)?];
    for workers in [1].into_iter().chain(arguments.oversubscribed()) {
        candidates.push(engine(mebibytes, workers)?);
    }
    let threads = || arguments.threads.iter().map(|threads| threads.get());
    for threads in threads().chain(arguments.oversubscribed()) {
        candidates.push(mesh(mebibytes, threads)?);
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
                candidates.push(shared(mebibytes, layout, kind, threads)?);
            }
        }
    }
    let batches = (arguments.keys * 1_000_000)
        .div_ceil(BATCH as u64)
        .next_multiple_of(64);
    // The first round touches every page and is not measured.
    for round in 0..=arguments.rounds {
        for candidate in &mut candidates {
            let timing = (candidate.run)(batches)?;
            if round > 0 {
                let keys = (batches * BATCH as u64) as f64;
                candidate.walls.push(timing.wall / keys);
                candidate.cpus.push(timing.cpu / keys);
            }
        }
    }
    let wall = |candidate: &Candidate| median(candidate.walls.clone());
    let inline = wall(&candidates[0]);
    for candidate in &candidates {
        let seconds = wall(candidate);
        let single = candidates.iter().find(|other| {
            other.threads == 1
                && (other.name, &other.variant, other.stream)
                    == (candidate.name, &candidate.variant, candidate.stream)
                || other.name == "mesh" && candidate.name == "mesh" && other.threads == 1
        });
        let gain = single.map(|single| wall(single) / seconds);
        let row = |threads: usize, seconds: f64, gain: Option<f64>, cpu: Cell, kind: &str| {
            vec![
                candidate.name.into(),
                candidate.variant.clone().into(),
                candidate.stream.name().into(),
                (threads as u64).into(),
                mebibytes.into(),
                (1.0 / seconds).into(),
                (inline / seconds).into(),
                gain.into(),
                cpu,
                kind.into(),
            ]
        };
        let cpu = median(candidate.cpus.clone()) * 1e9;
        table.push(row(
            candidate.threads,
            seconds,
            gain,
            cpu.into(),
            "measured",
        ));
        let may_predict =
            candidate.threads > 1 && Some(candidate.threads) != arguments.oversubscribed();
        if let (Some(single), true) = (single, may_predict) {
            for cores in [8, 32, 128] {
                let gain = predicted_gain(wall(single) / seconds, candidate.threads, cores);
                let seconds = wall(single) / gain;
                table.push(row(cores, seconds, Some(gain), Cell::Nothing, "prediction"));
            }
        }
    }
    Ok(())
}

/// The gain on `cores`, by Amdahl's law through the two measured points.
///
/// That is the universal scalability law without its coherence term, which two points cannot
/// determine, and which candidates that share nothing do not have. The law ignores that cores share
/// the memory bandwidth, so it is an upper bound.
fn predicted_gain(gain: f64, threads: usize, cores: usize) -> f64 {
    let serial = ((threads as f64 / gain - 1.0) / (threads as f64 - 1.0)).max(0.0);
    cores as f64 / (1.0 + serial * (cores as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::predicted_gain;

    #[test]
    fn predictions_go_through_the_measured_point() {
        assert!((predicted_gain(1.8, 2, 2) - 1.8).abs() < 1e-12);
        assert_eq!(predicted_gain(2.0, 2, 32), 32.0);
        assert!(predicted_gain(1.0, 2, 128) - 1.0 < 1e-12);
        // A gain above the number of threads is noise, and is predicted as a linear gain.
        assert_eq!(predicted_gain(2.1, 2, 8), 8.0);
    }
}
