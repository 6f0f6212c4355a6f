//! Tickets of ordered filters that look before they record, and that look at all partitions.

use std::iter::Enumerate;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;
use std::sync::Mutex;
use std::thread;

use echoless::{
    Batch, ExchangeError, Filter, FilterSpec, KeyHash, LineFilter, OrderedFilter, Partitioned,
    Partitioning, Report, Verdicts,
};
use proptest::prelude::*;

use crate::breakable::Exact;
use crate::streams::{batches, cases, spec};
use crate::stub::{BAD_KEY, Stub, fragile, fragile_at};

const LOW: KeyHash = KeyHash::from_uniform(1);
const HIGH: KeyHash = KeyHash::from_uniform(u64::MAX);

/// A third of the fresh keys of a batch, as if a sink had failed after them.
fn written(keys: &[KeyHash], found: &Verdicts) -> Vec<KeyHash> {
    let fresh: Vec<KeyHash> = found.fresh().map(|index| keys[index]).collect();
    fresh[..fresh.len().div_ceil(3)].to_vec()
}

/// The next batch, its number, and tickets that are taken in the order of the batches.
fn next<'a, T>(
    input: &Mutex<Enumerate<slice::Iter<'_, &'a [KeyHash]>>>,
    take: impl FnOnce() -> T,
) -> Option<(usize, &'a [KeyHash], T)> {
    let mut input = input.lock().unwrap();
    let (number, batch) = input.next()?;
    Some((number, batch, take()))
}

fn comparable(report: &Report) -> (Option<u64>, Option<u64>, Option<u64>, Option<f64>) {
    let tally = report.tally;
    (
        tally.observed,
        tally.fresh,
        tally.evictions,
        report.expected_fpr,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Threads that look up and record with one ticket, or report with one, do at each place in the
    /// order what the undivided filter does there.
    #[test]
    fn tickets_look_and_record_as_the_undivided_filter((keys, parts, threads, size) in cases(2000)) {
        let batches = batches(&keys, size);
        let mut whole = spec().build().unwrap();
        let mut expected = Vec::new();
        for batch in &batches {
            let (mut found, mut recorded) = (Verdicts::new(), Verdicts::new());
            whole.contains_each(batch, &mut found);
            whole.observe(&written(batch, &found), &mut recorded);
            let verdicts = [found.to_bools(), recorded.to_bools()];
            expected.push((verdicts, comparable(&whole.report())));
        }

        let filter = OrderedFilter::builder(spec().build_partitions(parts).unwrap()).build();
        let input = Mutex::new(batches.iter().enumerate());
        let run = || {
            let (mut handle, mut other) = (filter.handle(), filter.handle());
            while let Some((number, batch, (mut ticket, report))) =
                next(&input, || (handle.ticket(), other.ticket()))
            {
                let mut recorded = Verdicts::new();
                let mut found = Verdicts::new();
                ticket.contains_each(batch, &mut found).unwrap();
                ticket.observe(&written(batch, &found), &mut recorded).unwrap();
                let report = report.report().unwrap();
                let verdicts = [found.to_bools(), recorded.to_bools()];
                assert_eq!((verdicts, comparable(&report)), expected[number]);
            }
        };
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
        let judged: usize = expected.iter().map(|([_, recorded], _)| recorded.len()).sum();
        prop_assert_eq!(filter.counts().judged, judged as u64);
    }

    /// In the turn of a batch, each partition has observed the batches up to it and no other.
    #[test]
    fn a_partition_in_the_turn_of_a_batch_is_that_of_the_batches_up_to_it((keys, parts, threads, size) in cases(2000)) {
        let batches = batches(&keys, size);
        let mut expected = Vec::new();
        let (partitioning, mut filters) = spec().build_partitions(parts).unwrap().into_parts();
        for batch in &batches {
            for key in *batch {
                filters[partitioning.partition_of(*key)].observe_one(*key);
            }
            expected.push(filters.iter().map(|part| part.lines().to_vec()).collect::<Vec<_>>());
        }

        let filter = spec().build_partitions(parts).unwrap();
        let filter = OrderedFilter::builder(filter).build();
        let input = Mutex::new(batches.iter().enumerate());
        let run = || {
            let mut handle = filter.handle();
            while let Some((number, batch, ticket)) = next(&input, || handle.ticket()) {
                let mut seen = Vec::new();
                let mut verdicts = Verdicts::new();
                ticket
                    .observe_then(batch, &mut verdicts, |partition, part| {
                        assert_eq!(partition, seen.len());
                        seen.push(part.lines().to_vec());
                    })
                    .unwrap();
                assert!(seen == expected[number]);
                assert_eq!(verdicts.len(), batch.len());
            }
        };
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
    }
}

/// Later batches pass once a ticket that has looked is dropped.
#[test]
fn a_ticket_that_has_looked_can_be_dropped() {
    let filter = OrderedFilter::builder(Exact::partitions(3, None)).build();
    let (mut first, mut second) = (filter.handle(), filter.handle());
    let mut ticket = first.ticket();
    let later = second.ticket();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let mut verdicts = Verdicts::new();
            later.observe(&[LOW, HIGH], &mut verdicts).unwrap();
            verdicts.count_duplicates()
        });
        let mut verdicts = Verdicts::new();
        for _ in 0..2 {
            ticket.contains_each(&[LOW, HIGH], &mut verdicts).unwrap();
            assert_eq!(verdicts.to_bools(), [false, false]);
        }
        drop(ticket);
        assert_eq!(waiting.join().unwrap(), 0);
    });
    let mut verdicts = Verdicts::new();
    first
        .ticket()
        .contains_each(&[LOW, HIGH], &mut verdicts)
        .unwrap();
    assert_eq!(verdicts.to_bools(), [true, true]);
    assert_eq!(filter.counts().judged, 2);
}

