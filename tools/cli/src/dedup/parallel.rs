//! The data path on several threads, with the same output as on one.
//!
//! ```text
//!               +-> worker: read, hash, filter -+
//! feed -> queue +-> worker: read, hash, filter -+-> delivery, in the order of the chunk numbers
//!   ^           +-> worker: read, hash, filter -+       |
//!   +------------------- recycled chunks ---------------+
//! ```
//!
//! One thread feeds numbered chunks; it is mostly blocked in reads. Each other thread has a
//! [`Worker`]: it pops the next chunk, finds its records, hashes their keys and submits them to the
//! filter, which handles chunks in the order of their numbers. With a window, the
//! [clock](super::clock) passes from chunk to chunk before they are submitted. The thread that
//! holds a chunk delivers it when its number is next. A node of a mesh serves its partition while
//! it waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crossbeam_channel::Sender;
use crossbeam_queue::ArrayQueue;
use echoless::transport::Doorbell;

use super::clock::{ClockOrder, cut};
use super::delivery::Delivery;
use super::feed::{ChunkReader, Feed, StreamEnd};
use super::pinning::pin;
use super::stock::ChunkStock;
use super::worker::Worker;
use crate::config::{DedupConfig, WindowConfig};
use crate::failure::Failure;
use crate::records::chunk::Chunk;

/// The number of chunks a thread has submitted at a time: it reads the next ones while the verdicts
/// of one are under way.
const IN_FLIGHT: usize = 6;

/// The number of chunks per thread: those in flight, one being read, one in the queue.
const CHUNKS_PER_WORKER: usize = IN_FLIGHT + 2;

/// The outcome of the stream, and the parts of the filter.
pub(super) type Passed<F> = (Result<StreamEnd, Failure>, Vec<F>);

/// The state that the feed and the workers share.
struct ChunkQueue {
    chunks: ArrayQueue<(u64, Chunk)>,
    /// Set before the first chunk is pushed.
    reader: OnceLock<ChunkReader>,
    /// The outcome of the feed; set before `ended`.
    end: Mutex<Result<StreamEnd, Failure>>,
    ended: AtomicBool,
    /// Set when delivery fails: the remaining chunks are dropped.
    stopped: AtomicBool,
    workers: Vec<Doorbell>,
}

impl ChunkQueue {
    fn wake_workers(&self) {
        for worker in &self.workers {
            worker.wake();
        }
    }

    /// Stops the feed and the workers.
    fn stop(&self) {
        // Release: pairs with the Acquire in `is_stopped`. A thread that sees the flag also sees
        // the failure stored before it.
        self.stopped.store(true, Ordering::Release);
        self.wake_workers();
    }

    /// Records the outcome of the feed. Only the first call counts.
    fn end(&self, outcome: Result<StreamEnd, Failure>) {
        // Relaxed: only the feed thread stores and loads here.
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        *lock(&self.end) = outcome;
        // Release: pairs with the Acquire in `is_exhausted`. A thread that sees the flag also sees
        // the outcome and every chunk pushed before.
        self.ended.store(true, Ordering::Release);
        self.wake_workers();
    }

    fn is_stopped(&self) -> bool {
        // Acquire: pairs with the Release in `stop`.
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether the queue is empty and stays so. The flag is loaded first: a queue that is empty
    /// after that stays empty, while in the other order a chunk could be pushed in between.
    fn is_exhausted(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.is_stopped() || self.ended.load(Ordering::Acquire) && self.chunks.is_empty()
    }
}

/// The order of delivery.
struct DeliveryOrder<'a> {
    /// The number of the next chunk to deliver.
    next: AtomicU64,
    delivery: &'a Mutex<Delivery>,
    failure: Mutex<Option<Failure>>,
    queue: &'a ChunkQueue,
}

