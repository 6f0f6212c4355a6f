//! Builds an engine: connects its ports, and starts and pins its workers.

use super::attacher::{AttachableWorker, Attacher};
use super::engine::{Engine, Worker};
use super::loss::LossPolicy;
use super::mailbox::{Inbox, Mailbox};
use super::owned::OwnedFilter;
use super::partition_state::PartitionState;
use super::port::Port;
use super::rings::RingOptions;
use super::server::ArrivalServer;
use super::status::Status;
use super::worker::{PinRequest, Pinning, WorkerTask};
use crate::error::BuildError;
use crate::filters::Filter;
use crate::partition::Partitioned;
use crate::sync::{Arc, AtomicBool, Mutex, channel, spawn};
use crate::transport::{Parker, Wait};

/// The options of an [`Engine`]; see [`Engine::builder`].
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
///     .build()?;
/// assert_eq!(ports.len(), 3);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct EngineBuilder<F> {
    filter: Partitioned<F>,
    ports: usize,
    pinning: Pinning,
    rings: RingOptions,
    policy: LossPolicy,
}

impl<F: Filter + 'static> EngineBuilder<F> {
    /// One port and no pinning.
    pub(super) fn new(filter: Partitioned<F>) -> Self {
        Self {
            filter,
            ports: 1,
            pinning: Pinning::Unpinned,
            rings: RingOptions::default(),
            policy: LossPolicy::default(),
        }
    }

    /// The number of ports that [`build`](Self::build) returns, one for each ingest thread. The
    /// default is 1. More can [attach](Engine::attach) later.
    #[must_use]
    pub const fn ports(mut self, ports: usize) -> Self {
        self.ports = ports;
        self
    }

    /// The cores of the workers. Threads that use the ports pin themselves, with
    /// [`pin_thread`](super::pin_thread).
    #[must_use]
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.pinning = pinning;
        self
    }

    /// The depth of each ring in messages of up to 64 keys: a power of two.
    ///
    /// Each pair of port and worker has its own rings. The default depth is 512 messages, of some
    /// 600 bytes each. With more than three ports or workers it is lower, to limit the rings of a
    /// thread to about a mebibyte. It is never below 4, with which the rings of a thread exceed a
    /// mebibyte from some 500 ports or workers on.
    ///
    /// A port that waits for room sleeps until half of a ring is free. Deep rings and batches of
    /// thousands of keys make wake-ups rare, each of which costs as much as hundreds of keys.
    #[must_use]
    pub const fn ring_depth(mut self, messages: usize) -> Self {
        self.rings.depth = Some(messages);
        self
    }

    /// What ports do about keys whose partition is lost. The default is [`LossPolicy::Error`].
    #[must_use]
    pub const fn on_loss(mut self, policy: LossPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// How workers and ports wait. The default is [`Wait::auto`] for the number of workers and one
    /// more thread, however many ports there are: most of them may be idle, and one thread may use
    /// many.
    #[must_use]
    pub const fn wait(mut self, wait: Wait) -> Self {
        self.rings.wait = Some(wait);
        self
    }

    /// Starts the workers, and returns the engine and its ports.
    ///
    /// # Errors
    /// [`BuildError`] if the ring depth is not a power of two, the machine lacks the memory for the
    /// rings, the pinning does not match the number of workers or is rejected by
    /// the operating system, or a thread cannot start.
    pub fn build(self) -> Result<(Engine<F>, Vec<Port>), BuildError> {
        let (partitioning, filters) = self.filter.into_parts();
        let cores = self.pinning.cores(filters.len())?;
        let wait = self.rings.wait_with_clients(filters.len());
        let parkers: Vec<Parker> = filters.iter().map(|_| Parker::new()).collect();
        let workers: Vec<AttachableWorker> = parkers
            .iter()
            .map(|parker| AttachableWorker {
                mailbox: Mailbox::new(),
                doorbell: parker.doorbell(),
                status: Status::new(),
            })
            .collect();
        let servers: Vec<_> = workers
            .iter()
            .map(|worker| {
                let inbox = Inbox::new(Arc::clone(&worker.mailbox));
                (PartitionState::new(Arc::clone(&worker.status)), inbox)
            })
            .collect();
        let attacher = Attacher::new(partitioning.clone(), workers, self.rings, self.policy);
        let ports = attacher.attach_first(self.ports)?;
        let stop = Arc::new(AtomicBool::new(false));
        // If a thread cannot start, the remaining workers are dropped, and dropping the engine
        // stops the running ones.
        let mut engine = Engine {
            partitioning,
            workers: Vec::new(),
            threads: Mutex::new(None),
            stop,
            attacher,
        };
        let (mut threads, mut pinned) = (Vec::new(), Vec::new());
        let parts = filters.into_iter().zip(servers).zip(parkers).zip(cores);
        for (index, (((filter, (state, inbox)), parker), core)) in parts.enumerate() {
            let owned = OwnedFilter::new(filter, Arc::clone(&state));
            let mut server = ArrivalServer::new(owned, inbox);
            server.take_mail();
            let doorbell = parker.doorbell();
            let pin = core.map(|core| {
                let (report, outcome) = channel();
                pinned.push((index, core, outcome));
                PinRequest { core, report }
            });
            let task = WorkerTask {
                server,
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
            threads.push(thread);
            engine.workers.push(Worker { doorbell, state });
        }
        engine.threads = Mutex::new(Some(threads));
        // Only now, so that the workers pin themselves concurrently.
        for (worker, core, outcome) in pinned {
            if outcome.recv() != Ok(true) {
                return Err(BuildError::Pinning { worker, core });
            }
        }
        Ok((engine, ports))
    }
}
