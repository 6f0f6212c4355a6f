//! A port that keeps something of the caller for each batch in flight: its records, a channel for
//! the answer, the time of its arrival.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::Port;
use crate::assembly::exchange_error::ExchangeError;
use crate::hash::KeyHash;
use crate::verdicts::Verdicts;

/// A [`Port`] whose batches carry a payload, which comes back with their verdicts.
///
/// # Examples
/// The records of a batch wait beside it, so that the next batch can be read meanwhile.
/// ```
/// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let (engine, mut ports) = Engine::builder(halves).build()?;
/// let mut port = ports.remove(0).with_payloads::<Vec<&str>>()?;
/// let hasher = KeyHasher::seeded(0);
/// let mut keys = Vec::new();
/// for records in [vec!["a", "b", "a"], vec!["b", "c"]] {
///     hasher.hash_all(&records, &mut keys);
///     port.submit(&keys, records)?;
/// }
/// let (mut verdicts, mut passed) = (Verdicts::new(), Vec::new());
/// while let Some(mut records) = port.drain(&mut verdicts)? {
///     verdicts.retain_fresh(&mut records);
///     passed.extend(records);
/// }
/// assert_eq!(passed, ["a", "b", "c"]);
/// # drop(port);
/// # engine.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PayloadPort<T> {
    pub(super) port: Port,
    /// The number of keys and the payload of each batch in flight, oldest first.
    payloads: VecDeque<(usize, T)>,
    /// The sum of the numbers in `payloads`.
    keys: usize,
}

/// Something that was not accepted, given back with the cause: the payload of a batch that was not
/// sent, or a port.
#[derive(Clone, PartialEq, Eq)]
pub struct Rejected<T> {
    /// Why it was not accepted.
    pub cause: ExchangeError,
    /// What was not accepted.
    pub payload: T,
}

impl<T> fmt::Debug for Rejected<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = formatter.debug_struct("Rejected");
        out.field("cause", &self.cause).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Rejected<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(formatter)
    }
}

impl<T> std::error::Error for Rejected<T> {}

impl<T> From<Rejected<T>> for ExchangeError {
    /// The cause; what was not accepted is dropped.
    fn from(rejected: Rejected<T>) -> Self {
        rejected.cause
    }
}

impl Port {
    /// Makes every batch carry a payload.
    ///
    /// # Errors
    /// [`Rejected`], with the port and [`ExchangeError::InFlight`], if batches without payloads are
    /// in flight.
    pub fn with_payloads<T>(self) -> Result<PayloadPort<T>, Box<Rejected<Self>>> {
        if !self.pending.is_empty() {
            return Err(Box::new(Rejected {
                cause: ExchangeError::InFlight(self.pending.len()),
                payload: self,
            }));
        }
        Ok(PayloadPort {
            port: self,
            payloads: VecDeque::new(),
            keys: 0,
        })
    }
}

impl<T> PayloadPort<T> {
    /// Submits a batch with its payload; see [`Port::submit`].
    ///
    /// # Errors
    /// [`Rejected`], with the payload, as [`Port::submit`]. No key was recorded.
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more.
    pub fn submit(&mut self, keys: &[KeyHash], payload: T) -> Result<(), Rejected<T>> {
        let submitted = self.port.submit(keys);
        self.keep_payload(submitted, keys.len(), payload)
    }

    /// As [`submit`](Self::submit), at a tick; see [`Port::submit_at`].
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// As [`submit`](Self::submit).
    pub fn submit_at(
        &mut self,
        tick: u64,
        keys: &[KeyHash],
        payload: T,
    ) -> Result<(), Rejected<T>> {
        let submitted = self.port.submit_at(tick, keys);
        self.keep_payload(submitted, keys.len(), payload)
    }

    /// Keeps the payload of a batch of so many keys, if the batch was submitted.
    fn keep_payload(
        &mut self,
        submitted: Result<(), ExchangeError>,
        keys: usize,
        payload: T,
    ) -> Result<(), Rejected<T>> {
        let accepted = submitted.map(|()| true);
        self.keep_accepted(accepted, keys, payload).map(drop)
    }

    /// Keeps the payload of a batch of so many keys, if the batch was accepted, or returns it.
    pub(super) fn keep_accepted(
        &mut self,
        accepted: Result<bool, ExchangeError>,
        keys: usize,
        payload: T,
    ) -> Result<Option<T>, Rejected<T>> {
        match accepted {
            Ok(true) => {
                self.payloads.push_back((keys, payload));
                self.keys += keys;
                Ok(None)
            }
            Ok(false) => Ok(Some(payload)),
            Err(cause) => Err(Rejected { cause, payload }),
        }
    }

    /// Writes the verdicts of the oldest batch in flight to `verdicts` and returns its payload, if
    /// they are complete; see [`Port::poll`]. `verdicts` is empty unless a payload is returned.
    ///
    /// # Errors
    /// As [`Port::poll`]. The payload of a batch that is not known as a whole is returned by
    /// [`take_partial`](Self::take_partial).
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<Option<T>, ExchangeError> {
        let complete = self.port.poll(verdicts)?;
        Ok(self.take_payload(complete))
    }

    /// Blocks until [`poll`](Self::poll) or [`try_submit`](Self::try_submit) may get further, but
    /// not longer than `timeout`; see [`Port::wait`].
    ///
    /// # Errors
    /// As [`Port::wait`].
    pub fn wait(&mut self, timeout: Duration) -> Result<(), ExchangeError> {
        self.port.wait(timeout)
    }

    /// Blocks until the verdicts of the oldest batch in flight are complete, writes them to
    /// `verdicts` and returns its payload; `None` if no batch is in flight. See [`Port::drain`].
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<Option<T>, ExchangeError> {
        let complete = self.port.drain(verdicts)?;
        Ok(self.take_payload(complete))
    }

    /// Writes what is known of the oldest batch in flight to `verdicts` and returns its payload, if
    /// [`poll`](Self::poll) and [`drain`](Self::drain) return an error because some of its verdicts
    /// will never arrive; see [`Port::take_partial`]. The keys that are
    /// [unknown](Verdicts::is_unknown) then have fresh bits although no filter has judged them.
    pub fn take_partial(&mut self, verdicts: &mut Verdicts) -> Option<T> {
        let partial = self.port.take_partial(verdicts);
        self.take_payload(partial)
    }

    /// The payload of the batch whose verdicts were returned, if they were.
    pub(super) fn take_payload(&mut self, returned: bool) -> Option<T> {
        if !returned {
            return None;
        }
        let oldest = self.payloads.pop_front();
        let (keys, payload) = oldest.expect("every batch in flight has a payload");
        self.keys -= keys;
        Some(payload)
    }

    /// How many batches were submitted and their verdicts not yet returned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.payloads.len()
    }

    /// How many keys the batches in flight have. To bound its memory, a caller drains while
    /// there are too many.
    #[must_use]
    pub const fn in_flight_keys(&self) -> usize {
        self.keys
    }

    /// The port, and the payloads of the batches in flight, oldest first.
    #[must_use]
    pub fn into_parts(self) -> (Port, Vec<T>) {
        let payloads = self.payloads.into_iter().map(|(_, payload)| payload);
        (self.port, payloads.collect())
    }
}
