//! Dedicated worker threads own the partitions; ingest threads reach them through ports.

use super::pinning::{Pinning, pin_thread};
use super::port::Port;
use super::rings::Rings;
use super::server::{Order, PartitionServer};
use crate::error::{BuildError, Lost, SpecError};
use crate::filters::Filter;
use crate::partition::{Partitioned, Partitioning};
use crate::sync::{Arc, AtomicBool, JoinHandle, Ordering, spawn};
use crate::transport::{Doorbell, Sleeper, Wait};

/// How an engine is set up; see [`Engine::builder`].
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
/// see [the module](crate::assembly); for an example see [`Port`].
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
            pinning: Pinning::None,
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
    /// Ports may still be in use: what they submit meanwhile is answered or [`Lost`], and from then on all is. However fast they submit,
    /// the workers come to their end.
    ///
    /// # Errors
    /// [`Lost`] if a worker panicked; its partition is gone.
    pub fn shutdown(self) -> Result<Partitioned<F>, Lost> {
        // Release: pairs with the Acquire of the worker, which then sees all that this thread had submitted.
        self.stop.store(true, Ordering::Release);
        for worker in &self.workers {
            worker.doorbell.ring();
        }
        let mut filters = Vec::new();
        let mut lost = None;
        for (index, worker) in self.workers.into_iter().enumerate() {
            match worker.thread.join() {
                Ok(filter) => filters.push(filter),
                Err(_panic) => lost = Some(Lost::Partition(index)),
            }
        }
        match lost {
            Some(lost) => Err(lost),
            None => Partitioned::new(self.partitioning, filters).map_err(|_| Lost::Partition(0)),
        }
    }
}

impl<F: Filter + 'static> EngineBuilder<F> {
    /// How many ports there are, one for each ingest thread.
    #[must_use]
    pub const fn ports(mut self, ports: usize) -> Self {
        self.ports = ports;
        self
    }

    /// Where the workers run.
    #[must_use]
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.pinning = pinning;
        self
    }

    /// How many messages of up to 64 keys fit in each ring: a power of two.
    ///
    /// There is a ring for each port and each worker. Unless asked otherwise it has 128 messages, of some 540 bytes each; where there are more
    /// than nine ports or workers, it has fewer, so that the rings of a thread take about a mebibyte at most, but no less than 4.
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
    /// [`BuildError`] if there is no port, the ring depth is no power of two, the memory for the rings is not granted, the pinning does not fit, or a thread cannot start.
    pub fn start(self) -> Result<(Engine<F>, Vec<Port>), BuildError> {
        if self.ports == 0 {
            return Err(SpecError::new("ports", "0", "at least 1").into());
        }
        let (partitioning, filters) = self.filter.into_parts();
        let cores = self.pinning.cores(filters.len())?;
        let wait = self.rings.wait_among(filters.len() + self.ports);
        let worker_sleepers: Vec<Sleeper> = filters.iter().map(|_| Sleeper::new()).collect();
        let port_sleepers: Vec<Sleeper> = (0..self.ports).map(|_| Sleeper::new()).collect();
        let (lanes, inlets) = self.rings.connect(&port_sleepers, &worker_sleepers)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut workers = Vec::new();
        let parts = filters
            .into_iter()
            .zip(inlets)
            .zip(worker_sleepers)
            .zip(cores);
        for (index, (((filter, inlets), sleeper), core)) in parts.enumerate() {
            let doorbell = sleeper.doorbell();
            let shift = Shift {
                server: PartitionServer::new(filter, inlets, Order::Arrival),
                sleeper,
                wait,
                core,
                stop: Arc::clone(&stop),
            };
            let name = format!("echoless-{index}");
            let thread = spawn(name, shift, Shift::work, Shift::into_filter).map_err(|error| {
                SpecError::new("workers", format!("thread {index}"), error.to_string())
            })?;
            workers.push(Worker { thread, doorbell });
        }
        let ports = lanes
            .into_iter()
            .zip(port_sleepers)
            .map(|(lanes, sleeper)| Port::new(partitioning.clone(), lanes, sleeper, wait))
            .collect();
        let engine = Engine {
            partitioning,
            workers,
            stop,
        };
        Ok((engine, ports))
    }
}

/// What a worker thread does and needs for it.
struct Shift<F> {
    server: PartitionServer<F>,
    sleeper: Sleeper,
    wait: Wait,
    core: Option<usize>,
    stop: Arc<AtomicBool>,
}

impl<F: Filter> Shift<F> {
    /// Serves until told to stop or every port is gone, and all that was submitted is answered.
    fn work(&mut self) {
        pin_thread(self.core);
        let Self { server, stop, .. } = self;
        loop {
            // Acquire: pairs with the Release in `shutdown`. Before the messages, so that none submitted earlier is overlooked.
            if stop.load(Ordering::Acquire) {
                // Else a port that never pauses would keep the worker from its end.
                server.close();
                // In order of arrival nothing is ever missed, so there is no error.
                while server.serve() == Ok(true) {}
                return;
            }
            if server.serve() == Ok(true) {
                continue;
            }
            if server.is_finished() {
                return;
            }
            self.sleeper.wait_until(self.wait, || {
                server.is_ready() || server.is_finished() || stop.load(Ordering::Acquire)
            });
        }
    }

    fn into_filter(self) -> F {
        self.server.into_filter()
    }
}
