//! The data path on one thread or several, with the same output: fills chunks from the inputs, or
//! finds where they end in a plain file, reads their records, places them on the clock of a window,
//! judges their keys, and delivers them to the outputs. The [loop](super::worker_loop) of each
//! thread decides when.
//!
//! The threads share an [`OrderedFilter`]. A thread takes the ticket of a chunk while it has the
//! [turn](super::chunk_order) to fill, so the filter judges the chunks in the order of the stream.
//! With a window, the [clock](crate::dedup::clock) passes from chunk to chunk before.

use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard};
use std::thread;

use echoless::transport::{Parker, Wait};
use echoless::{Batch, LineFilter, OrderedFilter, OrderedHandle, Verdicts};
use echoless_records::chunk::{Chunk, RunPart};
use echoless_records::failure::{Failure, lock};
use echoless_records::files::Source;
use echoless_records::reading::Filled;
use echoless_records::signals::Patience;

use super::chunk_order::ChunkOrder;
use super::division::{CHUNK_BYTES, CHUNKS_IN_FLIGHT};
use super::pinning::pin;
use super::worker_loop::{FillOutcome, FilledChunk, Limits, Stages, WorkerLoop};
use crate::config::{DedupConfig, WindowConfig};
use crate::dedup::clock::{ClockOrder, set_ticks};
use crate::dedup::delivery::Delivery;
use crate::dedup::exact::ExactStage;
use crate::dedup::feed::{ChunkReader, Direction, Feed, StreamEnd};
use crate::dedup::state::WantedBlocks;

/// The most bytes that a worker which is alone passes by itself at a time: their work is less than
/// that of waking another thread.
const SHORT_BYTES: usize = 16 << 10;

/// The usual memory for each byte of a chunk, with the results of its records.
const MEMORY_OF_A_BYTE: usize = 4;

/// The memory that chunks may take in addition to the usual. A record of many megabytes makes its
/// chunk as long as itself, and many short ones, such as empty lines, take more memory for their
/// hashes than for themselves; this bounds how many chunks become as large as the largest. A few
/// records of a megabyte still keep all threads busy.
const SPARE_BYTES: usize = 32 << 20;

/// The inputs and outputs that all threads share.
struct SharedRun<'a, 'd> {
    /// Locked by the worker that has the turn to fill.
    feed: Mutex<Feed>,
    order: ChunkOrder,
    timing: Option<(&'a WindowConfig, ClockOrder)>,
    /// Filters of others, which are only read.
    known: &'a [Box<dyn LineFilter>],
    exact: Option<ExactStage<'a>>,
    /// The lines of the filter that the state asks for, if the run has one.
    wanted: Option<WantedBlocks>,
    delivery: &'a Mutex<Delivery<'d>>,
    /// How the stream ended, or what ended the run first.
    outcome: Mutex<Option<Result<StreamEnd, Failure>>>,
    limits: Limits,
    wait: Wait,
}

/// The stages of one thread.
struct WorkerStages<'a, 'd, F> {
    run: &'a SharedRun<'a, 'd>,
    filter: OrderedHandle<F>,
    /// None until the first chunk is filled.
    reader: Option<ChunkReader>,
    parker: Parker,
}

/// Which way the stream is passed, and for what.
#[derive(Debug, Clone, Copy)]
pub(in crate::dedup) struct Pass<'a> {
    pub(in crate::dedup) direction: Direction,
    /// What an exact run does in this pass.
    pub(in crate::dedup) exact: Option<ExactStage<'a>>,
}

impl From<Direction> for Pass<'_> {
    fn from(direction: Direction) -> Self {
        Self {
            direction,
            exact: None,
        }
    }
}

