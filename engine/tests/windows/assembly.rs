//! Engines, meshes and ordered filters of timed filters: the verdicts, counters and estimates of
//! the undivided filter, for any ticks of the batches.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use echoless::{
    Engine, Filter, FilterSpec, KeyHash, Mesh, Node, OrderedFilter, Report, Verdicts, report_of,
};
use proptest::prelude::*;

use crate::harness::{Arrival, kinds, streams, windows};
use crate::testing::duplicates;

/// A batch and the tick that it is submitted at; a tick of 0 or an earlier one moves no clock.
type Batch = (u64, Vec<KeyHash>);

/// One batch for each run of arrivals at one tick.
fn batches(stream: &[Arrival]) -> Vec<Batch> {
    let runs = stream.chunk_by(|left, right| left.tick == right.tick);
    runs.map(|run| (run[0].tick, run.iter().map(|arrival| arrival.key).collect()))
        .collect()
}

/// What does not depend on where the memory lies.
fn without_pages(mut report: Report) -> Report {
    report.tally.huge_page_bytes = None;
    report
}

fn undivided(spec: &FilterSpec, batches: &[Batch]) -> (Vec<Vec<bool>>, Report) {
    let mut filter = spec.build().expect("valid");
    let mut verdicts = Verdicts::new();
    let observe = |(tick, keys): &Batch| {
        filter.advance_to(*tick);
        filter.observe(keys, &mut verdicts);
        duplicates(&verdicts)
    };
    let all = batches.iter().map(observe).collect();
    (all, without_pages(filter.report()))
}

fn through_engine(
    spec: &FilterSpec,
    batches: &[Batch],
    workers: usize,
) -> (Vec<Vec<bool>>, Report) {
    let parts = spec.build_partitions(workers).expect("enough lines");
    let (engine, mut ports) = Engine::builder(parts).ring_depth(4).build().expect("built");
    let mut port = ports.remove(0);
    let mut verdicts = Verdicts::new();
    let mut all = Vec::new();
    for (tick, keys) in batches {
        port.submit_at(*tick, keys).expect("connected");
        // Several batches in flight, so that messages of different ticks meet in a ring.
        while port.in_flight() > 3 {
            assert!(port.drain(&mut verdicts).expect("connected"));
            all.push(duplicates(&verdicts));
        }
    }
    while port.drain(&mut verdicts).expect("connected") {
        all.push(duplicates(&verdicts));
    }
    drop(port);
    let parts = engine.shutdown().expect("served");
    (all, without_pages(report_of(parts.filters())))
}

fn through_mesh(spec: &FilterSpec, batches: &[Batch], nodes: usize) -> (Vec<Vec<bool>>, Report) {
    let parts = spec.build_partitions(nodes).expect("enough lines");
    let mesh = Mesh::builder(parts).ring_depth(4).build().expect("built");
    let next = AtomicU64::new(0);
    let run = |mut node: Node<Box<dyn Filter>>| {
        let mut verdicts = Verdicts::new();
        let (mut numbers, mut out) = (Vec::new(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((tick, keys)) = batches.get(number as usize) else {
                break;
            };
            node.submit_at(number, *tick, keys).expect("connected");
            numbers.push(number);
        }
        for number in numbers {
            assert!(node.drain(&mut verdicts).expect("connected"));
            out.push((number, duplicates(&verdicts)));
        }
        (out, node.finish().expect("connected"))
    };
    let results: Vec<_> = thread::scope(|scope| {
        let nodes = mesh.into_iter();
        let threads: Vec<_> = nodes.map(|node| scope.spawn(|| run(node))).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|result| result.expect("no panic")).collect()
    });
    let (all, parts): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let mut all: Vec<_> = all.into_iter().flatten().collect();
    all.sort_by_key(|(number, _)| *number);
    let all = all.into_iter().map(|(_, verdicts)| verdicts).collect();
    (all, without_pages(report_of(&parts)))
}

fn through_ordered(
    spec: &FilterSpec,
    batches: &[Batch],
    threads: usize,
) -> (Vec<Vec<bool>>, Report) {
    let parts = spec.build_partitions(threads).expect("enough lines");
    let filter = OrderedFilter::builder(parts).build();
    let input = Mutex::new(batches.iter().enumerate());
    let run = || {
        let (mut handle, mut verdicts) = (filter.handle(), Verdicts::new());
        let mut out = Vec::new();
        loop {
            let mut input = input.lock().expect("no panic");
            let (next, ticket) = (input.next(), handle.ticket());
            drop(input);
            let Some((number, (tick, keys))) = next else {
                return out;
            };
            let observed = ticket.observe_at(*tick, keys, &mut verdicts);
            observed.expect("no partition is lost");
            out.push((number, duplicates(&verdicts)));
        }
    };
    let mut all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .flat_map(|result| result.expect("no panic"))
            .collect()
    });
    all.sort_by_key(|(number, _)| *number);
    let all = all.into_iter().map(|(_, verdicts)| verdicts).collect();
    let parts = filter.shutdown().expect("no partition is lost");
    (all, without_pages(report_of(parts.filters())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_of_them_equal_the_undivided_filter(
        (kind, window, stream) in (kinds(), windows()).prop_flat_map(|(kind, window)| {
            let keys = 1..=kind.slots as u64 * 6;
            (Just(kind), Just(window), streams(kind, window, keys, 600))
        }),
        refresh: bool,
        threads in 1_usize..4,
    ) {
        let spec = kind.spec(window, refresh, 3);
        let batches = batches(&stream);
        let expected = undivided(&spec, &batches);
        prop_assert_eq!(&through_engine(&spec, &batches, threads), &expected, "{}", spec);
        prop_assert_eq!(&through_mesh(&spec, &batches, threads), &expected, "{}", spec);
        prop_assert_eq!(&through_ordered(&spec, &batches, threads), &expected, "{}", spec);
    }
}

#[test]
fn batches_without_a_tick_keep_the_clock() {
    let spec: FilterSpec = "stamped:window=10,memory=4KiB".parse().expect("valid");
    let batch = |tick, key| (tick, vec![KeyHash::from_uniform(key)]);
    let batches = [
        batch(100, 1),
        batch(110, 2),
        batch(0, 1),
        batch(50, 2),
        batch(121, 2),
    ];
    let expected = [[false], [false], [true], [true], [false]]
        .map(Vec::from)
        .to_vec();
    assert_eq!(undivided(&spec, &batches).0, expected);
    for threads in 1..=3 {
        assert_eq!(through_engine(&spec, &batches, threads).0, expected);
        assert_eq!(through_mesh(&spec, &batches, threads).0, expected);
        assert_eq!(through_ordered(&spec, &batches, threads).0, expected);
    }
}
