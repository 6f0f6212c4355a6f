//! Runs the selected parts, prints their rows and compares them with the formulas.

use std::time::Instant;

use super::arguments::{Arguments, Part};
use super::inputs::{Input, inputs};
use super::rows::{Row, check, table};
use super::{bursts, failures, fairness, fpr, messages, timers, tree};
use crate::failure::Failure;

/// The rows of a part.
type RunPart = fn(&Arguments, &[Input]) -> Result<Vec<Row>, Failure>;

const PARTS: [(Part, RunPart); 7] = [
    (Part::Fpr, fpr::rows),
    (Part::Fairness, fairness::rows),
    (Part::Failures, failures::rows),
    (Part::Messages, messages::rows),
    (Part::Timers, timers::rows),
    (Part::Bursts, bursts::rows),
    (Part::Tree, tree::rows),
];

/// Runs the experiments, and prints the measured figures beside their formulas.
///
/// # Errors
/// If the log cannot be read, a file cannot be written, or a measured figure is more than 10 % off
/// its formula. The rows are printed, and written to the outputs, before they are compared.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let inputs = inputs(&arguments.log, arguments.seed)?;
    let mut rows = Vec::new();
    for (part, run_part) in PARTS {
        if arguments.includes(part) {
            let start = Instant::now();
            let more = run_part(arguments, &inputs)?;
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("{}: {} rows, {seconds:.0} s", part.name(), more.len());
            rows.extend(more);
        }
    }
    table(&rows).publish(&arguments.outputs)?;
    let compared = check(&rows)?;
    eprintln!("{compared} figures within 10 % of their formulas");
    Ok(())
}
