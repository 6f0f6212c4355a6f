//! The loop of the workers of the command `dedup`, and the order of their chunks: which worker
//! fills a chunk, which one delivers, and which one is woken for what. A wake-up that is lost
//! leaves a worker parked forever, which loom reports as a deadlock.
//!
//! The command itself cannot be built for loom, so these two of its modules are part of this file.
//! They use nothing else of the command.

#![cfg(loom)]

#[path = "../../tools/cli/src/dedup/threads/chunk_order.rs"]
mod chunk_order;
#[path = "../../tools/cli/src/dedup/threads/worker_loop.rs"]
mod worker_loop;

use std::sync::atomic as plain;

use echoless::transport::{Parker, Wait};
use echoless_loom::{Preemptions, Sometimes, check};
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, JoinHandle};

use chunk_order::ChunkOrder;
use worker_loop::{FillOutcome, FilledChunk, Limits, Stages, WorkerLoop};

const LIMITS: Limits = Limits {
    in_flight: 2,
    bytes_alone: 2,
    is_only: false,
};

/// The memory of chunks beyond which nothing is filled.
const MOST_BYTES: usize = 1;

/// What a stream does beside bringing chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    /// All chunks are there.
    Fast,
    /// The chunk with this number is not there at first.
    Pauses(u64),
    /// Each chunk takes more memory than all may: nothing is filled beside it.
    Long,
    /// That turns out once the turn is passed on.
    Longer,
    /// Chunks have a byte, from the one with this number on: a worker that is alone passes two of
    /// them by itself.
    ShortFrom(u64),
    /// All chunks have a byte, and the one with this number is not there at first.
    ShortPauses(u64),
    /// Chunks are judged in order, as by a filter, or placed by the clock of a window.
    Judged,
    /// The first chunk cannot be judged.
    Lost,
    /// The first chunk cannot be delivered.
    Fails,
    /// The same, if chunks are short.
    FailsShort,
}

/// What the threads of a run share.
struct Run {
    order: ChunkOrder,
    stream: Stream,
    chunks: u64,
    /// The number of chunks that were filled. Changed by the worker that has the turn.
    filled: AtomicU64,
    /// Not one of loom's: it checks an order that others provide, and adds no interleavings.
    source_is_held: plain::AtomicBool,
    /// A worker waits for data, or has.
    waited: AtomicBool,
    /// The chunks and the workers that delivered them. Locked only by the worker whose chunk is
    /// next.
    delivered: Mutex<Vec<(u64, usize)>>,
    /// The number of the next chunk to judge.
    judged: AtomicU64,
    /// The number of chunks that a worker passed by itself.
    passed_alone: AtomicU64,
}

impl Run {
    /// The threads of two workers, which end with the stream.
    fn start(stream: Stream, chunks: u64) -> (Arc<Self>, Vec<JoinHandle<Result<(), Lost>>>) {
        let parkers: Vec<Parker> = (0..2).map(|_| Parker::new()).collect();
        let run = Arc::new(Self {
            order: ChunkOrder::new(MOST_BYTES, parkers.iter().map(Parker::doorbell)),
            stream,
            chunks,
            filled: AtomicU64::new(0),
            source_is_held: plain::AtomicBool::new(false),
            waited: AtomicBool::new(false),
            delivered: Mutex::new(Vec::new()),
            judged: AtomicU64::new(0),
            passed_alone: AtomicU64::new(0),
        });
        let start = |(worker, parker)| {
            let run = Arc::clone(&run);
            thread::spawn(move || {
                run.order.begin();
                let stages = ModelStages {
                    worker,
                    parker,
                    run: &run,
                    is_corrected: false,
                };
                WorkerLoop::new(worker, stages, &run.order, LIMITS).pass_chunks()
            })
        };
        let threads = parkers.into_iter().enumerate().map(start).collect();
        (run, threads)
    }
}

/// A chunk could not be judged.
#[derive(Debug, PartialEq, Eq)]
struct Lost;

/// Chunks without records.
struct ModelStages<'a> {
    worker: usize,
    parker: Parker,
    run: &'a Run,
    /// A chunk of this worker takes more memory than all may, and the order has that size.
    is_corrected: bool,
}

/// The source, held by one worker.
struct HeldSource<'a>(&'a plain::AtomicBool);

impl Drop for HeldSource<'_> {
    fn drop(&mut self) {
        self.0.store(false, plain::Ordering::Relaxed);
    }
}

/// The place of a chunk in the stream, and its memory.
#[derive(Default)]
struct Chunk {
    place: u64,
    memory: usize,
}

impl<'a> Stages for ModelStages<'a> {
    type Source = HeldSource<'a>;
    type Chunk = Chunk;
    type Failure = Lost;

