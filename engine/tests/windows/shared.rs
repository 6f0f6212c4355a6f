//! Shared filters with a window: words that are lists of keys, the promise of a window, words that
//! are swept, and threads whose clocks differ.

use std::collections::{HashMap, VecDeque};
use std::sync::Barrier;
use std::thread;

use echoless::{
    AgeOrigin, Batch, Filter, KeyHash, KeyHasher, Report, SharedFilter, SharedLayout, SharedSpec,
    Tally, Verdict, Verdicts,
};
use proptest::prelude::*;

use crate::arrivals::arrivals;
use crate::harness::{Arrival, assert_promise, observe, observe_at, windows};

/// The units in a window at most, and those of a wrap.
const MOST_ALIVE: u64 = 256;
const WRAP: u64 = 4096;

/// A shared filter in the helpers of other filters.
struct OneThread(SharedFilter);

impl Filter for OneThread {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        self.0.observe_batch(batch, duplicates);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.0.contains(key)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn tally(&self) -> Tally {
        self.0.report().tally
    }

    fn report_on(&self, _tally: Tally) -> Report {
        self.0.report()
    }
}

fn spec(window: u64, refresh: bool, bytes: u64) -> SharedSpec {
    SharedSpec::new(bytes).layout(SharedLayout::Stamped { window, refresh })
}

fn build(window: u64, refresh: bool, bytes: u64) -> SharedFilter {
    spec(window, refresh, bytes).build().expect("valid")
}

/// Keys in few words, whose fingerprints differ.
fn streams(window: u64, keys: u64) -> impl Strategy<Value = Vec<Arrival>> {
    arrivals(
        window,
        window.div_ceil(MOST_ALIVE) * WRAP / 2,
        1..=keys,
        600,
    )
}

/// Words that are lists of keys with their whole units, the newest first.
struct Lists {
    unit: u64,
    alive: u64,
    refresh: bool,
    words: HashMap<u64, VecDeque<(KeyHash, u64)>>,
    now: u64,
    fresh: u64,
    evictions: u64,
}

impl Lists {
    fn new(window: u64, refresh: bool) -> Self {
        let unit = window.div_ceil(MOST_ALIVE);
        Self {
            unit,
            alive: window.div_ceil(unit),
            refresh,
            words: HashMap::new(),
            now: 0,
            fresh: 0,
            evictions: 0,
        }
    }

    /// The live keys of the word of a key, of 8.
    fn word(&mut self, key: KeyHash) -> &mut VecDeque<(KeyHash, u64)> {
        let word = self.words.entry(key.line(8)).or_default();
        word.retain(|(_, unit)| self.now - unit <= self.alive);
        word
    }

    fn observe(&mut self, arrival: Arrival) -> bool {
        self.now = self.now.max(arrival.tick / self.unit);
        let (now, refresh) = (self.now, self.refresh);
        let word = self.word(arrival.key);
        match word.iter().position(|(key, _)| *key == arrival.key) {
            Some(found) => {
                if refresh && word[found].1 < now {
                    word.remove(found);
                    word.push_front((arrival.key, now));
                }
                true
            }
            None => {
                word.push_front((arrival.key, now));
                let evicts = word.len() > 2;
                word.truncate(2);
                self.fresh += 1;
                self.evictions += u64::from(evicts);
                false
            }
        }
    }

