//! The shared filter: of all threads that observe a key one gets Fresh, and no update of a word is
//! lost.
//!
//! All keys here fall into one word, so the check is strict: the verdicts, and the word afterwards,
//! must equal those of one thread that observes all keys in some order. With a clock that moves, a
//! model states which keys are held.

#![cfg(loom)]

use std::collections::HashSet;
use std::sync::Mutex;

use echoless::{Batch, KeyHash, SharedFilter, SharedLayout, SharedSpec, Verdict, Verdicts};
use echoless_loom::{Preemptions, Sometimes, check, duplicates as duplicates_of};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const LAYOUTS: [SharedLayout; 5] = [
    SharedLayout::Row4x16,
    SharedLayout::Row2x32,
    WINDOW,
    SharedLayout::Bloom { k: 3 },
    SharedLayout::Ageing { k: 4 },
];

/// A window of 256 units of one tick. Stamps wrap around after 4096.
const WINDOW: SharedLayout = SharedLayout::Stamped {
    window: 256,
    refresh: true,
};

const A: KeyHash = KeyHash::from_uniform(1);
const B: KeyHash = KeyHash::from_uniform(2);

/// The verdicts of each thread, and the state of the word afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Outcome {
    duplicates: Vec<Vec<bool>>,
    word: Vec<u64>,
}

impl Outcome {
    fn of(filter: &SharedFilter, duplicates: Vec<Vec<bool>>) -> Self {
        // The word itself is private. Compare what depends on it: the fill, the keys it holds, and
        // its reaction to further keys.
        let mut word = vec![filter.report().expected_fpr.unwrap().to_bits()];
        for key in (1..12).map(KeyHash::from_uniform) {
            word.push(u64::from(filter.contains(key)));
        }
        for key in (100..105).map(KeyHash::from_uniform) {
            filter.observe_one(key);
            word.push(filter.report().expected_fpr.unwrap().to_bits());
        }
        Self { duplicates, word }
    }

    /// How many threads got Fresh for this key.
    fn fresh(&self, threads: &[Vec<KeyHash>], key: KeyHash) -> usize {
        let keys = threads.iter().flatten();
        keys.zip(self.duplicates.iter().flatten())
            .filter(|(of, duplicate)| **of == key && !**duplicate)
            .count()
    }
}

/// A filter of eight words that has observed these keys.
fn filter(layout: SharedLayout, before: &[KeyHash]) -> SharedFilter {
    let filter = SharedSpec::new(64)
        .layout(layout)
        .build()
        .expect("one line");
    for key in before {
        filter.observe_one(*key);
    }
    filter
}

fn is_duplicate(filter: &SharedFilter, key: KeyHash) -> bool {
    filter.observe_one(key) == Verdict::Duplicate
}

/// All interleavings of the threads' steps, as lists of thread indices; `left` holds the number of
/// steps of each thread.
fn orders(left: &mut [usize], order: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
    if left.iter().all(|count| *count == 0) {
        all.push(order.clone());
    }
    for thread in 0..left.len() {
        if left[thread] > 0 {
            left[thread] -= 1;
            order.push(thread);
            orders(left, order, all);
            order.pop();
            left[thread] += 1;
        }
    }
}

/// Runs a single-threaded function that needs loom's atomics, in a model of its own.
fn alone<T: Send + 'static>(run: impl Fn() -> T + Send + Sync + 'static) -> T {
    let result = std::sync::Arc::new(Mutex::new(None));
    let slot = std::sync::Arc::clone(&result);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.check(move || *slot.lock().unwrap() = Some(run()));
    result.lock().unwrap().take().expect("the model has run")
}

/// The possible outcomes if each key is observed in one atomic step.
fn sequential(
    layout: SharedLayout,
    before: &[KeyHash],
    threads: &[Vec<KeyHash>],
) -> HashSet<Outcome> {
    let (before, threads) = (before.to_vec(), threads.to_vec());
    alone(move || {
        let mut all = Vec::new();
        let mut lengths: Vec<usize> = threads.iter().map(Vec::len).collect();
        orders(&mut lengths, &mut Vec::new(), &mut all);
        let outcome = |order: &Vec<usize>| {
            let filter = filter(layout, &before);
            let mut duplicates = vec![Vec::new(); threads.len()];
            for thread in order {
                let key = threads[*thread][duplicates[*thread].len()];
                duplicates[*thread].push(is_duplicate(&filter, key));
            }
            Outcome::of(&filter, duplicates)
        };
        all.iter().map(outcome).collect()
    })
}