/// Passes the whole stream through the stages, on a thread for each of these cores; one alone is
/// this thread. Returns how it ended.
///
/// # Panics
/// If the filter panics, with its message.
pub(in crate::dedup) fn pass<'a, F: RunPart>(
    config: &'a DedupConfig,
    pass: impl Into<Pass<'a>>,
    filter: &OrderedFilter<F>,
    cores: &[Option<usize>],
    delivery: &Mutex<Delivery<'_>>,
) -> Result<StreamEnd, Failure> {
    let Pass { direction, exact } = pass.into();
    let threads = cores.len();
    let is_only = threads == 1;
    let parkers: Vec<Parker> = cores.iter().map(|_| Parker::new()).collect();
    // One more is being filled.
    let chunks = threads * (CHUNKS_IN_FLIGHT + 1);
    let window = config.window.as_ref();
    let shared = SharedRun {
        feed: Mutex::new(Feed::new(config, direction, threads)),
        order: ChunkOrder::new(
            chunks * CHUNK_BYTES * MEMORY_OF_A_BYTE + SPARE_BYTES,
            parkers.iter().map(Parker::doorbell),
        ),
        timing: window.map(|window| (window, ClockOrder::from(lock(delivery).clock()))),
        known: &config.known_states.filters,
        exact,
        wanted: lock(delivery).wanted_blocks(),
        delivery,
        outcome: Mutex::new(None),
        limits: Limits {
            in_flight: CHUNKS_IN_FLIGHT,
            // A full read does not show that the stream pauses: at most one is passed alone. A ring
            // has hundreds of packets in each of its blocks, and pauses between them all the same.
            bytes_alone: if is_only {
                usize::MAX
            } else {
                let is_live = matches!(config.sources[..], [Source::Interfaces(_)]);
                let most = if is_live { CHUNK_BYTES } else { SHORT_BYTES };
                most.min(config.run.read_bytes.get())
            },
            is_only,
        },
        wait: Wait::auto(threads),
    };
    let passed = shared.pass_on_threads(filter, parkers, cores);
    if let Some((_, message)) = filter.lost().into_iter().next() {
        resume_unwind(Box::new(message));
    }
    passed?;
    if let Some((window, clock)) = &shared.timing
        && let Some(tick) = clock.tick(window)
    {
        // The last records may all lack a key.
        filter
            .handle()
            .observe(Batch::at(&[], tick), &mut Verdicts::new())?;
    }
    // Without an outcome, the threads were stopped before the stream ended.
    lock(&shared.outcome)
        .take()
        .unwrap_or_else(|| Ok(StreamEnd::default()))
}

impl SharedRun<'_, '_> {
    fn pass_on_threads<F: RunPart>(
        &self,
        filter: &OrderedFilter<F>,
        parkers: Vec<Parker>,
        cores: &[Option<usize>],
    ) -> Result<(), Failure> {
        let work = |number: usize, parker: Parker| {
            // Until all workers have begun, nothing is filled: one that cannot begin ends all.
            pin(cores[number]).inspect_err(|_| self.order.stop())?;
            self.order.begin();
            let stages = WorkerStages {
                run: self,
                filter: filter.handle(),
                reader: None,
                parker,
            };
            WorkerLoop::new(number, stages, &self.order, self.limits).pass_chunks()
        };
        let mut parkers = parkers.into_iter().enumerate();
        if self.limits.is_only {
            return parkers.try_for_each(|(number, parker)| work(number, parker));
        }
        thread::scope(|scope| {
            let work = &work;
            // If a thread cannot start, the running ones end: they find the stream stopped.
            let threads: Vec<_> = parkers
                .map(|(number, parker)| {
                    thread::Builder::new().spawn_scoped(scope, move || work(number, parker))
                })
                .collect::<Result<_, _>>()
                .map_err(|error| {
                    self.order.stop();
                    Failure::file("a thread")(error)
                })?;
            let ends = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            // All of them have ended before the first failure is returned.
            ends.collect::<Vec<_>>().into_iter().collect()
        })
    }
}

