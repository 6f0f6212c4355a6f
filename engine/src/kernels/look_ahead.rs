//! How far the loops look ahead, and how a filter measures which look-ahead is best.
//!
//! A line must be in a cache when it is visited. Which cache to prefetch into, and how many keys
//! ahead, depends on the CPU, on how much of the filter its caches hold, and on how long a visit
//! takes. No table of CPUs is right for long, so a filter measures: now and then it times one batch
//! with the best candidate so far and the next batch with another one.
//!
//! ```text
//! batches   | . . . . B C . . . . . B C . . . . . B C . . .    B: best so far, timed
//!                     |<->| a pair: C took 0.9 of the time      C: another candidate, timed
//! ```
//!
//! - A pair takes microseconds, so both batches meet the same machine, however its speed changes
//!   from second to second.
//! - A candidate that is far behind in its first pair is not tried again in this round. Others get
//!   [`PAIRS`] pairs, and the median decides, so that an interrupted batch decides nothing.
//! - After a round in which the best one stays, the pause between pairs doubles, up to
//!   [`LONGEST_PAUSE`] batches. The rounds never end: a filter that fills up outgrows caches, and
//!   neighbours on the machine come and go.
//!
//! All filters of a process with the same rule, kernel and size class share what they measure.
//! Verdicts do not depend on any of it.

use std::any::TypeId;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use crate::error::SpecError;
use crate::memory::CacheLevel;
use crate::sync::unmodelled::{Arc, AtomicU32, Mutex, MutexGuard, Ordering};

/// The name of a look-ahead in errors.
const FIELD: &str = "lookahead";

/// The texts of look-aheads.
const ALLOWED: &str = "1, 2 or 3 blocks of 64 keys, then perhaps a cache, as in 2 or 2,l2";

/// The number of lines from which filters measure, 512 KiB: smaller ones lie in the L2 cache, where
/// every candidate is about as fast.
const LEAST_LINES: u64 = 1 << 13;

/// The fewest keys of a batch that is timed: fewer take little longer than reading the clock.
const LEAST_KEYS: usize = 16;

/// The pairs of a candidate.
const PAIRS: usize = 5;

/// A candidate that takes at most so much of the time of the best one replaces it.
const BETTER: f64 = 0.97;

/// A candidate that takes more than this in its first pair is passed over.
const FAR_BEHIND: f64 = 1.15;

/// The batches between two pairs, at first and at most. A round of six candidates then takes less
/// than a hundredth of the time of the first million keys, and a thousandth later.
const FIRST_PAUSE: u32 = 14;
const LONGEST_PAUSE: u32 = 254;

/// How many blocks of 64 keys a filter prefetches ahead, and into which cache. Filters of 512 KiB
/// and more measure which is best while they work; see
/// [`Report::look_ahead`](crate::Report::look_ahead). Verdicts do not depend on it.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec};
/// let filter = FingerprintSpec::new(1 << 20).build()?;
/// let chosen = filter.report().look_ahead.unwrap();
/// assert!(chosen.to_string().starts_with(['1', '2', '3']));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAhead {
    blocks: u8,
    cache: CacheLevel,
}

/// Every look-ahead.
const ALL: [LookAhead; 6] = [
    LookAhead::new(2, CacheLevel::L1),
    LookAhead::new(2, CacheLevel::L2),
    LookAhead::new(1, CacheLevel::L1),
    LookAhead::new(1, CacheLevel::L2),
    LookAhead::new(3, CacheLevel::L1),
    LookAhead::new(3, CacheLevel::L2),
];

/// The look-ahead of all filters of this process: the index among those of
/// [`LookAhead::all`], and 1; or 0 if it is not fixed.
static FIXED: AtomicU32 = AtomicU32::new(0);

impl LookAhead {
    /// The most blocks.
    pub(crate) const MOST_BLOCKS: usize = 3;

    /// The look-ahead of filters that do not measure, and the first one of those that do.
    pub(crate) const INITIAL: Self = ALL[0];

    const fn new(blocks: u8, cache: CacheLevel) -> Self {
        debug_assert!(blocks >= 1 && blocks as usize <= Self::MOST_BLOCKS);
        Self { blocks, cache }
    }

