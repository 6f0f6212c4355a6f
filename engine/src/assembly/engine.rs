//! Dedicated worker threads own the partitions; ingest threads reach them through ports.

use super::pinning::{Pinning, pin_thread};
use super::port::Port;
use super::rings::Rings;
use super::server::{Order, PartitionServer};
use super::shutdown::{ShutdownError, message};
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::partition::{Partitioned, Partitioning};
use crate::sync::{Arc, AtomicBool, JoinHandle, Ordering, Sender, channel, spawn};
use crate::transport::{Doorbell, Parker, Wait};

/// How an engine is set up; see [`Engine::builder`].
///
/// # Examples
/// ```
/// use echoless::{Engine, FingerprintSpec, Pinning, transport::Wait};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let (engine, ports) = Engine::builder(halves)
///     .ports(3)
///     .pinning(Pinning::Spread)
///     .ring_depth(64)
///     .wait(Wait::Shared)
///     .start()?;
/// assert_eq!(ports.len(), 3);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct EngineBuilder<F> {
    filter: Partitioned<F>,
    ports: usize,
    pinning: Pinning,
    rings: Rings,
}

/// Worker threads, one for each partition of a filter.
///
/// Each key costs one message slot (8 bytes out, one bit back) and the one cache line of its filter. For the order that is promised
/// see [the module](crate::assembly).
///
/// An engine that is dropped ends its workers as [`shutdown`](Self::shutdown) does, but does not wait for them: each answers what was
/// submitted before, drops its partition and is gone.
///
/// # Examples
/// Two ingest threads and two workers; of the key that both bring, one hears that it is new.
/// ```
/// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let (engine, ports) = Engine::builder(halves).ports(2).start()?;
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
    partitioning: Partitioning,
    workers: Vec<Worker<F>>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Worker<F> {
    thread: JoinHandle<F>,
    doorbell: Doorbell,
}

impl<F: Filter + 'static> Engine<F> {
    /// Sets up an engine with a worker for each partition of `filter`: one port, no pinning.
    #[must_use]
    pub fn builder(filter: Partitioned<F>) -> EngineBuilder<F> {
        EngineBuilder {
            filter,
            ports: 1,
            pinning: Pinning::Unpinned,
            rings: Rings::default(),
        }
    }

    /// Which keys belong to which worker.
    #[must_use]
    pub const fn partitioning(&self) -> &Partitioning {
        &self.partitioning
    }

    /// Ends the workers once they have answered what was submitted before, and gives the filter back with its counts.
    ///
    /// Ports may still be in use: what they submit meanwhile is answered or [`Disconnected`](crate::Disconnected), and from then on all is. However fast
    /// they submit, the workers come to their end.
    ///
    /// # Errors
    /// [`ShutdownError`] if workers panicked, with the partitions that are left.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Engine, FingerprintLines, FingerprintSpec, KeyHash, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let (engine, mut ports) = Engine::builder(halves).start()?;
    /// ports[0].submit(&[KeyHash(1), KeyHash(u64::MAX)])?;
    /// let halves = engine.shutdown()?;
    /// assert_eq!(FingerprintLines::report_of(halves.filters()).observed, 2);
    /// // What was answered can still be taken; nothing more is.
    /// assert!(ports[0].drain(&mut Verdicts::new())?);
    /// assert!(ports[0].submit(&[KeyHash(2)]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shutdown(mut self) -> Result<Partitioned<F>, ShutdownError<F>> {
        self.stop_workers();
        let mut survivors = Vec::new();
        let mut lost = Vec::new();
        for (index, worker) in std::mem::take(&mut self.workers).into_iter().enumerate() {
            match worker.thread.join() {
                Ok(filter) => survivors.push((index, filter)),
                Err(panic) => lost.push((index, message(&*panic))),
            }
        }
        if !lost.is_empty() {
            return Err(ShutdownError::new(survivors, lost));
        }
        let filters = survivors.into_iter().map(|(_, filter)| filter).collect();
        Ok(Partitioned::new(self.partitioning.clone(), filters)
            .expect("each partition had a worker"))
    }
}

impl<F> Engine<F> {
    fn stop_workers(&self) {
        // Release: pairs with the Acquire of the worker, which then sees all that this thread had submitted.
        self.stop.store(true, Ordering::Release);
        for worker in &self.workers {
            worker.doorbell.ring();
        }
    }
}

impl<F> Drop for Engine<F> {
    fn drop(&mut self) {
        self.stop_workers();
    }
}

