//! The audit of a filter with a window: which verdicts are errors depends on the age of the key.

use super::errors::{ErrorCounts, ErrorEstimates};
use super::fresh_sample::FreshSample;
use super::key_map::KeyMap;
use super::sampling::is_sampled;
use crate::hash::KeyHash;
use crate::report::Report;
use crate::verdicts::Verdict;
use crate::window::Window;

/// The most keys in the sample of a window, about 3 MiB with the hash table around them.
const CAPACITY: usize = 1 << 16;

/// The most keys in a sample of more than 1 key in 16. Short windows are thus sampled whole,
/// because a sample of few keys is a poor estimate of the busiest window; longer ones soon cost
/// little.
const WHOLE_CAPACITY: usize = 1 << 11;

/// The most keys whose events are counted for each of them.
const REPEATS_CAPACITY: usize = 1 << 12;

/// How often the live keys are counted in the time of a window. The count before a burst ends is at
/// most an eighth of a window old, and counting costs less than keeping the sample.
const COUNTS: u64 = 8;

/// The halvings of a sample of 1 key in 16.
const SPARSE_HALVINGS: u32 = 4;

/// When a key was observed. Neither number goes back from key to key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The tick of the filter.
    pub tick: u64,
    /// The number of the key in the stream, in units of a [second
    /// window](WindowAudit::also_within).
    pub number: u64,
}

/// A window, and perhaps a second one of keys that must contain the other record, too.
#[derive(Debug, Clone, Copy)]
struct Windows {
    first: Window,
    second: Option<Window>,
}

impl Windows {
    /// The ages now of a key that was observed then, each with its window.
    fn ages(self, then: Moment, now: Moment) -> impl Iterator<Item = (u64, Window)> {
        let age = now.number.saturating_sub(then.number);
        let second = self.second.map(|window| (age, window));
        std::iter::once((now.tick.saturating_sub(then.tick), self.first)).chain(second)
    }

    fn contain(self, then: Moment, now: Moment) -> bool {
        self.ages(then, now)
            .all(|(age, window)| age <= window.ticks)
    }

    /// Whether no filter remembers the key any more.
    fn are_over(self, then: Moment, now: Moment) -> bool {
        self.ages(then, now)
            .any(|(age, window)| age >= window.ticks.saturating_add(window.granule))
    }
}

/// A key of the sample.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    /// The moment from which the filter counts the age of the key.
    then: Moment,
    /// Whether the key was mistaken for another when it came, and has been renewed ever since.
    unrecorded: bool,
}

/// How often each key of the sample had an event. If the filter does not renew keys, a key that is
/// mistaken is not recorded, and so is mistaken again until it is: one hot key can make up most of
/// the events.
#[derive(Debug, Clone, Default)]
struct Repeats {
    by_key: KeyMap<u64>,
}

impl Repeats {
    /// Counts an event. Returns the number of earlier ones of the same key.
    fn count(&mut self, key: KeyHash) -> u64 {
        let count = self.by_key.entry(key).or_default();
        let earlier = *count;
        *count += 1;
        if self.by_key.len() > REPEATS_CAPACITY {
            // The keys with the most events decide how wide the bounds are.
            let mut counts: Vec<u64> = self.by_key.values().copied().collect();
            let (_, &mut median, _) = counts.select_nth_unstable(REPEATS_CAPACITY / 2);
            self.by_key.retain(|_, count| *count > median);
        }
        earlier
    }

    fn shrink(&mut self, halvings: u32) {
        self.by_key.retain(|key, _| is_sampled(*key, halvings));
    }
}

