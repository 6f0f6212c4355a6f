//! A run: a feed of chunks, a filter that judges them, a delivery of what comes out, on one thread or on several.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use echoless::spec::Form;
use echoless::{Filter, Mesh, Partitioned};

use super::account::Account;
use super::chunk::Chunk;
use super::delivery::Delivery;
use super::feed::Feed;
use super::filter::FilterChoice;
use super::job::{Job, pin};
use super::parallel;
use super::seat::in_turn;
use crate::failure::Failure;

/// Runs `echoless dedup`.
pub(crate) fn run(job: Job) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    let job = Arc::new(job);
    for source in &job.sources {
        source.check()?;
    }
    let threads = job.threads.count(job.filter.most_threads());
    job.cores(threads)?;
    match &job.filter {
        FilterChoice::Fingerprints(spec) => {
            let judge = match threads {
                1 => Judge::Alone(spec.build()?),
                _ => Judge::Parts(spec.build_partitions(threads)?),
            };
            run_with(&job, began, judge, Account::of_fingerprints)
        }
        FilterChoice::Named(spec) => {
            let judge = match spec.form() {
                _ if threads == 1 => Judge::Alone(spec.build()?),
                Form::Line => Judge::Parts(spec.build_partitions(threads)?),
                _ => Judge::InTurn(spec.build()?, threads),
            };
            run_with(&job, began, judge, |filters| {
                Account::of_named(*spec, filters)
            })
        }
    }
}

/// A filter, and the threads that have it.
enum Judge<F> {
    /// This one.
    Alone(F),
    /// As many as it has parts.
    Parts(Partitioned<F>),
    /// So many, one at a time, because it cannot be cut.
    InTurn(F, usize),
}

fn run_with<F: Filter>(
    job: &Arc<Job>,
    began: Instant,
    judge: Judge<F>,
    account: impl FnOnce(&[F]) -> Account,
) -> Result<ExitCode, Failure> {
    let mut delivery = Delivery::open(job, began)?;
    let (threads, (passed, filters)) = match judge {
        Judge::Alone(mut filter) => {
            pin(job.cores(1)?[0])?;
            let passed = pass(Feed::new(Arc::clone(job)), &mut filter, &mut delivery);
            (1, (passed, vec![filter]))
        }
        Judge::Parts(parts) => {
            let nodes = Mesh::new().nodes(parts)?;
            (nodes.len(), parallel::pass(job, nodes, &mut delivery)?)
        }
        Judge::InTurn(filter, threads) => {
            let seats = in_turn(filter, threads);
            (threads, parallel::pass(job, seats, &mut delivery)?)
        }
    };
    delivery.conclude(job, passed, || account(&filters), threads)
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
