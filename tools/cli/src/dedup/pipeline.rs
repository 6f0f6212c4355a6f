//! A run: feed, filter and delivery, on one thread or several.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use echoless::{Filter, Mesh, report_of};

use super::clock::{StreamClock, cut};
use super::delivery::Delivery;
use super::feed::Feed;
use super::filter;
use super::parallel;
use super::pinning::{cores, pin};
use super::sizing;
use super::worker::{judge, serial_workers};
use crate::config::{DedupConfig, WindowConfig};
use crate::failure::Failure;
use crate::records::chunk::Chunk;

/// Runs `echoless dedup`.
pub(crate) fn run(config: DedupConfig) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    let config = Arc::new(config);
    for source in &config.sources {
        source.check()?;
    }
    let spec = config.filter;
    let of_window = config.window.as_ref().map_or(u64::MAX, |window| {
        sizing::most_threads_of_window(window.records_per_tick())
    });
    let of_input = sizing::most_threads(config.input_bytes).min(of_window);
    let most = filter::most_threads(&spec).min(of_input);
    let threads = config.threads.count(most);
    let cores = cores(config.pin, threads)?;
    if threads == 1 {
        let mut filter = spec.build()?;
        let mut delivery = Delivery::open(&config, began)?;
        pin(cores[0])?;
        let feed = Feed::new(Arc::clone(&config));
        let passed = pass(feed, config.window.as_ref(), &mut filter, &mut delivery);
        return delivery.conclude(&config, passed, || filter.report(), threads);
    }
    let mut delivery;
    let (passed, filters) = if spec.has_partitions() {
        let mesh = Mesh::builder(spec.build_partitions(threads)?).build()?;
        delivery = Delivery::open(&config, began)?;
        parallel::pass(&config, mesh.into_nodes(), cores, &mut delivery)?
    } else {
        // It cannot be partitioned: the threads use it in turns.
        let workers = serial_workers(spec.build()?, threads);
        delivery = Delivery::open(&config, began)?;
        parallel::pass(&config, workers, cores, &mut delivery)?
    };
    delivery.conclude(&config, passed, || report_of(&filters), threads)
}

/// Passes the whole stream through the stages on this thread. Returns the signal that ended it, if
/// one did.
fn pass(
    mut feed: Feed,
    window: Option<&WindowConfig>,
    filter: &mut impl Filter,
    delivery: &mut Delivery,
) -> Result<Option<u8>, Failure> {
    let mut chunk = Chunk::default();
    let mut clock = StreamClock::default();
    while feed.next(&mut chunk)? {
        if let Some(reader) = feed.reader() {
            reader.read(&mut chunk);
        }
        if let Some(window) = window {
            let records = clock.place(window, &mut chunk);
            cut(window, records, &mut chunk);
        } else {
            chunk.one_batch(0);
        }
        judge(filter, &mut chunk);
        delivery.deliver(&mut chunk)?;
    }
    Ok(feed.ended_by())
}