/// Estimates of the errors of a filter with a window, with bounds, in fixed memory: duplicates
/// inside the window that were reported as fresh, and keys reported as duplicates that are new or
/// beyond window and granule. In between, both verdicts are right.
///
/// The estimates depend on the sequence of keys, moments and verdicts. An audit begins with its
/// filter, as an [`Audit`](super::Audit) does, and takes some 8 MiB.
///
/// # Examples
/// ```
/// use echoless::audit::{Moment, WindowAudit};
/// use echoless::{Filter, FilterSpec, KeyHasher};
/// // 1024 slots for 10,000 keys, each of which arrives again after 10,000 ticks.
/// let spec: FilterSpec = "clocked:window=15000,bits=32,memory=4KiB".parse()?;
/// let mut filter = spec.build()?;
/// let mut audit = WindowAudit::new(spec.window().unwrap(), spec.renews_keys());
/// for tick in 0..20_000 {
///     filter.advance_to(tick);
///     let key = KeyHasher::seeded(0).hash_u64(tick % 10_000);
///     let verdict = filter.observe_one(key);
///     audit.observe(key, || Moment { tick, number: tick }, verdict);
/// }
/// let errors = audit.estimates(Some(&filter.report()));
/// assert!(errors.missed_duplicates.low > 5000 && errors.missed_duplicates.high < 20_000);
/// assert!(errors.fnr().is_some_and(|fnr| fnr.low > 0.8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct WindowAudit {
    windows: Windows,
    /// Whether a duplicate renews its key.
    renews_keys: bool,
    /// What was found, apart from what `followed` counts.
    found: ErrorCounts,
    followed: FreshSample<Moment>,
    sample: KeyMap<Sampled>,
    /// How often keys of the sample were mistaken.
    mistaken: Repeats,
    /// How often they were reported as duplicates between the window and the end of its granule.
    undecided: Repeats,
    /// The sample is 1 key in `2^halvings`.
    halvings: u32,
    /// When the last key of the sample was observed.
    clock: Moment,
    /// From this tick on, the live keys are counted again before a key is added.
    next_count: u64,
    /// The highest number of live keys counted so far.
    busiest: u64,
}

impl WindowAudit {
    /// An audit of a stream that has not started. `renews_keys`: whether a duplicate renews its key
    /// ([`FilterSpec::renews_keys`](crate::FilterSpec::renews_keys)).
    #[must_use]
    pub fn new(window: Window, renews_keys: bool) -> Self {
        Self {
            windows: Windows {
                first: window,
                second: None,
            },
            renews_keys,
            found: ErrorCounts::sampled(1),
            followed: FreshSample::new(),
            sample: KeyMap::default(),
            mistaken: Repeats::default(),
            undecided: Repeats::default(),
            halvings: 0,
            clock: Moment::default(),
            next_count: 0,
            busiest: 0,
        }
    }

    /// A second window, of the numbers of the moments: a duplicate must be inside both, as behind
    /// two filters that each key passes.
    #[must_use]
    pub const fn also_within(mut self, second: Window) -> Self {
        self.windows.second = Some(second);
        self
    }

    /// Checks the verdict on a key. `moment` returns when it was observed; it is called only for
    /// the few keys that are sampled.
    #[inline]
    pub fn observe(&mut self, key: KeyHash, mut moment: impl FnMut() -> Moment, verdict: Verdict) {
        let windows = self.windows;
        let duplicate = verdict.is_duplicate();
        if duplicate {
            self.found.duplicates += 1;
            if self.renews_keys && self.followed.may_hold(key) {
                let now = moment();
                (self.followed).duplicate(key, now, |then| windows.are_over(*then, now));
            }
        } else {
            self.found.fresh += 1;
            let chosen = self.followed.choose();
            if chosen || self.followed.may_hold(key) {
                let now = moment();
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
            self.check(key, moment(), duplicate);
        }
    }

    fn check(&mut self, key: KeyHash, now: Moment, duplicate: bool) {
        if now.tick >= self.next_count {
            self.count();
            let part = (self.windows.first.ticks / COUNTS).max(1);
            self.next_count = now.tick.saturating_add(part);
        }
        self.clock = now;
        let known = self.sample.get(&key).copied();
        let known = known.filter(|known| !self.windows.are_over(known.then, now));
        if duplicate && known.is_none() {
            self.found.mistaken.add_after(self.mistaken.count(key));
        }
        if duplicate
            && let Some(known) = known
            && !self.windows.contain(known.then, now)
        {
            self.found.undecided.add_after(self.undecided.count(key));
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
        if self.renews_keys || !duplicate {
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

    /// The errors found so far, as of [`Audit::counts`](super::Audit::counts).
    #[must_use]
    pub fn counts(&self) -> ErrorCounts {
        self.followed.complete(self.found)
    }

    /// The errors so far. With the `report` of the filter at this moment, its own counters limit
    /// the estimates; see [`ErrorCounts::estimates`].
    #[must_use]
    pub fn estimates(&self, report: Option<&Report>) -> ErrorEstimates {
        self.counts().estimates(report)
    }

    /// The estimated number of keys that an exact filter would have remembered in the busiest
    /// window so far. It may exceed the number of keys by some per cent.
    #[must_use]
    pub fn busiest_window_keys(&self) -> u64 {
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
            self.mistaken.shrink(halvings);
            self.undecided.shrink(halvings);
            self.found.mistaken.set_weight(1 << halvings);
            self.found.undecided.set_weight(1 << halvings);
            if self.renews_keys {
                self.found.missed_unrecorded.set_weight(1 << halvings);
            }
        }
    }
}

#[cfg(test)]
mod tests;
