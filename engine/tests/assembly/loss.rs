//! Engines whose partitions are lost: what is known comes out, retries are exact, policies judge
//! the rest, and a replaced partition goes on.

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use echoless::assembly::{ReplaceError, ShutdownError};
use echoless::{
    Engine, ExchangeError, Filter, FilterSpec, KeyHash, LineFilter, LossPolicy, NotReplaceable,
    Partitioned, Verdicts, report_of,
};
use proptest::prelude::*;

use crate::breakable::{Breakable, Exact, Keys, breakable};
use crate::streams::{batches, partitions, spec, stream};
use crate::stub::{BAD_KEY, fragile};

/// Functions that return any error take these with `?`, boxed filters included.
#[test]
fn errors_that_return_filters_convert_into_boxed_errors() {
    fn is_error<E: Error + Send + Sync + 'static>() {}
    is_error::<ReplaceError<Box<dyn Filter>>>();
    is_error::<ShutdownError<Box<dyn Filter>>>();
    is_error::<ReplaceError<Box<dyn LineFilter>>>();
    is_error::<ShutdownError<Box<dyn LineFilter>>>();
}

/// The keys of a batch by whether they are unknown.
fn unknown_of(keys: &[KeyHash], verdicts: &Verdicts) -> Vec<KeyHash> {
    assert_eq!(verdicts.len(), keys.len());
    verdicts.unknown().map(|index| keys[index]).collect()
}

#[test]
fn an_engine_that_has_lost_a_partition_returns_the_others_at_its_end() {
    let (partitioning, mut filters) = Exact::partitions(4, None).into_parts();
    filters[2].passes_left = Some(0);
    let filter = Partitioned::new(partitioning, filters).unwrap();
    let (engine, mut ports) = Engine::builder(filter).build().unwrap();
    let keys: Vec<KeyHash> = (0..200)
        .map(|index| KeyHash::from_uniform(u64::MAX / 200 * index))
        .collect();
    let lost = ports[0].observe(&keys, &mut Verdicts::new());
    assert_eq!(lost, Err(ExchangeError::Panicked(2)));
    let error = engine.shutdown().err().unwrap();
    let numbers: Vec<usize> = error.survivors.iter().map(|(index, _)| *index).collect();
    assert_eq!((numbers, error.lost[0].0), (vec![0, 1, 3], 2));
}

#[test]
fn a_batch_of_a_lost_partition_returns_what_is_known() {
    let (engine, mut ports) = Engine::builder(fragile(3)).build().unwrap();
    let port = &mut ports[0];
    let mut verdicts = Verdicts::new();
    let third = u64::MAX / 3;
    // More keys of the lost partition than a message holds.
    let keys: Vec<KeyHash> = (0..300)
        .map(|index| KeyHash::from_uniform(u64::MAX - index % 3 * third - index))
        .collect();
    assert_eq!(keys[0], BAD_KEY);
    port.submit(&keys).unwrap();
    port.submit(&[KeyHash::from_uniform(1)]).unwrap();
    let lost = ExchangeError::Panicked(2);
    verdicts.reset(5);
    assert_eq!(port.drain(&mut verdicts), Err(lost));
    assert!(verdicts.is_empty());
    assert!(port.take_partial(&mut verdicts));
    for (index, key) in keys.iter().enumerate() {
        let owner = engine.partitioning().partition_of(*key);
        assert_eq!(verdicts.is_unknown(index), owner == 2, "key {index}");
        assert!(!verdicts.is_duplicate(index));
    }
    assert_eq!(verdicts.count_unknown(), 100);
    assert_eq!(engine.counts().unknown, 100);
    // The batch after it has no key of the lost partition.
    assert_eq!(port.drain(&mut verdicts), Ok(true));
    assert_eq!((verdicts.len(), verdicts.count_unknown()), (1, 0));
    assert!(verdicts.unknown_words().is_empty());
    assert!(!port.take_partial(&mut verdicts));
    assert!(verdicts.is_empty());
    assert_eq!(port.drain(&mut verdicts), Err(lost));
    assert_eq!(
        engine.lost(),
        [(2, "this key panics on purpose".to_owned())]
    );
}