    /// Every look-ahead, the initial one first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).map_while(|index| ALL.get(index).copied())
    }

    /// Fixes the look-ahead of all filters of this process from their next batch on, for
    /// measurements; `None` leaves it to them again.
    ///
    /// # Examples
    /// ```standalone_crate
    /// use echoless::LookAhead;
    /// LookAhead::fix(Some("2,l1".parse()?));
    /// assert_eq!(LookAhead::fixed().unwrap().to_string(), "2 blocks into L1");
    /// LookAhead::fix(None);
    /// assert_eq!(LookAhead::fixed(), None);
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    pub fn fix(look_ahead: Option<Self>) {
        let index = look_ahead.and_then(|asked| ALL.iter().position(|one| *one == asked));
        FIXED.store(index.map_or(0, |index| index as u32 + 1), Ordering::Relaxed);
    }

    /// The look-ahead that [`fix`](Self::fix) fixed.
    #[inline]
    #[must_use]
    pub fn fixed() -> Option<Self> {
        // Nothing else depends on it.
        match FIXED.load(Ordering::Relaxed) {
            0 => None,
            index => ALL.get(index as usize - 1).copied(),
        }
    }

    /// The number of blocks to prefetch ahead.
    #[inline(always)]
    pub(crate) const fn blocks(self) -> usize {
        self.blocks as usize
    }

    /// The cache to prefetch into.
    #[inline(always)]
    pub(crate) const fn cache(self) -> CacheLevel {
        self.cache
    }
}

/// `2`, or with the cache `2,l1` or `2,l2`.
impl FromStr for LookAhead {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split(',');
        let blocks = match parts.next() {
            Some("1") => Some(1),
            Some("2") => Some(2),
            Some("3") => Some(3),
            _ => None,
        };
        let cache = match parts.next() {
            None | Some("l1") => Some(CacheLevel::L1),
            Some("l2") => Some(CacheLevel::L2),
            Some(_) => None,
        };
        match (blocks, cache, parts.next()) {
            (Some(blocks), Some(cache), None) => Ok(Self::new(blocks, cache)),
            _ => Err(SpecError::new(FIELD, text, ALLOWED)),
        }
    }
}

impl fmt::Display for LookAhead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.blocks == 1 { "block" } else { "blocks" };
        let cache = match self.cache {
            CacheLevel::L1 => "L1",
            CacheLevel::L2 => "L2",
        };
        write!(formatter, "{} {unit} into {cache}", self.blocks)
    }
}

/// What the candidates of a loop differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tunes {
    /// Blocks ahead and cache.
    BlocksAndCache,
    /// The cache: the loop prefetches its whole batch.
    Cache,
}

impl Tunes {
    fn candidates(self) -> Vec<LookAhead> {
        let among = |one: &LookAhead| match self {
            Self::BlocksAndCache => true,
            Self::Cache => one.blocks == LookAhead::INITIAL.blocks,
        };
        ALL.iter().copied().filter(among).collect()
    }
}

/// What all loops of one kind and size class share.
#[derive(Debug)]
struct Measured {
    candidates: Vec<LookAhead>,
    /// The best candidate so far.
    best: AtomicU32,
    /// The batches between two pairs.
    pause: AtomicU32,
    trial: Mutex<Trial>,
}

/// What is shared, by the type of the loop, the size class of the filter and what is tuned.
type Registry = Vec<((TypeId, u32, Tunes), Arc<Measured>)>;

static REGISTRY: Mutex<Registry> = Mutex::new(Vec::new());

/// The look-ahead of one loop of one filter.
#[derive(Debug)]
pub(crate) struct Tuner {
    /// `None` if the filter is small.
    measured: Option<Arc<Measured>>,
    /// The batches until the next pair.
    due: AtomicU32,
}

