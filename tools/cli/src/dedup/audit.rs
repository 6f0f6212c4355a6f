//! Estimates of the errors of a run, from an exact sample of the keys, with and without a window.

use std::collections::HashMap;

use echoless::{Audit, KeyHash, Window};

use crate::config::{Clock, Content, DedupConfig};
use crate::packets::window::numbered_tick;
use crate::records::chunk::Chunk;

/// The most keys in the sample of a window, about 2 MiB with the hash table around them.
const CAPACITY: usize = 1 << 16;

/// The most keys in a sample of more than 1 key in 16. Short windows are thus sampled whole, for a
/// sample of few keys says little about the busiest window; longer ones soon cost little.
const WHOLE_CAPACITY: usize = 1 << 11;

/// How often the live keys are counted in the time of a window. The count before a burst ends is at
/// most an eighth of a window old, and counting costs less than keeping the sample.
const COUNTS: u64 = 8;

/// The halvings of a sample of 1 key in 16.
const SPARSE_HALVINGS: u32 = 4;

/// The estimates of a run. It observes the verdicts in the order of the stream, so its estimates do
/// not depend on the number of threads.
#[derive(Debug)]
pub(super) enum RunAudit {
    Unlimited(Audit),
    Windowed {
        audit: WindowAudit,
        /// Whether the clock of the window is the number of the key.
        counts_keys: bool,
        /// The keys of a tick of a window of keys.
        keys_per_tick: u64,
        /// The number of keys so far.
        keys: u64,
    },
}

impl RunAudit {
    pub(super) fn new(run: &DedupConfig) -> Self {
        let (Some(config), Some(window)) = (&run.window, run.filter.window()) else {
            return Self::Unlimited(Audit::new());
        };
        let (refresh, second, keys_per_tick) = match &run.content {
            Content::Records(_) => (run.filter.renews_keys(), None, 1),
            // The filters of two windows always renew their keys.
            Content::Packets(packets) => {
                let second = packets.second_window();
                (config.refresh, second, packets.windows.packets_per_tick())
            }
        };
        Self::Windowed {
            audit: WindowAudit::new(window, second, refresh),
            counts_keys: matches!(config.clock, Clock::Keys),
            keys_per_tick,
            keys: 0,
        }
    }

    /// Checks the verdicts on a chunk.
    pub(super) fn observe(&mut self, chunk: &Chunk) {
        match self {
            Self::Unlimited(audit) => audit.observe(&chunk.hashes, &chunk.verdicts),
            Self::Windowed {
                audit,
                counts_keys,
                keys_per_tick,
                keys: observed,
            } => {
                let mut batches = chunk.batches.iter();
                let mut batch = batches.next();
                for (index, key) in chunk.hashes.iter().enumerate() {
                    // Few keys are in the sample: only they need their batch.
                    let seen = || {
                        while batch.is_some_and(|batch| batch.end <= index) {
                            batch = batches.next();
                        }
                        let number = numbered_tick(*observed + index as u64, *keys_per_tick);
                        Seen {
                            tick: batch
                                .filter(|_| !*counts_keys)
                                .map_or(number, |batch| batch.tick),
                            number,
                        }
                    };
                    audit.observe(*key, seen, || chunk.verdicts.is_duplicate(index));
                }
                *observed += chunk.hashes.len() as u64;
            }
        }
    }

    /// The estimated number of duplicates that the filter reported as fresh.
    pub(super) fn missed(&self) -> u64 {
        match self {
            Self::Unlimited(audit) => audit.estimated_missed_duplicates(),
            Self::Windowed { audit, .. } => audit.missed,
        }
    }

    /// The estimated number of fresh keys that the filter reported as duplicates.
    pub(super) fn mistaken(&self) -> u64 {
        match self {
            Self::Unlimited(audit) => audit.estimated_false_duplicates(),
            Self::Windowed { audit, .. } => audit.mistaken,
        }
    }

    /// The estimated number of keys that an exact filter would have remembered in the busiest
    /// window; `None` without a window.
    pub(super) fn busiest_window(&self) -> Option<u64> {
        match self {
            Self::Unlimited(_) => None,
            Self::Windowed { audit, .. } => Some(audit.busiest.max(audit.live())),
        }
    }
}

/// When a key was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    tick: u64,
    /// The same by the number of the key in the stream.
    number: u64,
}

