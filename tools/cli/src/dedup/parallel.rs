//! The data path on several threads, with the very output of one thread.
//!
//! One thread feeds numbered chunks; it mostly sleeps in reads. Each of the others has a [`Worker`]: it takes the next chunk, finds its records and
//! hashes their keys, and hands them in to be judged in the order of the chunk numbers. Chunks are delivered in that order too, each by the
//! thread that has it, when its turn comes. A node of a mesh that waits serves its partition meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use crossbeam_queue::ArrayQueue;
use echoless::transport::Doorbell;

use super::delivery::Delivery;
use super::feed::Feed;
use super::pinning::{cores, pin};
use super::worker::Worker;
use crate::config::DedupConfig;
use crate::failure::Failure;
use crate::records::chunk::Chunk;
use crate::records::keys::KeyReader;

/// How many chunks a thread has handed in at a time: while the verdicts of one are on their way, it reads the next.
const IN_FLIGHT: usize = 6;

/// How many chunks there are for each thread: those in flight, one being read, one waiting.
const CHUNKS_PER_WORKER: usize = IN_FLIGHT + 2;

/// How the stream went, with the signal that ended it, if one did; and the filter, in as many parts as it was cut in.
pub(super) type Passed<F> = (Result<Option<u8>, Failure>, Vec<F>);

/// What the feed and the workers share.
struct ChunkQueue {
    chunks: ArrayQueue<(u64, Chunk)>,
    /// Set before the first chunk comes.
    reader: OnceLock<KeyReader>,
    /// How the feed ended; set before `ended`.
    end: Mutex<Result<Option<u8>, Failure>>,
    ended: AtomicBool,
    /// A chunk could not be delivered: nothing more is wanted.
    stopped: AtomicBool,
    workers: Vec<Doorbell>,
}

impl ChunkQueue {
    fn wake_workers(&self) {
        for worker in &self.workers {
            worker.wake();
        }
    }

    /// Says that nothing more is wanted.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake_workers();
    }

    /// Says how the feed ended; only the first time counts.
    fn end(&self, how: Result<Option<u8>, Failure>) {
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        *lock(&self.end) = how;
        // Release: pairs with the Acquire in `is_exhausted`.
        self.ended.store(true, Ordering::Release);
        self.wake_workers();
    }

    fn is_stopped(&self) -> bool {
        // Acquire: pairs with the Release in `stop`.
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether no chunk is left or will come. The flag is read first: what was queued before it was set is then seen.
    fn is_exhausted(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.is_stopped() || self.ended.load(Ordering::Acquire) && self.chunks.is_empty()
    }
}

/// The order of delivery.
struct DeliveryOrder<'a> {
    /// The number of the chunk that is delivered next.
    next: AtomicU64,
    delivery: Mutex<&'a mut Delivery>,
    failure: Mutex<Option<Failure>>,
    queue: &'a ChunkQueue,
}

impl DeliveryOrder<'_> {
    fn is(&self, number: u64) -> bool {
        // Acquire: pairs with the Release in `deliver`.
        self.next.load(Ordering::Acquire) == number
    }

    /// Delivers the chunk whose turn it is, unless an earlier one failed.
    fn deliver(&self, number: u64, chunk: &mut Chunk) {
        if !self.queue.is_stopped() {
            let delivered = lock(&self.delivery).deliver(chunk);
            if let Err(failure) = delivered {
                *lock(&self.failure) = Some(failure);
                self.queue.stop();
            }
        }
        // Release: who has the next turn sees what this one did.
        self.next.store(number + 1, Ordering::Release);
        self.queue.wake_workers();
    }
}