#[test]
fn a_rejected_batch_leaves_nothing_in_flight_and_records_nothing() {
    let filter = Exact::partitions(2, None);
    let keys: Vec<Keys> = filter
        .filters()
        .iter()
        .map(|part| Arc::clone(&part.keys))
        .collect();
    let (partitioning, mut filters) = filter.into_parts();
    filters[1].passes_left = Some(0);
    let filter = Partitioned::new(partitioning, filters).unwrap();
    let (engine, mut ports) = Engine::builder(filter).ports(2).build().unwrap();
    let mut verdicts = Verdicts::new();
    let lost = Err(ExchangeError::Panicked(1));
    assert_eq!(
        ports[0].observe(&[KeyHash::from_uniform(u64::MAX)], &mut verdicts),
        lost
    );
    for port in &mut ports {
        let in_flight = port.in_flight();
        assert_eq!(
            port.submit(&[KeyHash::from_uniform(3), KeyHash::from_uniform(u64::MAX)]),
            lost
        );
        assert_eq!(port.in_flight(), in_flight);
        verdicts.reset(7);
        assert_eq!(
            port.observe(&[KeyHash::from_uniform(3)], &mut verdicts),
            lost
        );
        assert!(verdicts.is_empty());
    }
    assert!(engine.shutdown().is_err());
    assert!(keys.iter().all(|keys| keys.lock().unwrap().is_empty()));
}

#[test]
fn verdicts_are_empty_unless_a_batch_is_returned() {
    let (engine, mut ports) = Engine::builder(spec().build_partitions(2).unwrap())
        .build()
        .unwrap();
    let mut verdicts = Verdicts::new();
    verdicts.reset(9);
    assert_eq!(ports[0].poll(&mut verdicts), Ok(false));
    assert!(verdicts.is_empty());
    verdicts.reset(9);
    assert_eq!(ports[0].drain(&mut verdicts), Ok(false));
    assert!(verdicts.is_empty());
    engine.shutdown().unwrap();
    verdicts.reset(9);
    let gone = ports[0]
        .observe(&[KeyHash::from_uniform(1)], &mut verdicts)
        .unwrap_err();
    assert!(matches!(gone, ExchangeError::Disconnected(0 | 1)), "{gone}");
    assert!(
        gone.to_string()
            .ends_with("its owner was shut down or dropped")
    );
    assert!(verdicts.is_empty());
    assert_eq!(ports[0].in_flight(), 0);
}

#[test]
fn a_replacement_that_is_not_due_is_rejected_with_its_filter() {
    let (engine, mut ports) = Engine::builder(fragile(2)).build().unwrap();
    let spare = || fragile(2).into_parts().1.remove(1);
    let error = engine.replace(1, spare()).unwrap_err();
    let expected = "partition 1 is not lost: expected a partition whose filter panicked";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.reason, NotReplaceable::NotLost);
    assert_eq!((error.partition, error.filter.state), (1, BAD_KEY));
    let error = engine.replace(2, spare()).unwrap_err();
    assert_eq!(error.reason, NotReplaceable::NoSuchPartition);
    let error: Box<dyn Error> = error.into();
    assert_eq!(error.to_string(), "invalid partition=2: expected 0 to 1");
    let lost = ports[0].observe(&[BAD_KEY], &mut Verdicts::new());
    assert_eq!(lost, Err(ExchangeError::Panicked(1)));
    engine.replace(1, spare()).unwrap();
    assert!(engine.replace(1, spare()).is_err(), "replaced before");
    assert!(engine.lost().is_empty());
    assert_eq!(engine.shutdown().unwrap().filters().len(), 2);
}

#[test]
fn a_filter_that_panics_again_is_replaced_again() {
    let (engine, mut ports) = Engine::builder(fragile(2)).build().unwrap();
    let mut verdicts = Verdicts::new();
    for round in 1..=20 {
        let lost = ports[0].observe(&[KeyHash::from_uniform(0), BAD_KEY], &mut verdicts);
        assert_eq!(lost, Err(ExchangeError::Panicked(1)));
        assert!(ports[0].take_partial(&mut verdicts));
        assert_eq!(verdicts.unknown_words(), [0b10]);
        engine
            .replace(1, fragile(2).into_parts().1.remove(1))
            .unwrap();
        ports[0]
            .observe(
                &[
                    KeyHash::from_uniform(0),
                    KeyHash::from_uniform(u64::MAX - 1),
                ],
                &mut verdicts,
            )
            .unwrap();
        assert_eq!(engine.counts().unknown, round);
    }
    assert!(engine.shutdown().is_ok());
}

