//! Ordered filters: tickets that are dropped, partitions that are lost, and the end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use echoless::{
    Batch, Engine, ExchangeError, KeyHash, LossPolicy, NotReplaceable, OrderedFilter, Partitioned,
    Partitioning, Verdicts,
};
use proptest::prelude::*;

use crate::breakable::{Breakable, Exact, breakable};
use crate::streams::{batches, cases};
use crate::stub::{BAD_KEY, Stub, fragile};

const LOW: KeyHash = KeyHash::from_uniform(1);
const HIGH: KeyHash = KeyHash::from_uniform(u64::MAX);

fn exact(partitions: usize) -> OrderedFilter<Exact> {
    OrderedFilter::builder(Exact::partitions(partitions, None)).build()
}

#[test]
fn a_ticket_that_is_dropped_is_left_out() {
    let filter = exact(3);
    let mut verdicts = Verdicts::new();
    let (mut first, mut second) = (filter.handle(), filter.handle());
    drop(first.ticket());
    let dropped_later = first.ticket();
    let last = second.ticket();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let mut verdicts = Verdicts::new();
            last.observe(&[LOW, HIGH], &mut verdicts).unwrap();
            verdicts.count_duplicates()
        });
        drop(dropped_later);
        assert_eq!(waiting.join().unwrap(), 0);
    });
    first.observe(&[HIGH], &mut verdicts).unwrap();
    assert_eq!(verdicts.count_duplicates(), 1);
}

/// Its input fails, or its own code panics.
#[test]
fn a_thread_that_leaves_with_its_ticket_blocks_no_other() {
    let filter = exact(2);
    let (mut leaving, mut other) = (filter.handle(), filter.handle());
    let left = catch_unwind(AssertUnwindSafe(|| {
        let _ticket = leaving.ticket();
        resume_unwind(Box::new("outside the filter"));
    }));
    assert!(left.is_err());
    other.observe(&[LOW], &mut Verdicts::new()).unwrap();
    assert_eq!(filter.counts().judged, 1);
}

/// A filter that has replaced a lost one, was never used, and panics when the shutdown moves its
/// clock, is lost as well.
#[test]
fn a_panic_at_the_shutdown_is_a_loss() {
    // Its state is whether its clock can be moved.
    let brittle = |is_movable| {
        Stub::new(is_movable, |is_movable: &mut bool, keys| {
            assert!(keys.is_empty(), "it is never used");
            assert!(*is_movable, "a bug of the clock");
        })
    };
    let halves = vec![brittle(true), brittle(true)];
    let halves = Partitioned::new(Partitioning::new(2, 2).unwrap(), halves);
    let filter = OrderedFilter::builder(halves.unwrap()).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    let lost = handle.observe(Batch::at(&[LOW], 1), &mut verdicts);
    assert_eq!(lost, Err(ExchangeError::Panicked(0)));
    filter.replace(0, brittle(false)).unwrap();
    let error = filter.shutdown().err().unwrap();
    // The clock of the other partition has moved.
    let message = "a bug of the clock";
    assert_eq!(error.lost, [(0, message.to_owned())]);
    let closed = handle.observe(&[LOW], &mut verdicts);
    assert_eq!(closed, Err(ExchangeError::Disconnected(0)));
}

/// Batches apply in the order of the tickets, not of the calls.
#[test]
fn a_later_ticket_waits_for_an_earlier_one() {
    for _ in 0..200 {
        let filter = exact(2);
        let (mut early, mut late) = (filter.handle(), filter.handle());
        let (first, second) = (early.ticket(), late.ticket());
        thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                second.observe(&[LOW, HIGH], &mut verdicts).unwrap();
                verdicts.count_duplicates()
            });
            let mut verdicts = Verdicts::new();
            first.observe(&[HIGH, LOW], &mut verdicts).unwrap();
            assert_eq!(verdicts.count_duplicates(), 0);
            assert_eq!(waiting.join().unwrap(), 2);
        });
    }
}

