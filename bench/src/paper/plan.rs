//! The planner in the 24 settings of tables 4 to 9 of paper 000: runs its first candidate, and
//! compares the rates with the printed ones of RLBSBF.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Instant;

use clap::Args;
use echoless::FilterSpec;
use echoless::spec::Form;
use echoless_lab::evaluate::{EvalOptions, evaluate};
use echoless_lab::oracle::Score;
use echoless_lab::plan::{Basis, Candidate, Goal, PlanRequest, plan};
use echoless_lab::stream::Stream;

use super::run::{percent, progress};
use super::tables::{Paper, Setting, TableCell, cells};
use crate::failure::Failure;
use crate::table::{Outputs, Table};

/// The tables with all five algorithms at k = 2.
const TABLES: std::ops::RangeInclusive<u32> = 4..=9;

/// The options of `paper-plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// Divide stream lengths, universes and memories of the runs by this.
    #[arg(long, default_value = "64")]
    scale: NonZeroU64,
    /// Seed of the planner. The runs use a different one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads for the simulations of the planner.
    #[arg(long, default_value = "2")]
    threads: NonZeroUsize,
    #[command(flatten)]
    outputs: Outputs,
}

/// The first candidate of the planner in a setting, and its score.
struct Outcome {
    candidate: Candidate,
    score: Score,
    planning_seconds: f64,
}

impl Outcome {
    fn passes(&self, cell: &TableCell) -> bool {
        let within = |measured, printed: Option<f64>| {
            printed.is_some_and(|printed| percent(measured) <= printed)
        };
        within(self.score.fpr(), cell.printed_fpr) && within(self.score.fnr(), cell.printed_fnr)
    }
}

