//! One workload over which every peer is sent: a stream, its truth, and what the peer got wrong.

use super::candidate::Peer;
use super::stream::{CHUNK, LabelledStream};
use crate::clock::thread_seconds;

/// How many keys are looked up after the stream for each of the two rates.
pub(super) const PROBES: u64 = 1 << 22;

/// What a peer got wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Errors {
    pub(super) fresh: u64,
    pub(super) false_seen: u64,
    pub(super) repeats: u64,
    pub(super) missed: u64,
}

impl Errors {
    fn compare(&mut self, truth: &[u64], told: &[u64]) {
        for (truth, told) in truth.iter().zip(told) {
            self.repeats += u64::from(truth.count_ones());
            self.fresh += u64::from(truth.count_zeros());
            self.false_seen += u64::from((told & !truth).count_ones());
            self.missed += u64::from((truth & !told).count_ones());
        }
    }

    pub(super) fn fpr(&self) -> f64 {
        self.false_seen as f64 / self.fresh.max(1) as f64
    }

    pub(super) fn fnr(&self) -> f64 {
        self.missed as f64 / self.repeats.max(1) as f64
    }
}

/// One stream of `keys` distinct keys, for every peer the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workload {
    pub(super) keys: u64,
    pub(super) repeats: f64,
    pub(super) window: u64,
    /// How many keys are looked up after the stream, for each of the two rates.
    pub(super) probes: u64,
}

impl Workload {
    /// Sends the stream through a peer; gives the CPU seconds and number of keys of the second half, and the errors of all of it.
    pub(super) fn run(self, peer: &mut dyn Peer) -> (f64, u64, Errors) {
        let mut stream = LabelledStream::new(self.repeats, self.window);
        let mut told = vec![0; CHUNK / 64];
        let mut errors = Errors::default();
        let (mut seconds, mut timed) = (0.0, 0);
        // Whole chunks, and never more keys than the peers are sized for.
        while stream.distinct() + CHUNK as u64 <= self.keys {
            let is_timed = stream.distinct() >= self.keys / 2;
            let (keys, truth) = stream.chunk();
            let start = thread_seconds();
            peer.observe(keys, &mut told);
            if is_timed {
                seconds += thread_seconds() - start;
                timed += keys.len() as u64;
            }
            errors.compare(truth, &told);
        }
        (seconds, timed, errors)
    }

    /// Looks keys up that must and must not be known after the stream: the false positive rate, and the rate of the oldest missed.
    pub(super) fn probe(self, peer: &dyn Peer) -> (f64, f64) {
        let stream = LabelledStream::new(self.repeats, self.window);
        let held = (0..self.probes).filter(|index| peer.holds(stream.absent_key(*index)));
        let fpr = held.count() as f64 / self.probes as f64;
        let oldest = (self.keys / 8).min(self.probes);
        let lost = (0..oldest).filter(|index| !peer.holds(stream.key(*index)));
        (fpr, lost.count() as f64 / oldest.max(1) as f64)
    }
}
