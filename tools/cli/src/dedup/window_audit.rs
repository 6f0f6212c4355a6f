//! The audit of a filter with a window: which verdicts are errors depends on the age of the key.

use std::collections::HashMap;

use echoless::audit::{ErrorCounts, FreshSample};
use echoless::{KeyHash, Window};

/// The most keys in the sample of a window, about 3 MiB with the hash table around them.
const CAPACITY: usize = 1 << 16;

/// The most keys in a sample of more than 1 key in 16. Short windows are thus sampled whole,
/// because a sample of few keys is a poor estimate of the busiest window; longer ones soon cost
/// little.
const WHOLE_CAPACITY: usize = 1 << 11;

/// The most keys whose false duplicates are counted for each of them.
const MISTAKEN_CAPACITY: usize = 1 << 12;

/// How often the live keys are counted in the time of a window. The count before a burst ends is at
/// most an eighth of a window old, and counting costs less than keeping the sample.
const COUNTS: u64 = 8;

/// The halvings of a sample of 1 key in 16.
const SPARSE_HALVINGS: u32 = 4;

/// When a key was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) tick: u64,
    /// The same by the number of the key in the stream.
    pub(super) number: u64,
}

/// A window, and perhaps a second one of keys that must contain the other record, too.
#[derive(Debug, Clone, Copy)]
struct Windows {
    first: Window,
    second: Option<Window>,
}

impl Windows {
    /// The ages now of a key that was observed then, each with its window. A clock never goes back.
    fn ages(self, then: Seen, now: Seen) -> impl Iterator<Item = (u64, Window)> {
        let second = self.second.map(|window| (now.number - then.number, window));
        std::iter::once((now.tick - then.tick, self.first)).chain(second)
    }

    fn contain(self, then: Seen, now: Seen) -> bool {
        self.ages(then, now)
            .all(|(age, window)| age <= window.ticks)
    }

    /// Whether no filter remembers the key any more.
    fn are_over(self, then: Seen, now: Seen) -> bool {
        self.ages(then, now)
            .any(|(age, window)| age >= window.ticks.saturating_add(window.granule))
    }
}

/// A key of the sample.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    /// The moment from which the filter counts the age of the key.
    then: Seen,
    /// Whether the key was mistaken for another when it came, and has been renewed ever since.
    unrecorded: bool,
}

/// The errors of a filter with a window: duplicates inside the window reported as fresh, and keys
/// reported as duplicates that are new or beyond window and granule. In between, both are right.
#[derive(Debug)]
pub(super) struct WindowAudit {
    windows: Windows,
    /// Whether a duplicate renews its key.
    refresh: bool,
    /// What was found, apart from what `followed` counts.
    found: ErrorCounts,
    followed: FreshSample<Seen>,
    sample: HashMap<KeyHash, Sampled>,
    /// How often keys of the sample were mistaken.
    mistaken: HashMap<KeyHash, u64>,
    /// The sample is 1 key in `2^halvings`.
    halvings: u32,
    /// When the last key of the sample was observed.
    clock: Seen,
    /// From this tick on, the live keys are counted again before a key is added.
    next_count: u64,
    /// The highest number of live keys counted so far.
    busiest: u64,
}

impl WindowAudit {
    pub(super) fn new(window: Window, second: Option<Window>, refresh: bool) -> Self {
        Self {
            windows: Windows {
                first: window,
                second,
            },
            refresh,
            found: ErrorCounts::sampled(1),
            followed: FreshSample::new(),
            sample: HashMap::new(),
            mistaken: HashMap::new(),
            halvings: 0,
            clock: Seen { tick: 0, number: 0 },
            next_count: 0,
            busiest: 0,
        }
    }

    /// Checks the verdict on a key. `seen` returns when it was observed.
    #[inline]
    pub(super) fn observe(
        &mut self,
        key: KeyHash,
        mut seen: impl FnMut() -> Seen,
        duplicate: bool,
    ) {
        let windows = self.windows;
        if duplicate {
            self.found.duplicates += 1;
            if self.refresh && self.followed.may_hold(key) {
                let now = seen();
                (self.followed).duplicate(key, now, |then| windows.are_over(*then, now));
            }
        } else {
            self.found.fresh += 1;
            let chosen = self.followed.choose();
            if chosen || self.followed.may_hold(key) {
                let now = seen();
                self.followed.fresh(
                    key,
                    now,
                    chosen,
                    |then| windows.contain(*then, now),
                    |then| windows.are_over(*then, now),
                );
            }
        }
        if is_sampled(key, self.halvings) {
            self.check(key, seen(), duplicate);
        }
    }

