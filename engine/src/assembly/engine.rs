//! An engine: dedicated worker threads own the partitions, and ingest threads reach them through
//! ports.

use super::attacher::Attacher;
use super::engine_builder::EngineBuilder;
use super::live_report::live_report;
use super::loss::ExchangeError;
use super::partition_state::{
    NotReplaceable, PartitionState, ReplaceError, lost_partitions, panic_message, replace,
};
use super::port::Port;
use super::shutdown::ShutdownError;
use super::status::EngineCounts;
use crate::error::BuildError;
use crate::filters::Filter;
use crate::partition::{Partitioned, Partitioning};
use crate::report::Report;
use crate::sync::{Arc, AtomicBool, JoinHandle, Mutex, Ordering, unpoisoned};
use crate::transport::Doorbell;

/// Worker threads, one for each partition of a filter.
///
/// Each key costs 8 bytes in a message out, one bit in an answer back, and one cache line of its
/// filter. [The module](crate::assembly) describes the guarantees about order.
///
/// Dropping an engine stops its workers as [`shutdown`](Self::shutdown) does, but does not join
/// them: each worker answers what was submitted before, drops its partition and ends.
///
/// **An engine that runs is not saved.** A state is of use together with a position: how far an
/// input was read, or an output written. Ports have no order among each other, so what the
/// partitions hold at one moment is no point of any input: one partition may have judged its keys
/// of a batch and another one not, and only the threads of the ports know how far they are. For a
/// common point, all of them must drain their ports and wait, and then the engine is idle:
/// [`shutdown`](Self::shutdown) returns the filter, [`FilterSpec::save`](crate::FilterSpec::save)
/// writes it, and an engine of the same partitions goes on. A program that cannot stop takes an
/// [`OrderedFilter`](crate::OrderedFilter), whose tickets are the points of the stream, and
/// [saves](crate::OrderedFilter::save) it while threads use it. In both cases the filter is built
/// with [`FilterSpec::build_line_partitions`](crate::FilterSpec::build_line_partitions), and a lost
/// partition of it with `build_line_partition`.
///
/// # Examples
/// Two ingest threads and two workers. Both threads submit the same key, and exactly one gets
/// Fresh.
/// ```
/// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let (engine, ports) = Engine::builder(halves).ports(2).build()?;
/// let key = KeyHasher::seeded(0).hash(b"call 17");
/// let duplicates: u64 = std::thread::scope(|scope| {
///     let ingest = |mut port: echoless::Port| {
///         scope.spawn(move || {
///             let mut verdicts = Verdicts::new();
///             port.observe(&[key], &mut verdicts).map(|()| verdicts.count_duplicates())
///         })
///     };
///     let threads: Vec<_> = ports.into_iter().map(ingest).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum::<Result<u64, _>>()
/// })?;
/// assert_eq!(duplicates, 1);
/// engine.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine<F> {
    pub(super) partitioning: Partitioning,
    pub(super) workers: Vec<Worker<F>>,
    /// None after the shutdown.
    pub(super) threads: Mutex<Option<Vec<WorkerThread<F>>>>,
    /// Set once, by `stop_workers`; read by all workers.
    pub(super) stop: Arc<AtomicBool>,
    pub(super) attacher: Attacher,
}

/// Returns the filter, or the message of its panic.
pub(super) type WorkerThread<F> = JoinHandle<Result<F, String>>;

#[derive(Debug)]
pub(super) struct Worker<F> {
    pub(super) doorbell: Doorbell,
    pub(super) state: Arc<PartitionState<F>>,
}

impl<F: Filter + 'static> Engine<F> {
    /// A builder of an engine with a worker for each partition of `filter`. It has one port and no
    /// pinning by default.
    #[must_use]
    pub fn builder(filter: Partitioned<F>) -> EngineBuilder<F> {
        EngineBuilder::new(filter)
    }

    /// The map from keys to the workers that own their partitions.
    #[must_use]
    pub const fn partitioning(&self) -> &Partitioning {
        &self.partitioning
    }

    /// Stops the workers once they have answered what was submitted before, and returns the filter
    /// with its counters.
    ///
    /// Ports may still be in use. Batches that they submit concurrently are answered or fail with
    /// [`ExchangeError`](crate::ExchangeError); later batches fail. The workers stop however fast
    /// the ports submit.
    ///
    /// # Errors
    /// [`ShutdownError`] if partitions are lost and were not replaced, with the surviving ones;
    /// or if the engine was shut down before, with none. In a fork of the process that built the engine, all partitions are
    /// lost.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts, report_of};
    /// let keys = [1, 2, 3].map(|id| KeyHasher::seeded(0).hash_u64(id));
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let (engine, mut ports) = Engine::builder(halves).build()?;
    /// ports[0].submit(&keys[..2])?;
    /// let halves = engine.shutdown()?;
    /// assert_eq!(report_of(halves.filters()).tally.observed, Some(2));
    /// // Answered batches can still be drained; new ones are rejected.
    /// assert!(ports[0].drain(&mut Verdicts::new())?);
    /// assert!(ports[0].submit(&keys[2..]).is_err());
    /// assert_eq!(engine.shutdown().unwrap_err().to_string(), "it was shut down before");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(&self) -> Result<Partitioned<F>, ShutdownError<F>> {
        let Some(threads) = unpoisoned(self.threads.lock()).take() else {
            return Err(ShutdownError::repeated());
        };
        self.stop_workers();
        let mut survivors = Vec::new();
        let mut lost = Vec::new();
        for (index, (worker, thread)) in self.workers.iter().zip(threads).enumerate() {
            if worker.state.status().is_forked() {
                // The thread cannot be joined.
                lost.push((index, ExchangeError::Forked.to_string()));
                continue;
            }
            match thread.join() {
                Ok(Ok(filter)) => survivors.push((index, filter)),
                Ok(Err(panic)) => lost.push((index, panic)),
                Err(panic) => lost.push((index, panic_message(&*panic))),
            }
        }
        ShutdownError::or_whole(survivors, lost, self.partitioning.clone())
    }
}

