//! The workload of every peer: a labelled stream, and the errors that the peer makes on it.

use super::candidate::Peer;
use super::stream::{CHUNK, LabelledStream};
use crate::clock::thread_seconds;

/// The default of [`Workload::probes`].
pub(super) const PROBES: u64 = 1 << 22;

/// Counts of keys, and of wrong verdicts on them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Errors {
    /// Keys seen for the first time.
    pub(super) fresh: u64,
    /// Fresh keys reported as seen.
    pub(super) false_seen: u64,
    /// Keys seen before.
    pub(super) repeats: u64,
    /// Repeats not reported as seen.
    pub(super) missed: u64,
}

impl Errors {
    fn add(&mut self, truth: &[u64], reported: &[u64]) {
        for (truth, reported) in truth.iter().zip(reported) {
            self.repeats += u64::from(truth.count_ones());
            self.fresh += u64::from(truth.count_zeros());
            self.false_seen += u64::from((reported & !truth).count_ones());
            self.missed += u64::from((truth & !reported).count_ones());
        }
    }

    pub(super) fn fpr(&self) -> f64 {
        self.false_seen as f64 / self.fresh.max(1) as f64
    }

    pub(super) fn fnr(&self) -> f64 {
        self.missed as f64 / self.repeats.max(1) as f64
    }
}

/// A stream of `keys` distinct keys, the same for every peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workload {
    /// Distinct keys that every peer is sized for.
    pub(super) keys: u64,
    /// The fraction of the stream that repeats an earlier key.
    pub(super) repeats: f64,
    /// How many of the youngest distinct keys can be repeated.
    pub(super) window: u64,
    /// How many keys are looked up after the stream, for each of the two rates.
    pub(super) probes: u64,
}

impl Workload {
    /// Runs the stream through a peer. Returns the CPU seconds and the number of keys of its second
    /// half, and the errors of the whole stream.
    pub(super) fn run(self, peer: &mut dyn Peer) -> (f64, u64, Errors) {
        let mut stream = LabelledStream::new(self.repeats, self.window);
        let mut reported = vec![0; CHUNK / 64];
        let mut errors = Errors::default();
        let (mut seconds, mut timed) = (0.0, 0);
        // Whole chunks, and at most as many keys as the peers are sized for.
        while stream.distinct() + CHUNK as u64 <= self.keys {
            let is_timed = stream.distinct() >= self.keys / 2;
            let (keys, truth) = stream.chunk();
            let start = thread_seconds();
            peer.observe(keys, &mut reported);
            if is_timed {
                seconds += thread_seconds() - start;
                timed += keys.len() as u64;
            }
            errors.add(truth, &reported);
        }
        (seconds, timed, errors)
    }

    /// Looks up keys after the stream. Returns the fraction of absent keys that the peer holds, and
    /// the fraction of the oldest eighth of the keys that it does not hold.
    pub(super) fn probe(self, peer: &dyn Peer) -> (f64, f64) {
        let stream = LabelledStream::new(self.repeats, self.window);
        let held = (0..self.probes).filter(|index| peer.holds(stream.absent_key(*index)));
        let fpr = held.count() as f64 / self.probes as f64;
        let oldest = (self.keys / 8).min(self.probes);
        let lost = (0..oldest).filter(|index| !peer.holds(stream.key(*index)));
        (fpr, lost.count() as f64 / oldest.max(1) as f64)
    }
}