impl Tuner {
    /// A tuner for a loop of type `L` over a filter of so many lines, all partitions together: they
    /// share the caches.
    pub(crate) fn new<L: 'static>(lines: u64, tunes: Tunes) -> Self {
        Self::of_kind(TypeId::of::<L>(), lines, tunes)
    }

    fn of_kind(of_loop: TypeId, lines: u64, tunes: Tunes) -> Self {
        let measured = || {
            let kind = (of_loop, lines.ilog2(), tunes);
            let mut registry = REGISTRY.lock().ok()?;
            if let Some((_, measured)) = registry.iter().find(|entry| entry.0 == kind) {
                return Some(Arc::clone(measured));
            }
            let measured = Arc::new(Measured::new(tunes.candidates()));
            registry.push((kind, Arc::clone(&measured)));
            Some(measured)
        };
        Self {
            measured: if lines >= LEAST_LINES {
                measured()
            } else {
                None
            },
            due: AtomicU32::new(FIRST_PAUSE),
        }
    }

    /// The look-ahead of the next batch that is not timed.
    #[inline(always)]
    pub(crate) fn best(&self) -> LookAhead {
        LookAhead::fixed().unwrap_or_else(|| {
            let measured = self.measured.as_ref();
            measured.map_or(LookAhead::INITIAL, |measured| measured.best())
        })
    }

    /// The best look-ahead so far, if this tuner measures.
    pub(crate) fn measured(&self) -> Option<LookAhead> {
        Some(self.measured.as_ref()?.best())
    }

    /// Calls `run`, which passes a batch of so many keys through its loop, with a look-ahead. The
    /// loop is compiled once, whether the batch is timed or not.
    #[inline(always)]
    pub(crate) fn run<T>(&self, keys: usize, run: impl FnOnce(LookAhead) -> T) -> T {
        let timed = if self.is_due(keys) {
            self.begin(keys)
        } else {
            None
        };
        let look_ahead = timed
            .as_ref()
            .map_or_else(|| self.best(), Timed::look_ahead);
        let result = run(look_ahead);
        if let Some(timed) = timed {
            self.end(keys, timed);
        }
        result
    }

    /// Whether a batch of so many keys is to be timed.
    #[inline(always)]
    fn is_due(&self, keys: usize) -> bool {
        if self.measured.is_none() || keys < LEAST_KEYS || LookAhead::fixed().is_some() {
            return false;
        }
        // No other thread writes it while this one observes through `&mut`; where threads share a
        // filter, a lost count only delays a pair.
        let due = self.due.load(Ordering::Relaxed);
        if due > 0 {
            self.due.store(due - 1, Ordering::Relaxed);
        }
        due == 0
    }

    /// Begins to time a batch: the first or the second of a pair.
    #[cold]
    fn begin(&self, keys: usize) -> Option<Timed<'_>> {
        let measured = self.measured.as_ref()?;
        // Another thread may be timing a batch of its own. (The lock is poisoned after a panic of a
        // visit; then nothing is measured any more.)
        let mut trial = measured.trial.try_lock().ok()?;
        let best = measured.best.load(Ordering::Relaxed) as usize;
        let candidate = trial.candidate((&raw const *self).addr(), keys, best);
        Some(Timed {
            trial,
            measured,
            candidate,
            best,
            start: Instant::now(),
        })
    }

    /// Takes the time of a batch.
    #[cold]
    fn end(&self, keys: usize, timed: Timed<'_>) {
        let time = timed.start.elapsed().as_secs_f64() / keys as f64;
        let Timed {
            mut trial,
            measured,
            candidate,
            best,
            ..
        } = timed;
        let owner = (&raw const *self).addr();
        let Some(ratio) = trial.timed(owner, keys, candidate == best, time) else {
            return;
        };
        match trial.pair(ratio, best, measured.candidates.len()) {
            Step::Same => {}
            Step::Better => {
                measured.best.store(candidate as u32, Ordering::Relaxed);
                measured.pause.store(FIRST_PAUSE, Ordering::Relaxed);
            }
            Step::RoundEnded => {
                let pause = measured.pause.load(Ordering::Relaxed);
                let longer = (pause * 2).min(LONGEST_PAUSE);
                measured.pause.store(longer, Ordering::Relaxed);
            }
        }
        let pause = measured.pause.load(Ordering::Relaxed);
        self.due.store(pause, Ordering::Relaxed);
    }
}

/// A batch that is being timed. No other batch of these loops is: a pair belongs together.
struct Timed<'a> {
    trial: MutexGuard<'a, Trial>,
    measured: &'a Measured,
    candidate: usize,
    /// The best candidate so far.
    best: usize,
    start: Instant,
}

impl Timed<'_> {
    fn look_ahead(&self) -> LookAhead {
        self.measured.candidates[self.candidate]
    }
}

impl Measured {
    fn new(candidates: Vec<LookAhead>) -> Self {
        Self {
            candidates,
            best: AtomicU32::new(0),
            pause: AtomicU32::new(FIRST_PAUSE),
            trial: Mutex::new(Trial::new()),
        }
    }

