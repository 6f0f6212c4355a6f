//! The rings between ports and partition servers: their messages (up to 64 key hashes one way, one word
//! of verdict bits back, or a mark that there are none), their depth, their doorbells, and how both
//! sides wait.

use super::link::PortLink;
use super::server::ServerLink;
use super::status::Status;
use crate::error::{BuildError, SpecError};
use crate::hash::KeyHash;
use crate::memory::check_available;
use crate::routing::MESSAGE_KEYS;
use crate::sync::Arc;
use crate::transport::{Doorbell, Parker, Wait, ring};

/// The default depth of a ring in messages while there are few threads: 32 Ki keys in flight to
/// each partition. A port that parks for room sleeps while half of them are judged, and a wake-up
/// is then little of the time of a key.
const MAX_DEFAULT_DEPTH: usize = 32_768 / MESSAGE_KEYS;

/// The messages in all rings of a thread, at default depths above the lower limit; up to twice as
/// many, as depths are rounded up.
const MESSAGES_OF_A_THREAD: usize = 2 * MAX_DEFAULT_DEPTH;

/// The lower limit of the default depth in messages: in a shallower ring, a batch with some hundred
/// keys for each partition blocks half-sent.
const MIN_DEFAULT_DEPTH: usize = 4;

/// The options of all rings of an engine.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RingOptions {
    /// Messages in each ring; derived from the number of threads if `None`.
    pub(super) depth: Option<usize>,
    /// How threads wait; derived from the numbers of threads and cores if `None`.
    pub(super) wait: Option<Wait>,
}

/// The owner of a partition, as its ports see it.
pub(super) struct Owner {
    pub(super) partition: usize,
    pub(super) status: Arc<Status>,
    pub(super) doorbell: Doorbell,
}

/// Two rings between a port and the owner of a partition. Each end wakes the thread at the other
/// end, except that no thread waits for room for answers.
pub(super) fn link_pair(
    depth: usize,
    port: &Parker,
    owner: Owner,
) -> Result<(PortLink, ServerLink), BuildError> {
    let (mut requests, mut requested) = ring::bounded::<Request>(depth)?;
    let (mut answers, answered) = ring::bounded::<Answer>(depth)?;
    requests.set_doorbell(owner.doorbell);
    requested.set_doorbell(port.doorbell());
    answers.set_doorbell(port.doorbell());
    answers.wake_when_awaited();
    Ok((
        PortLink::new(owner.partition, owner.status, requests, answered),
        ServerLink::new(requested, answers),
    ))
}

impl RingOptions {
    /// How workers wait, and the threads that use their ports. How many of these run at the same
    /// time is unknown, also where the number of ports is known, so one is assumed.
    pub(super) fn wait_with_clients(self, workers: usize) -> Wait {
        self.wait.unwrap_or_else(|| Wait::auto(workers + 1))
    }

    /// The depth of each ring in messages.
    ///
    /// There are rings for every pair of port and server, so the default depth falls as their
    /// number grows: all rings of a thread together hold at most as much as 4 rings of the greatest
    /// default depth, until each ring is at the lower limit.
    fn depth_among(self, ports: usize, servers: usize) -> usize {
        let fair = (MESSAGES_OF_A_THREAD / ports.max(servers).max(1)).next_power_of_two();
        self.depth
            .unwrap_or(fair.clamp(MIN_DEFAULT_DEPTH, MAX_DEFAULT_DEPTH))
    }

    /// The depth of the rings of `new` ports, with `ports` ports in all. Checks that it is valid,
    /// and that the machine has the memory for them.
    pub(super) fn checked_depth(
        self,
        new: usize,
        ports: usize,
        servers: usize,
    ) -> Result<usize, BuildError> {
        let depth = self.depth_among(ports, servers);
        if !depth.is_power_of_two() {
            let expected = "a power of two";
            return Err(SpecError::new("ring_depth", depth.to_string(), expected).into());
        }
        // Skipped under loom: the rings of a model are tiny, and a model builds them millions of
        // times.
        if cfg!(not(loom)) {
            let pair = ring::bytes::<Request>(depth).saturating_add(ring::bytes::<Answer>(depth));
            check_available(
                pair.saturating_mul(new as u64)
                    .saturating_mul(servers as u64),
            )?;
        }
        Ok(depth)
    }
}

/// Some keys of one batch and one partition, in the order of the batch.
///
/// Aligned to cache lines, so that the end that writes a request and the end that reads the one
/// before it share no line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Request {
    /// The tick at which the keys are judged; `None` keeps the clock of the partition where it is.
    pub(super) tick: Option<u64>,
    /// Whether the keys are looked up, and not observed.
    pub(super) looks_up: bool,
    /// At most [`MESSAGE_KEYS`]; the keys behind it are left over from earlier uses of the slot.
    count: usize,
    keys: [KeyHash; MESSAGE_KEYS],
}

/// The answer of a partition server to one request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answer {
    /// Bit `i` is set if key `i` of the request is a duplicate; all zero if `unknown`.
    pub(super) bits: u64,
    /// The partition is lost, so there are no verdicts. No live filter holds the keys because of
    /// this request.
    pub(super) unknown: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            tick: None,
            looks_up: false,
            count: 0,
            keys: [KeyHash(0); MESSAGE_KEYS],
        }
    }
}

impl Request {
    pub(super) fn keys(&self) -> &[KeyHash] {
        &self.keys[..self.count]
    }

    /// Overwrites the message with at most [`MESSAGE_KEYS`] keys.
    pub(super) fn write(&mut self, tick: Option<u64>, looks_up: bool, keys: &[KeyHash]) {
        self.tick = tick;
        self.looks_up = looks_up;
        self.count = keys.len();
        self.keys[..keys.len()].copy_from_slice(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rings_of_a_thread_keep_their_memory_as_threads_are_added() {
        let depth = |threads| RingOptions::default().depth_among(threads, threads);
        for threads in 1..=3 {
            assert_eq!(depth(threads), 512);
        }
        assert_eq!((depth(4), depth(9), depth(16)), (256, 128, 64));
        assert_eq!((depth(128), depth(1024)), (8, 4));
        for threads in 1..=256 {
            assert!(depth(threads).is_power_of_two());
            assert!(threads * depth(threads) <= 2048, "{threads} threads");
        }
        let explicit = RingOptions {
            depth: Some(2),
            wait: None,
        };
        assert_eq!(explicit.depth_among(1, 1), 2);
        assert_eq!(RingOptions::default().depth_among(1, 64), depth(64));
    }

    #[test]
    fn rings_larger_than_the_memory_are_rejected_before_they_are_allocated() {
        let deep = RingOptions {
            depth: Some(1 << 40),
            wait: None,
        };
        let error = deep.checked_depth(2, 2, 2).unwrap_err();
        assert!(matches!(error, BuildError::Memory(error) if error.bytes >= 4 << 49));
    }
}
