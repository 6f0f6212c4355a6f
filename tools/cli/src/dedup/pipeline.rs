//! A run: a feed of chunks, a filter that judges them, a delivery of what comes out, on one thread or on several.

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
    let judge = match spec.form {
        _ if threads == 1 => Judge::Alone(spec.build()?),
        Form::Line => Judge::Parts(spec.build_partitions(threads)?),
        _ => Judge::Serial(spec.build()?, threads),
    };
    run_with(&config, began, judge)
}

/// A filter, and the threads that have it.
enum Judge<F> {
    /// This one.
    Alone(F),
    /// As many as it has parts.
    Parts(Partitioned<F>),
    /// So many, one at a time, because it cannot be cut.
    Serial(F, usize),
}

fn run_with<F: Filter>(
    config: &Arc<DedupConfig>,
    began: Instant,
    judge: Judge<F>,
) -> Result<ExitCode, Failure> {
    let mut delivery = Delivery::open(config, began)?;
    let (threads, (passed, filters)) = match judge {
        Judge::Alone(mut filter) => {
            pin(cores(config.pin, 1)?[0])?;
            let passed = pass(Feed::new(Arc::clone(config)), &mut filter, &mut delivery);
            (1, (passed, vec![filter]))
        }
        Judge::Parts(parts) => {
            let nodes = Mesh::builder(parts).build()?.into_nodes();
            (nodes.len(), parallel::pass(config, nodes, &mut delivery)?)
        }
        Judge::Serial(filter, threads) => {
            let workers = serial_workers(filter, threads);
            (threads, parallel::pass(config, workers, &mut delivery)?)
        }
    };
    delivery.conclude(config, passed, || report_of(&filters), threads)
}

/// Takes the whole stream through the stages, on this thread; tells which signal ended it, if one did.
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