    #[inline(always)]
    fn best(&self) -> LookAhead {
        self.candidates[self.best.load(Ordering::Relaxed) as usize]
    }
}

/// The pairs of the candidate that is tried.
#[derive(Debug)]
struct Trial {
    /// The candidate; the best one has no pairs, so it is passed over.
    candidate: usize,
    /// The tuner, the keys and the seconds a key of the batch that waits for the second of its
    /// pair.
    first: Option<(usize, usize, f64)>,
    /// The times of the candidate over those of the best one.
    ratios: Vec<f64>,
}

/// What a pair decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Same,
    /// The candidate is the best one now.
    Better,
    /// All candidates were tried, and the best one stays.
    RoundEnded,
}

impl Trial {
    const fn new() -> Self {
        Self {
            candidate: 0,
            first: None,
            ratios: Vec::new(),
        }
    }

    /// The candidate for a batch: the best one for the first of a pair.
    fn candidate(&mut self, owner: usize, keys: usize, best: usize) -> usize {
        if self.candidate == best {
            // At the beginning, or the best one has changed.
            self.candidate = usize::from(best == 0);
        }
        match self.first {
            // The fixed costs of a batch matter more in a short one.
            Some((tuner, before, _))
                if tuner == owner && keys >= before / 2 && keys / 2 <= before =>
            {
                self.candidate
            }
            _ => best,
        }
    }

    /// Takes the seconds a key of a batch. Returns the ratio if a pair is complete.
    fn timed(&mut self, owner: usize, keys: usize, is_best: bool, time: f64) -> Option<f64> {
        if is_best {
            self.first = Some((owner, keys, time));
            return None;
        }
        let (_, _, best) = self.first.take()?;
        Some(time / best)
    }