impl<'a, F: RunPart> Stages for WorkerStages<'a, '_, F> {
    type Source = MutexGuard<'a, Feed>;
    type Chunk = Chunk;
    type Failure = Failure;

    fn source(&mut self) -> Self::Source {
        lock(&self.run.feed)
    }

    fn fill(&mut self, feed: &mut Self::Source, chunk: &mut Chunk, may_wait: bool) -> FillOutcome {
        let patience = if may_wait {
            Patience::Wait
        } else {
            Patience::Try
        };
        let outcome = match feed.next(chunk, patience) {
            Ok(Filled::Chunk) => {
                if self.reader.is_none() {
                    self.reader = feed.reader();
                }
                return FillOutcome::Bytes(chunk.bytes.filled);
            }
            Ok(Filled::NotYet) => return FillOutcome::NotYet,
            Ok(Filled::End) => Ok(feed.end()),
            Err(failure) => {
                lock(self.run.delivery).note_failed_input();
                Err(failure)
            }
        };
        // A failure of the outputs comes first.
        lock(&self.run.outcome).get_or_insert(outcome);
        FillOutcome::End
    }

    fn judge(&mut self, chunk: &mut Chunk, filled: &mut FilledChunk<'_>) -> Result<(), Failure> {
        let Self {
            run,
            filter,
            reader,
            parker,
        } = self;
        // In the turn to fill, so the tickets have the order of the chunks.
        let ticket = filter.ticket();
        chunk.turn.wanted = run.wanted.as_ref().and_then(WantedBlocks::take);
        filled.pass_on(chunk.memory_bytes());
        if let Some(reader) = reader {
            reader.read(chunk, run.exact)?;
        }
        chunk.layout.expected = 0;
        filled.correct_bytes(chunk.memory_bytes());
        if let Some((window, clock)) = &run.timing {
            let number = filled.number();
            let is_next = || number.is_none_or(|number| clock.is_next(number));
            parker.wait_until(run.wait, || is_next() || filled.is_abandoned());
            if filled.is_abandoned() {
                return Ok(());
            }
            let records = clock.place(number, window, chunk);
            filled.wake_next();
            set_ticks(window, records, chunk);
        }
        chunk.observe(ticket, run.known)?;
        if let Some(exact) = run.exact {
            exact.judged(chunk);
        }
        Ok(())
    }

    fn deliver(&mut self, chunk: &mut Chunk) -> bool {
        let delivered = lock(self.run.delivery).deliver(chunk);
        if let Err(failure) = delivered {
            // The remaining chunks are dropped, so this is what counts.
            *lock(&self.run.outcome) = Some(Err(failure));
            return false;
        }
        true
    }

    fn shrink(&mut self, chunk: &mut Chunk) {
        chunk.shrink(CHUNK_BYTES);
    }

    fn wait_until(&mut self, condition: impl FnMut() -> bool) {
        self.parker.wait_until(self.run.wait, condition);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe, catch_unwind};
    use std::time::Instant;

    use echoless::{Batch, Filter, KeyHash, Partitioned, Partitioning, Tally};

    use super::*;
    use crate::args::{Command, parse_from};
    use crate::dedup::reports::stats::Setup;
    use echoless_records::chunk::ChunkTurn;

    const PANIC: &str = "expected by this test";

    /// Panics once it has observed so many keys.
    struct Brittle(u64);

    impl Filter for Brittle {
        fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
            duplicates.fill(0);
            self.0 = self.0.saturating_sub(batch.keys().len() as u64);
            if self.0 == 0 {
                panic::panic_any(PANIC);
            }
        }

        fn contains(&self, _key: KeyHash) -> bool {
            false
        }

        fn clear(&mut self) {}

        fn tally(&self) -> Tally {
            Tally::default()
        }
    }

    impl RunPart for Brittle {
        const HAS_STATE: bool = false;

        fn note(&self, _: &mut ChunkTurn, _: usize) {}
    }

    /// A folder, and the paths of an input and an output in it.
    fn files() -> (tempfile::TempDir, [String; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
        let paths = ["records", "written"].map(path);
        (folder, paths)
    }

    /// What a run with this filter writes, or its panic.
    fn run(records: &str, parts: Vec<Brittle>, threads: usize) -> Result<Vec<u8>, String> {
        let partitioning = Partitioning::new(1024, parts.len()).unwrap();
        let parts = Partitioned::new(partitioning, parts).unwrap();
        let filter = OrderedFilter::builder(parts).build();
        let (_folder, [_, written]) = files();
        let words = ["dedup", "-q", "-m", "64k", "-o", &written, records];
        let Command::Dedup(args) = parse_from(&words).unwrap().command else {
            unreachable!("the command above");
        };
        let config = DedupConfig::try_from(*args).unwrap();
        let setup = Setup {
            began: Instant::now(),
            threads,
            filter_bytes: 0,
        };
        let delivery = Mutex::new(Delivery::open(&config, setup, None).unwrap());
        let cores = vec![None; threads];
        let passed = catch_unwind(AssertUnwindSafe(|| {
            pass(&config, Direction::Forwards, &filter, &cores, &delivery)
                .map(|_| ())
                .unwrap();
        }));
        passed.map_err(|panic| *panic.downcast::<String>().unwrap_or_default())?;
        let delivery = delivery.into_inner().unwrap();
        let end = Ok(StreamEnd::default());
        delivery
            .conclude(end, std::convert::identity, echoless::Report::default)
            .unwrap();
        Ok(std::fs::read(&written).unwrap())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn bursts_of_a_pipe_come_out_whole_and_in_order() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        use std::time::Duration;

        let input: String = (0..300_000).map(|number| format!("{number}\n")).collect();
        for threads in [1, 2, 5] {
            for partitions in [1, 3] {
                let (reader, mut writer) = std::io::pipe().unwrap();
                let input = &input;
                // This owns the reader: if the run fails, the writer gets an error and ends.
                let written = thread::scope(move |scope| {
                    let records = format!("/dev/fd/{}", reader.as_raw_fd());
                    // A worker that is alone may pass the short bursts, which end inside records.
                    // The long ones are passed by all.
                    scope.spawn(move || {
                        let mut rest = input.as_bytes();
                        for length in [1, 20, 9, 3000, 7, 100_000, 500].into_iter().cycle() {
                            let (burst, after) = rest.split_at(length.min(rest.len()));
                            if writer.write_all(burst).is_err() || after.is_empty() {
                                break;
                            }
                            rest = after;
                            // Long enough for the workers to find no data.
                            thread::sleep(Duration::from_millis(1));
                        }
                    });
                    let parts = (0..partitions).map(|_| Brittle(u64::MAX)).collect();
                    run(&records, parts, threads)
                });
                assert!(
                    written == Ok(input.clone().into_bytes()),
                    "{threads} threads, {partitions} partitions"
                );
            }
        }
    }

    #[test]
    fn a_filter_that_panics_ends_the_run_and_all_its_workers() {
        // Passed by one worker, or by all of them.
        for records in [100, 200_000] {
            let input: String = (0..records).map(|number| format!("{number}\n")).collect();
            let (_folder, [path, _]) = files();
            std::fs::write(&path, &input).unwrap();
            for last in [2, records / 2, u64::MAX] {
                let expected = if last == u64::MAX {
                    Ok(input.clone().into_bytes())
                } else {
                    Err(PANIC.to_owned())
                };
                for threads in [1, 3] {
                    let whole = vec![Brittle(last)];
                    assert!(run(&path, whole, threads) == expected, "{records}, {last}");
                    let parts = vec![Brittle(u64::MAX), Brittle(last / 3), Brittle(u64::MAX)];
                    assert!(run(&path, parts, threads) == expected, "{records}, {last}");
                }
            }
        }
    }
}
