//! A run: feed, filter and delivery, on one thread or several.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use echoless::{BuildError, Filter};

use super::backwards::{NoFilter, Versions, find_first_fault};
use super::clock::{StreamClock, cut};
use super::delivery::Delivery;
use super::ended_pipe::{CHEAP_THREADS, bytes_if_ended};
use super::feed::{Direction, Feed, StreamEnd};
use super::outputs::stats_file;
use super::reports::monitor;
use super::reports::stats::Setup;
use super::seen_files::SeenFiles;
use super::threads::locked_filter::LockedFilter;
use super::threads::parallel;
use super::threads::pinning::{cores, pin};
use super::threads::thread_count;
use super::threads::worker::{MeshWorker, SerialWorker, mesh_workers, serial_workers};
use crate::config::{Content, DedupConfig, Keep, WindowConfig};
use crate::failure::{Failure, catch_panics};
use crate::locks::lock;
use crate::packets::header::StreamHeader;
use crate::reading::Filled;
use crate::records::chunk::Chunk;
use crate::signals::{Patience, Requests, Stop};

/// Runs `echoless dedup`. `explain` completes the failure of a run.
pub(crate) fn run(
    mut config: DedupConfig,
    explain: impl Fn(Failure) -> Failure,
) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    // First: until it is caught, the signal would end the process.
    let requests = Requests::catch().map_err(Failure::file("signals"))?;
    let run = start(&mut config, began).map_err(|failure| {
        let failure = explain(failure);
        stats_file::write_failed(&config, &failure, began);
        failure
    })?;
    run.pass(&config, requests, explain)
}

/// A run whose filter is built and whose outputs are open.
struct Run {
    /// The whole filter. The threads have the same.
    filter: Box<dyn Filter>,
    sharing: Sharing,
    cores: Vec<Option<usize>>,
    threads: usize,
    delivery: Delivery,
}

/// How the threads share the filter.
enum Sharing {
    /// One thread has all of it.
    Single,
    /// Each thread owns a partition.
    Partitions(Vec<MeshWorker<Box<dyn Filter>>>),
    /// It is not partitioned: the threads use it in turns.
    Serial(Vec<SerialWorker<Box<dyn Filter>>>),
}

/// Checks the inputs, builds the filter and opens the outputs.
fn start(config: &mut DedupConfig, began: Instant) -> Result<Run, Failure> {
    for source in &config.sources {
        source.check()?;
    }
    skip_seen(config)?;
    if let Content::Packets(_) = &config.content {
        config.stream_header = StreamHeader::of_files(&config.sources)?;
    }
    let of_window = config.window.as_ref().map_or(u64::MAX, |window| {
        thread_count::worthwhile_for_window(window.records_per_tick())
    });
    let worthwhile = thread_count::worthwhile_threads(config.plain_bytes).min(of_window);
    let useful = thread_count::useful_threads(config.plain_bytes).min(most_threads(config));
    let mut threads = config.run.threads.count(useful, worthwhile);
    let cores = cores(config.run.pin, threads)?;
    if threads > CHEAP_THREADS {
        // The number of compressed bytes is a poor estimate, so as many as are cheap start in any
        // case.
        let busy = thread_count::useful_threads(bytes_if_ended(&config.sources));
        threads = threads.min(usize::try_from(busy).unwrap_or(threads).max(CHEAP_THREADS));
    }
    let (filter, sharing) = build_filter(config, threads)?;
    let setup = Setup {
        threads,
        filter_bytes: filter.memory_bytes(),
    };
    Ok(Run {
        filter,
        sharing,
        delivery: Delivery::open(config, began, setup)?,
        cores,
        threads,
    })
}

