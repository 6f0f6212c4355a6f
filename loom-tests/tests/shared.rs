//! The shared filter: of all threads that observe a key one gets Fresh, and no update of a word is
//! lost.
//!
//! All keys here fall into one word, so the check is strict: the verdicts, and the word afterwards,
//! must equal those of one thread that observes all keys in some order.

#![cfg(loom)]

use std::collections::HashSet;
use std::sync::Mutex;

use echoless::{KeyHash, SharedFilter, SharedLayout, SharedSpec, Verdict, Verdicts};
use echoless_loom::{Preemptions, Sometimes, check, duplicates as duplicates_of};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const LAYOUTS: [SharedLayout; 4] = [
    SharedLayout::Row4x16,
    SharedLayout::Row2x32,
    SharedLayout::Bloom { k: 3 },
    SharedLayout::Ageing { k: 4 },
];

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
        let mut word = vec![filter.expected_fpr().to_bits()];
        for key in (1..12).map(KeyHash::from_uniform) {
            word.push(u64::from(filter.contains(key)));
        }
        for key in (100..105).map(KeyHash::from_uniform) {
            filter.observe_one(key);
            word.push(filter.expected_fpr().to_bits());
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

/// Exactly one Fresh for each key (4 layouts, 2 and 3 threads, 2 keys).
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
