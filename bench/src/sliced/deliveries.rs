//! Which arrivals are duplicates under a window, by definition 4 of the paper: those of an event
//! that was delivered, reported as fresh, at most a window before.

use echoless::{Filter, KeyHash};
use echoless_lab::oracle::Score;

/// The tick at which each event was last delivered.
pub(super) struct Deliveries {
    last: Vec<Option<u64>>,
    window: u64,
}

impl Deliveries {
    /// Of events with numbers below `events`, none of them delivered.
    pub(super) fn new(events: usize, window: u64) -> Self {
        Self {
            last: vec![None; events],
            window,
        }
    }

    /// Passes the arrivals of one tick through a filter. Returns its score, and the number of
    /// events delivered.
    pub(super) fn observe(
        &mut self,
        filter: &mut dyn Filter,
        tick: u64,
        keys: &[KeyHash],
        events: &[u64],
    ) -> (Score, u64) {
        let (mut score, mut delivered) = (Score::default(), 0);
        filter.advance_to(tick);
        for (key, event) in keys.iter().zip(events) {
            let last = &mut self.last[*event as usize];
            let truth = last.is_some_and(|last| tick - last <= self.window);
            let duplicate = filter.observe_one(*key).is_duplicate();
            score.count(truth, duplicate);
            if !duplicate {
                *last = Some(tick);
                delivered += 1;
            }
        }
        (score, delivered)
    }
}