impl Run {
    /// Passes the stream and reports on it.
    fn pass(
        self,
        config: &DedupConfig,
        (requests, stop): (Requests, Stop),
        explain: impl Fn(Failure) -> Failure,
    ) -> Result<ExitCode, Failure> {
        let Self {
            mut filter,
            sharing,
            cores,
            threads,
            delivery,
        } = self;
        let delivery = Mutex::new(delivery);
        let end = catch_panics(|| {
            thread::scope(|scope| {
                // Dropped with the end of the stream, also if that panics.
                let _stop = stop;
                monitor::start(scope, config, &delivery, requests)?;
                match config.keep {
                    Keep::First => pass(
                        config,
                        Direction::Forwards,
                        &mut filter,
                        sharing,
                        cores,
                        &delivery,
                    ),
                    Keep::Last | Keep::None => {
                        pass_twice(config, &mut filter, sharing, cores, threads, &delivery)
                    }
                }
            })
        });
        let delivery = delivery
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        delivery.conclude(config, end, explain, || filter.report())
    }
}

/// Removes the inputs that an earlier run has read, if that is requested.
fn skip_seen(config: &mut DedupConfig) -> Result<(), Failure> {
    let Some(path) = &config.run.skip_seen_files else {
        return Ok(());
    };
    let mut seen = SeenFiles::open(path)?;
    let mut inputs = config.sources.split_off(config.known);
    seen.remove_seen(&mut inputs, config.run.quiet)?;
    config.sources.append(&mut inputs);
    for length in [&mut config.input_bytes, &mut config.plain_bytes] {
        *length = length.map(|bytes| bytes.saturating_sub(seen.skipped_bytes()));
    }
    config.seen = Some(seen);
    Ok(())
}

/// Whether each of so many threads owns a partition of the filter.
///
/// With a window, a message between threads has one tick. Messages for each record, or each packet,
/// would cost more than the filter itself, so the threads use the whole filter in turns.
fn has_partitions(config: &DedupConfig, threads: usize) -> bool {
    let window = config.window.as_ref();
    let divides = |window: &WindowConfig| {
        thread_count::has_keys_for_partitions(window.records_per_tick(), threads)
    };
    match &config.content {
        Content::Records(_) => config.filter.has_partitions() && window.is_none_or(divides),
        Content::Packets(_) => false,
    }
}

/// The highest number of threads that can share the filter.
fn most_threads(config: &DedupConfig) -> u64 {
    match &config.content {
        Content::Records(_) => thread_count::most_threads(&config.filter),
        Content::Packets(_) => u64::MAX,
    }
}

/// The filter as one piece.
fn whole_filter(config: &DedupConfig) -> Result<Box<dyn Filter>, BuildError> {
    match &config.content {
        Content::Records(_) => config.filter.build(),
        Content::Packets(packets) => packets.windows.build(),
    }
}

/// The filter, and how so many threads share it.
fn build_filter(
    config: &DedupConfig,
    threads: usize,
) -> Result<(Box<dyn Filter>, Sharing), Failure> {
    if threads > 1 && has_partitions(config, threads) {
        let (workers, whole) = mesh_workers(config.filter.build_partitions(threads)?)?;
        return Ok((Box::new(whole), Sharing::Partitions(workers)));
    }
    Ok(share_whole(whole_filter(config)?, threads))
}

/// A filter as one piece, and how so many threads share it.
fn share_whole(filter: Box<dyn Filter>, threads: usize) -> (Box<dyn Filter>, Sharing) {
    if threads == 1 {
        return (filter, Sharing::Single);
    }
    let whole = LockedFilter::new(filter);
    let workers = serial_workers(&whole, threads);
    (Box::new(whole), Sharing::Serial(workers))
}

/// Passes the whole stream through the stages. Returns how it ended.
fn pass(
    config: &DedupConfig,
    direction: Direction,
    filter: &mut Box<dyn Filter>,
    sharing: Sharing,
    cores: Vec<Option<usize>>,
    delivery: &Mutex<Delivery>,
) -> Result<StreamEnd, Failure> {
    match sharing {
        Sharing::Single => pass_on_one_thread(config, direction, filter, cores[0], delivery),
        Sharing::Partitions(workers) => parallel::pass(config, direction, workers, cores, delivery),
        Sharing::Serial(workers) => parallel::pass(config, direction, workers, cores, delivery),
    }
}

