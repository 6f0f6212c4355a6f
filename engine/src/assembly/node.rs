//! A node of a mesh: it routes its own batches, and serves its peers while it waits.

use std::panic::resume_unwind;

use super::exchange_error::ExchangeError;
use super::link::PortLink;
use super::port::{BatchNumber, Port, WhileWaiting};
use super::replace::{NotReplaceable, ReplaceError, replace};
use super::server::NumberedServer;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::transport::{Attention, Doorbell};
use crate::verdicts::Verdicts;

/// One thread's share of a mesh: a port to every partition, and one partition of its own.
///
/// The batches of all nodes are numbered together, from 0 without gaps, and the numbers of each
/// node rise. Every partition applies the batches in the order of their numbers, so the verdicts
/// equal those of the undivided filter. Peers block until a node calls one of its methods again;
/// while it waits for something else, it can serve them in [`serve_until`](Self::serve_until).
///
/// **If the filter of a node panics**, the [`LossPolicy`](crate::LossPolicy) of the mesh decides.
/// With [`LossPolicy::Error`](crate::LossPolicy::Error), the default, the call in which it panicked
/// closes the links of the node and resumes the panic. If the caller catches it, every later call
/// returns [`ExchangeError::Panicked`], as at the peers, which return what is complete or
/// [partial](Self::take_partial) first. With the other policies, the node goes on without its
/// filter until the partition is [replaced](Self::replace). A node that is dropped before it
/// finished ends the mesh with every policy, because the numbers of its batches are missing.
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, KeyHasher, Mesh, Verdicts};
/// let mesh = Mesh::builder(FingerprintSpec::new(1 << 20).build_partitions(2)?).build()?;
/// let hasher = KeyHasher::seeded(0);
/// let keys = [b"a", b"b", b"c"].map(|key| hasher.hash(key));
/// // Both nodes submit the same three keys: they are fresh in batch 0.
/// let duplicates: Vec<u64> = std::thread::scope(|scope| {
///     let run = |(number, mut node): (usize, echoless::Node<_>)| {
///         scope.spawn(move || {
///             let mut verdicts = Verdicts::new();
///             node.observe(number as u64, &keys, &mut verdicts).unwrap();
///             node.finish().unwrap();
///             verdicts.count_duplicates()
///         })
///     };
///     let threads: Vec<_> = mesh.into_iter().enumerate().map(run).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert_eq!(duplicates, [0, 3]);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Node<F> {
    /// Before the port: if the thread unwinds, the loss is set before any link closes.
    server: NumberedServer<F>,
    port: Port,
    /// The number of the last submitted batch.
    last: Option<u64>,
}

impl<F: Filter> WhileWaiting for NumberedServer<F> {
    fn work(&mut self) -> Result<bool, ExchangeError> {
        self.serve()
    }

    fn attention(&self) -> Option<Attention> {
        Self::attention(self)
    }

    fn has_panicked(&self) -> bool {
        Self::has_panicked(self)
    }
}

impl<F: Filter> Node<F> {
    pub(super) const fn new(port: Port, server: NumberedServer<F>) -> Self {
        Self {
            server,
            port,
            last: None,
        }
    }