    fn source(&mut self) -> HeldSource<'a> {
        let source = HeldSource(&self.run.source_is_held);
        assert!(
            !source.0.swap(true, plain::Ordering::Relaxed),
            "held by another worker"
        );
        source
    }

    fn fill(&mut self, _: &mut HeldSource<'a>, chunk: &mut Chunk, may_wait: bool) -> FillOutcome {
        let run = self.run;
        assert!(!self.is_corrected, "too much is under way");
        let place = run.filled.load(Ordering::Relaxed);
        if place == run.chunks {
            return FillOutcome::End;
        }
        let is_late = [Stream::Pauses(place), Stream::ShortPauses(place)].contains(&run.stream);
        if is_late && !run.waited.load(Ordering::Relaxed) {
            if !may_wait {
                return FillOutcome::NotYet;
            }
            // Nothing waits for this worker while it waits for data.
            assert_eq!(run.delivered.try_lock().unwrap().len() as u64, place);
            run.waited.store(true, Ordering::Relaxed);
        }
        if run.stream == Stream::Long {
            assert!(run.order.is_alone(), "too much is under way");
        }
        run.filled.store(place + 1, Ordering::Relaxed);
        let memory = match run.stream {
            Stream::Long => MOST_BYTES + 1,
            Stream::Longer => 0,
            _ => 1,
        };
        *chunk = Chunk { place, memory };
        let is_short = match run.stream {
            Stream::ShortFrom(first) => place >= first,
            Stream::ShortPauses(_) | Stream::FailsShort => true,
            _ => false,
        };
        FillOutcome::Bytes(if is_short { 1 } else { LIMITS.bytes_alone + 1 })
    }

    fn judge(&mut self, chunk: &mut Chunk, filled: &mut FilledChunk<'_>) -> Result<(), Lost> {
        let run = self.run;
        filled.pass_on(chunk.memory);
        let Some(number) = filled.number() else {
            assert!(run.order.is_alone(), "a chunk is under way");
            run.passed_alone.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        match run.stream {
            Stream::Longer => {
                chunk.memory = MOST_BYTES + 1;
                self.is_corrected = true;
            }
            Stream::Lost if chunk.place == 0 => return Err(Lost),
            _ => {}
        }
        filled.correct_bytes(chunk.memory);
        if run.stream == Stream::Judged || run.stream == Stream::Lost {
            self.wait_until(|| {
                run.judged.load(Ordering::Acquire) == number || filled.is_abandoned()
            });
            run.judged.store(number + 1, Ordering::Release);
            filled.wake_next();
        }
        Ok(())
    }

    fn deliver(&mut self, chunk: &mut Chunk) -> bool {
        let delivered = self.run.delivered.try_lock();
        let mut delivered = delivered.expect("another worker's turn");
        delivered.push((chunk.place, self.worker));
        self.is_corrected = false;
        !matches!(self.run.stream, Stream::Fails | Stream::FailsShort)
    }

    fn shrink(&mut self, _: &mut Chunk) {}

    fn wait_until(&mut self, condition: impl FnMut() -> bool) {
        self.parker.wait_until(Wait::Shared, condition);
    }
}

/// How a stream was passed.
struct Passed {
    /// How many chunks each worker has delivered.
    by_worker: [usize; 2],
    /// How many of them a worker passed by itself.
    alone: u64,
}

/// Passes a stream. All of its chunks must be delivered, in order.
fn pass(stream: Stream, chunks: u64) -> Passed {
    let (run, threads) = Run::start(stream, chunks);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
    let delivered = run.delivered.lock().unwrap();
    let places: Vec<u64> = delivered.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, Vec::from_iter(0..chunks));
    let by = |worker| delivered.iter().filter(|(_, by)| *by == worker).count();
    Passed {
        by_worker: [0, 1].map(by),
        alone: run.passed_alone.load(Ordering::Relaxed),
    }
}

/// The chunks of the command `dedup` are filled and delivered in order, by one worker or both (2
/// workers, 2 chunks).
#[test]
fn chunks_deliver_in_order() {
    static BOTH_DELIVERED: Sometimes = Sometimes::new();
    check("chunks_deliver_in_order", Preemptions::AtMost(3), || {
        let passed = pass(Stream::Fast, 2);
        BOTH_DELIVERED.note(passed.by_worker == [1, 1]);
    });
    BOTH_DELIVERED.assert();
}

/// A pause of the stream leaves no chunk undelivered and no data unread (2 workers, 2 chunks).
#[test]
fn chunks_wait_for_data_alone() {
    static OTHER_WAITED: Sometimes = Sometimes::new();
    check("chunks_wait_for_data_alone", Preemptions::AtMost(3), || {
        let passed = pass(Stream::Pauses(1), 2);
        OTHER_WAITED.note(passed.by_worker == [1, 1]);
    });
    OTHER_WAITED.assert();
}

