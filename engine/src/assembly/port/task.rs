//! Ports in asynchronous tasks, of any executor: no call blocks, and a call that cannot go on
//! leaves the [`Waker`](std::task::Waker) of its task.

use std::task::{Context, Poll, ready};

use super::Port;
use crate::assembly::loss::ExchangeError;
use crate::hash::KeyHash;
use crate::verdicts::Verdicts;

impl Port {
    /// Submits a batch without blocking, and returns true if it is accepted. Messages without room
    /// in the rings are sent by later calls that submit, poll or drain; if the port is dropped
    /// before that, only a part of the keys is recorded. Returns false, and submits nothing, while
    /// messages of an earlier batch are not sent.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let (engine, mut ports) = Engine::builder(halves).build()?;
    /// let port = &mut ports[0];
    /// let mut verdicts = Verdicts::new();
    /// let keys: Vec<_> = (0..50_000).map(|key| KeyHasher::seeded(0).hash_u64(key)).collect();
    /// assert!(port.try_submit(&keys)?);
    /// while !port.try_submit(&keys)? {
    ///     // The first batch is not sent yet, so its verdicts are still to come.
    ///     assert!(port.drain(&mut verdicts)?);
    ///     assert_eq!(verdicts.count_duplicates(), 0);
    /// }
    /// while port.in_flight() > 0 {
    ///     port.drain(&mut verdicts)?;
    /// }
    /// assert_eq!(verdicts.count_duplicates(), 50_000);
    /// # drop(ports);
    /// # engine.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_submit(&mut self, keys: &[KeyHash]) -> Result<bool, ExchangeError> {
        self.try_submit_with(None, keys)
    }

    /// As [`try_submit`](Self::try_submit), at a tick; see [`submit_at`](Self::submit_at).
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// As [`try_submit`](Self::try_submit).
    pub fn try_submit_at(&mut self, tick: u64, keys: &[KeyHash]) -> Result<bool, ExchangeError> {
        self.try_submit_with(Some(tick), keys)
    }

    fn try_submit_with(
        &mut self,
        tick: Option<u64>,
        keys: &[KeyHash],
    ) -> Result<bool, ExchangeError> {
        self.check_process();
        self.collect();
        if !self.send() {
            return Ok(false);
        }
        self.begin(tick, false, keys)?;
        self.send();
        Ok(true)
    }

    /// Waits until [`try_submit`](Self::try_submit) would accept a batch: until every batch in
    /// flight is sent. `Pending` means that the task is woken later; a port has one task, that of
    /// the last call.
    ///
    /// Answers that arrive meanwhile stay in flight. Their number has no limit, so a task that only
    /// submits runs out of memory.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ExchangeError>> {
        self.check_process();
        loop {
            self.collect();
            if self.send() {
                return Poll::Ready(self.check_open());
            }
            ready!(self.poll_wait(context));
        }
    }

    /// Waits until the verdicts of the oldest batch in flight are complete, writes them to
    /// `verdicts` and returns true; false if no batch is in flight. `verdicts` is empty unless true
    /// is returned. `Pending` as for [`poll_ready`](Self::poll_ready).
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    ///
    /// # Examples
    /// ```
    /// use std::future::poll_fn;
    /// use echoless::{ExchangeError, KeyHash, Port, Verdicts};
    /// /// As `Port::observe`, in a task.
    /// async fn observe(
    ///     port: &mut Port,
    ///     keys: &[KeyHash],
    ///     verdicts: &mut Verdicts,
    /// ) -> Result<(), ExchangeError> {
    ///     poll_fn(|context| port.poll_ready(context)).await?;
    ///     assert!(port.try_submit(keys)?, "the port is ready");
    ///     poll_fn(|context| port.poll_drain(context, verdicts)).await.map(|_| ())
    /// }
    /// # use echoless::{Engine, FingerprintSpec, KeyHasher};
    /// # let whole = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// # let (engine, mut ports) = Engine::builder(whole).build()?;
    /// # let (hasher, mut verdicts) = (KeyHasher::seeded(0), Verdicts::new());
    /// # let keys = ["a", "b", "a"].map(|key| hasher.hash(key));
    /// # pollster::block_on(observe(&mut ports[0], &keys, &mut verdicts))?;
    /// # assert_eq!(verdicts.words(), [0b100]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll_drain(
        &mut self,
        context: &mut Context<'_>,
        verdicts: &mut Verdicts,
    ) -> Poll<Result<bool, ExchangeError>> {
        loop {
            match self.poll(verdicts) {
                Ok(false) if !self.pending.is_empty() => ready!(self.poll_wait(context)),
                result => return Poll::Ready(result),
            }
        }
    }
}
