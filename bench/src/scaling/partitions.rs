//! Routing to many partitions: keys to their owners, and answers back into the order of the batch,
//! without rings and filters.

use echoless::assembly::{Router, RoutingWay, Selections};
use echoless::{Kernel, KeyHash, Partitioning, SpecError, Verdicts};

use super::rows::cost_row;
use crate::clock::{median, thread_seconds};
use crate::failure::Failure;
use crate::streams::{BATCH, Stream, StreamKind};
use crate::table::Table;
use crate::turns::measure_in_turn;

/// The lines of the partitions together. Routing does not depend on them.
const LINES: u64 = 1 << 20;

/// Batches that take turns, so that keys come from the cache as after hashing.
const BATCHES: usize = 4;

/// Measures each number of partitions with batches of this many keys, as ports route them or in
/// each way. Every second key of a message is a duplicate, as depositing costs work for duplicates.
///
/// # Errors
/// If a number of partitions is not possible, or verdicts are wrong.
pub(super) fn measure(
    partitions: &[usize],
    batch_keys: usize,
    each_way: bool,
    rounds: u64,
    table: &mut Table,
) -> Result<(), Failure> {
    let mut stream = Stream::new(StreamKind::Distinct, 0);
    let mut keys = Vec::new();
    while keys.len() < BATCHES * batch_keys {
        keys.extend_from_slice(stream.batch());
    }
    let batches: Vec<_> = keys.chunks_exact(batch_keys).take(BATCHES).collect();
    let ways: Vec<_> = if each_way {
        let kernels = Kernel::ALL.iter().filter(|kernel| kernel.is_available());
        let compared = kernels.map(|kernel| Some((*kernel, RoutingWay::Compare)));
        compared
            .chain([Some((Kernel::best(), RoutingWay::Write))])
            .collect()
    } else {
        vec![None]
    };
    let mut routers = Vec::new();
    for count in partitions {
        for way in &ways {
            let router = RoundTrip::new(Partitioning::new(LINES, *count)?, *way)?;
            let name = match way {
                None => format!("{count} partitions"),
                Some((kernel, RoutingWay::Compare)) => {
                    format!("{count} partitions, compared, {kernel}")
                }
                Some((kernel, RoutingWay::Write)) => {
                    format!("{count} partitions, written, {kernel}")
                }
            };
            routers.push((name, router));
        }
    }
    // Enough for some milliseconds.
    let repeats = (1 << 22) / (BATCHES * batch_keys) + 1;
    let seconds = measure_in_turn(&mut routers, rounds, |(name, router)| {
        let start = thread_seconds();
        for _ in 0..repeats {
            for batch in &batches {
                let mut expected = 0;
                let verdicts = router.observe(batch, |message| {
                    expected += message.len() as u64 / 2;
                    0xaaaa_aaaa_aaaa_aaaa
                });
                let found = verdicts.count_duplicates();
                if found != expected {
                    return Err(format!("{name}: {found} duplicates, expected {expected}").into());
                }
            }
        }
        let spent = thread_seconds() - start;
        Ok(spent / (repeats * BATCHES * batch_keys) as f64)
    })?;
    for ((name, _), seconds) in routers.into_iter().zip(seconds) {
        let seconds = median(seconds);
        let variant = format!("{name}, batches of {batch_keys} keys");
        let row = cost_row(
            "routing",
            variant,
            "half duplicates",
            1,
            Some(seconds),
            seconds,
        );
        table.push(row);
    }
    Ok(())
}

/// The greatest batch, so that memory stays small.
pub(super) const MAX_BATCH_KEYS: u64 = 1024 * BATCH as u64;

/// Routes batches to partitions that answer at once.
struct RoundTrip {
    router: Router,
    partitions: usize,
    selections: Selections,
    verdicts: Verdicts,
}

impl RoundTrip {
    /// A router to the partitions: the one that ports use, or one with this kernel and this way.
    fn new(
        partitioning: Partitioning,
        with: Option<(Kernel, RoutingWay)>,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            partitions: partitioning.count(),
            router: match with {
                None => Router::new(partitioning),
                Some((kernel, way)) => Router::with(partitioning, kernel.detect()?, way),
            },
            selections: Selections::default(),
            verdicts: Verdicts::new(),
        })
    }

    /// Routes a batch of fewer than 2^31 keys as messages, and turns the answers into verdicts.
    /// `answer` gets the keys of a message, and returns a bit for each that is a duplicate.
    fn observe(
        &mut self,
        keys: &[KeyHash],
        mut answer: impl FnMut(&[KeyHash]) -> u64,
    ) -> &Verdicts {
        self.verdicts.reset(keys.len());
        self.router.route(keys, &mut self.selections);
        let kernel = self.router.kernel();
        for owner in 0..self.partitions {
            let mut index = None;
            loop {
                let (keys, next) = self.router.message(&self.selections, owner, index);
                // The first message of a partition without keys.
                if !keys.is_empty() {
                    let answer = answer(keys);
                    (self.selections).answer(owner, kernel, answer, &mut self.verdicts);
                }
                index = next;
                if index.is_none() {
                    break;
                }
            }
        }
        self.selections.finish(kernel, &mut self.verdicts);
        &self.verdicts
    }
}