#[test]
fn the_report_is_of_the_whole_again() {
    let (filter, switches) = breakable(spec().build_partitions(2).unwrap());
    let (engine, mut ports) = Engine::builder(filter).build().unwrap();
    let mut verdicts = Verdicts::new();
    let keys = stream(1000, 4);
    ports[0].observe(&keys, &mut verdicts).unwrap();
    switches[1].store(true, Ordering::Relaxed);
    assert!(ports[0].observe(&keys, &mut verdicts).is_err());
    assert!(ports[0].take_partial(&mut verdicts));
    let unknown = unknown_of(&keys, &verdicts);
    let spare = Breakable {
        inner: spec().build_partitions(2).unwrap().into_parts().1.remove(1),
        switch: Arc::clone(&switches[1]),
    };
    engine.replace(1, spare).unwrap();
    ports[0].observe(&unknown, &mut verdicts).unwrap();
    let whole = engine.shutdown().unwrap();
    let first = 2 * (keys.len() - unknown.len()) as u64;
    let report = report_of(whole.filters());
    assert_eq!(report.tally.observed, Some(first + unknown.len() as u64));
    let undivided = spec().build().unwrap().report();
    assert_eq!(report.tally.memory_bytes, undivided.tally.memory_bytes);
}

#[test]
fn a_new_filter_is_at_the_clock_of_the_stream() {
    let spec: FilterSpec = "stamped:window=60,memory=64KiB".parse().unwrap();
    let (filter, switches) = breakable(spec.build_partitions(2).unwrap());
    let (engine, mut ports) = Engine::builder(filter).build().unwrap();
    let mut verdicts = Verdicts::new();
    ports[0]
        .submit_at(1000, &[KeyHash::from_uniform(0)])
        .unwrap();
    assert_eq!(ports[0].drain(&mut verdicts), Ok(true));
    switches[1].store(true, Ordering::Relaxed);
    let high = [KeyHash::from_uniform(u64::MAX)];
    assert!(ports[0].observe(&high, &mut verdicts).is_err());
    assert!(ports[0].take_partial(&mut verdicts));
    // A restored filter that saw the key just before the clock stood at 500.
    let mut inner = spec.build_partitions(2).unwrap().into_parts().1.remove(1);
    inner.advance_to(500);
    inner.observe_one(high[0]);
    let switch = Arc::clone(&switches[1]);
    engine.replace(1, Breakable { inner, switch }).unwrap();
    ports[0].observe(&high, &mut verdicts).unwrap();
    assert_eq!(
        verdicts.count_duplicates(),
        0,
        "the key is out of the window"
    );
    assert!(engine.shutdown().is_ok());
}

/// A plain set of the keys that have a verdict.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) seen: HashSet<KeyHash>,
    pub(crate) unknown: u64,
}

