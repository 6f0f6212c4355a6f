//! What it costs to keep a filter over restarts: saving and loading it, saving it while threads
//! use it, and `dedup --state` beside `dedup`.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use echoless::state::{SavedState, replace_file};
use echoless::{FilterSpec, KeyHasher, LineFilter, OrderedFilter, Verdicts};

use crate::clock::{median, median_of};
use crate::failure::Failure;
use crate::machine::SIZES_MIB;
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::{Cell, Outputs, Table};
use crate::tools::echoless;
use crate::turns::measure_in_turn;

/// The options of `durable`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Memory of the filter, in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(SIZES_MIB))]
    size: u64,
    /// Call records for the command, of about 100 bytes each.
    #[arg(long, default_value = "20M")]
    records: String,
    /// Measurements of each row; the table has the median.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Threads that observe while the filter is saved.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    #[command(flatten)]
    outputs: Outputs,
}

/// Measures and prints the table.
///
/// # Errors
/// If a filter, a file or the command is not available.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut table = Table::new(&["what", "value", "unit"]);
    let mut push = |what: &str, value: f64, unit: &str| {
        table.push(vec![what.into(), Cell::Number(value), unit.into()]);
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("filter.state");
    let spec: FilterSpec = format!("fingerprint:fpr=1e-8,memory={}MiB", arguments.size).parse()?;
    let hasher = KeyHasher::seeded(0);
    let bytes = (arguments.size << 20) as f64;

    let mut filter = filled(spec.build_lines()?);
    let mut save_seconds = Vec::new();
    let mut load_seconds = Vec::new();
    for _ in 0..arguments.rounds {
        let start = Instant::now();
        spec.save(
            std::slice::from_mut(&mut filter),
            &hasher,
            b"",
            File::create(&file)?,
        )?;
        save_seconds.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let restored = SavedState::open(BufReader::new(File::open(&file)?))?.restore()?;
        load_seconds.push(start.elapsed().as_secs_f64());
        if restored.progress != filter.progress() {
            return Err("the filter is not the one that was saved".into());
        }
    }
    push(
        "save to the page cache",
        bytes / median(save_seconds) / 1e9,
        "GB/s",
    );
    push(
        "load from the page cache",
        bytes / median(load_seconds) / 1e9,
        "GB/s",
    );
    drop(filter);

    let ordered = OrderedFilter::builder(spec.build_line_partitions(2)?).build();
    // Its pages are touched, and its clearing is not part of a batch.
    observe_while(&ordered, arguments.threads, || {
        thread::sleep(Duration::from_secs(2));
        Ok(())
    })?;
    let mut alone = Vec::new();
    let mut saved = Vec::new();
    for _ in 0..arguments.rounds {
        let (rate, longest) = observe_while(&ordered, arguments.threads, || {
            thread::sleep(Duration::from_millis(500));
            Ok(())
        })?;
        alone.push((rate, longest));
        saved.push(observe_while(&ordered, arguments.threads, || {
            replace_file(&file, |file| {
                ordered
                    .save(&spec, &hasher, file, |saver| (saver.ticket(), Vec::new()))
                    .map_err(std::io::Error::other)
            })?;
            Ok(())
        })?);
    }
    let rate = |rows: &[(f64, f64)]| median_of(rows, |row| row.0);
    let longest = |rows: &[(f64, f64)]| rows.iter().map(|row| row.1).fold(0.0, f64::max);
    push("keys a second without saving", rate(&alone) / 1e6, "M/s");
    push("keys a second while saving", rate(&saved) / 1e6, "M/s");
    push("longest batch without saving", 1e3 * longest(&alone), "ms");
    push("longest batch while saving", 1e3 * longest(&saved), "ms");
    drop(ordered);

    let (without, with) = command(arguments, folder.path())?;
    push("dedup to a file, synced", without, "s");
    push("dedup --state", with, "s");
    push("dedup --state / dedup", with / without, "");
    table.publish(&arguments.outputs)
}

/// The filter with half of what it can hold.
fn filled(mut filter: Box<dyn LineFilter>) -> Box<dyn LineFilter> {
    let mut stream = Stream::new(StreamKind::Distinct, 1);
    let mut verdicts = Verdicts::new();
    let keys = filter.memory_bytes() / 8;
    for _ in 0..keys / BATCH as u64 {
        filter.observe(stream.batch(), &mut verdicts);
    }
    filter
}

/// The keys a second of the threads, and the longest time of a batch, while `work` lasts.
fn observe_while(
    filter: &OrderedFilter<Box<dyn LineFilter>>,
    threads: u64,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(f64, f64), Failure> {
    let ended = AtomicBool::new(false);
    let start = Instant::now();
    thread::scope(|scope| {
        let observers: Vec<_> = (0..threads)
            .map(|number| {
                let ended = &ended;
                let mut handle = filter.handle();
                scope.spawn(move || {
                    let mut stream = Stream::new(StreamKind::Distinct, number);
                    let mut verdicts = Verdicts::new();
                    let (mut keys, mut longest) = (0, 0.0_f64);
                    while !ended.load(Ordering::Relaxed) {
                        let batch = stream.batch();
                        let start = Instant::now();
                        if handle.observe(batch, &mut verdicts).is_err() {
                            break;
                        }
                        longest = longest.max(start.elapsed().as_secs_f64());
                        keys += batch.len() as u64;
                    }
                    (keys, longest)
                })
            })
            .collect();
        let worked = work();
        ended.store(true, Ordering::Relaxed);
        let (mut keys, mut longest) = (0, 0.0_f64);
        for observer in observers {
            let (of_thread, longest_of_thread) = observer
                .join()
                .map_err(|_| "a thread that observes panicked")?;
            keys += of_thread;
            longest = longest.max(longest_of_thread);
        }
        worked?;
        Ok((keys as f64 / start.elapsed().as_secs_f64(), longest))
    })
}

/// The wall time of `dedup` to a file that is synced, without and with a state.
fn command(arguments: &Arguments, folder: &Path) -> Result<(f64, f64), Failure> {
    let program = echoless()?;
    let input = folder.join("calls.csv");
    let generated = Command::new(&program)
        .args([
            "gen",
            "cdr",
            "-q",
            "-n",
            &arguments.records,
            "--duplicates",
            "0.2",
            "-o",
        ])
        .arg(&input)
        .status()?;
    if !generated.success() {
        return Err("the command cannot generate call records".into());
    }
    let memory = format!("{}MiB", arguments.size);
    let (output, state) = (folder.join("fresh.csv"), folder.join("state"));
    let timings = measure_in_turn(&mut [false, true], arguments.rounds, |with_state| {
        let _ = fs::remove_file(&output);
        let _ = fs::remove_dir_all(&state);
        let mut command = Command::new(&program);
        command
            .args(["dedup", "-q", "-m", &memory, "-o"])
            .arg(&output);
        if *with_state {
            command.arg("--state").arg(&state);
        }
        let start = Instant::now();
        if !command.arg(&input).status()?.success() {
            return Err("the command fails".into());
        }
        // A run with a state has synced it.
        File::open(&output)?.sync_all()?;
        Ok(start.elapsed().as_secs_f64())
    })?;
    Ok((median(timings[0].clone()), median(timings[1].clone())))
}