impl DeliveryOrder<'_> {
    fn is_next(&self, number: u64) -> bool {
        // Acquire: pairs with the Release in `deliver`.
        self.next.load(Ordering::Acquire) == number
    }

    /// Delivers the next chunk, unless an earlier one failed.
    fn deliver(&self, number: u64, chunk: &mut Chunk) {
        if !self.queue.is_stopped() {
            let delivered = lock(self.delivery).deliver(chunk);
            if let Err(failure) = delivered {
                *lock(&self.failure) = Some(failure);
                self.queue.stop();
            }
        }
        // Release: pairs with the Acquire in `is_next`. The thread with the next chunk sees the
        // outputs and counts of this one.
        self.next.store(number + 1, Ordering::Release);
        self.queue.wake_workers();
    }
}

/// Passes the whole stream through the stages, on one thread per worker and one that reads.
///
/// # Errors
/// [`Failure`] if the threads cannot be set up. The outcome of the stream itself is in [`Passed`].
pub(super) fn pass<S: Worker>(
    config: &DedupConfig,
    workers: Vec<S>,
    cores: Vec<Option<usize>>,
    delivery: &Mutex<Delivery>,
) -> Result<Passed<S::Filter>, Failure> {
    let threads = workers.len();
    let queue = Arc::new(ChunkQueue {
        chunks: ArrayQueue::new(threads * CHUNKS_PER_WORKER),
        reader: OnceLock::new(),
        end: Mutex::new(Ok(StreamEnd::default())),
        ended: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        workers: workers.iter().map(Worker::doorbell).collect(),
    });
    let (recycle, recycled) = crossbeam_channel::bounded(threads * CHUNKS_PER_WORKER);
    let stock = ChunkStock::new(threads * CHUNKS_PER_WORKER, recycled);
    let source = Feed::new(config);
    let feeding = Arc::clone(&queue);
    // Not joined: when the stream is abandoned, the thread may be blocked on a slow producer.
    thread::Builder::new()
        .name("echoless-feed".into())
        .spawn(move || feed(source, &feeding, stock))
        .map_err(Failure::file("a thread"))?;
    let clock = ClockOrder::new();
    let timing = config.window.as_ref().map(|window| (window, &clock));
    let order = DeliveryOrder {
        next: AtomicU64::new(0),
        delivery,
        failure: Mutex::new(None),
        queue: &queue,
    };
    let filters = thread::scope(|scope| {
        let run = |(worker, core)| {
            let (order, recycle) = (&order, recycle.clone());
            thread::Builder::new().spawn_scoped(scope, move || {
                pin(core).inspect_err(|_| order.queue.stop())?;
                run_worker(worker, timing, order, &recycle)
            })
        };
        // If a thread cannot start, the remaining workers are dropped and the running ones see the
        // disconnect.
        let threads: Vec<_> = (workers.into_iter().zip(cores).map(run))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                queue.stop();
                Failure::file("a thread")(error)
            })?;
        let ends = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        all_or_cause(ends.collect())
    })?;
    let passed = match lock(&order.failure).take() {
        Some(failure) => Err(failure),
        None => std::mem::replace(&mut *lock(&queue.end), Ok(StreamEnd::default())),
    };
    Ok((passed, filters.into_iter().flatten().collect()))
}

/// Fills chunks until the stream ends, fails, or is stopped.
fn feed(mut source: Feed, queue: &ChunkQueue, mut stock: ChunkStock) {
    let _unwinding = EndsWhenPanicking(queue);
    let mut number = 0;
    while let Some(mut chunk) = stock.take() {
        match source.next(&mut chunk) {
            Ok(true) => {}
            Ok(false) => return queue.end(Ok(source.end())),
            Err(failure) => return queue.end(Err(failure)),
        }
        if queue.reader.get().is_none()
            && let Some(reader) = source.reader()
        {
            queue.reader.get_or_init(|| reader);
        }
        stock.note_sent(&chunk);
        // Cannot fail: the queue has room for all chunks.
        let _ = queue.chunks.push((number, chunk));
        number += 1;
        queue.wake_workers();
        if queue.is_stopped() {
            break;
        }
    }
    queue.end(Ok(source.end()));
}

/// Ends the stream with an error if the feed thread panics. Otherwise the workers would wait for
/// it.
struct EndsWhenPanicking<'a>(&'a ChunkQueue);

