//! A run: feed, filter and delivery, on one thread or several.

use std::process::ExitCode;
use std::time::Instant;

use echoless::{BuildError, Filter, Mesh, report_of};

use super::clock::{StreamClock, cut};
use super::delivery::Delivery;
use super::feed::{Feed, StreamEnd};
use super::filter;
use super::parallel;
use super::pinning::{cores, pin};
use super::seen_files::SeenFiles;
use super::sizing;
use super::worker::serial_workers;
use crate::config::{Content, DedupConfig, WindowConfig};
use crate::failure::Failure;
use crate::records::chunk::Chunk;

/// Runs `echoless dedup`.
pub(crate) fn run(mut config: DedupConfig) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    for source in &config.sources {
        source.check()?;
    }
    skip_seen(&mut config)?;
    let of_window = config.window.as_ref().map_or(u64::MAX, |window| {
        sizing::most_threads_of_window(window.records_per_tick())
    });
    let worthwhile = sizing::worthwhile_threads(config.plain_bytes).min(of_window);
    let useful = sizing::useful_threads(config.plain_bytes).min(most_threads(&config));
    let threads = config.run.threads.count(useful, worthwhile);
    let cores = cores(config.run.pin, threads)?;
    if threads == 1 {
        let mut filter = whole_filter(&config)?;
        let mut delivery = Delivery::open(&config, began)?;
        pin(cores[0])?;
        let feed = Feed::new(&config);
        let passed = pass(feed, config.window.as_ref(), &mut filter, &mut delivery);
        return delivery.conclude(&config, passed, || filter.report(), threads);
    }
    let mut delivery;
    let (passed, filters) = if has_partitions(&config) {
        let mesh = Mesh::builder(config.filter.build_partitions(threads)?).build()?;
        delivery = Delivery::open(&config, began)?;
        parallel::pass(&config, mesh.into_nodes(), cores, &mut delivery)?
    } else {
        // It cannot be partitioned: the threads use it in turns.
        let workers = serial_workers(whole_filter(&config)?, threads);
        delivery = Delivery::open(&config, began)?;
        parallel::pass(&config, workers, cores, &mut delivery)?
    };
    delivery.conclude(&config, passed, || report_of(&filters), threads)
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
    // They are not read, and must not be overwritten all the same.
    config.run.settings.extend_from_slice(seen.skipped());
    for length in [&mut config.input_bytes, &mut config.plain_bytes] {
        *length = length.map(|bytes| bytes.saturating_sub(seen.skipped_bytes()));
    }
    config.seen = Some(seen);
    Ok(())
}

/// Whether each thread owns a partition of the filter.
///
/// The packets of a window have ticks of their own, and a message has one tick. A message to every
/// partition for each packet would cost more than the filter itself, so the threads use the whole
/// filter in turns.
fn has_partitions(config: &DedupConfig) -> bool {
    match &config.content {
        Content::Records(_) => config.filter.has_partitions(),
        Content::Packets(_) => false,
    }
}

/// The highest number of threads that can share the filter.
fn most_threads(config: &DedupConfig) -> u64 {
    match &config.content {
        Content::Records(_) => filter::most_threads(&config.filter),
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

/// Passes the whole stream through the stages on this thread. Returns how it ended.
fn pass(
    mut feed: Feed,
    window: Option<&WindowConfig>,
    filter: &mut impl Filter,
    delivery: &mut Delivery,
) -> Result<StreamEnd, Failure> {
    let mut chunk = Chunk::default();
    let mut clock = StreamClock::default();
    let mut reader = None;
    while feed.next(&mut chunk)? {
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
        delivery.deliver(&mut chunk)?;
    }
    Ok(feed.end())
}
