//! Verdicts and evictions equal those of the undivided filter, for any number of threads, depth of
//! rings and size of batches.

use std::sync::Mutex;
use std::thread;

use echoless::{Engine, FingerprintSpec, KeyHash, KeyHasher, OrderedFilter, Verdicts};
use proptest::prelude::*;

use crate::streams::{batches, oracle, partitions, spec, stream};

fn through_engine(
    keys: &[KeyHash],
    workers: usize,
    depth: usize,
    size: usize,
    in_flight: usize,
) -> (Vec<bool>, u64) {
    let filter = spec().build_partitions(workers).unwrap();
    let (engine, mut ports) = Engine::builder(filter).ring_depth(depth).build().unwrap();
    let mut port = ports.remove(0);
    let mut verdicts = Verdicts::new();
    let mut all = Vec::new();
    for batch in batches(keys, size) {
        port.submit(batch).unwrap();
        while port.in_flight() > in_flight {
            assert!(port.drain(&mut verdicts).unwrap());
            all.extend(verdicts.to_bools());
        }
        if port.poll(&mut verdicts).unwrap() {
            all.extend(verdicts.to_bools());
        }
    }
    while port.drain(&mut verdicts).unwrap() {
        all.extend(verdicts.to_bools());
    }
    drop(port);
    let filter = engine.shutdown().unwrap();
    (
        all,
        echoless::report_of(filter.filters())
            .tally
            .evictions
            .unwrap(),
    )
}

fn through_ordered(
    keys: &[KeyHash],
    partitions: usize,
    threads: usize,
    size: usize,
) -> (Vec<bool>, u64) {
    let filter = spec().build_partitions(partitions).unwrap();
    let filter = OrderedFilter::builder(filter).build();
    let batches = batches(keys, size);
    // The next batch and its ticket are taken under one lock.
    let next = Mutex::new(0);
    let run = || {
        let (mut handle, mut verdicts) = (filter.handle(), Verdicts::new());
        let mut out = Vec::new();
        loop {
            let mut next = next.lock().unwrap();
            let number = *next;
            *next += 1;
            let ticket = handle.ticket();
            drop(next);
            let Some(batch) = batches.get(number) else {
                return out;
            };
            ticket.observe(*batch, &mut verdicts).unwrap();
            out.push((number, verdicts.to_bools()));
        }
    };
    let mut parts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.flatten().collect()
    });
    parts.sort_by_key(|(number, _)| *number);
    let all: Vec<bool> = parts
        .into_iter()
        .flat_map(|(_, verdicts)| verdicts)
        .collect();
    let counts = filter.counts();
    let found = all.iter().filter(|duplicate| **duplicate).count();
    assert_eq!(
        (counts.judged, counts.duplicates, counts.unknown),
        (keys.len() as u64, found as u64, 0)
    );
    let filter = filter.shutdown().unwrap();
    let report = echoless::report_of(filter.filters());
    (all, report.tally.evictions.unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_engine_has_the_verdicts_of_the_undivided_filter(
        count in 0u64..6000, seed: u64, workers in partitions(8), depth in 0u32..5, size in 1usize..700, in_flight in 0usize..4,
    ) {
        let keys = stream(count, seed);
        prop_assert_eq!(through_engine(&keys, workers, 1 << depth, size, in_flight), oracle(&keys));
    }

    #[test]
    fn an_ordered_filter_has_the_verdicts_of_the_undivided_filter(
        count in 0u64..6000, seed: u64, parts in partitions(8), threads in 1usize..6, size in 1usize..700,
    ) {
        let keys = stream(count, seed);
        prop_assert_eq!(through_ordered(&keys, parts, threads, size), oracle(&keys));
    }
}

#[test]
fn oversubscribed_threads_with_tiny_rings_agree_on_a_long_stream() {
    let keys = stream(300_000, 7);
    let expected = oracle(&keys);
    assert!(
        expected.1 > 0,
        "without evictions the order of keys would not matter"
    );
    assert_eq!(through_engine(&keys, 6, 1, 500, 2), expected);
    assert_eq!(through_ordered(&keys, 3, 8, 500), expected);
}

#[test]
fn of_several_ports_exactly_one_gets_fresh() {
    let keys: Vec<KeyHash> = (0..50_000u64)
        .map(|key| KeyHasher::seeded(1).hash_u64(key))
        .collect();
    // Large enough that no key is evicted and becomes fresh again.
    let filter = FingerprintSpec::new(64 << 16).build_partitions(2).unwrap();
    let (engine, ports) = Engine::builder(filter).ports(4).build().unwrap();
    let fresh: Vec<Vec<bool>> = thread::scope(|scope| {
        let ingest = |mut port: echoless::Port| {
            let keys = &keys;
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                let mut fresh = Vec::new();
                for batch in keys.chunks(333) {
                    port.observe(batch, &mut verdicts).unwrap();
                    fresh.extend(verdicts.to_bools().iter().map(|duplicate| !duplicate));
                }
                fresh
            })
        };
        let threads: Vec<_> = ports.into_iter().map(ingest).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for index in 0..keys.len() {
        let count = fresh.iter().filter(|port| port[index]).count();
        assert_eq!(count, 1, "key {index}");
    }
    let report = echoless::report_of(engine.shutdown().unwrap().filters());
    assert_eq!(
        (report.tally.observed, report.tally.fresh),
        (Some(200_000), Some(50_000))
    );
}