    fn live(&self) -> u64 {
        let all = self.words.values().flatten();
        all.filter(|(_, unit)| self.now - unit <= self.alive)
            .count() as u64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn one_thread_agrees_with_lists(
        (window, stream) in windows().prop_flat_map(|window| (Just(window), streams(window, 40))),
        refresh: bool,
        batch in prop_oneof![1_usize..200, Just(600)],
    ) {
        let mut model = Lists::new(window, refresh);
        let expected: Vec<bool> = stream.iter().map(|arrival| model.observe(*arrival)).collect();
        let mut filter = OneThread(build(window, refresh, 64));
        prop_assert_eq!(&observe(&mut filter, &stream), &expected);
        let single = build(window, refresh, 64);
        let mut ticked = OneThread(build(window, refresh, 64));
        prop_assert_eq!(&observe_at(&mut ticked, &stream, batch), &expected);
        for (arrival, expected) in stream.iter().zip(&expected) {
            single.advance_to(arrival.tick);
            prop_assert_eq!(single.contains(arrival.key), *expected);
            prop_assert_eq!(single.observe_one(arrival.key) == Verdict::Duplicate, *expected);
        }
        for filter in [&filter.0, &ticked.0, &single] {
            prop_assert_eq!(filter.tick(), model.now * model.unit);
            for arrival in &stream {
                let held = model.word(arrival.key).iter().any(|(key, _)| *key == arrival.key);
                prop_assert_eq!(filter.contains(arrival.key), held);
            }
            let report = filter.report();
            prop_assert_eq!(report.tally.fresh, Some(model.fresh));
            prop_assert_eq!(report.tally.evictions, Some(model.evictions));
            prop_assert_eq!(report.tally.cells.map(|cells| cells.occupied), Some(model.live()));
            prop_assert_eq!(report.expired, Some(model.fresh - model.evictions - model.live()));
        }
        filter.clear();
        prop_assert_eq!((filter.0.tick(), filter.0.report().fill()), (0, Some(0.0)));
        prop_assert_eq!(&observe(&mut filter, &stream), &expected, "cleared");
    }

    /// So many words that no key is evicted.
    #[test]
    fn keys_are_remembered_for_the_window_and_forgotten_a_granule_later(
        (window, stream) in windows().prop_flat_map(|window| (Just(window), streams(window, 40))),
        refresh: bool,
    ) {
        let spec = spec(window, refresh, 1 << 16);
        let mut filter = OneThread(spec.build().expect("valid"));
        let promised = filter.0.report().window.expect("timed");
        prop_assert_eq!(promised.ticks, window);
        prop_assert!(promised.granule == 1 || promised.granule < window.div_ceil(MOST_ALIVE) * 2);
        let verdicts = observe(&mut filter, &stream);
        prop_assert_eq!(filter.0.report().tally.evictions, Some(0));
        assert_promise(&spec, promised, refresh, &stream, &verdicts)?;
    }

    /// Words that nothing visits, and a clock that moves by units, by eras and by wraps.
    #[test]
    fn expired_keys_never_come_back(
        window in prop::sample::select(vec![1_u64, 255, 256, 1000, 1 << 30]),
        bytes in prop_oneof![Just(64_u64), Just(1 << 10), Just(1 << 15)],
        start in 0_u64..1 << 40,
        moves in prop::collection::vec(
            prop_oneof![6 => 1_u64..600, 2 => 3000_u64..4200, 1 => 4200_u64..50_000],
            1..60,
        ),
    ) {
        let filter = build(window, true, bytes);
        let (hasher, unit) = (KeyHasher::seeded(1), window.div_ceil(MOST_ALIVE));
        let keys: Vec<KeyHash> = (0..bytes / 8).map(|key| hasher.hash_u64(key)).collect();
        filter.advance_to(start);
        filter.observe(&keys, &mut Verdicts::new());
        let granule = filter.report().window.expect("timed").granule;
        let mut now = start;
        for units in moves {
            now += units * unit;
            filter.advance_to(now);
            if now - start >= window + granule {
                prop_assert_eq!(filter.report().fill(), Some(0.0), "{}", now - start);
            }
        }
    }
}

#[test]
fn a_full_word_evicts_the_older_key_and_reports_it() {
    let filter = build(100, true, 64);
    // All in the first word.
    let [a, b, c, d] = [1, 2, 3, 4].map(KeyHash::from_uniform);
    let verdicts = |keys: &[(KeyHash, u64)]| -> Vec<bool> {
        let observe = |(key, tick): &(KeyHash, u64)| {
            filter.advance_to(*tick);
            filter.observe_one(*key) == Verdict::Duplicate
        };
        keys.iter().map(observe).collect()
    };
    assert_eq!(verdicts(&[(a, 10), (b, 20), (a, 30)]), [false, false, true]);
    // The oldest is `b`, as `a` was renewed; then `a` expires at 131.
    assert_eq!(verdicts(&[(c, 40), (b, 50)]), [false, false]);
    assert_eq!(filter.report().tally.evictions, Some(2));
    assert_eq!(verdicts(&[(d, 145), (b, 150)]), [false, true]);
    let report = filter.report();
    assert_eq!(report.tally.evictions, Some(2), "c had expired");
    assert_eq!(report.expired, Some(1));
    assert_eq!(report.tally.fresh, Some(5));
    assert_eq!(report.miss_age.expect("evicts").since, AgeOrigin::LastSeen);
    assert_eq!(report.slot_bits, Some(32));
    let recorded = build(100, false, 64).report().miss_age.expect("evicts");
    assert_eq!(recorded.since, AgeOrigin::Recorded);
}

/// All fingerprints have equal low bits, so that one in 256 is equal.
#[test]
fn the_false_positive_rate_is_that_of_the_live_slots() {
    let hasher = KeyHasher::seeded(2);
    let keys = |range: std::ops::Range<u64>| -> Vec<KeyHash> {
        let key = |key| KeyHash::from_uniform(hasher.hash_u64(key).get() & !0xfff | 0x123);
        range.map(key).collect()
    };
    let absent = keys(1 << 32..(1 << 32) + 300_000);
    for present in [2000, 20_000] {
        let filter = build(1000, false, 64 << 10);
        filter.observe(&keys(0..present), &mut Verdicts::new());
        let report = filter.report();
        let rate = report.expected_fpr.expect("known");
        let bound = report.most_fpr.expect("known");
        assert!(rate <= bound && bound == 2.0 / f64::from(1 << 20));
        let expected = rate * 4096.0 * absent.len() as f64;
        let found = absent.iter().filter(|key| filter.contains(**key)).count() as f64;
        let most = 6.0 * expected.sqrt();
        assert!((found - expected).abs() <= most, "{found} {expected}");
        filter.advance_to(1000 + report.window.expect("timed").granule);
        assert_eq!(filter.report().expected_fpr.unwrap(), 0.0);
        assert!(!absent.iter().any(|key| filter.contains(*key)));
    }
}

#[test]
fn ticks_have_no_effect_without_a_window() {
    let filter = SharedSpec::new(1 << 10).build().expect("valid");
    let key = KeyHash::from_uniform(7);
    let mut verdicts = Verdicts::new();
    filter.observe(Batch::at_each(&[key; 2], &[5, u64::MAX]), &mut verdicts);
    assert_eq!(verdicts.to_bools(), [false, true]);
    filter.advance_to(u64::MAX);
    assert_eq!((filter.tick(), filter.report().window), (0, None));
}

#[test]
fn the_last_tick_of_all_is_one_like_others() {
    for window in [1, 300, u64::MAX >> 1] {
        let filter = build(window, true, 1 << 10);
        let key = KeyHash::from_uniform(7);
        let mut verdicts = Verdicts::new();
        filter.observe(
            Batch::at_each(&[key; 3], &[0, u64::MAX, u64::MAX]),
            &mut verdicts,
        );
        assert_eq!(verdicts.to_bools(), [false, false, true], "{window}");
        filter.observe(Batch::at_each(&[key; 2], &[u64::MAX, 0]), &mut verdicts);
        assert_eq!(verdicts.to_bools(), [true, true], "{window}");
    }
}

const THREADS: usize = 4;

/// What each of the threads returns.
fn on_threads<T: Send>(run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || run(thread)))
            .collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|joined| joined.expect("no panic")).collect()
    })
}