#[test]
fn a_batch_of_a_lost_partition_returns_what_is_known() {
    let filter = OrderedFilter::builder(fragile(3)).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    assert!(!handle.take_partial(&mut verdicts));
    let third = u64::MAX / 3;
    // More keys of the lost partition than a message holds.
    let keys: Vec<KeyHash> = (0..300)
        .map(|index| KeyHash::from_uniform(u64::MAX - index % 3 * third - index))
        .collect();
    assert_eq!(keys[0], BAD_KEY);
    let lost = Err(ExchangeError::Panicked(2));
    verdicts.reset(5);
    assert_eq!(handle.observe(&keys, &mut verdicts), lost);
    assert!(verdicts.is_empty());
    assert!(handle.take_partial(&mut verdicts));
    for (index, key) in keys.iter().enumerate() {
        let owner = filter.partitioning().partition_of(*key);
        assert_eq!(verdicts.is_unknown(index), owner == 2, "key {index}");
        assert!(!verdicts.is_duplicate(index));
    }
    assert!(!handle.take_partial(&mut verdicts));
    assert!(verdicts.is_empty());
    let counts = filter.counts();
    assert_eq!((counts.judged, counts.unknown), (200, 100));
    // A batch without keys of the lost partition is not affected, in any handle.
    handle.observe(&[LOW], &mut verdicts).unwrap();
    assert_eq!((verdicts.len(), verdicts.count_unknown()), (1, 0));
    assert_eq!(filter.handle().observe(&[BAD_KEY], &mut verdicts), lost);
    let message = "this key panics on purpose";
    assert_eq!(filter.lost(), [(2, message.to_owned())]);
    let error = filter.shutdown().err().unwrap();
    let numbers: Vec<usize> = error.survivors.iter().map(|(index, _)| *index).collect();
    assert_eq!(
        (numbers, error.lost),
        (vec![0, 1], vec![(2, message.to_owned())])
    );
}

#[test]
fn policies_judge_the_keys_of_a_lost_partition() {
    for (policy, duplicates) in [(LossPolicy::AsDuplicate, 1), (LossPolicy::AsFresh, 0)] {
        let filter = OrderedFilter::builder(fragile(2)).on_loss(policy).build();
        let mut handle = filter.handle();
        let mut verdicts = Verdicts::new();
        for _ in 0..2 {
            handle.observe(&[LOW, BAD_KEY], &mut verdicts).unwrap();
            assert_eq!(verdicts.count_duplicates(), duplicates);
            assert_eq!(verdicts.unknown().collect::<Vec<_>>(), [1]);
        }
        assert_eq!(filter.counts().unknown, 2);
    }
}

#[test]
fn a_replaced_partition_goes_on() {
    let (partitioning, mut filters) = Exact::partitions(2, None).into_parts();
    filters[1].passes_left = Some(1);
    let filter = Partitioned::new(partitioning, filters).unwrap();
    let filter = OrderedFilter::builder(filter).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    handle.observe(&[LOW, HIGH], &mut verdicts).unwrap();
    let lost = Err(ExchangeError::Panicked(1));
    assert_eq!(handle.observe(&[HIGH, LOW], &mut verdicts), lost);
    let rejected = filter.replace(0, Exact::default()).unwrap_err();
    assert_eq!(rejected.reason, NotReplaceable::NotLost);
    let rejected = filter.replace(2, Exact::default()).unwrap_err();
    assert_eq!(rejected.to_string(), "invalid partition=2: expected 0 to 1");
    filter.replace(1, Exact::default()).unwrap();
    assert!(filter.lost().is_empty());
    for duplicate in [false, true] {
        handle.observe(&[HIGH, LOW], &mut verdicts).unwrap();
        assert_eq!(verdicts.is_duplicate(0), duplicate);
        assert!(verdicts.is_duplicate(1));
    }
    filter.shutdown().unwrap();
}

#[test]
fn handles_outlive_the_filter_and_find_it_shut_down() {
    let filter = exact(2);
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    handle.observe(&[LOW, HIGH], &mut verdicts).unwrap();
    let halves = filter.shutdown().unwrap();
    assert!(halves.filters()[0].keys.lock().unwrap().contains(&LOW));
    // The first partition of the batch is named; an empty batch has none.
    assert_eq!(
        handle.observe(&[HIGH], &mut verdicts),
        Err(ExchangeError::Disconnected(1))
    );
    assert!(handle.take_partial(&mut verdicts));
    assert!(verdicts.is_unknown(0));
    handle.observe(&[], &mut verdicts).unwrap();

    let mut handle = exact(1).handle();
    handle.observe(&[LOW], &mut verdicts).unwrap();
    handle.observe(&[LOW], &mut verdicts).unwrap();
    assert_eq!(verdicts.count_duplicates(), 1);
}

