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
//! it waits. [`queue`](super::queue) says who is woken when.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crossbeam_channel::Sender;

use super::clock::{ClockOrder, cut};
use super::delivery::Delivery;
use super::feed::{ChunkReader, Feed, StreamEnd};
use super::pinning::pin;
use super::queue::ChunkQueue;
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
struct Stream {
    queue: ChunkQueue<Chunk>,
    /// Set before the first chunk is pushed.
    reader: OnceLock<ChunkReader>,
    /// The outcome of the feed; set before the queue is ended.
    end: Mutex<Option<Result<StreamEnd, Failure>>>,
}

impl Stream {
    /// Records the outcome of the feed. Only the first call counts.
    fn end(&self, outcome: Result<StreamEnd, Failure>) {
        let mut end = lock(&self.end);
        if end.is_none() {
            *end = Some(outcome);
            self.queue.end();
        }
    }
}

/// The outputs, which take the chunks in order.
struct OrderedDelivery<'a> {
    delivery: &'a Mutex<Delivery>,
    failure: Mutex<Option<Failure>>,
    queue: &'a ChunkQueue<Chunk>,
}

impl OrderedDelivery<'_> {
    /// Delivers the next chunk, unless an earlier one failed.
    fn deliver(&self, chunk: &mut Chunk) {
        if !self.queue.is_stopped() {
            let delivered = lock(self.delivery).deliver(chunk);
            if let Err(failure) = delivered {
                *lock(&self.failure) = Some(failure);
                // The remaining chunks are dropped.
                self.queue.stop();
            }
        }
        self.queue.set_delivered();
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
    let chunks = threads * CHUNKS_PER_WORKER;
    let stream = Arc::new(Stream {
        queue: ChunkQueue::new(chunks, workers.iter().map(Worker::doorbell)),
        reader: OnceLock::new(),
        end: Mutex::new(None),
    });
    let (recycle, recycled) = crossbeam_channel::bounded(chunks);
    let stock = ChunkStock::new(chunks, recycled);
    let source = Feed::new(config);
    let feeding = Arc::clone(&stream);
    // Not joined: when the stream is abandoned, the thread may be blocked on a slow producer.
    thread::Builder::new()
        .name("echoless-feed".into())
        .spawn(move || feed(source, &feeding, stock))
        .map_err(Failure::file("a thread"))?;
    let clock = ClockOrder::new();
    let timing = config.window.as_ref().map(|window| (window, &clock));
    let outputs = OrderedDelivery {
        delivery,
        failure: Mutex::new(None),
        queue: &stream.queue,
    };
    let filters = thread::scope(|scope| {
        let run = |(number, (worker, core))| {
            let stream = &*stream;
            let mut worker_loop: WorkerLoop<'_, S> = WorkerLoop {
                number,
                worker,
                stream,
                timing,
                outputs: &outputs,
                recycle: recycle.clone(),
            };
            thread::Builder::new().spawn_scoped(scope, move || {
                pin(core).inspect_err(|_| stream.queue.stop())?;
                worker_loop.pass_chunks()?;
                Ok(worker_loop.worker.finish()?)
            })
        };
        // If a thread cannot start, the remaining workers are dropped and the running ones see the
        // disconnect.
        let threads: Vec<_> = (workers.into_iter().zip(cores).enumerate().map(run))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                stream.queue.stop();
                Failure::file("a thread")(error)
            })?;
        let ends = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        all_or_cause(ends.collect())
    })?;
    let passed = match lock(&outputs.failure).take() {
        Some(failure) => Err(failure),
        // Without an outcome, the threads were stopped before the feed ended.
        None => (lock(&stream.end).take()).unwrap_or_else(|| Ok(StreamEnd::default())),
    };
    Ok((passed, filters.into_iter().flatten().collect()))
}

/// Fills chunks until the stream ends, fails, or is stopped.
fn feed(mut source: Feed, stream: &Stream, mut stock: ChunkStock) {
    let _unwinding = EndsWhenPanicking(stream);
    while let Some(mut chunk) = stock.take() {
        match source.next(&mut chunk) {
            Ok(true) => {}
            Ok(false) => return stream.end(Ok(source.end())),
            Err(failure) => return stream.end(Err(failure)),
        }
        if stream.reader.get().is_none()
            && let Some(reader) = source.reader()
        {
            stream.reader.get_or_init(|| reader);
        }
        stock.note_sent(&chunk);
        if !stream.queue.push(chunk) {
            break;
        }
    }
    stream.end(Ok(source.end()));
}

