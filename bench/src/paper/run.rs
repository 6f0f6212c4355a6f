//! Runs cells on several threads, and compares their rates with the printed ones.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use echoless_lab::evaluate::{EvalOptions, evaluate};
use echoless_lab::oracle::Score;
use echoless_lab::parallel;
use indicatif::{ProgressBar, ProgressStyle};

use super::arguments::Arguments;
use super::tables::{Setting, TableCell};
use crate::failure::Failure;
use crate::table::{Cell, Table};

/// Runs the selected tables, and prints measured beside printed rates.
///
/// # Errors
/// If no table is selected, a filter cannot be built at this scale, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut cells = Vec::new();
    let mut rejected = None;
    for paper in &arguments.paper {
        for form in &arguments.form {
            let setting = Setting {
                scale: arguments.scale,
                seed: arguments.seed,
                form: *form,
            };
            match super::tables::cells(*paper, setting) {
                Ok(more) => cells.extend(more),
                Err(error) => {
                    eprintln!("skipped: {error}");
                    rejected = Some(error);
                }
            }
        }
    }
    // Combinations of paper and form that exist run; it is an error if there are none.
    if let Some(error) = rejected.filter(|_| cells.is_empty()) {
        return Err(error);
    }
    cells.retain(|cell| arguments.table.is_none_or(|table| cell.table == table));
    if let (Some(table), true) = (arguments.table, cells.is_empty()) {
        let expected = "expected the number of a table of these papers";
        return Err(format!("invalid --table {table}: {expected}").into());
    }
    if cells.iter().any(|cell| cell.stream.records() < 1000) {
        return Err(format!(
            "invalid --scale {}: expected at least 1000 elements in each stream",
            arguments.scale
        )
        .into());
    }
    let start = Instant::now();
    let scores = run_all(&cells, arguments.seed, arguments.threads)?;
    let elements: u64 = cells.iter().map(|cell| cell.stream.records()).sum();
    let table = compare(&cells, &scores);
    table.publish(&arguments.outputs)?;
    let compared = cells.iter().filter(|cell| cell.comparable).count();
    let within = cells
        .iter()
        .zip(&scores)
        .filter(|(cell, score)| agrees(cell, score) == Some(true));
    eprintln!(
        "{} of {compared} cells within 5 % or 0.05 points of the printed rates; {} runs, \
         {elements} elements, {:.0} s",
        within.count(),
        cells.len(),
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

/// The score of every cell, in order.
fn run_all(cells: &[TableCell], seed: u64, threads: NonZeroUsize) -> Result<Vec<Score>, Failure> {
    let progress = progress(cells.iter().map(|cell| cell.stream.records()).sum())?;
    let options = EvalOptions::default().seed(seed);
    let scores = parallel::map(cells, threads, |cell| {
        let done = |records| progress.inc(records);
        let evaluations = evaluate(&[cell.spec], &cell.stream, &options, &done)
            .map_err(|error| format!("table {}, {error}", cell.table))?;
        Ok::<_, String>(evaluations[0].score)
    })?;
    progress.finish_and_clear();
    Ok(scores)
}

/// A progress bar, which is hidden if standard error is not a terminal.
pub(super) fn progress(records: u64) -> Result<ProgressBar, Failure> {
    let progress = ProgressBar::new(records);
    progress.set_style(ProgressStyle::with_template(
        "{bar:40} {percent} % of {len} elements, {eta} to go",
    )?);
    progress.enable_steady_tick(Duration::from_millis(200));
    Ok(progress)
}

pub(super) fn percent(fraction: f64) -> f64 {
    100.0 * fraction
}

/// Whether a cell reproduces the printed rates; `None` if it is not expected to.
fn agrees(cell: &TableCell, score: &Score) -> Option<bool> {
    let close = |printed: Option<f64>, measured: f64| {
        printed.is_none_or(|printed| (measured - printed).abs() <= (0.05 * printed).max(0.05))
    };
    cell.comparable.then(|| {
        close(cell.printed_fpr, percent(score.fpr()))
            && close(cell.printed_fnr, percent(score.fnr()))
    })
}

fn compare(cells: &[TableCell], scores: &[Score]) -> Table {
    let mut table = Table::new(&[
        "table",
        "stream_len",
        "distinct_percent",
        "memory_mib",
        "algorithm",
        "k",
        "form",
        "variant",
        "printed_fpr",
        "measured_fpr",
        "printed_fnr",
        "measured_fnr",
        "within_tolerance",
        "paper",
    ]);
    for (cell, score) in cells.iter().zip(scores) {
        table.push(vec![
            u64::from(cell.table).into(),
            cell.stream_len.into(),
            number(cell.distinct_percent),
            number(cell.memory_bits as f64 / f64::from(1 << 23)),
            cell.algorithm.into(),
            cell.hashes.into(),
            cell.spec.form.to_string().into(),
            cell.variant.into(),
            cell.printed_fpr.into(),
            percent(score.fpr()).into(),
            cell.printed_fnr.into(),
            percent(score.fnr()).into(),
            agrees(cell, score)
                .map(|agrees| if agrees { "yes" } else { "no" })
                .into(),
            cell.paper.number().into(),
        ]);
    }
    table
}

/// Without decimals if it is whole.
fn number(value: f64) -> Cell {
    if value.fract() == 0.0 {
        Cell::Count(value as u64)
    } else {
        Cell::Number(value)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use echoless::spec::Form;

    use super::super::tables::Paper;
    use super::*;

    fn threads(threads: usize) -> NonZeroUsize {
        NonZeroUsize::new(threads).unwrap()
    }

    fn some_cells() -> Vec<TableCell> {
        let setting = Setting {
            scale: NonZeroU64::new(1 << 14).unwrap(),
            seed: 1,
            form: Form::Scattered,
        };
        let mut cells = super::super::tables::cells(Paper::BiasedSampling, setting).unwrap();
        cells.truncate(12);
        cells
    }

    #[test]
    fn scores_do_not_depend_on_the_number_of_threads() {
        let cells = some_cells();
        let one = run_all(&cells, 1, threads(1)).unwrap();
        assert_eq!(one.len(), cells.len());
        assert_eq!(one, run_all(&cells, 1, threads(3)).unwrap());
        assert!(
            one.iter()
                .all(|score| score.distinct > 0 && score.duplicates > 0)
        );
    }

    #[test]
    fn a_cell_that_cannot_be_built_is_named() {
        let mut cells = some_cells();
        cells[3].spec = cells[3].spec.memory(0);
        let error = run_all(&cells, 1, threads(2)).unwrap_err().to_string();
        assert!(error.starts_with("table 1, bsbf:k=4,memory=0B"), "{error}");
    }

    #[test]
    fn the_tolerance_is_the_wider_of_relative_and_absolute() {
        let mut cell = some_cells().remove(0);
        let score = Score {
            distinct: 1000,
            false_positives: 200,
            duplicates: 1000,
            false_negatives: 1,
        };
        (cell.printed_fpr, cell.printed_fnr) = (Some(21.0), Some(0.149));
        assert_eq!(agrees(&cell, &score), Some(true));
        cell.printed_fpr = Some(21.1);
        assert_eq!(agrees(&cell, &score), Some(false));
        (cell.printed_fpr, cell.printed_fnr) = (Some(20.0), Some(0.151));
        assert_eq!(agrees(&cell, &score), Some(false));
        cell.comparable = false;
        assert_eq!(agrees(&cell, &score), None);
    }
}