/// The caller handles the error, so no policy judges its unknown keys: neither in an ordered filter
/// nor in an engine.
#[test]
fn policies_judge_no_key_of_a_batch_that_failed() {
    let policies = [
        LossPolicy::Error,
        LossPolicy::AsFresh,
        LossPolicy::AsDuplicate,
    ];
    for policy in policies {
        let keys = [LOW, HIGH, LOW];
        let mut verdicts = Verdicts::new();
        let filter = Exact::partitions(2, None);
        let filter = OrderedFilter::builder(filter).on_loss(policy).build();
        let mut handle = filter.handle();
        filter.shutdown().unwrap();
        handle.observe(&keys, &mut verdicts).unwrap_err();
        assert!(handle.take_partial(&mut verdicts));
        assert_eq!(verdicts.to_bools(), [false; 3], "{policy:?}");
        assert!(verdicts.unknown().eq(0..3));

        // A ring has room for the first message of the batch; the worker ends before the others.
        let builder = Engine::builder(Exact::partitions(1, None)).on_loss(policy);
        let (engine, mut ports) = builder.ring_depth(1).build().unwrap();
        assert_eq!(ports[0].try_submit(&[LOW; 200]), Ok(true));
        engine.shutdown().unwrap();
        ports[0].drain(&mut verdicts).unwrap_err();
        assert!(ports[0].take_partial(&mut verdicts));
        assert!(verdicts.duplicates().eq(1..64), "{policy:?}");
        assert!(verdicts.unknown().eq(64..200));
    }
}

/// A shutdown returns a filter with the batches of all tickets that were taken before it.
#[test]
fn a_shutdown_waits_for_earlier_tickets() {
    let filter = exact(2);
    let mut handle = filter.handle();
    let (taken, is_taken) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let ticket = handle.ticket();
            taken.send(()).unwrap();
            ticket.observe(&[LOW, HIGH], &mut Verdicts::new()).unwrap();
        });
        is_taken.recv().unwrap();
        let halves = filter.shutdown().unwrap();
        for (half, key) in halves.filters().iter().zip([LOW, HIGH]) {
            assert!(half.keys.lock().unwrap().contains(&key));
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Threads whose partitions panic again and again, and which submit the unknown keys again: no
    /// key is lost, and none is judged twice.
    #[test]
    fn retries_after_losses_lose_no_key((keys, parts, threads, size) in cases(3000)) {
        let (filter, switches) = breakable(Exact::partitions(parts, None));
        // What the exact filters hold survives them.
        let held: Vec<_> = filter.filters().iter().map(|part| Arc::clone(&part.inner.keys)).collect();
        let filter = OrderedFilter::builder(filter).build();
        let input = Mutex::new(batches(&keys, size).into_iter().enumerate());
        let replace = |partition: usize| {
            let switch = Arc::clone(&switches[partition]);
            let inner = Exact { keys: Arc::clone(&held[partition]), passes_left: None };
            // Another thread may have replaced it, or its keys be those of an earlier loss.
            filter.replace(partition, Breakable { inner, switch }).ok();
        };
        let run = |thread: usize| {
            let mut handle = filter.handle();
            let mut verdicts = Verdicts::new();
            let mut fresh = 0;
            loop {
                let Some((number, batch)) = input.lock().unwrap().next() else {
                    return fresh;
                };
                switches[(number + thread) % parts].store(number % 3 == 0, Ordering::Relaxed);
                let mut rest = batch.to_vec();
                while let Err(error) = handle.observe(&rest, &mut verdicts) {
                    let ExchangeError::Panicked(partition) = error else {
                        panic!("{error}");
                    };
                    assert!(handle.take_partial(&mut verdicts));
                    let unknown: Vec<usize> = verdicts.unknown().collect();
                    fresh += rest.len() as u64 - unknown.len() as u64 - verdicts.count_duplicates();
                    rest = unknown.into_iter().map(|index| rest[index]).collect();
                    replace(partition);
                }
                fresh += rest.len() as u64 - verdicts.count_duplicates();
            }
        };
        let fresh: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|thread| scope.spawn({ let run = &run; move || run(thread) }))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        prop_assert_eq!(fresh, distinct.len() as u64);
        prop_assert_eq!(filter.counts().judged, keys.len() as u64);
    }
}