/// In each round all threads observe the same new keys, each in its own order and at ticks up to a
/// window apart, while the clock moves on over many wraps.
#[test]
fn one_thread_gets_fresh_in_a_window() {
    const KEYS: u64 = 500;
    const WINDOW: u64 = 1000;
    for refresh in [false, true] {
        let filter = build(WINDOW, refresh, 4 << 20);
        let (barrier, hasher) = (Barrier::new(THREADS), KeyHasher::seeded(3));
        let rounds = 100;
        let fresh: Vec<Vec<u64>> = on_threads(|thread| {
            let mut verdicts = Verdicts::new();
            let round = |round: u64| {
                let key = |at| (at * 7 + thread as u64 * 131) % KEYS;
                let keys: Vec<KeyHash> = (0..KEYS)
                    .map(|at| hasher.hash_u64(key(at) + round % 7 * KEYS))
                    .collect();
                // A round is more than two windows after the one before, and each seventh
                // has the same keys again. Threads are up to a window apart.
                let begin = round * 7000;
                let tick = |at: u64| begin + (at * (thread as u64 + 1) * 13) % WINDOW;
                let ticks: Vec<u64> = (0..KEYS).map(tick).collect();
                barrier.wait();
                if thread == 0 {
                    filter.advance_to(begin);
                }
                barrier.wait();
                let mut fresh = 0;
                for (keys, ticks) in keys.chunks(70).zip(ticks.chunks(70)) {
                    filter.observe(Batch::at_each(keys, ticks), &mut verdicts);
                    fresh += keys.len() as u64 - verdicts.count_duplicates();
                }
                fresh
            };
            (0..rounds).map(round).collect()
        });
        assert_eq!(filter.report().tally.evictions, Some(0));
        for round in 0..rounds as usize {
            let sum: u64 = fresh.iter().map(|thread| thread[round]).sum();
            assert_eq!(sum, KEYS, "round {round}");
        }
    }
}

