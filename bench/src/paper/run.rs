//! Runs cells on a few threads and lays their rates beside the printed ones.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use echoless::{FilterSpec, KeyHash, KeyHasher, Verdicts};
use indicatif::{ProgressBar, ProgressStyle};

use super::arguments::{Arguments, LabForm};
use super::oracle::{Oracle, Score};
use super::streams::Stream;
use super::tables::{TableCell, cells};
use crate::report::{Cell, Table};

/// Keys handed to a filter at once.
const BATCH: usize = 1024;

/// Runs the tables that were asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let LabForm::Scattered = arguments.form;
    let mut cells = cells(arguments.paper, arguments.scale, arguments.seed)?;
    cells.retain(|cell| arguments.table.is_none_or(|table| cell.table == table));
    anyhow::ensure!(!cells.is_empty(), "the paper has no such table");
    let start = Instant::now();
    let scores = run_all(&cells, arguments.seed, arguments.threads.get())?;
    let elements: u64 = cells.iter().map(|cell| cell.stream.len).sum();
    let table = compare(&cells, &scores);
    arguments.outputs.emit(&table)?;
    let compared = cells.iter().filter(|cell| cell.comparable).count();
    let within = cells
        .iter()
        .zip(&scores)
        .filter(|(cell, score)| agrees(cell, score) == Some(true));
    eprintln!(
        "{} of {compared} cells within 5 % or 0.05 points of the printed rates; {} runs, {elements} elements, {:.0} s",
        within.count(),
        cells.len(),
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

/// Every cell's score, in order.
fn run_all(cells: &[TableCell], seed: u64, threads: u64) -> anyhow::Result<Vec<Score>> {
    // Hidden where standard error is not a terminal.
    let progress = ProgressBar::new(cells.iter().map(|cell| cell.stream.len).sum());
    progress.set_style(
        ProgressStyle::with_template("{bar:40} {percent} % of {len} elements, {eta} to go")
            .context("the progress line")?,
    );
    progress.enable_steady_tick(Duration::from_millis(200));
    let queue = Mutex::new(cells.iter().enumerate());
    let scores = Mutex::new(vec![Score::default(); cells.len()]);
    thread::scope(|scope| {
        let work = || -> anyhow::Result<()> {
            loop {
                let Some((index, cell)) = queue.lock().expect("no thread panics").next() else {
                    return Ok(());
                };
                let score = measure(&cell.spec, cell.stream, seed)
                    .with_context(|| format!("table {}, {}", cell.table, cell.spec))?;
                scores.lock().expect("no thread panics")[index] = score;
                progress.inc(cell.stream.len);
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    progress.finish_and_clear();
    Ok(scores.into_inner()?)
}

/// Runs one filter over one stream beside the exact oracle.
fn measure(spec: &FilterSpec, stream: Stream, seed: u64) -> anyhow::Result<Score> {
    let mut filter = spec.build()?;
    let mut oracle = Oracle::new(stream.universe);
    let hasher = KeyHasher::seeded(seed);
    let mut draws = stream.draws(seed);
    let mut keys = [0; BATCH];
    let mut hashes = [KeyHash(0); BATCH];
    let mut verdicts = Verdicts::new();
    let mut score = Score::default();
    loop {
        let len = draws.fill(&mut keys);
        if len == 0 {
            return Ok(score);
        }
        hasher.hash_u64s(&keys[..len], &mut hashes[..len]);
        filter.observe(&hashes[..len], &mut verdicts);
        for (index, key) in keys[..len].iter().enumerate() {
            score.count(oracle.observe(*key), verdicts.is_duplicate(index));
        }
    }
}

/// Whether a cell that should give the printed rates does.
fn agrees(cell: &TableCell, score: &Score) -> Option<bool> {
    let close = |printed: Option<f64>, measured: f64| {
        printed.is_none_or(|printed| (measured - printed).abs() <= (0.05 * printed).max(0.05))
    };
    cell.comparable
        .then(|| close(cell.printed_fpr, score.fpr()) && close(cell.printed_fnr, score.fnr()))
}

fn compare(cells: &[TableCell], scores: &[Score]) -> Table {
    let mut table = Table::new(vec![
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
    ]);
    let percent = |rate: f64| Cell::Number(rate, 4);
    for (cell, score) in cells.iter().zip(scores) {
        let memory_mib = cell.memory_bits as f64 / f64::from(1 << 23);
        let decimals = if cell.memory_bits.is_multiple_of(1 << 23) {
            0
        } else {
            4
        };
        table.push(vec![
            u64::from(cell.table).into(),
            cell.stream_len.into(),
            Cell::Number(
                cell.distinct_percent,
                if cell.distinct_percent.fract() == 0.0 {
                    0
                } else {
                    2
                },
            ),
            Cell::Number(memory_mib, decimals),
            cell.algorithm.into(),
            cell.hashes.into(),
            "scattered".into(),
            cell.variant.into(),
            cell.printed_fpr.map_or(Cell::Absent, percent),
            percent(score.fpr()),
            cell.printed_fnr.map_or(Cell::Absent, percent),
            percent(score.fnr()),
            agrees(cell, score)
                .map(|agrees| if agrees { "yes" } else { "no" })
                .into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bloom_filter_with_room_makes_no_error_and_a_tiny_one_only_false_positives() {
        let stream = Stream::with_distinct_share(100_000, 0.6);
        let score = |text: &str| {
            let spec: FilterSpec = text.parse().expect("valid");
            measure(&spec, stream, 3).expect("small")
        };
        let roomy = score("bloom:k=8,memory=1MiB");
        assert_eq!(roomy.distinct + roomy.duplicates, 100_000);
        assert!(roomy.fpr() < 0.01 && roomy.false_negatives == 0);
        let tiny = score("bloom:k=1,memory=1KiB");
        assert!(tiny.fpr() > 80.0 && tiny.false_negatives == 0);
    }

    #[test]
    fn scores_do_not_depend_on_the_number_of_threads() {
        let scale = std::num::NonZeroU64::new(1 << 14).expect("not 0");
        let mut cells = cells(super::super::tables::Paper::BiasedSampling, scale, 1).expect("data");
        cells.truncate(12);
        let one = run_all(&cells, 1, 1).expect("runs");
        assert_eq!(one, run_all(&cells, 1, 3).expect("runs"));
        assert!(
            one.iter()
                .all(|score| score.distinct > 0 && score.duplicates > 0)
        );
    }
}