/// The errors of a filter with a window: duplicates inside the window reported as fresh, and keys
/// reported as duplicates that are new or beyond window and granule. In between, both are right.
#[derive(Debug)]
pub(super) struct WindowAudit {
    /// The moment from which the filter counts the age of a key.
    sample: HashMap<KeyHash, Seen>,
    /// The sample is 1 key in `2^halvings`.
    halvings: u32,
    window: Window,
    /// A window of keys that must contain the other record, too.
    second: Option<Window>,
    /// Whether a duplicate renews its key.
    refresh: bool,
    missed: u64,
    mistaken: u64,
    /// When the last key of the sample was observed.
    clock: Seen,
    /// From this tick on, the live keys are counted again before a key is added.
    next_count: u64,
    /// The highest number of live keys counted so far.
    busiest: u64,
}

impl WindowAudit {
    fn new(window: Window, second: Option<Window>, refresh: bool) -> Self {
        Self {
            sample: HashMap::new(),
            halvings: 0,
            window,
            second,
            refresh,
            missed: 0,
            mistaken: 0,
            clock: Seen { tick: 0, number: 0 },
            next_count: 0,
            busiest: 0,
        }
    }

    /// The ages at the clock of a key that was observed then, each with its window. A clock never
    /// goes back.
    fn ages(&self, then: Seen) -> impl Iterator<Item = (u64, Window)> + use<> {
        let second = self
            .second
            .map(|window| (self.clock.number - then.number, window));
        std::iter::once((self.clock.tick - then.tick, self.window)).chain(second)
    }

    fn inside(&self, then: Seen) -> bool {
        self.ages(then).all(|(age, window)| age <= window.ticks)
    }

    fn forgotten(&self, then: Seen) -> bool {
        self.ages(then)
            .any(|(age, window)| age >= window.ticks.saturating_add(window.granule))
    }

    #[inline]
    fn observe(
        &mut self,
        key: KeyHash,
        now: impl FnOnce() -> Seen,
        duplicate: impl FnOnce() -> bool,
    ) {
        if is_sampled(key, self.halvings) {
            self.check(key, now(), duplicate());
        }
    }

    fn check(&mut self, key: KeyHash, now: Seen, duplicate: bool) {
        if now.tick >= self.next_count {
            self.count();
            self.next_count = now.tick.saturating_add((self.window.ticks / COUNTS).max(1));
        }
        self.clock = now;
        let weight = 1 << self.halvings;
        match self.sample.get(&key).copied() {
            Some(then) if self.inside(then) && !duplicate => self.missed += weight,
            Some(then) if self.forgotten(then) && duplicate => self.mistaken += weight,
            None if duplicate => self.mistaken += weight,
            Some(_) | None => {}
        }
        if self.refresh || !duplicate {
            self.sample.insert(key, now);
        }
        if self.sample.len() > self.capacity() {
            self.count();
            self.shrink();
        }
    }

    /// The estimated number of keys inside the window.
    fn live(&self) -> u64 {
        let inside = self.sample.values().filter(|then| self.inside(**then));
        (inside.count() as u64) << self.halvings
    }

    /// Counts the live keys and drops forgotten ones, so that the next count is short.
    fn count(&mut self) {
        let mut sample = std::mem::take(&mut self.sample);
        let mut inside = 0_u64;
        sample.retain(|_, then| {
            inside += u64::from(self.inside(*then));
            !self.forgotten(*then)
        });
        self.sample = sample;
        self.busiest = self.busiest.max(inside << self.halvings);
    }

    const fn capacity(&self) -> usize {
        if self.halvings < SPARSE_HALVINGS {
            WHOLE_CAPACITY
        } else {
            CAPACITY
        }
    }

    /// Halves the key space until the sample is well below its capacity.
    fn shrink(&mut self) {
        while self.sample.len() > self.capacity() / 2 {
            self.halvings += 1;
            let halvings = self.halvings;
            self.sample.retain(|key, _| is_sampled(*key, halvings));
        }
    }
}

/// Whether a key belongs to a sample of 1 in `2^halvings`. A smaller sample is a subset of a larger
/// one.
#[inline(always)]
const fn is_sampled(key: KeyHash, halvings: u32) -> bool {
    // The multiplier is 2^64 divided by the golden ratio: the high bits of the product depend on
    // all bits of the hash, so the sample is independent of lines and fingerprints.
    // One more shift in two steps, as a shift by 64 is undefined.
    key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (63 - halvings) >> 1 == 0
}

#[cfg(test)]
mod tests {
    use echoless::KeyHasher;

    use super::*;