impl Drop for EndsWhenPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(Err(Failure::Feed));
        }
    }
}

/// Runs one thread: pops chunks, submits them, delivers them in order, and serves its partition
/// until all threads are done.
fn run_worker<S: Worker>(
    mut worker: S,
    timing: Option<(&WindowConfig, &ClockOrder)>,
    order: &DeliveryOrder<'_>,
    recycle: &Sender<Chunk>,
) -> Result<Option<S::Filter>, Failure> {
    let queue = order.queue;
    let mut reader: Option<ChunkReader> = None;
    let mut submitted: VecDeque<(u64, Chunk)> = VecDeque::new();
    loop {
        if submitted.len() < IN_FLIGHT
            && !queue.is_stopped()
            && let Some((number, mut chunk)) = queue.chunks.pop()
        {
            if reader.is_none() {
                reader = queue.reader.get().cloned();
            }
            if let Some(reader) = &mut reader {
                reader.read(&mut chunk);
            }
            if let Some((window, clock)) = timing {
                worker.wait_until(|| clock.is_next(number))?;
                let records = clock.place(number, window, &mut chunk);
                queue.wake_workers();
                cut(window, records, &mut chunk);
            } else {
                chunk.one_batch(number);
            }
            worker.submit(&chunk)?;
            submitted.push_back((number, chunk));
        } else if let Some((number, mut chunk)) = submitted.pop_front() {
            worker.observe(&mut chunk, || order.is_next(number))?;
            order.deliver(number, &mut chunk);
            // Fails only if the feed has ended, and then the chunk is not needed any more.
            let _ = recycle.send(chunk);
        } else if queue.is_exhausted() {
            return Ok(worker.finish()?);
        } else {
            worker.wait_until(|| queue.is_exhausted() || !queue.chunks.is_empty())?;
        }
    }
}

/// The parts that the threads return, or the cause of a failure. A disconnect only follows from a
/// failure elsewhere, so any other failure is preferred.
fn all_or_cause<T>(ends: Vec<Result<T, Failure>>) -> Result<Vec<T>, Failure> {
    let mut given = Vec::new();
    let mut cause = None;
    for end in ends {
        match end {
            Ok(part) => given.push(part),
            Err(failure) if matches!(cause, None | Some(Failure::Thread(_))) => {
                cause = Some(failure);
            }
            Err(_) => {}
        }
    }
    cause.map_or(Ok(given), Err)
}

/// Locks a mutex even if a holder panicked: the panic itself ends the run.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_reported_and_not_its_consequences() {
        let disconnected = || Failure::Thread(echoless::Disconnected::Peer(1));
        let reported = |ends| all_or_cause::<u8>(ends).map_err(|failure| failure.to_string());
        assert_eq!(reported(vec![Ok(1), Ok(2)]), Ok(vec![1, 2]));
        assert_eq!(
            reported(vec![Ok(1), Err(disconnected())]),
            Err(disconnected().to_string())
        );
        for ends in [
            vec![Err(disconnected()), Err(Failure::Feed)],
            vec![Err(Failure::Feed), Err(disconnected())],
        ] {
            assert_eq!(reported(ends), Err(Failure::Feed.to_string()));
        }
    }

    #[test]
    fn a_feed_that_panics_ends_the_stream_with_an_error() {
        let queue = ChunkQueue {
            chunks: ArrayQueue::new(1),
            reader: OnceLock::new(),
            end: Mutex::new(Ok(StreamEnd::default())),
            ended: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            workers: Vec::new(),
        };
        assert!(!queue.is_exhausted());
        let panicked = thread::scope(|scope| {
            let feeding = scope.spawn(|| {
                let _unwinding = EndsWhenPanicking(&queue);
                panic!("expected by this test");
            });
            feeding.join().is_err()
        });
        assert!(panicked && queue.is_exhausted());
        // A later outcome does not replace the first.
        queue.end(Ok(StreamEnd::default()));
        assert!(matches!(*lock(&queue.end), Err(Failure::Feed)));
    }
}
