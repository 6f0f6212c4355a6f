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
use echoless::state::StateReader;
use echoless::{FilterSpec, KeyHasher, LineFilter, OrderedFilter, Verdicts};
use echoless_durable::replace_file;

use crate::clock::{median, median_of, thread_seconds};
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
    /// Call records for the command, of about 100 bytes each; 0 leaves the command out.
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
    let spec: FilterSpec = echoless_papers::parse(&format!(
        "fingerprint:fpr=1e-8,memory={}MiB",
        arguments.size
    ))?;
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
        let restored = StateReader::open(BufReader::new(File::open(&file)?))?.restore()?;
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

    while_in_use(arguments, &spec, &file, &mut push)?;

    if arguments.records != "0" {
        let (without, with) = command(arguments, folder.path())?;
        push("dedup to a file, synced", without, "s");
        push("dedup --state", with, "s");
        push("dedup --state / dedup", with / without, "");
    }
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

/// Saves an ordered filter while threads do nothing but observe new keys, with a saver that rests
/// as long as by default and with one that does not, and for comparison without saving, and beside
/// a thread that takes as much CPU time as the saver does, but touches neither filter nor files.
fn while_in_use(
    arguments: &Arguments,
    spec: &FilterSpec,
    file: &Path,
    push: &mut impl FnMut(&str, f64, &str),
) -> Result<(), Failure> {
    let hasher = KeyHasher::seeded(0);
    let build =
        || -> Result<_, Failure> { Ok(OrderedFilter::builder(spec.build_line_partitions(2)?)) };
    let (resting, restless) = (build()?.build(), build()?.saver_rest(0).build());
    let save = |ordered: &OrderedFilter<Box<dyn LineFilter>>| {
        observe_while(ordered, arguments.threads, || {
            replace_file(file, |file| {
                ordered
                    .save(spec, &hasher, file, |saver| {
                        Ok((saver.ticket(), Vec::new()))
                    })
                    .map_err(std::io::Error::other)
            })?;
            Ok(())
        })
    };
    for ordered in [&resting, &restless] {
        // Its pages are touched, and its clearing is not part of a batch.
        observe_while(ordered, arguments.threads, || {
            thread::sleep(Duration::from_secs(2));
            Ok(())
        })?;
    }
    let [mut alone, mut saved, mut burnt, mut at_once] = [const { Vec::new() }; 4];
    let mut sizes = Vec::new();
    for _ in 0..arguments.rounds {
        alone.push(observe_while(&resting, arguments.threads, || {
            thread::sleep(Duration::from_secs(1));
            Ok(())
        })?);
        let one = save(&resting)?;
        sizes.push(fs::metadata(file)?.len() as f64);
        burnt.push(observe_while(&resting, arguments.threads, || {
            burn(one.cpu / one.seconds);
            Ok(())
        })?);
        saved.push(one);
        at_once.push(save(&restless)?);
    }
    push(
        "state of the filter in use / filter",
        median(sizes) / (arguments.size << 20) as f64,
        "",
    );
    for (name, rows) in [
        ("without saving", &alone),
        ("while saving", &saved),
        ("beside the CPU time of the saver", &burnt),
        ("while saving without rest", &at_once),
    ] {
        let mut row = |what: &str, part: fn(&Observed) -> f64, unit: &str| {
            push(&format!("{what} {name}"), median_of(rows, part), unit);
        };
        row("seconds", |row| row.seconds, "s");
        row("cores of the other thread", |row| row.cpu / row.seconds, "");
        row("keys a second", |row| row.keys / row.seconds / 1e6, "M/s");
        row(
            "keys a second of CPU time",
            |row| row.keys / row.observing / 1e6,
            "M/s",
        );
        row(
            "longest batch, median of rounds,",
            |row| 1e3 * row.longest,
            "ms",
        );
        let longest = rows.iter().map(|row| row.longest).fold(0.0, f64::max);
        push(&format!("longest batch of all {name}"), 1e3 * longest, "ms");
    }
    Ok(())
}

/// Takes a share of a core for a second, in pieces as long as a block of the saver.
fn burn(share: f64) {
    let piece = Duration::from_millis(1);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        let burnt = Instant::now();
        while burnt.elapsed() < piece {
            std::hint::spin_loop();
        }
        thread::sleep(piece.mul_f64((1.0 / share - 1.0).clamp(0.0, 1e3)));
    }
}

/// What threads did while another one worked.
struct Observed {
    keys: f64,
    seconds: f64,
    /// The longest time of a batch.
    longest: f64,
    /// The CPU time of the threads that observe, in which they were not kept from their cores.
    observing: f64,
    /// The CPU time of the other thread.
    cpu: f64,
}

/// Observes batches in threads while `work` lasts.
fn observe_while(
    filter: &OrderedFilter<Box<dyn LineFilter>>,
    threads: u64,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<Observed, Failure> {
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
                    (keys, longest, thread_seconds())
                })
            })
            .collect();
        let before = thread_seconds();
        let worked = work();
        let cpu = thread_seconds() - before;
        ended.store(true, Ordering::Relaxed);
        let (mut keys, mut longest, mut observing) = (0, 0.0_f64, 0.0);
        for observer in observers {
            let (of_thread, longest_of_thread, cpu_of_thread) = observer
                .join()
                .map_err(|_| "a thread that observes panicked")?;
            keys += of_thread;
            longest = longest.max(longest_of_thread);
            observing += cpu_of_thread;
        }
        worked?;
        Ok(Observed {
            keys: keys as f64,
            seconds: start.elapsed().as_secs_f64(),
            longest,
            observing,
            cpu,
        })
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