    fn observe_all(audit: &mut WindowAudit, keys: u64, tick: u64, duplicate: bool) {
        let hasher = KeyHasher::seeded(1);
        for key in 0..keys {
            audit.observe(
                hasher.hash_u64(key),
                || Seen { tick, number: 0 },
                || duplicate,
            );
        }
    }

    #[test]
    fn errors_are_judged_by_age() {
        for (age, duplicate, missed, mistaken) in [
            (100, true, false, false),
            (100, false, true, false),
            (101, true, false, false),
            (101, false, false, false),
            (119, true, false, false),
            (120, true, false, true),
            (120, false, false, false),
        ] {
            let mut audit = WindowAudit::new(Window::new(100, 20), None, true);
            observe_all(&mut audit, 20_000, 7, false);
            observe_all(&mut audit, 20_000, 7 + age, duplicate);
            let expected = 19_000..21_000;
            assert_eq!(
                expected.contains(&audit.missed),
                missed,
                "{age} {duplicate}"
            );
            assert_eq!(
                expected.contains(&audit.mistaken),
                mistaken,
                "{age} {duplicate}"
            );
        }
    }

    #[test]
    fn the_age_counts_from_the_last_record_that_renewed_the_key() {
        for refresh in [false, true] {
            let mut audit = WindowAudit::new(Window::new(100, 1), None, refresh);
            observe_all(&mut audit, 20_000, 0, false);
            observe_all(&mut audit, 20_000, 60, true);
            observe_all(&mut audit, 20_000, 120, false);
            assert_eq!(audit.missed > 0, refresh);
            assert_eq!(audit.mistaken, 0);
        }
    }

    #[test]
    fn a_second_window_ends_the_first() {
        for (keys_between, missed) in [(50, true), (51, false)] {
            let mut audit = WindowAudit::new(Window::new(100, 1), Some(Window::new(50, 1)), true);
            for number in [0, keys_between] {
                for key in 0..20_000 {
                    let key = KeyHasher::seeded(1).hash_u64(key);
                    audit.observe(key, || Seen { tick: 7, number }, || false);
                }
            }
            assert_eq!(audit.missed > 0, missed);
        }
    }

    #[test]
    fn the_busiest_window_is_found_wherever_it_lies() {
        for refresh in [false, true] {
            let mut audit = WindowAudit::new(Window::new(100, 20), None, refresh);
            let hasher = KeyHasher::seeded(5);
            let mut seen = |tick: u64, keys: std::ops::Range<u64>| {
                for key in keys {
                    audit.observe(hasher.hash_u64(key), || Seen { tick, number: 0 }, || false);
                }
            };
            // 1000 keys a tick make 101,000 in a window; a burst adds 300,000; then a silence.
            for tick in 0..300 {
                seen(tick, tick * 1000..(tick + 1) * 1000);
            }
            seen(300, 1_000_000..1_300_000);
            seen(10_000, 0..1000);
            let busiest = RunAudit::Windowed {
                audit,
                counts_keys: false,
                keys_per_tick: 1,
                keys: 0,
            }
            .busiest_window()
            .unwrap();
            assert!((380_000..420_000).contains(&busiest), "{busiest}");
        }
        assert_eq!(RunAudit::Unlimited(Audit::new()).busiest_window(), None);
    }

    #[test]
    fn short_windows_are_counted_whole() {
        let mut audit = WindowAudit::new(Window::new(100, 1), None, true);
        let hasher = KeyHasher::seeded(5);
        for tick in 0..1000 {
            for key in tick * 7..(tick + 1) * 7 {
                audit.observe(hasher.hash_u64(key), || Seen { tick, number: 0 }, || false);
            }
        }
        // Ticks 0 to 100 before a key: 101 ticks.
        let audit = RunAudit::Windowed {
            audit,
            counts_keys: false,
            keys_per_tick: 1,
            keys: 0,
        };
        let busiest = audit.busiest_window().unwrap();
        assert!((650..=707).contains(&busiest), "{busiest}");
    }

    #[test]
    fn the_sample_stays_bounded_and_forgets_what_has_expired() {
        let mut audit = WindowAudit::new(Window::new(100, 1), None, true);
        for tick in 0..4 {
            observe_all(&mut audit, 2_000_000, tick * 200, false);
        }
        assert!(audit.sample.len() <= CAPACITY);
        assert_eq!((audit.missed, audit.mistaken), (0, 0));
        observe_all(&mut audit, 2_000_000, 700, false);
        assert!(
            (1_900_000..2_100_000).contains(&audit.missed),
            "{}",
            audit.missed
        );
    }
}