    fn check(&mut self, key: KeyHash, now: Seen, duplicate: bool) {
        if now.tick >= self.next_count {
            self.count();
            let part = (self.windows.first.ticks / COUNTS).max(1);
            self.next_count = now.tick.saturating_add(part);
        }
        self.clock = now;
        let known = self.sample.get(&key).copied();
        let known = known.filter(|known| !self.windows.are_over(known.then, now));
        if duplicate && known.is_none() {
            self.count_mistaken(key);
        }
        let unrecorded = known.is_none_or(|known| known.unrecorded);
        if !duplicate
            && let Some(known) = known.filter(|known| known.unrecorded)
            && self.windows.contain(known.then, now)
        {
            self.found.missed_unrecorded.add();
        }
        // A key that is mistaken for another one is not recorded, but in a filter that renews keys
        // the record of the other one is renewed for it.
        if self.refresh || !duplicate {
            let sampled = Sampled {
                then: now,
                unrecorded: unrecorded && duplicate,
            };
            self.sample.insert(key, sampled);
        }
        if self.sample.len() > self.capacity() {
            self.count();
            self.shrink();
        }
    }

    /// Counts a false duplicate. If the filter does not renew keys, a key that is mistaken is not
    /// recorded, and so is mistaken again until it is: one hot key can make up most of them.
    fn count_mistaken(&mut self, key: KeyHash) {
        let earlier = self.mistaken.entry(key).or_default();
        self.found.mistaken.add_after(*earlier);
        *earlier += 1;
        if self.mistaken.len() > MISTAKEN_CAPACITY {
            // The keys that were mistaken most often decide how wide the bounds are.
            let mut counts: Vec<u64> = self.mistaken.values().copied().collect();
            let (_, &mut median, _) = counts.select_nth_unstable(MISTAKEN_CAPACITY / 2);
            self.mistaken.retain(|_, count| *count > median);
        }
    }

    /// What was found so far.
    pub(super) fn counts(&self) -> ErrorCounts {
        self.followed.complete(self.found)
    }

    /// The estimated number of keys in the busiest window.
    pub(super) fn busiest(&self) -> u64 {
        self.busiest.max(self.live())
    }

    /// The estimated number of keys inside the window.
    fn live(&self) -> u64 {
        let inside = self.sample.values();
        let inside = inside.filter(|known| self.windows.contain(known.then, self.clock));
        (inside.count() as u64) << self.halvings
    }

    /// Counts the live keys and drops forgotten ones, so that the next count is short.
    fn count(&mut self) {
        let (windows, clock) = (self.windows, self.clock);
        let mut inside = 0_u64;
        self.sample.retain(|_, known| {
            inside += u64::from(windows.contain(known.then, clock));
            !windows.are_over(known.then, clock)
        });
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
            self.mistaken.retain(|key, _| is_sampled(*key, halvings));
            self.found.mistaken.set_weight(1 << halvings);
            if self.refresh {
                self.found.missed_unrecorded.set_weight(1 << halvings);
            }
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
    key.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (63 - halvings) >> 1 == 0
}

#[cfg(test)]
mod tests {
    use echoless::KeyHasher;

    use super::*;

    fn observe_all(audit: &mut WindowAudit, keys: u64, tick: u64, duplicate: bool) {
        let hasher = KeyHasher::seeded(1);
        for key in 0..keys {
            audit.observe(hasher.hash_u64(key), || Seen { tick, number: 0 }, duplicate);
        }
    }

    fn missed_by(audit: &WindowAudit) -> u64 {
        audit.counts().estimates(None).missed_duplicates.value
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
                expected.contains(&missed_by(&audit)),
                missed,
                "{age} {duplicate}"
            );
            assert_eq!(
                expected.contains(&audit.found.mistaken.estimate().value),
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
            assert_eq!(missed_by(&audit) > 0, refresh);
            assert_eq!(audit.found.mistaken.estimate().value, 0);
        }
    }

