//! Runs cells on a few threads and lays their rates beside the printed ones.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use echoless::{BuildError, FilterSpec, KeyHash, KeyHasher, Verdicts};
use indicatif::{ProgressBar, ProgressStyle};

use super::arguments::Arguments;
use super::oracle::{Oracle, Score};
use super::streams::Stream;
use super::tables::{Setting, TableCell, cells};
use crate::table::{Cell, Failure, Table};

/// Keys handed to a filter at once.
const BATCH: usize = 1024;

/// Runs the tables that were asked for and publishes measured beside printed rates.
///
/// # Errors
/// If there is no such table, a filter cannot be built at this scale, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let setting = Setting {
        scale: arguments.scale,
        seed: arguments.seed,
        form: arguments.form,
    };
    let mut cells = cells(arguments.paper, setting)?;
    cells.retain(|cell| arguments.table.is_none_or(|table| cell.table == table));
    if cells.is_empty() {
        return Err("the paper has no such table".into());
    }
    if cells.iter().any(|cell| cell.stream.len < 1000) {
        return Err(format!(
            "scale {}: a stream has fewer than 1000 elements",
            setting.scale
        )
        .into());
    }
    let start = Instant::now();
    let scores = run_all(&cells, arguments.seed, arguments.threads.get())?;
    let elements: u64 = cells.iter().map(|cell| cell.stream.len).sum();
    let table = compare(&cells, &scores);
    table.publish(&arguments.outputs)?;
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
fn run_all(cells: &[TableCell], seed: u64, threads: u64) -> Result<Vec<Score>, Failure> {
    // Hidden where standard error is not a terminal.
    let progress = ProgressBar::new(cells.iter().map(|cell| cell.stream.len).sum());
    progress.set_style(ProgressStyle::with_template(
        "{bar:40} {percent} % of {len} elements, {eta} to go",
    )?);
    progress.enable_steady_tick(Duration::from_millis(200));
    let next = AtomicUsize::new(0);
    let scores: Vec<OnceLock<Score>> = cells.iter().map(|_| OnceLock::new()).collect();
    let work = || -> Result<(), String> {
        loop {
            let index = next.fetch_add(1, Relaxed);
            let Some(cell) = cells.get(index) else {
                return Ok(());
            };
            let score = measure(&cell.spec, cell.stream, seed)
                .map_err(|error| format!("table {}, {}: {error}", cell.table, cell.spec))?;
            scores[index].get_or_init(|| score);
            progress.inc(cell.stream.len);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    progress.finish_and_clear();
    Ok(scores
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect())
}

/// Runs one filter over one stream beside the exact oracle.
fn measure(spec: &FilterSpec, stream: Stream, seed: u64) -> Result<Score, BuildError> {
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
    ]);
    for (cell, score) in cells.iter().zip(scores) {
        table.push(vec![
            u64::from(cell.table).into(),
            cell.stream_len.into(),
            number(cell.distinct_percent),
            number(cell.memory_bits as f64 / f64::from(1 << 23)),
            cell.algorithm.into(),
            cell.hashes.into(),
            cell.spec.form().to_string().into(),
            cell.variant.into(),
            cell.printed_fpr.into(),
            score.fpr().into(),
            cell.printed_fnr.into(),
            score.fnr().into(),
            agrees(cell, score)
                .map(|agrees| if agrees { "yes" } else { "no" })
                .into(),
        ]);
    }
    table
}

/// Without decimals where it is whole.
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

    #[test]
    fn a_bloom_filter_with_room_makes_no_error_and_a_tiny_one_only_false_positives() {
        let stream = Stream::with_distinct_share(100_000, 0.6);
        let score = |text: &str| {
            let spec: FilterSpec = text.parse().unwrap();
            measure(&spec, stream, 3).unwrap()
        };
        let roomy = score("bloom:k=8,memory=1MiB");
        assert_eq!(roomy.distinct + roomy.duplicates, 100_000);
        assert!(roomy.fpr() < 0.01 && roomy.false_negatives == 0);
        let tiny = score("bloom:k=1,memory=1KiB");
        assert!(tiny.fpr() > 80.0 && tiny.false_negatives == 0);
    }

    fn some_cells() -> Vec<TableCell> {
        let setting = Setting {
            scale: NonZeroU64::new(1 << 14).unwrap(),
            seed: 1,
            form: Form::Scattered,
        };
        let mut cells = cells(Paper::BiasedSampling, setting).unwrap();
        cells.truncate(12);
        cells
    }

    #[test]
    fn scores_do_not_depend_on_the_number_of_threads() {
        let cells = some_cells();
        let one = run_all(&cells, 1, 1).unwrap();
        assert_eq!(one.len(), cells.len());
        assert_eq!(one, run_all(&cells, 1, 3).unwrap());
        assert!(
            one.iter()
                .all(|score| score.distinct > 0 && score.duplicates > 0)
        );
    }

    #[test]
    fn a_cell_that_cannot_be_built_is_named() {
        let mut cells = some_cells();
        cells[3].spec = cells[3].spec.with_memory(0);
        let error = run_all(&cells, 1, 2).unwrap_err().to_string();
        assert!(error.starts_with("table 1, bsbf:k=4,memory=0B"), "{error}");
    }

    #[test]
    fn the_tolerance_is_relative_or_absolute_whichever_is_wider() {
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