impl<F: Filter + 'static> EngineBuilder<F> {
    /// How many ports there are, one for each ingest thread.
    #[must_use]
    pub const fn ports(mut self, ports: usize) -> Self {
        self.ports = ports;
        self
    }

    /// Where the workers run. To pin the threads that use the ports is up to them: see [`pin_thread`].
    #[must_use]
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.pinning = pinning;
        self
    }

    /// How many messages of up to 64 keys fit in each ring: a power of two.
    ///
    /// There is a ring for each port and each worker. Unless asked otherwise it has 128 messages, of some 540 bytes each; where there are more
    /// than fifteen ports or workers, it has fewer, so that the rings of a thread take about a mebibyte; but no fewer than 4, which is more than
    /// that from some 500 on.
    #[must_use]
    pub const fn ring_depth(mut self, messages: usize) -> Self {
        self.rings.depth = Some(messages);
        self
    }

    /// How workers and ports wait; found out from the number of threads and cores if not given.
    #[must_use]
    pub const fn wait(mut self, wait: Wait) -> Self {
        self.rings.wait = Some(wait);
        self
    }

    /// Starts the workers; gives the engine and its ports.
    ///
    /// # Errors
    /// [`BuildError`] if there is no port, the ring depth is no power of two, the memory for the rings is not granted, the pinning does not
    /// fit or is refused, or a thread cannot start.
    pub fn start(self) -> Result<(Engine<F>, Vec<Port>), BuildError> {
        if self.ports == 0 {
            return Err(SpecError::new("ports", "0", "at least 1").into());
        }
        let (partitioning, filters) = self.filter.into_parts();
        let cores = self.pinning.cores(filters.len())?;
        let wait = self.rings.wait_among(filters.len() + self.ports);
        let worker_parkers: Vec<Parker> = filters.iter().map(|_| Parker::new()).collect();
        let port_parkers: Vec<Parker> = (0..self.ports).map(|_| Parker::new()).collect();
        let (port_links, server_links) = self.rings.connect(&port_parkers, &worker_parkers)?;
        let stop = Arc::new(AtomicBool::new(false));
        // Dropped on the way out of an error, it ends the workers that have begun.
        let mut engine = Engine {
            partitioning,
            workers: Vec::new(),
            stop,
        };
        let mut pinned = Vec::new();
        let parts = filters
            .into_iter()
            .zip(server_links)
            .zip(worker_parkers)
            .zip(cores);
        for (index, (((filter, links), parker), core)) in parts.enumerate() {
            let doorbell = parker.doorbell();
            let pin = core.map(|core| {
                let (report, outcome) = channel();
                pinned.push((index, core, outcome));
                PinRequest { core, report }
            });
            let task = WorkerTask {
                server: PartitionServer::new(filter, links, Order::Arrival),
                parker,
                wait,
                pin,
                stop: Arc::clone(&engine.stop),
            };
            let name = format!("echoless-{index}");
            let thread =
                spawn(name, task, WorkerTask::work, WorkerTask::into_filter).map_err(|reason| {
                    BuildError::Thread {
                        worker: index,
                        reason,
                    }
                })?;
            engine.workers.push(Worker { thread, doorbell });
        }
        for (worker, core, outcome) in pinned {
            if outcome.recv() != Ok(true) {
                return Err(BuildError::Pinning { worker, core });
            }
        }
        let ports = port_links
            .into_iter()
            .zip(port_parkers)
            .map(|(links, parker)| Port::new(engine.partitioning.clone(), links, parker, wait))
            .collect();
        Ok((engine, ports))
    }
}

/// What a worker thread does and needs for it.
struct WorkerTask<F> {
    server: PartitionServer<F>,
    parker: Parker,
    wait: Wait,
    pin: Option<PinRequest>,
    stop: Arc<AtomicBool>,
}

/// Where a worker thread is to run, and whom it tells whether it does.
struct PinRequest {
    core: usize,
    report: Sender<bool>,
}

impl<F: Filter> WorkerTask<F> {
    /// Serves until told to stop, which the engine does at its end, and all that was submitted is answered.
    fn work(&mut self) {
        if let Some(PinRequest { core, report }) = self.pin.take() {
            // Fails only if nobody wants to know any more.
            let _ = report.send(pin_thread(Some(core)));
        }
        let Self { server, stop, .. } = self;
        loop {
            // Acquire: pairs with the Release in `stop_workers`. Before the messages, so that none submitted earlier is overlooked.
            if stop.load(Ordering::Acquire) {
                // Else a port that never pauses would keep the worker from its end.
                server.close();
                // In order of arrival nothing is ever missed, so there is no error.
                while server.serve() == Ok(true) {}
                return;
            }
            if server.serve() != Ok(true) {
                self.parker.wait_until(self.wait, || {
                    server.is_ready() || stop.load(Ordering::Acquire)
                });
            }
        }
    }

    fn into_filter(self) -> F {
        self.server.into_filter()
    }
}
