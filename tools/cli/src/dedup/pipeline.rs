//! A run: a feed of chunks, a filter that judges them, a delivery of what comes out, on one thread or on several.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use echoless::memory::LINE_BYTES;
use echoless::{Filter, FingerprintLines};

use super::chunk::Chunk;
use super::delivery::Delivery;
use super::feed::Feed;
use super::job::Job;
use super::parallel;
use crate::failure::Failure;

/// Runs `echoless dedup`.
pub(crate) fn run(job: Job) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    let job = Arc::new(job);
    for source in &job.sources {
        source.check()?;
    }
    let spec = job.filter.spec();
    let threads = job.threads.count(job.filter.memory_bytes / LINE_BYTES);
    if threads == 1 {
        let mut filter = spec.build()?;
        let mut delivery = Delivery::open(&job, began)?;
        let passed = pass(Feed::new(Arc::clone(&job)), &mut filter, &mut delivery);
        return delivery.conclude(&job, passed, &filter.report(), 1);
    }
    let partitions = spec.build_partitions(threads)?;
    let mut delivery = Delivery::open(&job, began)?;
    let (passed, filters) = parallel::pass(&job, partitions, &mut delivery)?;
    let report = FingerprintLines::report_of(&filters);
    delivery.conclude(&job, passed, &report, threads)
}

/// Takes the whole stream through the stages, on this thread; tells which signal ended it, if one did.
fn pass(
    mut feed: Feed,
    filter: &mut FingerprintLines,
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
