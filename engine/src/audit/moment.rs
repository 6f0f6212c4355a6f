//! When a key was observed, and the windows in which it is remembered.

use super::saved::saved;
use crate::window::Window;

/// When a key was observed. Neither number goes back from key to key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The tick of the filter.
    pub tick: u64,
    /// The number of the key in the stream, in units of a [second
    /// window](super::WindowAudit::also_within).
    pub number: u64,
}

/// A window, and perhaps a second one of keys that must contain the other record, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    pub(super) first: Window,
    pub(super) second: Option<Window>,
}

impl Windows {
    #[inline]
    pub(super) fn contain(self, then: Moment, now: Moment) -> bool {
        now.tick.saturating_sub(then.tick) <= self.first.ticks
            && self.second.is_none_or(|window| {
                let age = now.number.saturating_sub(then.number);
                age <= window.ticks
            })
    }

    /// Whether the granule ends at this very tick, without a second window.
    #[inline]
    pub(super) fn end_at(self, then: Moment, now: Moment) -> bool {
        let forgotten = self.first.ticks.saturating_add(self.first.granule);
        self.second.is_none() && now.tick.saturating_sub(then.tick) == forgotten
    }

    /// Whether no filter remembers the key any more.
    #[inline]
    pub(super) fn are_over(self, then: Moment, now: Moment) -> bool {
        let is_over = |age: u64, window: Window| age >= window.ticks.saturating_add(window.granule);
        is_over(now.tick.saturating_sub(then.tick), self.first)
            || (self.second)
                .is_some_and(|window| is_over(now.number.saturating_sub(then.number), window))
    }
}

saved! {
    Moment { tick, number }
    Windows { first, second }
}