impl<F> Engine<F> {
    /// A new port, while the engine runs; see [`Attacher::attach`]. Its keys have no common order
    /// with those of other ports, as those of the ports of [`EngineBuilder::build`].
    ///
    /// # Errors
    /// [`BuildError`] if the machine lacks the memory for its rings.
    pub fn attach(&self) -> Result<Port, BuildError> {
        self.attacher.attach()
    }

    /// Makes ports of this engine in other threads, also while it is shut down.
    #[must_use]
    pub fn attacher(&self) -> Attacher {
        self.attacher.clone()
    }

    /// Gives a lost partition a new filter, while the workers run. Every batch that is submitted
    /// after this call, by a thread that synchronised with it, is judged by the new filter.
    ///
    /// The partition starts with the content of `filter`, which has to be partition `partition` of
    /// the same specification, usually an empty one. The clock of the stream is carried over. Ports
    /// with [`LossPolicy::Error`](crate::LossPolicy::Error) accept batches again, and the filters
    /// that [`shutdown`](Self::shutdown) returns are all partitions again. Their report leaves out
    /// the keys that the lost filter had recorded: it counts them neither as observed nor as
    /// evictions, so duplicates of them are missed although it reports no evictions. Wakes no
    /// thread and does not block. Of several threads that replace one partition, one succeeds, and
    /// the others get an error with their filter.
    ///
    /// # Errors
    /// [`ReplaceError`], with the filter, if there is no such partition, it is not lost, or its
    /// worker has ended. After any port returned [`ExchangeError::Panicked`](crate::ExchangeError),
    /// it is lost or its worker has ended.
    pub fn replace(&self, partition: usize, filter: F) -> Result<(), ReplaceError<F>> {
        let state = self
            .workers
            .get(partition)
            .map(|worker| &*worker.state)
            .ok_or(NotReplaceable::NoSuchPartition);
        replace(state, partition, self.workers.len(), filter)
    }

    /// The number of each partition that is lost now, and the message of the panic, in ascending
    /// order.
    #[must_use]
    pub fn lost(&self) -> Vec<(usize, String)> {
        lost_partitions(self.workers.iter().map(|worker| &*worker.state))
    }

    /// What was counted so far, over all ports and since the engine was built, without stopping it.
    /// Keys count once their partition has judged them, before the verdicts reach the port.
    /// Evictions and estimates of errors are in the [report](Self::report).
    #[must_use]
    pub fn counts(&self) -> EngineCounts {
        let workers = self.workers.iter();
        workers.map(|worker| worker.state.status().counts()).sum()
    }

    /// The [report](crate::report_of) of the filter while it is in use. Each worker counts its
    /// partition between two of its passes, one worker after the other: a partition counts the keys
    /// of all verdicts that a port had taken before this call, and a batch under way may be counted
    /// in some partitions and not yet in others. A worker may read all of its memory, and judges no
    /// key meanwhile.
    ///
    /// # Errors
    /// [`ExchangeError`] if a partition is lost, also because its filter panics in this call, with
    /// every [`LossPolicy`](crate::LossPolicy), or the engine was shut down, or the process was
    /// forked.
    pub fn report(&self) -> Result<Report, ExchangeError> {
        live_report(self.attacher.workers())
    }

    fn stop_workers(&self) {
        // Release: pairs with the Acquire load of `stop` in `WorkerTask::work`. A worker that reads
        // true also sees every message that was enqueued before this call, by this thread or by one
        // that it synchronised with.
        //
        // The wake after the store is the second half of the parking protocol (see
        // `transport::parker`): a worker that parks concurrently either reads the flag or is woken.
        self.stop.store(true, Ordering::Release);
        for worker in &self.workers {
            // In a fork there is no thread to wake, and it may have held its lock.
            if !worker.state.status().is_forked() {
                worker.doorbell.wake();
            }
        }
    }
}

impl<F> Drop for Engine<F> {
    fn drop(&mut self) {
        self.stop_workers();
    }
}