/// Judges the stream backwards, and then passes it forwards with these verdicts. Leaves the filter
/// that judged last.
fn pass_twice(
    config: &DedupConfig,
    filter: &mut Box<dyn Filter>,
    sharing: Sharing,
    cores: Vec<Option<usize>>,
    threads: usize,
    delivery: &Mutex<Delivery>,
) -> Result<StreamEnd, Failure> {
    let versions = Versions::of(&config.sources);
    let judged = pass(
        config,
        Direction::Backwards,
        filter,
        sharing,
        cores.clone(),
        delivery,
    )?;
    if lock(delivery).has_fault() {
        return find_first_fault(config);
    }
    if judged.signal.is_some() {
        return Ok(judged);
    }
    lock(delivery).begin_writing(config, &filter.report());
    let mut no_filter: Box<dyn Filter>;
    let (filter, sharing) = match config.keep {
        Keep::None => {
            // Before another one is built: they share the memory.
            *filter = Box::new(NoFilter);
            let sharing;
            (*filter, sharing) = build_filter(config, threads)?;
            (filter, sharing)
        }
        Keep::First | Keep::Last => {
            let sharing;
            (no_filter, sharing) = share_whole(Box::new(NoFilter), threads);
            (&mut no_filter, sharing)
        }
    };
    let end = pass(
        config,
        Direction::Forwards,
        filter,
        sharing,
        cores,
        delivery,
    )?;
    versions.check(&config.sources)?;
    Ok(end)
}

/// Passes the whole stream through the stages on this thread. Returns how it ended.
fn pass_on_one_thread(
    config: &DedupConfig,
    direction: Direction,
    filter: &mut impl Filter,
    core: Option<usize>,
    delivery: &Mutex<Delivery>,
) -> Result<StreamEnd, Failure> {
    pin(core)?;
    let (mut feed, window) = (Feed::new(config, direction, None), config.window.as_ref());
    let mut chunk = Chunk::default();
    let mut clock = StreamClock::default();
    let mut reader = None;
    while feed.next(&mut chunk, Patience::Wait)? == Filled::Chunk {
        if reader.is_none() {
            reader = feed.reader();
        }
        if let Some(reader) = &mut reader {
            reader.read(&mut chunk);
        }
        if let Some(window) = window {
            let records = clock.place(window, &mut chunk);
            cut(window, records, &mut chunk);
        } else {
            chunk.one_batch(0);
        }
        chunk.judge(filter);
        // Never waits, unless a report on the run so far is being written.
        let mut delivery = lock(delivery);
        delivery.deliver(&mut chunk)?;
    }
    Ok(feed.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, parse_from};

    fn divides(arguments: &str, threads: usize) -> bool {
        let words: Vec<&str> = arguments.split(' ').collect();
        let config = match parse_from(&words).unwrap().command {
            Command::Dedup(args) => DedupConfig::try_from(*args),
            Command::Packets(args) => DedupConfig::try_from(args),
            _ => unreachable!("only these remove duplicates"),
        };
        has_partitions(&config.unwrap(), threads)
    }

    #[test]
    fn threads_divide_lines_unless_ticks_may_be_short() {
        assert!(divides("dedup -m 1MiB", 8));
        assert!(!divides("dedup -m 1MiB --filter lru", 8));
        // A tick has 1000 records.
        assert!(divides("dedup -m 1MiB --window 2000000", 3));
        assert!(!divides("dedup -m 1MiB --window 2000000", 4));
        assert!(!divides("dedup -m 1MiB --window 100", 2));
        assert!(!divides("dedup -m 1MiB --window 30d --time-field 1", 2));
        assert!(!divides("packets -m 1MiB --window 10s", 2));
    }
}