/// Ends the stream with an error if the feed thread panics. Otherwise the workers would wait for
/// it.
struct EndsWhenPanicking<'a>(&'a Stream);

impl Drop for EndsWhenPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(Err(Failure::Feed));
        }
    }
}

/// One thread: takes chunks, submits them, delivers them in order, and serves its partition
/// meanwhile.
struct WorkerLoop<'a, S> {
    number: usize,
    worker: S,
    stream: &'a Stream,
    timing: Option<(&'a WindowConfig, &'a ClockOrder)>,
    outputs: &'a OrderedDelivery<'a>,
    recycle: Sender<Chunk>,
}

impl<S: Worker> WorkerLoop<'_, S> {
    /// Passes chunks until the stream ends.
    fn pass_chunks(&mut self) -> Result<(), Failure> {
        let queue = &self.stream.queue;
        let mut reader: Option<ChunkReader> = None;
        let mut submitted: VecDeque<(u64, Chunk)> = VecDeque::new();
        loop {
            if submitted.len() < IN_FLIGHT
                && let Some((number, mut chunk)) = queue.take(self.number)
            {
                if reader.is_none() {
                    reader = self.stream.reader.get().cloned();
                }
                if let Some(reader) = &mut reader {
                    reader.read(&mut chunk);
                }
                self.submit(number, &mut chunk)?;
                submitted.push_back((number, chunk));
            } else if let Some((number, mut chunk)) = submitted.pop_front() {
                self.worker.observe(&mut chunk, || queue.is_next(number))?;
                self.outputs.deliver(&mut chunk);
                // Fails only if the feed has ended, and then the chunk is not needed any more.
                let _ = self.recycle.send(chunk);
            } else if queue.is_exhausted() {
                return Ok(());
            } else if queue.become_idle(self.number) {
                self.worker.wait_until(|| queue.is_called(self.number))?;
            }
        }
    }

    /// Submits a chunk that is read, with a window once its clock is known.
    fn submit(&mut self, number: u64, chunk: &mut Chunk) -> Result<(), Failure> {
        if let Some((window, clock)) = self.timing {
            self.worker.wait_until(|| clock.is_next(number))?;
            let records = clock.place(number, window, chunk);
            self.stream.queue.wake_worker_of(number + 1);
            cut(window, records, chunk);
        } else {
            chunk.one_batch(number);
        }
        Ok(self.worker.submit(chunk)?)
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
        let peer_gone = || Failure::Thread(echoless::ExchangeError::Peer(1));
        let reported = |ends| all_or_cause::<u8>(ends).map_err(|failure| failure.to_string());
        assert_eq!(reported(vec![Ok(1), Ok(2)]), Ok(vec![1, 2]));
        assert_eq!(
            reported(vec![Ok(1), Err(peer_gone())]),
            Err(peer_gone().to_string())
        );
        for ends in [
            vec![Err(peer_gone()), Err(Failure::Feed)],
            vec![Err(Failure::Feed), Err(peer_gone())],
        ] {
            assert_eq!(reported(ends), Err(Failure::Feed.to_string()));
        }
    }

    #[test]
    fn a_feed_that_panics_ends_the_stream_with_an_error() {
        let stream = Stream {
            queue: ChunkQueue::new(1, []),
            reader: OnceLock::new(),
            end: Mutex::new(None),
        };
        assert!(!stream.queue.is_exhausted());
        let panicked = thread::scope(|scope| {
            let feeding = scope.spawn(|| {
                let _unwinding = EndsWhenPanicking(&stream);
                panic!("expected by this test");
            });
            feeding.join().is_err()
        });
        assert!(panicked && stream.queue.is_exhausted());
        // A later outcome does not replace the first.
        stream.end(Ok(StreamEnd::default()));
        assert!(matches!(*lock(&stream.end), Some(Err(Failure::Feed))));
    }
}