/// Plans and runs every setting, and prints predicted, measured and printed rates.
///
/// # Errors
/// If the scale makes a stream too short, or a file cannot be written.
pub fn run(arguments: &PlanArguments) -> Result<(), Failure> {
    let cells = rlbsbf_cells(arguments.seed)?;
    let start = Instant::now();
    let progress = progress(cells.iter().map(|cell| cell.stream.records()).sum())?;
    let mut outcomes = Vec::new();
    for cell in &cells {
        outcomes.push(plan_and_run(cell, arguments)?);
        progress.inc(cell.stream.records());
    }
    progress.finish_and_clear();
    tabulate(&cells, &outcomes).publish(&arguments.outputs)?;
    let passed = cells
        .iter()
        .zip(&outcomes)
        .filter(|(cell, outcome)| outcome.passes(cell));
    eprintln!(
        "{} of {} first candidates have both rates at or below those printed for RLBSBF; {:.0} s",
        passed.count(),
        cells.len(),
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

/// The cell of RLBSBF in each setting, unscaled.
fn rlbsbf_cells(seed: u64) -> Result<Vec<TableCell>, Failure> {
    let setting = Setting {
        scale: NonZeroU64::MIN,
        seed,
        form: Form::Scattered,
    };
    let mut cells = cells(Paper::BiasedSampling, setting)?;
    cells.retain(|cell| TABLES.contains(&cell.table) && cell.algorithm == "rlbsbf");
    Ok(cells)
}

/// Plans with the printed rates as goal, and runs the first candidate.
fn plan_and_run(cell: &TableCell, arguments: &PlanArguments) -> Result<Outcome, Failure> {
    let begin = Instant::now();
    let fraction = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
    let goal = Goal::default()
        .max_fpr(fraction(cell.printed_fpr))
        .max_fnr(fraction(cell.printed_fnr));
    let request = PlanRequest::new(cell.stream.clone(), cell.memory_bits / 8)
        .records(cell.stream_len)
        .goal(goal)
        .seed(arguments.seed)
        .threads(arguments.threads);
    let plan = plan(&request, &|_| ())?;
    let candidate = plan.first().clone();
    let planning_seconds = begin.elapsed().as_secs_f64();
    let scale = arguments.scale;
    let spec = scaled(&candidate.spec, scale, arguments.seed);
    let stream =
        Stream::with_distinct_fraction(cell.stream_len / scale, cell.distinct_percent / 100.0)?;
    let options = EvalOptions::default().seed(!arguments.seed);
    let evaluations = evaluate(&[spec], &stream, &options, &|_| ())?;
    Ok(Outcome {
        candidate,
        score: evaluations[0].score,
        planning_seconds,
    })
}

/// The filter in scaled memory, with a seed that the planner did not use.
fn scaled(spec: &FilterSpec, scale: NonZeroU64, seed: u64) -> FilterSpec {
    let memory = spec.memory.unwrap_or(0) / scale;
    spec.memory(memory).seed(!seed)
}

fn tabulate(cells: &[TableCell], outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(&[
        "table",
        "stream_len",
        "distinct_percent",
        "memory_mib",
        "rlbsbf_fpr",
        "rlbsbf_fnr",
        "candidate",
        "prediction",
        "predicted_fpr",
        "predicted_fnr",
        "measured_fpr",
        "measured_fnr",
        "planning_seconds",
        "passes",
    ]);
    for (cell, outcome) in cells.iter().zip(outcomes) {
        let candidate = &outcome.candidate;
        table.push(vec![
            u64::from(cell.table).into(),
            cell.stream_len.into(),
            (cell.distinct_percent as u64).into(),
            (cell.memory_bits >> 23).into(),
            cell.printed_fpr.into(),
            cell.printed_fnr.into(),
            candidate.spec.to_string().into(),
            match candidate.basis {
                Basis::Formula => "formula",
                Basis::Simulation { .. } => "simulation",
            }
            .into(),
            percent(candidate.predicted.rates.fpr).into(),
            percent(candidate.predicted.rates.fnr).into(),
            percent(outcome.score.fpr()).into(),
            percent(outcome.score.fnr()).into(),
            outcome.planning_seconds.into(),
            if outcome.passes(cell) { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use echoless_lab::plan::{Prediction, Rank, Rates};

    use super::*;

    fn outcome(false_positives: u64, false_negatives: u64) -> Outcome {
        let rates = Rates { fpr: 0.0, fnr: 0.0 };
        let predicted = Prediction::exact(rates);
        let rank: Rank = Goal::default().rank(&predicted, 1.0, 0.5);
        Outcome {
            candidate: Candidate {
                spec: "bloom:k=2,memory=64MiB".parse().unwrap(),
                predicted,
                hope: rank,
                basis: Basis::Formula,
                lines: 1.0,
                rank,
                why: String::new(),
            },
            score: Score {
                distinct: 1000,
                false_positives,
                duplicates: 1000,
                false_negatives,
            },
            planning_seconds: 1.0,
        }
    }

    #[test]
    fn there_are_24_settings_and_both_rates_count() {
        let mut cells = rlbsbf_cells(1).unwrap();
        assert_eq!(cells.len(), 24);
        cells.truncate(1);
        (cells[0].printed_fpr, cells[0].printed_fnr) = (Some(10.0), Some(20.0));
        for (false_positives, false_negatives, passes) in
            [(100, 200, true), (101, 0, false), (0, 201, false)]
        {
            let outcome = outcome(false_positives, false_negatives);
            assert_eq!(outcome.passes(&cells[0]), passes);
            let csv = tabulate(&cells, &[outcome]).csv().unwrap();
            let verdict = if passes { ",yes\n" } else { ",no\n" };
            assert!(csv.ends_with(verdict), "{csv}");
        }
    }

    #[test]
    fn runs_are_scaled_and_use_another_seed_than_the_planner() {
        let spec = "rlbsbf:k=2,memory=64MiB,seed=1,tracked=0.5";
        let spec = echoless_papers::parse(spec).unwrap();
        let scaled = scaled(&spec, NonZeroU64::new(64).unwrap(), 1);
        assert_eq!(scaled.memory, Some(1 << 20));
        assert_ne!(scaled.seed, 1);
        assert_eq!(scaled.memory(64 << 20).seed(1), spec);
    }
}