    #[test]
    fn a_second_window_ends_the_first() {
        for (keys_between, missed) in [(50, true), (51, false)] {
            let mut audit = WindowAudit::new(Window::new(100, 1), Some(Window::new(50, 1)), true);
            for number in [0, keys_between] {
                for key in 0..20_000 {
                    let key = KeyHasher::seeded(1).hash_u64(key);
                    audit.observe(key, || Seen { tick: 7, number }, false);
                }
            }
            assert_eq!(missed_by(&audit) > 0, missed);
        }
    }

    #[test]
    fn the_busiest_window_is_found_wherever_it_lies() {
        for refresh in [false, true] {
            let mut audit = WindowAudit::new(Window::new(100, 20), None, refresh);
            let hasher = KeyHasher::seeded(5);
            let mut seen = |tick: u64, keys: std::ops::Range<u64>| {
                for key in keys {
                    audit.observe(hasher.hash_u64(key), || Seen { tick, number: 0 }, false);
                }
            };
            // 1000 keys a tick make 101,000 in a window; a burst adds 300,000; then a silence.
            for tick in 0..300 {
                seen(tick, tick * 1000..(tick + 1) * 1000);
            }
            seen(300, 1_000_000..1_300_000);
            seen(10_000, 0..1000);
            let busiest = audit.busiest();
            assert!((380_000..420_000).contains(&busiest), "{busiest}");
        }
    }

    #[test]
    fn short_windows_are_counted_whole() {
        let mut audit = WindowAudit::new(Window::new(100, 1), None, true);
        let hasher = KeyHasher::seeded(5);
        for tick in 0..1000 {
            for key in tick * 7..(tick + 1) * 7 {
                audit.observe(hasher.hash_u64(key), || Seen { tick, number: 0 }, false);
            }
        }
        // Ticks 0 to 100 before a key: 101 ticks.
        let busiest = audit.busiest();
        assert!((650..=707).contains(&busiest), "{busiest}");
    }

    #[test]
    fn hot_keys_that_are_mistaken_again_and_again_widen_the_bounds() {
        let hasher = KeyHasher::seeded(1);
        let mut widths = Vec::new();
        for keys in [20_000, 200] {
            let mut audit = WindowAudit::new(Window::new(100, 1), None, false);
            // So many keys that 1 in 32 is sampled.
            observe_all(&mut audit, 1_000_000, 7, false);
            for number in 0..200_000 {
                let key = hasher.hash_u64((1 << 40) + number % keys);
                audit.observe(key, || Seen { tick: 7, number }, true);
            }
            assert!(audit.mistaken.len() <= MISTAKEN_CAPACITY);
            let mistaken = audit.counts().estimates(None).false_duplicates;
            assert!(
                mistaken.low <= 200_000 && 200_000 <= mistaken.high,
                "{mistaken:?}"
            );
            widths.push(mistaken.high - mistaken.low);
        }
        assert!(widths[1] > 3 * widths[0], "{widths:?}");
    }

    #[test]
    fn the_keys_that_are_mistaken_most_often_stay_counted() {
        let hasher = KeyHasher::seeded(1);
        let mut audit = WindowAudit::new(Window::new(100, 1), None, false);
        for number in 0..100_000 {
            let key = if number % 2 == 0 { number % 20 } else { number };
            audit.observe(hasher.hash_u64(key), || Seen { tick: 7, number }, true);
        }
        assert!(audit.mistaken.len() <= MISTAKEN_CAPACITY);
        for key in (0..20).step_by(2) {
            assert_eq!(audit.mistaken[&hasher.hash_u64(key)], 5000);
        }
    }

    #[test]
    fn the_sample_stays_bounded_and_forgets_what_has_expired() {
        let mut audit = WindowAudit::new(Window::new(100, 1), None, true);
        for tick in 0..4 {
            observe_all(&mut audit, 2_000_000, tick * 200, false);
        }
        assert!(audit.sample.len() <= CAPACITY);
        assert_eq!(
            (missed_by(&audit), audit.found.mistaken.estimate().value),
            (0, 0)
        );
        observe_all(&mut audit, 2_000_000, 700, false);
        let missed = audit.counts().estimates(None).missed_duplicates;
        assert!(
            missed.low <= 2_000_000 && 2_000_000 <= missed.high,
            "{missed:?}"
        );
        assert!(missed.high - missed.low < 400_000, "{missed:?}");
    }
}
