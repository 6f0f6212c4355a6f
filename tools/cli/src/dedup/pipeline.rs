//! A run: feed, filter and delivery, on one thread or several.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use echoless::spec::Form;
use echoless::{Filter, Mesh, Partitioned, report_of};

use super::delivery::Delivery;
use super::feed::Feed;
use super::filter;
use super::parallel;
use super::pinning::{cores, pin};
use super::sizing;
use super::worker::serial_workers;
use crate::config::DedupConfig;
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
    let most = filter::most_threads(&spec).min(sizing::most_threads(config.input_bytes));
    let threads = config.threads.count(most);
    cores(config.pin, threads)?;
    let shared = match spec.form {
        _ if threads == 1 => SharedFilter::Alone(spec.build()?),
        Form::Line => SharedFilter::Partitions(spec.build_partitions(threads)?),
        _ => SharedFilter::Serial(spec.build()?, threads),
    };
    run_with(&config, began, shared)
}

/// A filter, and how threads share it.
enum SharedFilter<F> {
    /// One thread has it.
    Alone(F),
    /// Each thread owns a partition.
    Partitions(Partitioned<F>),
    /// This many threads use it in turns, because it cannot be partitioned.
    Serial(F, usize),
}

fn run_with<F: Filter>(
    config: &Arc<DedupConfig>,
    began: Instant,
    filter: SharedFilter<F>,
) -> Result<ExitCode, Failure> {
    let mut delivery = Delivery::open(config, began)?;
    let (threads, (passed, filters)) = match filter {
        SharedFilter::Alone(mut filter) => {
            pin(cores(config.pin, 1)?[0])?;
            let passed = pass(Feed::new(Arc::clone(config)), &mut filter, &mut delivery);
            (1, (passed, vec![filter]))
        }
        SharedFilter::Partitions(parts) => {
            let nodes = Mesh::builder(parts).build()?.into_nodes();
            (nodes.len(), parallel::pass(config, nodes, &mut delivery)?)
        }
        SharedFilter::Serial(filter, threads) => {
            let workers = serial_workers(filter, threads);
            (threads, parallel::pass(config, workers, &mut delivery)?)
        }
    };
    delivery.conclude(config, passed, || report_of(&filters), threads)
}

/// Passes the whole stream through the stages on this thread. Returns the signal that ended it, if one
/// did.
fn pass(
    mut feed: Feed,
    filter: &mut impl Filter,
    delivery: &mut Delivery,
) -> Result<Option<u8>, Failure> {
    let mut chunk = Chunk::default();
    while feed.next(&mut chunk)? {
        if let Some(reader) = feed.reader() {
            reader.read(&mut chunk);
        }
        filter.observe(&chunk.hashes, &mut chunk.verdicts);
        delivery.deliver(&mut chunk)?;
    }
    Ok(feed.ended_by())
}