/// Lets the threads observe their keys concurrently, and checks that each outcome is a sequential
/// one and passes `verify`. Every sequential outcome must occur.
fn one_step_each(
    property: &str,
    layout: SharedLayout,
    preemptions: Preemptions,
    before: &[KeyHash],
    threads: &[&[KeyHash]],
    verify: impl Fn(&Outcome, &[Vec<KeyHash>]) + Send + Sync + 'static,
) {
    let before = before.to_vec();
    let threads: Vec<Vec<KeyHash>> = threads.iter().map(|keys| keys.to_vec()).collect();
    let sequential = sequential(layout, &before, &threads);
    let possible = sequential.len();
    let seen = std::sync::Arc::new(Mutex::new(HashSet::new()));
    let seen_here = std::sync::Arc::clone(&seen);
    let count = threads.len();
    let property = format!("{property}, {layout:?}, {count} threads");
    check(&property, preemptions, move || {
        let filter = Arc::new(filter(layout, &before));
        // The first thread observes a batch, the others one key at a time.
        let others: Vec<_> = threads[1..]
            .iter()
            .map(|keys| {
                let (filter, keys) = (Arc::clone(&filter), keys.clone());
                thread::spawn(move || {
                    let verdict = |key: &KeyHash| is_duplicate(&filter, *key);
                    keys.iter().map(verdict).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut verdicts = Verdicts::new();
        filter.observe(&threads[0], &mut verdicts);
        let mut duplicates = vec![duplicates_of(&verdicts)];
        duplicates.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        let outcome = Outcome::of(&filter, duplicates);
        assert!(sequential.contains(&outcome), "{outcome:?}");
        verify(&outcome, &threads);
        seen.lock().unwrap().insert(outcome);
    });
    assert_eq!(seen_here.lock().unwrap().len(), possible, "{property}");
}

/// Exactly one thread gets Fresh for each key, provided that no key is forgotten.
fn one_fresh(outcome: &Outcome, threads: &[Vec<KeyHash>]) {
    for key in threads.iter().flatten() {
        assert_eq!(outcome.fresh(threads, *key), 1, "{outcome:?}");
    }
}

/// Exactly one Fresh for each key (5 layouts, 2 and 3 threads, 2 keys).
#[test]
fn one_fresh_per_key() {
    for layout in LAYOUTS {
        one_step_each(
            "one_fresh_per_key",
            layout,
            Preemptions::Any,
            &[],
            &[&[A, B], &[B, A]],
            one_fresh,
        );
        one_step_each(
            "one_fresh_per_key",
            layout,
            Preemptions::Any,
            &[],
            &[&[A, B], &[B], &[A]],
            one_fresh,
        );
    }
}

/// A row that overflows forgets its oldest key, so one thread or both get Fresh for that key.
#[test]
fn one_fresh_per_key_unless_overrun() {
    static ONE: Sometimes = Sometimes::new();
    static BOTH: Sometimes = Sometimes::new();
    for (layout, slots) in [(SharedLayout::Row2x32, 2), (SharedLayout::Row4x16, 4)] {
        let run: Vec<KeyHash> = (1..=1 + slots).map(KeyHash::from_uniform).collect();
        one_step_each(
            "one_fresh_per_key_unless_overrun",
            layout,
            Preemptions::Any,
            &[],
            &[&run, &[A]],
            |outcome, threads| {
                let fresh = outcome.fresh(threads, A);
                assert!((1..=2).contains(&fresh));
                ONE.note(fresh == 1);
                BOTH.note(fresh == 2);
                for key in &threads[0][1..] {
                    assert_eq!(outcome.fresh(threads, *key), 1);
                }
            },
        );
    }
    ONE.assert();
    BOTH.assert();
}

/// A key is recorded while another key clears bits of it: the word holds the key if it was recorded
/// last, and loses nothing else.
#[test]
fn ageing_vs_insert() {
    static HELD: Sometimes = Sometimes::new();
    static CLEARED: Sometimes = Sometimes::new();
    const LAYOUT: SharedLayout = SharedLayout::Ageing { k: 4 };
    // A word that is about half full, and a key that clears a bit of A in it.
    let before: Vec<KeyHash> = (20..30).map(KeyHash::from_uniform).collect();
    let filled = before.clone();
    let clearing = alone(move || {
        (1000..1100).map(KeyHash::from_uniform).find(|key| {
            let filter = filter(LAYOUT, &filled);
            filter.observe_one(A) == Verdict::Fresh
                && filter.observe_one(*key) == Verdict::Fresh
                && !filter.contains(A)
        })
    });
    let clearing = clearing.expect("about one key in ten clears a bit of A");
    one_step_each(
        "ageing_vs_insert",
        LAYOUT,
        Preemptions::Any,
        &before,
        &[&[A, A], &[clearing]],
        move |outcome, threads| {
            let fresh = outcome.fresh(threads, A);
            assert_eq!(outcome.fresh(threads, clearing), 1);
            assert!((1..=2).contains(&fresh));
            let held = outcome.word[1] == 1; // whether the filter contains A
            assert!(held || fresh == 1, "a key recorded twice was recorded last");
            HELD.note(held);
            CLEARED.note(!held);
        },
    );
    HELD.assert();
    CLEARED.assert();
}

/// A thread that gets Duplicate, or finds the key, sees what the thread that got Fresh wrote
/// before.
#[test]
fn duplicate_sees_what_fresh_wrote() {
    static RETURNED: Sometimes = Sometimes::new();
    static FOUND: Sometimes = Sometimes::new();
    for layout in LAYOUTS {
        check(
            &format!("duplicate_sees_what_fresh_wrote, {layout:?}"),
            Preemptions::Any,
            move || {
                let filter = Arc::new(filter(layout, &[]));
                let written = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
                let observe = |mine: usize| {
                    let (filter, written) = (Arc::clone(&filter), Arc::clone(&written));
                    move || {
                        written[mine].store(1, Ordering::Relaxed);
                        if filter.contains(A) {
                            assert_eq!(written[1 - mine].load(Ordering::Relaxed), 1);
                            FOUND.note(true);
                        }
                        if is_duplicate(&filter, A) {
                            assert_eq!(written[1 - mine].load(Ordering::Relaxed), 1);
                            RETURNED.note(true);
                        }
                    }
                };
                let peer = thread::spawn(observe(1));
                observe(0)();
                peer.join().unwrap();
            },
        );
    }
    RETURNED.assert();
    FOUND.assert();
}

/// Runs two threads on a filter with a window that has observed A at tick 0 and whose clock then
/// moved to `tick`, with either on the thread that starts first. `verify` gets the filter
/// afterwards, and what the threads returned.
fn with_a_clock<T: Send + 'static, U: Send + 'static>(
    property: &str,
    tick: u64,
    one: impl Fn(&SharedFilter) -> T + Copy + Send + Sync + 'static,
    other: impl Fn(&SharedFilter) -> U + Copy + Send + Sync + 'static,
    verify: impl Fn(&SharedFilter, T, U) + Copy + Send + Sync + 'static,
) {
    for one_is_first in [false, true] {
        check(property, Preemptions::Any, move || {
            let filter = Arc::new(filter(WINDOW, &[A]));
            filter.advance_to(tick);
            let peer = Arc::clone(&filter);
            let (one, other) = if one_is_first {
                let peer = thread::spawn(move || other(&peer));
                (one(&filter), peer.join().unwrap())
            } else {
                let peer = thread::spawn(move || one(&peer));
                let other = other(&filter);
                (peer.join().unwrap(), other)
            };
            verify(&filter, one, other);
        });
    }
}

/// One thread observes a new key a window after the clock, the other one at the clock as it is,
/// before or after that: exactly one gets Fresh, and the key is remembered from the later one on.
#[test]
fn window_one_fresh_at_two_clocks() {
    static EARLIER: Sometimes = Sometimes::new();
    static LATER: Sometimes = Sometimes::new();
    with_a_clock(
        "window_one_fresh_at_two_clocks",
        0,
        |filter| {
            let mut verdicts = Verdicts::new();
            filter.observe(Batch::at_each(&[B], &[256]), &mut verdicts);
            verdicts.is_duplicate(0)
        },
        |filter| is_duplicate(filter, B),
        |filter, later, earlier| {
            assert!(later != earlier, "{later} {earlier}");
            // It was seen at 256, also if the other thread saw it last.
            filter.advance_to(512);
            assert!(filter.contains(B));
            EARLIER.note(later);
            LATER.note(earlier);
        },
    );
    EARLIER.assert();
    LATER.assert();
}

/// A thread moves the clock past the window of a key while another one observes it: a duplicate only
/// at the clock before, fresh at the clock behind. The key stays.
#[test]
fn window_ends_for_a_stale_slot() {
    static BEFORE: Sometimes = Sometimes::new();
    static BEHIND: Sometimes = Sometimes::new();
    with_a_clock(
        "window_ends_for_a_stale_slot",
        256,
        // Over the word of A.
        |filter| filter.advance_to(448),
        |filter| (filter.tick(), is_duplicate(filter, A)),
        |filter, (), (before, duplicate)| {
            // Fresh also at 256, if the other thread has swept the word.
            assert!(!duplicate || before == 256);
            // A is renewed or recorded again, which no sweep takes for stale.
            assert!(filter.contains(A));
            BEFORE.note(duplicate);
            BEHIND.note(!duplicate);
        },
    );
    BEFORE.assert();
    BEHIND.assert();
}

/// A thread moves the clock by a whole wrap, so that the stamp of an old key is that of the clock.
/// Another thread that finds the clock there finds no such key: the sweep came before.
#[test]
fn window_sweep_before_the_clock() {
    static THERE: Sometimes = Sometimes::new();
    with_a_clock(
        "window_sweep_before_the_clock",
        0,
        |filter| filter.advance_to(4096),
        |filter| {
            let there = filter.tick() == 4096;
            (there, filter.contains(A))
        },
        |filter, (), (there, held)| {
            assert!(!there || !held);
            assert!(!filter.contains(A));
            THERE.note(there);
        },
    );
    THERE.assert();
}

/// A thread records a key in a word that another one sweeps: the key stays, and the stale one goes.
#[test]
fn window_sweep_vs_observe() {
    static FIRST: Sometimes = Sometimes::new();
    static LAST: Sometimes = Sometimes::new();
    with_a_clock(
        "window_sweep_vs_observe",
        // A is dead, and its word not swept yet; the next move sweeps it.
        300,
        |filter| filter.advance_to(448),
        |filter| {
            let fresh = !is_duplicate(filter, B);
            (fresh, filter.tick() == 448)
        },
        |filter, (), (fresh, moved)| {
            assert!(fresh && filter.contains(B) && !filter.contains(A));
            // Two slots, so two keys more have room.
            assert!(!is_duplicate(filter, KeyHash::from_uniform(3)));
            assert!(filter.contains(B));
            // Stamps of A would be live again, and this move passes other words.
            filter.advance_to(4020);
            assert!(!filter.contains(A));
            FIRST.note(!moved);
            LAST.note(moved);
        },
    );
    FIRST.assert();
    LAST.assert();
}

/// Two threads move the clock, one over a wrap: it ends at the later tick, all words were swept on
/// the way, and a key that is observed there twice is fresh once.
#[test]
fn window_two_threads_move_the_clock() {
    let observe_at = |filter: &SharedFilter, tick| {
        let mut verdicts = Verdicts::new();
        filter.observe(Batch::at_each(&[A], &[tick]), &mut verdicts);
        verdicts.is_duplicate(0)
    };
    with_a_clock(
        "window_two_threads_move_the_clock",
        300,
        // Not 4096, a whole wrap after A, at which the word would be what it was.
        move |filter| observe_at(filter, 4097),
        move |filter| observe_at(filter, 4000),
        |filter, later, earlier| {
            assert!(later != earlier, "{later} {earlier}");
            assert_eq!(filter.tick(), 4097);
            assert!(filter.contains(A));
        },
    );
}
