//! Ordered filters: the verdicts that are known equal those of one set that gets the batches in the
//! order of their tickets, also if tickets are dropped or filters panic.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, yield_now};

use echoless::transport::Wait;
use echoless::{ExchangeError, KeyHash, OrderedFilter, OrderedHandle, Verdicts};

use crate::filter::Exact;
use crate::random::Random;

/// The keys of each batch, and whether each is a duplicate.
struct Batches {
    keys: Vec<Vec<KeyHash>>,
    duplicates: Vec<Vec<bool>>,
}

impl Batches {
    fn drawn(random: &mut Random) -> Self {
        let count = random.below(60);
        let universe = 1 + random.below(3000);
        let longest = 1 + random.below(300);
        let keys: Vec<Vec<KeyHash>> = (0..count)
            .map(|_| {
                let length = random.below(longest);
                random.keys(length, universe)
            })
            .collect();
        let mut seen = HashSet::new();
        let duplicates = keys
            .iter()
            .map(|batch| batch.iter().map(|key| !seen.insert(*key)).collect())
            .collect();
        Self { keys, duplicates }
    }

    /// Checks the verdicts of a batch, as far as they are known. Returns how many are.
    fn check(&self, number: usize, verdicts: &Verdicts) -> usize {
        let expected = &self.duplicates[number];
        assert_eq!(verdicts.len(), expected.len(), "batch {number}");
        let known = (0..expected.len()).filter(|index| !verdicts.is_unknown(*index));
        known
            .inspect(|index| {
                let (found, duplicate) = (verdicts.is_duplicate(*index), expected[*index]);
                assert_eq!(found, duplicate, "key {index} of batch {number}");
            })
            .count()
    }
}

/// A filter over so many partitions, of which some panic after a few passes.
fn ordered(random: &mut Random, panics: bool) -> OrderedFilter<Exact> {
    let mut partitions = Exact::partitions(1 + random.below(7));
    for part in partitions.filters_mut() {
        part.passes_left = (panics && random.once_in(2)).then(|| random.below(20));
    }
    let wait = if random.once_in(2) {
        Wait::Shared
    } else {
        Wait::Dedicated
    };
    OrderedFilter::builder(partitions).wait(wait).build()
}

/// Observes the next batches with tickets in their order, in between with some that are dropped or
/// only look. Returns the number of keys with a verdict.
fn observe(
    mut handle: OrderedHandle<Exact>,
    batches: &Batches,
    next: &Mutex<usize>,
    random: &mut Random,
) -> usize {
    let (mut verdicts, mut known) = (Verdicts::new(), 0);
    loop {
        if random.once_in(5) {
            drop(handle.ticket());
        }
        let mut next = next.lock().unwrap();
        let number = *next;
        let Some(keys) = batches.keys.get(number) else {
            return known;
        };
        *next += 1;
        let mut ticket = handle.ticket();
        drop(next);
        if random.once_in(4) {
            yield_now();
        }
        if random.once_in(5) && ticket.contains_each(keys, &mut verdicts).is_ok() {
            assert_eq!(verdicts.len(), keys.len());
        }
        match ticket.observe(keys, &mut verdicts) {
            Ok(()) => assert_eq!(verdicts.count_unknown(), 0),
            Err(ExchangeError::Panicked(_)) => assert!(handle.take_partial(&mut verdicts)),
            Err(other) => panic!("{other}"),
        }
        known += batches.check(number, &verdicts);
    }
}

/// Passes random batches on some threads. Returns the number of keys with a verdict.
fn pass(random: &mut Random, filter: &OrderedFilter<Exact>) -> usize {
    let (batches, next) = (Batches::drawn(random), Mutex::new(0));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..1 + random.below(5))
            .map(|_| {
                let (handle, mut random) = (filter.handle(), random.split());
                let (batches, next) = (&batches, &next);
                scope.spawn(move || observe(handle, batches, next, &mut random))
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.sum()
    })
}

pub(crate) fn threads_take_turns(random: &mut Random) {
    let filter = ordered(random, false);
    let known = pass(random, &filter) as u64;
    let counts = filter.counts();
    assert_eq!((counts.judged, counts.unknown), (known, 0));
    let parts = filter.shutdown().expect("no filter panics");
    let held = parts
        .filters()
        .iter()
        .map(|part| part.keys.lock().unwrap().len() as u64);
    assert_eq!(held.sum::<u64>(), counts.judged - counts.duplicates);
}

/// Partitions are lost one after the other; the others go on.
pub(crate) fn filters_panic(random: &mut Random) {
    let filter = ordered(random, true);
    let known = pass(random, &filter) as u64;
    assert_eq!(filter.counts().judged, known);
    let lost = filter.lost().len();
    match filter.shutdown() {
        Ok(_) => assert_eq!(lost, 0),
        Err(error) => assert_eq!(error.lost.len(), lost),
    }
}