/// Nothing is filled beside a chunk that takes more memory than all may; if that turns out late,
/// the worker of that chunk fills nothing until it is delivered (2 workers, 2 chunks).
#[test]
fn chunks_wait_for_room() {
    check("chunks_wait_for_room", Preemptions::AtMost(2), || {
        for stream in [Stream::Long, Stream::Longer] {
            pass(stream, 2);
        }
    });
}

/// A worker that is alone passes short chunks by itself, up to its limit, which starts again at a
/// pause of the stream (2 workers, 3 chunks).
#[test]
fn chunks_short_pass_alone() {
    check("chunks_short_pass_alone", Preemptions::AtMost(2), || {
        // The one that fills first passes all, the third one like a long chunk.
        let passed = pass(Stream::ShortFrom(0), 3);
        assert!(passed.alone == 2 && passed.by_worker.contains(&3));
        // Or alone, too, after a pause.
        let passed = pass(Stream::ShortPauses(2), 3);
        assert!(passed.alone == 3 && passed.by_worker.contains(&3));
    });
}

/// A worker passes a short chunk alone only once the chunk before it is delivered (2 workers, 2
/// chunks).
#[test]
fn chunks_short_wait_for_a_long_one() {
    static ALONE: Sometimes = Sometimes::new();
    static BESIDE: Sometimes = Sometimes::new();
    let name = "chunks_short_wait_for_a_long_one";
    check(name, Preemptions::AtMost(3), || {
        // Filled alone only if the long one was delivered before.
        let passed = pass(Stream::ShortFrom(1), 2);
        ALONE.note(passed.alone == 1);
        BESIDE.note(passed.alone == 0);
    });
    ALONE.assert();
    BESIDE.assert();
}

/// The worker that waits for its place in the order, of the clock of a window, is woken by the one
/// before it, not only by the delivery of its chunk (2 workers, 2 chunks).
#[test]
fn chunks_judge_in_order() {
    check("chunks_judge_in_order", Preemptions::AtMost(2), || {
        pass(Stream::Judged, 2);
    });
}

/// The other worker ends in any of its waits: the loss of a chunk is no chunk to wait for.
#[test]
fn chunks_end_with_a_lost_one() {
    static ALONE: Sometimes = Sometimes::new();
    static BESIDE: Sometimes = Sometimes::new();
    let name = "chunks_end_with_a_lost_one";
    check(name, Preemptions::AtMost(3), || {
        let (run, threads) = Run::start(Stream::Lost, 2);
        let ends = threads.into_iter().map(|thread| thread.join().unwrap());
        let lost = ends.filter(|end| *end == Err(Lost)).count();
        assert_eq!(lost, 1);
        assert!(run.delivered.lock().unwrap().is_empty());
        let filled = run.filled.load(Ordering::Relaxed);
        ALONE.note(filled == 1);
        BESIDE.note(filled == 2);
    });
    ALONE.assert();
    BESIDE.assert();
}

/// No chunk is delivered after one that failed, and both workers end (2 workers, 2 chunks).
#[test]
fn chunks_end_with_a_failed_delivery() {
    static FILLED: Sometimes = Sometimes::new();
    let name = "chunks_end_with_a_failed_delivery";
    check(name, Preemptions::AtMost(3), || {
        FILLED.note(filled_beside_a_failure(Stream::Fails) == 2);
    });
    FILLED.assert();
}

/// No chunk is delivered after one that failed, and both workers end, if a worker passes chunks
/// alone; it fills none after that (2 workers, 2 chunks).
#[test]
fn chunks_short_end_with_a_failed_delivery() {
    let name = "chunks_short_end_with_a_failed_delivery";
    check(name, Preemptions::AtMost(3), || {
        assert_eq!(filled_beside_a_failure(Stream::FailsShort), 1);
    });
}

/// Passes two chunks of a stream whose first one cannot be delivered. Returns how many were filled.
fn filled_beside_a_failure(stream: Stream) -> u64 {
    let (run, threads) = Run::start(stream, 2);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
    let delivered = run.delivered.lock().unwrap();
    assert!(delivered.len() == 1 && delivered[0].0 == 0);
    run.filled.load(Ordering::Relaxed)
}

/// Idle workers end when the stream is stopped (2 workers, 1 chunk).
#[test]
fn chunks_stop_wakes_idle() {
    static ALL: Sometimes = Sometimes::new();
    static NONE: Sometimes = Sometimes::new();
    check("chunks_stop_wakes_idle", Preemptions::AtMost(3), || {
        let (run, threads) = Run::start(Stream::Fast, 1);
        run.order.stop();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok(()));
        }
        // What was filled is passed on, but a stop may come before its delivery.
        let delivered = run.delivered.lock().unwrap();
        let places: Vec<u64> = delivered.iter().map(|(place, _)| *place).collect();
        ALL.note(places == [0]);
        NONE.note(places.is_empty());
        assert!(places.is_empty() || places == [0]);
    });
    ALL.assert();
    NONE.assert();
}