    /// Submits the batch with this number; [`drain`](Self::drain) or [`poll`](Self::poll) returns
    /// its verdicts later. Serves peers while it blocks for room in the rings. The number of
    /// batches in flight is unlimited.
    ///
    /// # Errors
    /// [`ExchangeError`] if a peer is gone without [`finish`](Self::finish), the number that is due
    /// was skipped, or a number was used twice; every later call then returns an error as well. The
    /// batch was not sent. A loss that is found while the batch is sent is returned by
    /// [`drain`](Self::drain) or [`poll`](Self::poll) instead. A number that is not greater than
    /// the last one of this node is [`ExchangeError::Repeated`], too, but that call has no effect.
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more. Resumes a panic of the filter, with
    /// [`LossPolicy::Error`](crate::LossPolicy::Error).
    ///
    /// # Examples
    /// The next batch is submitted while the verdicts of earlier ones are in flight; a single node
    /// may submit all batches.
    /// ```
    /// use echoless::{FingerprintSpec, KeyHasher, Mesh, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let mut nodes = Mesh::builder(halves).build()?.into_nodes();
    /// let idle = nodes.pop().unwrap();
    /// let mut busy = nodes.pop().unwrap();
    /// let mut duplicates = 0;
    /// std::thread::scope(|scope| {
    ///     // Serves its partition until the other node finishes.
    ///     scope.spawn(|| idle.finish().unwrap());
    ///     let mut verdicts = Verdicts::new();
    ///     for number in 0..10 {
    ///         let keys: Vec<_> = (0..100).map(|key| KeyHasher::seeded(0).hash_u64(key)).collect();
    ///         busy.submit(number, &keys)?;
    ///         while busy.poll(&mut verdicts)? {
    ///             duplicates += verdicts.count_duplicates();
    ///         }
    ///     }
    ///     while busy.drain(&mut verdicts)? {
    ///         duplicates += verdicts.count_duplicates();
    ///     }
    ///     busy.finish()
    /// })?;
    /// assert_eq!(duplicates, 900);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit(&mut self, number: u64, keys: &[KeyHash]) -> Result<(), ExchangeError> {
        self.submit_at(number, 0, keys)
    }

    /// As [`submit`](Self::submit), at a tick: every partition moves its clock to `tick` before it
    /// judges the keys; see [`Filter::advance_to`].
    ///
    /// Partitions apply ticks in the order of the batch numbers, as the undivided filter would. A
    /// stream has one clock: the tick of a batch is the largest event time of it and of all batches
    /// of lower numbers. An earlier tick has no effect, like the tick 0.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// As [`submit`](Self::submit).
    pub fn submit_at(
        &mut self,
        number: u64,
        tick: u64,
        keys: &[KeyHash],
    ) -> Result<(), ExchangeError> {
        self.port.check_connected()?;
        if self.last.is_some_and(|last| number <= last) {
            return Err(ExchangeError::Repeated(number));
        }
        let submitted = self.port.submit_while_serving(
            BatchNumber::Number(number),
            tick,
            keys,
            &mut self.server,
        );
        self.last = Some(number);
        self.resume_panic();
        self.keep_loss(submitted)
    }

    /// Serves peers once, then until the verdicts of the oldest batch in flight are complete,
    /// writes them to `verdicts` and returns true. Returns false if no batch is in flight.
    /// `verdicts` is empty unless true is returned.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), or if some of the verdicts will never be complete; see
    /// [`take_partial`](Self::take_partial).
    ///
    /// # Panics
    /// Resumes a panic of the filter, with [`LossPolicy::Error`](crate::LossPolicy::Error).
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<bool, ExchangeError> {
        self.port.check_process();
        // Also if the verdicts are there: otherwise peers would be served only once this node waits
        // for them, and wait themselves until then. The port keeps the error, as in `poll`.
        self.port.work(&mut self.server).ok();
        self.resume_panic();
        let drained = self.port.drain_while_serving(verdicts, &mut self.server);
        self.resume_panic();
        self.keep_loss(drained)
    }

    /// Serves peers once. Then writes the verdicts of the oldest batch [in flight](Self::in_flight)
    /// to `verdicts` and returns true, if they are complete. Returns false if they are not complete
    /// yet, or no batch is in flight. `verdicts` is empty unless true is returned.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    ///
    /// # Panics
    /// As [`drain`](Self::drain).
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, ExchangeError> {
        self.port.check_process();
        // The port keeps the error, and returns it after the verdicts that are complete.
        self.port.work(&mut self.server).ok();
        self.resume_panic();
        let polled = self.port.poll(verdicts);
        self.keep_loss(polled)
    }

    /// Ends the port with a loss that a call returns: no peer of a mesh that returns it can be
    /// replaced.
    fn keep_loss<T>(&mut self, outcome: Result<T, ExchangeError>) -> Result<T, ExchangeError> {
        if let Err(loss @ ExchangeError::Panicked(_)) = outcome {
            self.port.fail(loss);
        }
        outcome
    }

    /// As [`Port::take_partial`]: what is known of the oldest batch, if [`drain`](Self::drain) and
    /// [`poll`](Self::poll) return an error for it.
    pub fn take_partial(&mut self, verdicts: &mut Verdicts) -> bool {
        self.port.take_partial(verdicts)
    }

    /// Resumes the panic of the filter, after the port has ended.
    fn resume_panic(&mut self) {
        if let Some(panic) = self.server.take_panic() {
            resume_unwind(panic);
        }
    }

    /// How many batches were submitted and their verdicts not yet returned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.port.in_flight()
    }

    /// Submits the batch with this number, and serves peers until its verdicts are complete.
    ///
    /// `verdicts` is empty after an error.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`drain`](Self::drain). [`ExchangeError::InFlight`] if other
    /// batches are in flight; nothing was sent then.
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more. Resumes a panic of the filter, with
    /// [`LossPolicy::Error`](crate::LossPolicy::Error).
    pub fn observe(
        &mut self,
        number: u64,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        verdicts.reset(0);
        self.port.check_idle()?;
        self.submit(number, keys)?;
        self.drain(verdicts).map(|_| ())
    }

    /// Serves peers until the condition holds. The thread that makes the condition true must wake
    /// this node's [`doorbell`](Self::doorbell) afterwards.
    ///
    /// # Errors
    /// As [`submit`](Self::submit). A peer that is gone ends the wait, also if it had finished its
    /// own batches.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use echoless::{FingerprintSpec, Mesh};
    /// let mesh = Mesh::builder(FingerprintSpec::new(1 << 20).build_partitions(1)?).build()?;
    /// let mut node = mesh.into_nodes().remove(0);
    /// let (has_input, doorbell) = (AtomicBool::new(false), node.doorbell());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         has_input.store(true, Ordering::Release);
    ///         doorbell.wake();
    ///     });
    ///     node.serve_until(|| has_input.load(Ordering::Acquire))
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn serve_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), ExchangeError> {
        self.serve_unless(|_| false, condition)
    }

    /// Serves peers until [`poll`](Self::poll) has something to return, or the condition holds, as
    /// in [`serve_until`](Self::serve_until): for a thread that has several things to wait for.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); `poll` may still return complete batches then.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use echoless::{FingerprintSpec, KeyHasher, Mesh, Verdicts};
    /// let mesh = Mesh::builder(FingerprintSpec::new(1 << 20).build_partitions(1)?).build()?;
    /// let mut node = mesh.into_nodes().remove(0);
    /// let (more_input, mut verdicts) = (AtomicBool::new(false), Verdicts::new());
    /// node.submit(0, &[KeyHasher::seeded(0).hash(b"a")])?;
    /// node.serve_until_ready(|| more_input.load(Ordering::Acquire))?;
    /// // No input came, so it was the batch.
    /// assert!(node.poll(&mut verdicts)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn serve_until_ready(
        &mut self,
        condition: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError> {
        self.serve_unless(Port::has_settled, condition)
    }

    /// Serves peers until the port is ready, which only answers make it, or the condition holds.
    fn serve_unless(
        &mut self,
        is_ready: impl Fn(&Port) -> bool,
        mut condition: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError> {
        self.port.check_connected()?;
        while !is_ready(&self.port) && !condition() {
            let worked = self.port.work(&mut self.server);
            self.resume_panic();
            if !worked? {
                // No peer leaves before this node finishes, unless it failed.
                self.port.wait_for_answers(&self.server, |links| {
                    links.iter().any(PortLink::is_closed) || condition()
                });
            }
            self.port.collect();
            if let Some(peer) = self.port.links().iter().position(PortLink::is_closed) {
                return Err(self.port.give_up(ExchangeError::Peer(peer)));
            }
        }
        Ok(())
    }

    /// Wakes this node from [`serve_until`](Self::serve_until) and
    /// [`serve_until_ready`](Self::serve_until_ready).
    #[must_use]
    pub fn doorbell(&self) -> Doorbell {
        self.port.doorbell()
    }

    /// Ends the batches of this node, serves its peers until all of them finish, and returns the
    /// filter of its partition.
    ///
    /// On success, all batches of this node are recorded in all partitions that are not lost.
    /// Verdicts that were not returned before are dropped.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); [`ExchangeError::Panicked`] if the partition of this node is
    /// lost and was not replaced.
    pub fn finish(mut self) -> Result<F, ExchangeError> {
        self.port.check_connected()?;
        let sent = self.port.send_finish(&mut self.server);
        self.resume_panic();
        sent?;
        // That all peers finished is not enough: one may have panicked after that, before it
        // applied this node's last batches.
        let finished = |server: &NumberedServer<F>, links: &[PortLink]| {
            server.is_finished() && links.iter().all(PortLink::is_answered)
        };
        while !finished(&self.server, self.port.links()) {
            let worked = self.port.work(&mut self.server);
            self.resume_panic();
            if !worked? {
                let server = &self.server;
                self.port
                    .wait_for_answers(server, |links| finished(server, links));
                self.port.collect();
                self.port.check_connected()?;
            }
        }
        // A closed link settles its requests as well, without an answer.
        self.port.check_connected()?;
        let partition = self.server.partition();
        self.server
            .into_filter()
            .map_err(|_panic| ExchangeError::Panicked(partition))
    }

    /// The filter of this partition as it is now, without waiting for peers: what is left of a mesh
    /// that cannot go on. Peers find this node disconnected.
    ///
    /// Returns `None` if the partition is lost.
    #[must_use]
    pub fn into_filter(self) -> Option<F> {
        self.server.into_filter().ok()
    }

    /// Gives the partition of this node a new filter, after the old one panicked. The policy of the
    /// mesh must be other than [`LossPolicy::Error`](crate::LossPolicy::Error). As
    /// [`Engine::replace`](crate::Engine::replace) otherwise.
    ///
    /// # Errors
    /// [`ReplaceError`], with the filter, if the partition is not lost, or the node cannot go on.
    pub fn replace(&mut self, filter: F) -> Result<(), ReplaceError<F>> {
        let state = match self.port.check_connected() {
            Ok(()) => Ok(self.server.state()),
            Err(_) => Err(NotReplaceable::Ended),
        };
        // A node has a link to every node, itself included.
        let partitions = self.port.links().len();
        replace(state, self.server.partition(), partitions, filter)
    }

    /// The message of the panic, if the partition of this node is lost.
    #[must_use]
    pub fn loss(&self) -> Option<String> {
        self.server.state().loss()
    }

    /// The number of keys of this node's partition, from all nodes, that had no verdict because it
    /// was lost.
    #[must_use]
    pub fn unknown_keys(&self) -> u64 {
        self.server.state().status().unknown_keys()
    }
}
