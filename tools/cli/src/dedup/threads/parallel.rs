//! The data path on several threads, with the same output as on one.
//!
//! ```text
//!          worker: fill chunk 7 | read, hash, submit 7 | ............ | deliver 7
//! input -> worker: ........ fill chunk 8 | read, hash, submit 8 | ....... deliver 8 -> outputs
//!          worker: .................. fill chunk 9 | read, hash, submit 9 | ..........
//! ```
//!
//! Each thread has a [`Worker`]: in its [turn](super::chunk_order) it fills the next chunk; then it
//! finds the records, hashes their keys and submits them to the filter, which handles chunks in the
//! order of their numbers. With a window, the [clock](crate::dedup::clock) passes from chunk to
//! chunk before they are submitted. The thread delivers the chunk when its number is next. A node
//! of a mesh serves its partition while it waits. [`stages`](super::stages) has these steps, and
//! [`worker_loop`](super::worker_loop) the loop around them.

use std::sync::Mutex;
use std::thread;

use super::chunk_order::ChunkOrder;
use super::pinning::pin;
use super::stages::{SHORT_BYTES, SharedRun};
use super::worker::Worker;
use super::worker_loop::Limits;
use crate::config::DedupConfig;
use crate::dedup::clock::ClockOrder;
use crate::dedup::delivery::Delivery;
use crate::dedup::feed::{Direction, Feed, StreamEnd};
use crate::failure::Failure;
use crate::locks::lock;

/// The usual memory for each byte of a chunk, with the results of its records.
const MEMORY_OF_A_BYTE: usize = 4;

/// The memory that chunks may take in addition to the usual. A record of many megabytes makes its
/// chunk as long as itself, and many short ones, such as empty lines, take more memory for their
/// hashes than for themselves; this bounds how many chunks become as large as the largest. A few
/// records of a megabyte still keep all threads busy.
const SPARE_BYTES: usize = 32 << 20;

/// Passes the whole stream through the stages, on one thread for each worker. Returns how it ended.
///
/// # Errors
/// [`Failure`] of the stream, or if the threads cannot be set up.
pub(in crate::dedup) fn pass<W: Worker>(
    config: &DedupConfig,
    direction: Direction,
    workers: Vec<W>,
    cores: Vec<Option<usize>>,
    delivery: &Mutex<Delivery>,
) -> Result<StreamEnd, Failure> {
    let size = W::chunk_size(workers.len());
    // One more is being filled.
    let chunks = workers.len() * (size.in_flight + 1);
    let window = config.window.as_ref();
    let shared = SharedRun {
        feed: Mutex::new(Feed::new(config, direction, Some(size.bytes))),
        order: ChunkOrder::new(
            chunks * size.bytes * MEMORY_OF_A_BYTE + SPARE_BYTES,
            workers.iter().map(Worker::doorbell),
        ),
        timing: window.map(|window| (window, ClockOrder::new())),
        delivery,
        outcome: Mutex::new(None),
        chunk_bytes: size.bytes,
        limits: Limits {
            in_flight: size.in_flight,
            // A full read does not show that the stream pauses: at most one is passed alone.
            bytes_alone: SHORT_BYTES.min(config.run.read_bytes.get()),
        },
    };
    thread::scope(|scope| {
        let shared = &shared;
        let run = |(number, (worker, core))| {
            thread::Builder::new().spawn_scoped(scope, move || {
                // Until all workers have begun, nothing is filled: one that cannot begin ends all.
                pin(core).inspect_err(|_| shared.order.stop())?;
                shared.order.begin();
                shared.pass_chunks(number, worker)
            })
        };
        // If a thread cannot start, the remaining workers are dropped, and the running ones end:
        // they find the stream stopped, or a peer gone.
        let threads: Vec<_> = (workers.into_iter().zip(cores).enumerate().map(run))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                shared.order.stop();
                Failure::file("a thread")(error)
            })?;
        let ends = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        first_cause(ends.collect())
    })?;
    // Without an outcome, the threads were stopped before the stream ended.
    lock(&shared.outcome)
        .take()
        .unwrap_or_else(|| Ok(StreamEnd::default()))
}