/// Threads take batches of one stream in turns of any order. Within a phase, whose end all threads
/// reach before any goes on, they may be as many ticks apart as a phase has: so far an age may
/// differ from that in the order of the stream.
#[test]
fn verdicts_of_threads_are_those_of_the_stream_but_for_a_phase() {
    const PHASE: u64 = 64;
    const WINDOW: u64 = 512;
    const PHASES: u64 = 150;
    const KEYS: u64 = 3000;
    let filter = build(WINDOW, true, 64 << 20);
    let hasher = KeyHasher::seeded(5);
    // 32 keys of each tick. Some return soon, some within a window or after it, some never.
    let stream: Vec<(u64, u64)> = (0..PHASES * PHASE * 32)
        .map(|index| {
            let draw = hasher.hash_u64(index).get() % 100;
            let key = match draw {
                0..60 => index % KEYS,
                // Every 430 ticks, or every 700.
                60..75 => (1 << 32) + index % (430 * 32),
                75..95 => (2 << 32) + index % (700 * 32),
                _ => (3 << 32) + index,
            };
            (key, index / 32)
        })
        .collect();
    let length = (PHASE * 32) as usize;
    let barrier = Barrier::new(THREADS);
    let parts: Vec<Vec<bool>> = on_threads(|thread| {
        let (mut verdicts, mut all) = (Verdicts::new(), Vec::new());
        for phase in stream.chunks(length) {
            barrier.wait();
            for batch in phase.chunks(64).skip(thread).step_by(THREADS) {
                let keys: Vec<KeyHash> =
                    batch.iter().map(|(key, _)| hasher.hash_u64(*key)).collect();
                let ticks: Vec<u64> = batch.iter().map(|(_, tick)| *tick).collect();
                filter.observe(Batch::at_each(&keys, &ticks), &mut verdicts);
                all.extend(verdicts.to_bools());
            }
        }
        all
    });
    assert_eq!(filter.report().tally.evictions, Some(0));
    let mut parts: Vec<_> = parts.iter().map(|part| part.chunks(64)).collect();
    let batches = (0..stream.len() / 64).map(|batch| parts[batch % THREADS].next());
    let verdicts: Vec<bool> = batches
        .flat_map(|batch| batch.expect("as many").to_vec())
        .collect();
    let granule = filter.report().window.expect("timed").granule;
    let mut last: HashMap<u64, u64> = HashMap::new();
    let (mut remembered, mut forgotten) = (0, 0);
    for (phase, verdicts) in stream.chunks(length).zip(verdicts.chunks(length)) {
        let mut observed: HashMap<u64, Vec<(u64, bool)>> = HashMap::new();
        for ((key, tick), duplicate) in phase.iter().zip(verdicts) {
            observed.entry(*key).or_default().push((*tick, *duplicate));
        }
        for (key, arrivals) in observed {
            let fresh = arrivals.iter().filter(|(_, duplicate)| !duplicate).count();
            let first = arrivals[0].0;
            // Arrivals of a phase are at most a phase apart, so at most one is fresh.
            assert!(fresh <= 1, "{key} at {first}: {arrivals:?}");
            match last.get(&key).map(|last| first - last) {
                Some(age) if age + PHASE <= WINDOW => {
                    remembered += 1;
                    assert_eq!(fresh, 0, "{key} at age {age}");
                }
                Some(age) if age < WINDOW + granule + PHASE => {}
                _ => {
                    forgotten += 1;
                    assert_eq!(fresh, 1, "{key} at {first}");
                }
            }
            let newest = arrivals.iter().map(|(tick, _)| *tick).max();
            last.insert(key, newest.expect("not empty"));
        }
    }
    assert!(
        remembered > 10_000 && forgotten > 10_000,
        "{remembered} {forgotten}"
    );
}