impl Model {
    /// Checks the verdicts of the next batch.
    pub(crate) fn apply(&mut self, keys: &[KeyHash], verdicts: &Verdicts, policy: LossPolicy) {
        assert_eq!(verdicts.len(), keys.len());
        for (index, key) in keys.iter().enumerate() {
            let duplicate = if verdicts.is_unknown(index) {
                self.unknown += 1;
                policy == LossPolicy::AsDuplicate
            } else {
                !self.seen.insert(*key)
            };
            assert_eq!(verdicts.is_duplicate(index), duplicate, "key {index}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Passes gather any number of messages, so which keys are lost depends on the threads. In any
    /// case the others have the right verdicts, and every key gets one in the end.
    #[test]
    fn known_verdicts_are_right_and_a_retry_of_the_others_completes_them(
        count in 1u64..4000, seed: u64, workers in partitions(5), depth in 0u32..5, size in 1usize..500,
        in_flight in 0usize..4, passes in 0u64..12,
    ) {
        let keys = stream(count, seed);
        let filter = Exact::partitions(workers, Some(passes));
        let sets: Vec<Keys> = filter.filters().iter().map(|part| Arc::clone(&part.keys)).collect();
        let (engine, mut ports) = Engine::builder(filter).ring_depth(1 << depth).build().unwrap();
        let port = &mut ports[0];
        let mut model = Model::default();
        let mut verdicts = Verdicts::new();
        let mut sent = VecDeque::new();
        let mut todo: VecDeque<Vec<KeyHash>> =
            batches(&keys, size).into_iter().map(<[KeyHash]>::to_vec).collect();
        // Each partition is lost once at most: a rejected batch, and partial batches in flight.
        let limit = 2 * todo.len() + workers * (in_flight + 3);
        let mut steps = 0;
        while !todo.is_empty() || !sent.is_empty() {
            steps += 1;
            prop_assert!(steps <= 2 * limit, "no progress");
            if sent.len() <= in_flight && let Some(batch) = todo.pop_front() {
                match port.submit(&batch) {
                    Ok(()) => sent.push_back(batch),
                    Err(ExchangeError::Panicked(_)) => todo.push_front(batch),
                    Err(other) => prop_assert!(false, "{}", other),
                }
                if sent.len() <= in_flight && !todo.is_empty() && engine.lost().is_empty() {
                    continue;
                }
            }
            let drained = port.drain(&mut verdicts);
            match drained {
                Ok(true) => {
                    let batch = sent.pop_front().unwrap();
                    prop_assert_eq!(verdicts.count_unknown(), 0);
                    model.apply(&batch, &verdicts, LossPolicy::Error);
                }
                Ok(false) => prop_assert!(sent.is_empty()),
                Err(ExchangeError::Panicked(_)) => {
                    if port.take_partial(&mut verdicts) {
                        let batch = sent.pop_front().unwrap();
                        model.apply(&batch, &verdicts, LossPolicy::Error);
                        todo.push_back(unknown_of(&batch, &verdicts));
                    }
                    for (partition, _) in engine.lost() {
                        let keys = Arc::clone(&sets[partition]);
                        engine.replace(partition, Exact { keys, passes_left: None }).unwrap();
                    }
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
        prop_assert_eq!(engine.counts().unknown, model.unknown);
        prop_assert_eq!(model.seen, keys.iter().copied().collect::<HashSet<_>>());
        prop_assert!(engine.shutdown().is_ok());
    }

    #[test]
    fn policies_judge_the_keys_of_lost_partitions_and_no_others(
        count in 1u64..4000, seed: u64, workers in partitions(5), size in 1usize..500,
        passes in 0u64..12, replaced_after in 0usize..20, as_duplicate: bool,
    ) {
        let policy = if as_duplicate { LossPolicy::AsDuplicate } else { LossPolicy::AsFresh };
        let keys = stream(count, seed);
        let filter = Exact::partitions(workers, Some(passes));
        let sets: Vec<Keys> = filter.filters().iter().map(|part| Arc::clone(&part.keys)).collect();
        let (engine, mut ports) = Engine::builder(filter).on_loss(policy).build().unwrap();
        let mut model = Model::default();
        let mut verdicts = Verdicts::new();
        for (number, batch) in batches(&keys, size).into_iter().enumerate() {
            let lost: Vec<usize> = engine.lost().into_iter().map(|(partition, _)| partition).collect();
            ports[0].observe(batch, &mut verdicts).unwrap();
            model.apply(batch, &verdicts, policy);
            for (index, key) in batch.iter().enumerate() {
                let owner = engine.partitioning().partition_of(*key);
                prop_assert!(verdicts.is_unknown(index) || !lost.contains(&owner));
            }
            if number % 20 == replaced_after {
                for (partition, _) in engine.lost() {
                    let keys = Arc::clone(&sets[partition]);
                    engine.replace(partition, Exact { keys, passes_left: Some(passes) }).unwrap();
                }
            }
        }
        prop_assert_eq!(engine.counts().unknown, model.unknown);
        let still_lost = engine.lost();
        match engine.shutdown() {
            Ok(_) => prop_assert!(still_lost.is_empty()),
            Err(error) => prop_assert_eq!(error.lost, still_lost),
        }
    }
}