#[test]
fn a_ticket_looks_at_its_tick() {
    let spec: FilterSpec = "stamped:window=10,memory=64KiB".parse().unwrap();
    let filter = OrderedFilter::builder(spec.build_partitions(3).unwrap()).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    handle
        .ticket()
        .observe(Batch::at(&[LOW, HIGH], 5), &mut verdicts)
        .unwrap();
    for (tick, duplicate) in [(0, true), (15, true), (16, false), (15, false)] {
        let mut ticket = handle.ticket();
        ticket
            .contains_each(Batch::at(&[LOW, HIGH], tick), &mut verdicts)
            .unwrap();
        assert_eq!(verdicts.to_bools(), [duplicate; 2], "tick {tick}");
    }
}

/// A filter whose lookup panics is lost as one whose pass panics.
#[test]
fn a_lookup_that_panics_loses_its_partition() {
    let blind = || {
        Stub::new((), |(), _| {}).with_lookup(|key| {
            if key == HIGH {
                resume_unwind(Box::new("it cannot look"));
            }
        })
    };
    let partitioning = Partitioning::new(2, 2).unwrap();
    let halves = Partitioned::new(partitioning, vec![blind(), blind()]).unwrap();
    let filter = OrderedFilter::builder(halves).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    let lost = Err(ExchangeError::Panicked(1));
    let mut ticket = handle.ticket();
    assert_eq!(ticket.contains_each(&[LOW, HIGH], &mut verdicts), lost);
    assert!(verdicts.is_empty());
    // The ticket remains, with the surviving partition.
    ticket.observe(&[LOW], &mut verdicts).unwrap();
    assert_eq!(handle.ticket().report().map(drop), lost);
    assert_eq!(filter.lost(), [(1, "it cannot look".to_owned())]);
    filter.replace(1, blind()).unwrap();
    handle.ticket().report().unwrap();
    filter.shutdown().unwrap();
}