    /// Takes the ratio of a pair.
    fn pair(&mut self, ratio: f64, best: usize, candidates: usize) -> Step {
        self.ratios.push(ratio);
        let is_far_behind = self.ratios.len() == 1 && ratio > FAR_BEHIND;
        if self.ratios.len() < PAIRS && !is_far_behind {
            return Step::Same;
        }
        self.ratios.sort_by(f64::total_cmp);
        let is_better = self.ratios[self.ratios.len() / 2] < BETTER;
        self.ratios.clear();
        if is_better {
            self.candidate = 0;
            return Step::Better;
        }
        let next = |candidate| (candidate + 1) % candidates;
        let before = self.candidate;
        self.candidate = next(before);
        if self.candidate == best {
            self.candidate = next(best);
        }
        if self.candidate <= before {
            Step::RoundEnded
        } else {
            Step::Same
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs until a round ends without a change, on a machine where each candidate takes this
    /// long for a key. `noise` is the factor of each timed batch.
    fn settled(costs: &[f64], mut noise: impl FnMut() -> f64) -> (usize, usize) {
        let mut trial = Trial::new();
        let (mut best, mut batches) = (0, 0);
        loop {
            let candidate = trial.candidate(7, 1024, best);
            batches += 1;
            assert!(batches < 10_000, "no round ends");
            let time = costs[candidate] * noise();
            let Some(ratio) = trial.timed(7, 1024, candidate == best, time) else {
                continue;
            };
            match trial.pair(ratio, best, costs.len()) {
                Step::Same => {}
                Step::Better => best = candidate,
                Step::RoundEnded => return (best, batches),
            }
        }
    }

    #[test]
    fn the_fastest_candidate_is_found_wherever_it_stands() {
        for fastest in 0..12 {
            let mut costs = [5.0; 12];
            costs[fastest] = 4.0;
            assert_eq!(settled(&costs, || 1.0).0, fastest);
            // In the order of their costs, each far behind the one before or just ahead of it.
            let costs: Vec<f64> = (0..12)
                .map(|at| 4.0 + f64::from((at + fastest as i32) % 12))
                .collect();
            assert_eq!(costs[settled(&costs, || 1.0).0], 4.0);
        }
    }

    #[test]
    fn interrupted_batches_decide_nothing() {
        let mut costs = [5.0; 12];
        costs[8] = 4.0;
        let mut batch = 0;
        let (best, _) = settled(&costs, || {
            batch += 1;
            if batch % 11 == 0 { 50.0 } else { 1.0 }
        });
        assert_eq!(best, 8);
    }

    #[test]
    fn candidates_far_behind_take_one_pair() {
        let mut costs = [10.0; 12];
        costs[0] = 5.0;
        assert_eq!(settled(&costs, || 1.0), (0, 2 * 11));
        // Others take all of theirs.
        assert_eq!(settled(&[5.0; 12], || 1.0), (0, 2 * 11 * PAIRS));
    }

    #[test]
    fn batches_of_other_tuners_and_lengths_are_no_pair() {
        let mut trial = Trial::new();
        assert_eq!(trial.candidate(1, 1024, 0), 0);
        assert_eq!(trial.timed(1, 1024, true, 5.0), None);
        assert_eq!(trial.candidate(1, 1024, 0), 1);
        assert_eq!(trial.candidate(1, 512, 0), 1);
        assert_eq!(trial.candidate(2, 1024, 0), 0);
        assert_eq!(trial.candidate(1, 100, 0), 0);
        assert_eq!(trial.candidate(1, 10_000, 0), 0);
        assert_eq!(trial.timed(1, 1024, false, 4.0), Some(0.8));
        assert_eq!(trial.candidate(1, 1024, 0), 0);
    }

    #[test]
    fn filters_of_one_kind_and_size_class_share_what_they_measure() {
        struct Loop;
        let [one, other, larger] = [LEAST_LINES, LEAST_LINES + 5, 2 * LEAST_LINES].map(|lines| {
            let tuner = Tuner::new::<Loop>(lines, Tunes::BlocksAndCache);
            tuner.measured.expect("a large filter measures")
        });
        assert!(Arc::ptr_eq(&one, &other) && !Arc::ptr_eq(&one, &larger));
        let cache = Tuner::new::<Loop>(LEAST_LINES, Tunes::Cache);
        let cache = cache.measured.expect("a large filter measures");
        assert_eq!((one.candidates.len(), cache.candidates.len()), (6, 2));
        let small = Tuner::new::<Loop>(LEAST_LINES - 1, Tunes::BlocksAndCache);
        assert!(small.measured.is_none() && small.measured().is_none());
        assert_eq!(small.best(), LookAhead::INITIAL);
    }

    /// While one thread times a batch, those of others are not timed, and cannot spoil its pair.
    #[test]
    fn batches_of_threads_that_overlap_are_timed_one_at_a_time() {
        struct Loop;
        let tuners = [(); 3].map(|()| Tuner::new::<Loop>(LEAST_LINES, Tunes::Cache));
        let mut pairs = 0;
        for _ in 0..1000 {
            let begun = tuners.each_ref().map(|tuner| {
                let is_due = tuner.is_due(64);
                is_due.then(|| tuner.begin(64)).flatten()
            });
            assert!(begun.iter().flatten().count() <= 1);
            for (tuner, timed) in tuners.iter().zip(begun) {
                if let Some(timed) = timed {
                    tuner.end(64, timed);
                    // The second batch of a pair sets the pause before the next one.
                    pairs += u64::from(tuner.due.load(Ordering::Relaxed) > 0);
                }
            }
        }
        assert!(pairs > 5, "{pairs} pairs");
    }

    #[test]
    fn a_tuner_tries_every_candidate_that_is_not_far_behind() {
        struct Loop;
        let tuner = Tuner::new::<Loop>(LEAST_LINES, Tunes::BlocksAndCache);
        let mut tried = Vec::new();
        for _ in 0..20_000 {
            let used = tuner.run(1024, |look_ahead| look_ahead);
            if !tried.contains(&used) {
                tried.push(used);
            }
        }
        assert_eq!(tried.len(), 6, "{tried:?}");
        assert_eq!(
            tuner.run(LEAST_KEYS - 1, |look_ahead| look_ahead),
            tuner.best()
        );
    }

    #[test]
    fn texts_name_blocks_and_a_cache() {
        for (text, shown) in [
            ("1", "1 block into L1"),
            ("3,l1", "3 blocks into L1"),
            ("2,l2", "2 blocks into L2"),
        ] {
            assert_eq!(text.parse::<LookAhead>().unwrap().to_string(), shown);
        }
        for text in [
            "0",
            "4",
            "x",
            "-1",
            "1,",
            "1,l3",
            ",l1",
            "1,l1,",
            "2,l2,vectors",
        ] {
            let error = text.parse::<LookAhead>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "invalid lookahead={text}: expected 1, 2 or 3 blocks of 64 keys, then perhaps \
                     a cache, as in 2 or 2,l2"
                )
            );
        }
    }
}
