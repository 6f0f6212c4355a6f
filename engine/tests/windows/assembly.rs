//! Engines and ordered filters of timed filters: the verdicts, counters and estimates of the
//! undivided filter, for any ticks of the batches and of the keys.

use std::sync::Mutex;
use std::thread;

use echoless::{
    Batch, Engine, Filter, FilterSpec, KeyHash, OrderedFilter, Report, Verdicts, report_of,
};
use proptest::prelude::*;

use crate::harness::{Arrival, kinds, streams, windows};

/// A batch and the tick that it is submitted at; a tick of 0 or an earlier one moves no clock.
type Submitted = (u64, Vec<KeyHash>);

/// One batch for each run of arrivals at one tick.
fn batches(stream: &[Arrival]) -> Vec<Submitted> {
    let runs = stream.chunk_by(|left, right| left.tick == right.tick);
    runs.map(|run| (run[0].tick, run.iter().map(|arrival| arrival.key).collect()))
        .collect()
}

fn undivided(spec: &FilterSpec, batches: &[Submitted]) -> (Vec<Vec<bool>>, Report) {
    let mut filter = spec.build().expect("valid");
    let mut verdicts = Verdicts::new();
    let observe = |(tick, keys): &Submitted| {
        filter.advance_to(*tick);
        filter.observe(keys, &mut verdicts);
        verdicts.to_bools()
    };
    let all = batches.iter().map(observe).collect();
    (all, filter.report())
}

fn through_engine(
    spec: &FilterSpec,
    batches: &[Submitted],
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
            all.push(verdicts.to_bools());
        }
    }
    while port.drain(&mut verdicts).expect("connected") {
        all.push(verdicts.to_bools());
    }
    drop(port);
    let parts = engine.shutdown().expect("served");
    (all, report_of(parts.filters()))
}

/// Batches of these lengths, in turn, with a tick for each key.
fn cut(stream: &[Arrival], lengths: &[usize]) -> Vec<(Vec<u64>, Vec<KeyHash>)> {
    let mut rest = stream;
    let mut batches = Vec::new();
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (batch, after) = rest.split_at((*length).min(rest.len()));
        rest = after;
        let arrivals = batch.iter().map(|arrival| (arrival.tick, arrival.key));
        batches.push(arrivals.unzip());
    }
    batches
}

/// The verdicts on all keys of these batches.
fn through_ordered(
    spec: &FilterSpec,
    batches: &[(Vec<u64>, Vec<KeyHash>)],
    partitions: usize,
    threads: usize,
) -> (Vec<bool>, Report) {
    let parts = spec.build_partitions(partitions).expect("enough lines");
    let filter = OrderedFilter::builder(parts).build();
    let input = Mutex::new(batches.iter().enumerate());
    let run = || {
        let (mut handle, mut verdicts) = (filter.handle(), Verdicts::new());
        let mut out = Vec::new();
        loop {
            let mut input = input.lock().expect("no panic");
            let (next, ticket) = (input.next(), handle.ticket());
            drop(input);
            let Some((number, (ticks, keys))) = next else {
                return out;
            };
            let observed = ticket.observe(Batch::at_each(keys, ticks), &mut verdicts);
            observed.expect("no partition is lost");
            out.push((number, verdicts.to_bools()));
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
    let all = all.into_iter().flat_map(|(_, verdicts)| verdicts).collect();
    let parts = filter.shutdown().expect("no partition is lost");
    (all, report_of(parts.filters()))
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
        partitions in 1_usize..8,
        lengths in prop::collection::vec(1_usize..200, 1..5),
    ) {
        let spec = kind.spec(window, refresh, 7);
        let batches = batches(&stream);
        let (verdicts, report) = undivided(&spec, &batches);
        let by_keys = cut(&stream, &lengths);
        let ordered = through_ordered(&spec, &by_keys, partitions, threads);
        prop_assert_eq!(&ordered, &(verdicts.concat(), report), "{}", spec);
        let engine = through_engine(&spec, &batches, threads);
        prop_assert_eq!(&engine, &(verdicts, report), "{}", spec);
    }
}

#[test]
fn batches_without_a_tick_keep_the_clock() {
    let spec: FilterSpec = "stamped:window=10,memory=4KiB".parse().expect("valid");
    let batches = [
        (Some(100), 1),
        (Some(110), 2),
        (None, 1),
        (Some(50), 2),
        (Some(121), 2),
    ];
    let batches = batches.map(|(tick, key)| (tick, [KeyHash::from_uniform(key)]));
    let expected = [false, false, true, true, false];
    for partitions in 1..=3 {
        let parts = || spec.build_partitions(partitions).expect("enough lines");
        let (_engine, mut ports) = Engine::builder(parts()).build().expect("built");
        let mut handle = OrderedFilter::builder(parts()).build().handle();
        let mut verdicts = Verdicts::new();
        for ((tick, keys), duplicate) in batches.iter().zip(expected) {
            match tick {
                Some(tick) => ports[0].submit_at(*tick, keys),
                None => ports[0].submit(keys),
            }
            .expect("connected");
            assert!(ports[0].drain(&mut verdicts).expect("connected"));
            assert_eq!(verdicts.to_bools(), [duplicate]);
            let batch = tick.map_or(Batch::new(keys), |tick| Batch::at(keys, tick));
            handle
                .observe(batch, &mut verdicts)
                .expect("no partition is lost");
            assert_eq!(verdicts.to_bools(), [duplicate]);
        }
    }
}