/// The cause of a failure. A disconnect only follows from a failure elsewhere, so any other failure
/// is preferred.
fn first_cause(ends: Vec<Result<(), Failure>>) -> Result<(), Failure> {
    let mut cause = None;
    for failure in ends.into_iter().filter_map(Result::err) {
        if matches!(cause, None | Some(Failure::Thread(_))) {
            cause = Some(failure);
        }
    }
    cause.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe, catch_unwind};
    use std::time::Instant;

    use echoless::{Filter, KeyHash, Partitioned, Partitioning};

    use super::*;
    use crate::args::{Command, parse_from};
    use crate::dedup::reports::stats::Setup;
    use crate::dedup::threads::locked_filter::LockedFilter;
    use crate::dedup::threads::worker::{mesh_workers, serial_workers};

    const PANIC: &str = "expected by this test";

    /// Panics once it has observed so many keys.
    struct Brittle(u64);

    impl Filter for Brittle {
        fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
            duplicates.fill(0);
            self.0 = self.0.saturating_sub(keys.len() as u64);
            if self.0 == 0 {
                panic::panic_any(PANIC);
            }
        }

        fn contains(&self, _key: KeyHash) -> bool {
            false
        }

        fn clear(&mut self) {}

        fn memory_bytes(&self) -> u64 {
            0
        }
    }

    /// A folder, and the paths of an input and an output in it.
    fn files() -> (tempfile::TempDir, [String; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
        let paths = ["records", "written"].map(path);
        (folder, paths)
    }

    /// What a run with these workers writes, or its panic.
    fn run<W: Worker>(records: &str, workers: Vec<W>) -> Result<Vec<u8>, &'static str> {
        let (_folder, [_, written]) = files();
        let words = ["dedup", "-q", "-m", "64k", "-o", &written, records];
        let Command::Dedup(args) = parse_from(&words).unwrap().command else {
            unreachable!("the command above");
        };
        let config = DedupConfig::try_from(*args).unwrap();
        let setup = Setup {
            threads: workers.len(),
            filter_bytes: 0,
        };
        let delivery = Mutex::new(Delivery::open(&config, Instant::now(), setup).unwrap());
        let cores = vec![None; workers.len()];
        let passed = catch_unwind(AssertUnwindSafe(|| {
            pass(&config, Direction::Forwards, workers, cores, &delivery)
                .map(|_| ())
                .unwrap();
        }));
        passed.map_err(|panic| panic.downcast_ref().copied().unwrap_or("another panic"))?;
        let delivery = delivery.into_inner().unwrap();
        let end = Ok(StreamEnd::default());
        delivery
            .conclude(
                &config,
                end,
                std::convert::identity,
                echoless::Report::default,
            )
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
        for workers in [1, 2, 5] {
            for serial in [true, false] {
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
                    if serial {
                        let filter = LockedFilter::new(Brittle(u64::MAX));
                        run(&records, serial_workers(&filter, workers))
                    } else {
                        let partitioning = Partitioning::new(1024, workers).unwrap();
                        let filters = (0..workers).map(|_| Brittle(u64::MAX)).collect();
                        let parts = Partitioned::new(partitioning, filters).unwrap();
                        run(&records, mesh_workers(parts).unwrap().0)
                    }
                });
                assert!(
                    written == Ok(input.clone().into_bytes()),
                    "{workers} workers, serial: {serial}"
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
                    Err(PANIC)
                };
                let serial = serial_workers(&LockedFilter::new(Brittle(last)), 3);
                assert!(run(&path, serial) == expected, "{records}, {last}");
                let parts = vec![Brittle(u64::MAX), Brittle(last / 3), Brittle(u64::MAX)];
                let partitioning = Partitioning::new(1024, 3).unwrap();
                let parts = Partitioned::new(partitioning, parts).unwrap();
                let (workers, _) = mesh_workers(parts).unwrap();
                assert!(run(&path, workers) == expected, "{records}, {last}");
            }
        }
    }

    #[test]
    fn the_cause_is_reported_and_not_its_consequences() {
        let peer_gone = || Failure::Thread(echoless::ExchangeError::Peer(1));
        let reported = |ends| first_cause(ends).map_err(|failure| failure.to_string());
        assert_eq!(reported(vec![Ok(()), Ok(())]), Ok(()));
        assert_eq!(
            reported(vec![Ok(()), Err(peer_gone())]),
            Err(peer_gone().to_string())
        );
        for ends in [
            vec![Err(peer_gone()), Err(Failure::ReaderGone)],
            vec![Err(Failure::ReaderGone), Err(peer_gone())],
        ] {
            assert_eq!(reported(ends), Err(Failure::ReaderGone.to_string()));
        }
    }
}