/// Takes the whole stream through the stages, on a thread for each worker, and one that reads.
///
/// # Errors
/// [`Failure`] if the threads cannot be set up. How the stream itself went is in what is returned.
pub(super) fn pass<S: Worker>(
    config: &Arc<DedupConfig>,
    workers: Vec<S>,
    delivery: &mut Delivery,
) -> Result<Passed<S::Filter>, Failure> {
    let threads = workers.len();
    let cores = cores(config.pin, threads)?;
    let queue = Arc::new(ChunkQueue {
        chunks: ArrayQueue::new(threads * CHUNKS_PER_WORKER),
        reader: OnceLock::new(),
        end: Mutex::new(Ok(None)),
        ended: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        workers: workers.iter().map(Worker::doorbell).collect(),
    });
    let (recycle, recycled) = crossbeam_channel::bounded(threads * CHUNKS_PER_WORKER);
    for _ in 0..threads * CHUNKS_PER_WORKER {
        // The channel has room for all of them.
        let _ = recycle.try_send(Chunk::default());
    }
    let source = Feed::new(Arc::clone(config));
    let feeding = Arc::clone(&queue);
    // Not joined: when the stream is given up it may be waiting for a slow producer.
    thread::Builder::new()
        .name("echoless-feed".into())
        .spawn(move || feed(source, &feeding, &recycled))
        .map_err(Failure::file("a thread"))?;
    let turns = DeliveryOrder {
        next: AtomicU64::new(0),
        delivery: Mutex::new(delivery),
        failure: Mutex::new(None),
        queue: &queue,
    };
    let filters = thread::scope(|scope| {
        let run = |(worker, core)| {
            let (turns, recycle) = (&turns, recycle.clone());
            thread::Builder::new().spawn_scoped(scope, move || {
                pin(core).inspect_err(|_| turns.queue.stop())?;
                run_worker(worker, turns, &recycle)
            })
        };
        // If one cannot start, its worker is dropped with the others that have no thread, and those that have one hear of it.
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
    let passed = match lock(&turns.failure).take() {
        Some(failure) => Err(failure),
        None => std::mem::replace(&mut *lock(&queue.end), Ok(None)),
    };
    Ok((passed, filters.into_iter().flatten().collect()))
}

/// Fills chunks until the stream ends, fails, or is no longer wanted.
fn feed(mut source: Feed, queue: &ChunkQueue, recycled: &Receiver<Chunk>) {
    let _unwinding = EndsWhenPanicking(queue);
    let mut number = 0;
    // The workers keep their ends of the channel until they are done.
    while let Ok(mut chunk) = recycled.recv() {
        match source.next(&mut chunk) {
            Ok(true) => {}
            Ok(false) => return queue.end(Ok(source.ended_by())),
            Err(failure) => return queue.end(Err(failure)),
        }
        if let Some(reader) = source.reader() {
            queue.reader.get_or_init(|| reader.clone());
        }
        // There is room for all chunks there are.
        let _ = queue.chunks.push((number, chunk));
        number += 1;
        queue.wake_workers();
        if queue.is_stopped() {
            break;
        }
    }
    queue.end(Ok(None));
}

/// Ends the stream with an error if the thread that feeds panics: the others would wait for it.
struct EndsWhenPanicking<'a>(&'a ChunkQueue);

impl Drop for EndsWhenPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(Err(Failure::Feed));
        }
    }
}

/// The life of a thread: takes chunks while there are any, delivers them in their turns, and is there for the others until all are done.
fn run_worker<S: Worker>(
    mut worker: S,
    turns: &DeliveryOrder<'_>,
    recycle: &Sender<Chunk>,
) -> Result<Option<S::Filter>, Failure> {
    let queue = turns.queue;
    let mut reader: Option<KeyReader> = None;
    let mut handed_in: VecDeque<(u64, Chunk)> = VecDeque::new();
    loop {
        if handed_in.len() < IN_FLIGHT
            && !queue.is_stopped()
            && let Some((number, mut chunk)) = queue.chunks.pop()
        {
            if reader.is_none() {
                reader = queue.reader.get().cloned();
            }
            if let Some(reader) = &mut reader {
                reader.read(&mut chunk);
            }
            worker.hand_in(number, &chunk.hashes)?;
            handed_in.push_back((number, chunk));
        } else if let Some((number, mut chunk)) = handed_in.pop_front() {
            worker.judge(&mut chunk, || turns.is(number))?;
            turns.deliver(number, &mut chunk);
            // Fails only if the feed has ended, and then nobody needs the memory.
            let _ = recycle.send(chunk);
        } else if queue.is_exhausted() {
            return Ok(worker.leave()?);
        } else {
            worker.wait_until(|| queue.is_exhausted() || !queue.chunks.is_empty())?;
        }
    }
}

/// What the threads give back, or why not: that another thread is gone is no cause if there is a better one.
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

/// A mutex whose holder panicked is taken all the same: the panic itself ends the run.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_and_not_what_followed() {
        let lost = || Failure::Thread(echoless::Disconnected::Peer(1));
        let told = |ends| all_or_cause::<u8>(ends).map_err(|failure| failure.to_string());
        assert_eq!(told(vec![Ok(1), Ok(2)]), Ok(vec![1, 2]));
        assert_eq!(told(vec![Ok(1), Err(lost())]), Err(lost().to_string()));
        for ends in [
            vec![Err(lost()), Err(Failure::Feed)],
            vec![Err(Failure::Feed), Err(lost())],
        ] {
            assert_eq!(told(ends), Err(Failure::Feed.to_string()));
        }
    }

    #[test]
    fn a_feed_that_panics_ends_the_stream_with_an_error() {
        let queue = ChunkQueue {
            chunks: ArrayQueue::new(1),
            reader: OnceLock::new(),
            end: Mutex::new(Ok(None)),
            ended: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            workers: Vec::new(),
        };
        assert!(!queue.is_exhausted());
        let panicked = thread::scope(|scope| {
            let feeding = scope.spawn(|| {
                let _unwinding = EndsWhenPanicking(&queue);
                panic!("as this test wants it");
            });
            feeding.join().is_err()
        });
        assert!(panicked && queue.is_exhausted());
        // How it ended first is how it ended.
        queue.end(Ok(None));
        assert!(matches!(*lock(&queue.end), Err(Failure::Feed)));
    }
}