#[test]
fn a_batch_that_unwinds_behind_a_lost_partition_has_no_known_verdicts() {
    let filters = vec![fragile_at(LOW); 3];
    let filters = Partitioned::new(Partitioning::new(99, 3).unwrap(), filters).unwrap();
    let filter = OrderedFilter::builder(filters).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    let lost = Err(ExchangeError::Panicked(0));
    assert_eq!(handle.observe(&[LOW], &mut verdicts), lost);
    let keys = [LOW, KeyHash::from_uniform(u64::MAX / 2), HIGH];
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        handle
            .ticket()
            .observe_then(&keys, &mut Verdicts::new(), |partition, _| {
                assert_eq!(partition, 1);
                resume_unwind(Box::new("a reader of the partition"));
            })
    }));
    assert!(unwound.is_err());
    assert!(!handle.take_partial(&mut verdicts));
    assert!(verdicts.is_empty());
}

#[test]
fn a_lookup_of_a_lost_partition_returns_what_is_known() {
    let filter = OrderedFilter::builder(fragile(2)).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    let lost = Err(ExchangeError::Panicked(1));
    assert_eq!(handle.observe(&[BAD_KEY], &mut verdicts), lost);
    let looked = handle
        .ticket()
        .contains_each(&[LOW, BAD_KEY], &mut verdicts);
    assert_eq!(looked, lost);
    assert!(handle.take_partial(&mut verdicts));
    assert_eq!(
        [0, 1].map(|index| verdicts.is_unknown(index)),
        [false, true]
    );
    // A lookup counts nothing.
    assert_eq!((filter.counts().judged, filter.counts().unknown), (0, 1));
}

/// A batch without keys and ticks has a turn at every partition, too; one that is lost is left out.
#[test]
fn the_turn_of_an_empty_batch_shows_the_partitions_that_are_not_lost() {
    let filter = OrderedFilter::builder(fragile(2)).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    for expected in [vec![0, 1], vec![0]] {
        let mut seen = Vec::new();
        let ticket = handle.ticket();
        ticket
            .observe_then(&[], &mut verdicts, |index, _| seen.push(index))
            .unwrap();
        assert_eq!(seen, expected);
        handle.observe(&[BAD_KEY], &mut verdicts).unwrap_err();
    }
}

/// A panic in a turn is the caller's: no partition is lost, and no other thread is blocked.
#[test]
fn a_panic_in_a_turn_loses_no_filter() {
    for parts in [1, 2] {
        let filter = OrderedFilter::builder(Exact::partitions(parts, None)).build();
        let mut handle = filter.handle();
        let mut verdicts = Verdicts::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let ticket = handle.ticket();
            ticket.observe_then(&[LOW], &mut verdicts, |_, _| {
                resume_unwind(Box::new("outside the filter"))
            })
        }));
        assert!(panicked.is_err());
        handle.observe(&[LOW, HIGH], &mut verdicts).unwrap();
        // The key of the partition in whose turn it was has been recorded.
        assert_eq!(verdicts.to_bools(), [true, false]);
        assert!(filter.lost().is_empty());
    }
}

#[test]
fn ticks_of_a_batch_hold_in_its_turns() {
    let spec: FilterSpec = "stamped:window=10,memory=64KiB".parse().unwrap();
    let filter = OrderedFilter::builder(spec.build_line_partitions(3).unwrap()).build();
    let mut handle = filter.handle();
    let mut verdicts = Verdicts::new();
    let mut clocks = Vec::new();
    let ticks = [5, 9, 7];
    let ticket = handle.ticket();
    ticket
        .observe_then(
            Batch::at_each(&[LOW; 3], &ticks),
            &mut verdicts,
            |_, part| {
                clocks.push(part.progress().tick);
            },
        )
        .unwrap();
    assert_eq!(clocks, [9; 3]);
}

#[test]
fn tickets_find_a_filter_that_was_shut_down() {
    let filter = OrderedFilter::builder(Stub::new((), |_, _| {}).undivided()).build();
    let mut handle = filter.handle();
    filter.shutdown().unwrap();
    let closed = Err(ExchangeError::Disconnected(0));
    assert_eq!(handle.ticket().report().map(drop), closed);
    let mut verdicts = Verdicts::new();
    assert_eq!(handle.ticket().contains_each(&[LOW], &mut verdicts), closed);
}
