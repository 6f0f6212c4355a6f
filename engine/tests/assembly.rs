//! Engine and mesh against the undivided filter: equal verdicts, whatever the number of threads, and errors instead of hangs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use echoless::transport::Wait;
use echoless::{
    BuildError, Engine, Filter, FingerprintLines, FingerprintSpec, KeyHash, KeyHasher, Lost, Mesh,
    Node, Partitioned, Partitioning, Pinning, SlotWidth, Verdicts,
};
use proptest::prelude::*;

/// Small enough that lines overflow, so that the order of keys matters for the verdicts.
fn spec() -> FingerprintSpec {
    FingerprintSpec::new(64 * 100).slot_width(SlotWidth::Bits64)
}

/// Keys of which about a third repeats one of the last few hundred.
fn stream(count: u64, seed: u64) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(seed);
    (0..count)
        .map(|index| {
            let random = KeyHash(index ^ seed << 32).remix(1);
            let repeats = random % 3 == 1;
            hasher.hash_u64(if repeats {
                index.saturating_sub(random % 900)
            } else {
                index
            })
        })
        .collect()
}

fn duplicates(verdicts: &Verdicts) -> Vec<bool> {
    (0..verdicts.len())
        .map(|index| verdicts.is_duplicate(index))
        .collect()
}

/// What the undivided filter says, and its evictions.
fn oracle(keys: &[KeyHash]) -> (Vec<bool>, u64) {
    let mut filter = spec().build().unwrap();
    let mut verdicts = Verdicts::new();
    filter.observe(keys, &mut verdicts);
    (duplicates(&verdicts), filter.report().evictions)
}

/// The stream cut in batches of changing size, an empty one among them.
fn batches(keys: &[KeyHash], size: usize) -> Vec<&[KeyHash]> {
    let mut rest = keys;
    let mut parts = vec![&keys[..0]];
    for index in 0.. {
        if rest.is_empty() {
            break;
        }
        let (part, more) = rest.split_at((1 + (index * 37) % (2 * size)).min(rest.len()));
        parts.push(part);
        rest = more;
    }
    parts
}

fn through_engine(
    keys: &[KeyHash],
    workers: usize,
    depth: usize,
    size: usize,
    in_flight: usize,
) -> (Vec<bool>, u64) {
    let filter = spec().build_partitions(workers).unwrap();
    let (engine, mut ports) = Engine::builder(filter).ring_depth(depth).start().unwrap();
    let mut port = ports.remove(0);
    let mut verdicts = Verdicts::new();
    let mut all = Vec::new();
    for batch in batches(keys, size) {
        port.submit(batch).unwrap();
        while port.in_flight() > in_flight {
            assert!(port.drain(&mut verdicts).unwrap());
            all.extend(duplicates(&verdicts));
        }
        if port.poll(&mut verdicts).unwrap() {
            all.extend(duplicates(&verdicts));
        }
    }
    while port.drain(&mut verdicts).unwrap() {
        all.extend(duplicates(&verdicts));
    }
    drop(port);
    let filter = engine.shutdown().unwrap();
    (all, FingerprintLines::report_of(filter.filters()).evictions)
}

fn through_mesh(keys: &[KeyHash], nodes: usize, depth: usize, size: usize) -> (Vec<bool>, u64) {
    let filter = spec().build_partitions(nodes).unwrap();
    let batches = batches(keys, size);
    let next = AtomicU64::new(0);
    let run = |mut node: Node<FingerprintLines>| {
        let mut out = Vec::new();
        let mut pending = Vec::new();
        let mut verdicts = Verdicts::new();
        loop {
            // Numbers are handed out as nodes come for them, two batches in flight at a time.
            let number = next.fetch_add(1, Ordering::Relaxed);
            if let Some(batch) = batches.get(number as usize) {
                node.submit(number, batch).unwrap();
                pending.push(number);
            }
            let ended = number as usize >= batches.len();
            while pending.len() > if ended { 0 } else { 1 } {
                assert!(node.drain(&mut verdicts).unwrap());
                out.push((pending.remove(0), duplicates(&verdicts)));
            }
            if ended {
                return (out, node.finish().unwrap());
            }
        }
    };
    let results: Vec<_> = thread::scope(|scope| {
        let nodes = Mesh::new().ring_depth(depth).nodes(filter).unwrap();
        let threads: Vec<_> = nodes
            .into_iter()
            .map(|node| scope.spawn(|| run(node)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut parts = Vec::new();
    let mut filters = Vec::new();
    for (part, filter) in results {
        parts.extend(part);
        filters.push(filter);
    }
    parts.sort_by_key(|(number, _)| *number);
    let all = parts
        .into_iter()
        .flat_map(|(_, verdicts)| verdicts)
        .collect();
    (all, FingerprintLines::report_of(&filters).evictions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_engine_judges_as_the_undivided_filter(
        count in 0u64..6000, seed: u64, workers in 1usize..9, depth in 0u32..5, size in 1usize..700, in_flight in 0usize..4,
    ) {
        let keys = stream(count, seed);
        prop_assert_eq!(through_engine(&keys, workers, 1 << depth, size, in_flight), oracle(&keys));
    }

    #[test]
    fn a_mesh_judges_as_the_undivided_filter(
        count in 0u64..6000, seed: u64, nodes in 1usize..9, depth in 0u32..5, size in 1usize..700,
    ) {
        let keys = stream(count, seed);
        prop_assert_eq!(through_mesh(&keys, nodes, 1 << depth, size), oracle(&keys));
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
    assert_eq!(through_mesh(&keys, 7, 1, 500), expected);
}

#[test]
fn of_several_ports_exactly_one_hears_fresh() {
    let keys: Vec<KeyHash> = (0..50_000u64)
        .map(|key| KeyHasher::seeded(1).hash_u64(key))
        .collect();
    // Room for all, so that no key is forgotten and heard as fresh again.
    let filter = FingerprintSpec::new(64 << 16).build_partitions(2).unwrap();
    let (engine, ports) = Engine::builder(filter).ports(4).start().unwrap();
    let fresh: Vec<Vec<bool>> = thread::scope(|scope| {
        let ingest = |mut port: echoless::Port| {
            let keys = &keys;
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                let mut fresh = Vec::new();
                for batch in keys.chunks(333) {
                    port.observe(batch, &mut verdicts).unwrap();
                    fresh.extend(
                        duplicates(&verdicts)
                            .into_iter()
                            .map(|duplicate| !duplicate),
                    );
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
        assert_eq!(
            fresh.iter().filter(|port| port[index]).count(),
            1,
            "key {index}"
        );
    }
    let report = FingerprintLines::report_of(engine.shutdown().unwrap().filters());
    assert_eq!((report.observed, report.fresh), (200_000, 50_000));
}

/// A filter that panics at one key.
struct Fragile(KeyHash);

impl Filter for Fragile {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        assert!(!keys.contains(&self.0), "this key panics on purpose");
        duplicates.fill(0);
    }

    fn contains(&self, _key: KeyHash) -> bool {
        false
    }

    fn clear(&mut self) {}

    fn memory_bytes(&self) -> u64 {
        0
    }
}

const BAD_KEY: KeyHash = KeyHash(u64::MAX);

fn fragile(count: usize) -> Partitioned<Fragile> {
    let partitioning = Partitioning::new(100, count).unwrap();
    Partitioned::new(partitioning, (0..count).map(|_| Fragile(BAD_KEY)).collect()).unwrap()
}

#[test]
fn a_worker_that_panics_is_an_error_and_not_a_hang() {
    let (engine, mut ports) = Engine::builder(fragile(2)).ring_depth(2).start().unwrap();
    let mut verdicts = Verdicts::new();
    let good = [KeyHash(0), KeyHash(u64::MAX - 1)];
    ports[0].observe(&good, &mut verdicts).unwrap();
    // A batch that the lost partition had no part in comes before the error.
    ports[0].submit(&[KeyHash(0)]).unwrap();
    ports[0].submit(&[BAD_KEY]).unwrap();
    assert_eq!(ports[0].drain(&mut verdicts), Ok(true));
    assert_eq!(verdicts.len(), 1);
    let lost = Lost::Partition(1);
    assert_eq!(ports[0].drain(&mut verdicts), Err(lost));
    for _ in 0..3 {
        assert_eq!(ports[0].submit(&[BAD_KEY]), Err(lost));
        assert_eq!(ports[0].observe(&good, &mut verdicts), Err(lost));
        assert_eq!(ports[0].poll(&mut verdicts), Err(lost));
    }
    assert_eq!(engine.shutdown().err(), Some(Lost::Partition(1)));
}

#[test]
fn a_node_that_panics_or_is_dropped_is_an_error_at_its_peers() {
    for panics in [true, false] {
        let mut nodes = Mesh::new().nodes(fragile(2)).unwrap();
        let mut second = nodes.pop().unwrap();
        let mut first = nodes.pop().unwrap();
        let peer = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            if panics {
                second.observe(0, &[BAD_KEY], &mut verdicts).unwrap();
            }
            drop(second);
        });
        let error = loop {
            // Batch 0 is the peer's, so nothing is ever applied.
            if let Err(error) = first.submit(1, &[KeyHash(0), BAD_KEY]) {
                break error;
            }
            match first.drain(&mut Verdicts::new()) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, Lost::Peer(1) | Lost::Partition(1)),
            "{error}"
        );
        assert_eq!(peer.join().is_err(), panics);
    }
}

#[test]
fn a_batch_number_that_was_left_out_is_an_error() {
    let mut node = Mesh::new().nodes(fragile(1)).unwrap().remove(0);
    assert_eq!(
        node.observe(1, &[KeyHash(0)], &mut Verdicts::new()),
        Err(Lost::Turn(0))
    );
}

#[test]
fn nodes_finish_though_some_have_no_input() {
    let nodes = Mesh::new()
        .nodes(spec().build_partitions(3).unwrap())
        .unwrap();
    let keys = stream(1000, 3);
    let counts: Vec<u64> = thread::scope(|scope| {
        let run = |(index, mut node): (usize, Node<FingerprintLines>)| {
            let keys = &keys;
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                if index == 1 {
                    node.observe(0, keys, &mut verdicts).unwrap();
                }
                node.finish().unwrap().report().observed
            })
        };
        let threads: Vec<_> = nodes.into_iter().enumerate().map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(counts.iter().sum::<u64>(), 1000);
    assert!(counts.iter().all(|count| *count > 0));
}

#[test]
fn a_node_can_wait_for_something_else_and_serve() {
    let mut nodes = Mesh::new()
        .nodes(spec().build_partitions(2).unwrap())
        .unwrap();
    let (mut busy, mut waiting) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let done = AtomicU64::new(0);
    let doorbell = waiting.doorbell();
    thread::scope(|scope| {
        scope.spawn(|| {
            waiting
                .serve_until(|| done.load(Ordering::Acquire) == 1)
                .unwrap();
            waiting.finish().unwrap();
        });
        // Without its peer serving, this would wait for ever.
        busy.observe(0, &stream(5000, 1), &mut Verdicts::new())
            .unwrap();
        done.store(1, Ordering::Release);
        doorbell.ring();
        busy.finish().unwrap();
    });
}

#[test]
fn shutdown_answers_what_was_submitted_and_ends_the_ports() {
    let keys = stream(5000, 2);
    let (engine, mut ports) = Engine::builder(spec().build_partitions(2).unwrap())
        .start()
        .unwrap();
    ports[0].submit(&keys).unwrap();
    let filter = engine.shutdown().unwrap();
    assert_eq!(FingerprintLines::report_of(filter.filters()).observed, 5000);
    let mut verdicts = Verdicts::new();
    assert!(ports[0].drain(&mut verdicts).unwrap());
    assert_eq!(duplicates(&verdicts), oracle(&keys).0);
    // A batch that is refused has no verdicts.
    assert!(matches!(ports[0].submit(&keys), Err(Lost::Partition(_))));
    assert!(matches!(
        ports[0].drain(&mut verdicts),
        Err(Lost::Partition(_))
    ));
    assert!(matches!(
        ports[0].observe(&keys, &mut verdicts),
        Err(Lost::Partition(_))
    ));
}

#[test]
fn set_ups_that_cannot_work_are_refused() {
    let halves = || spec().build_partitions(2).unwrap();
    let field = |error: BuildError| match error {
        BuildError::Spec(error) => error.field,
        other => panic!("{other}"),
    };
    assert_eq!(
        field(Engine::builder(halves()).ports(0).start().unwrap_err()),
        "ports"
    );
    assert_eq!(
        field(Engine::builder(halves()).ring_depth(3).start().unwrap_err()),
        "ring"
    );
    assert_eq!(
        field(Mesh::new().ring_depth(0).nodes(halves()).unwrap_err()),
        "ring"
    );
    let pinning = Pinning::Cores(vec![0]);
    assert_eq!(
        field(
            Engine::builder(halves())
                .pinning(pinning)
                .start()
                .unwrap_err()
        ),
        "pinning"
    );
    let filters = vec![Fragile(BAD_KEY)];
    let partitioning = Partitioning::new(100, 2).unwrap();
    assert_eq!(
        Partitioned::new(partitioning, filters).err().unwrap().field,
        "filters"
    );
}

#[test]
fn threads_can_be_pinned_and_told_how_to_wait() {
    let keys = stream(20_000, 5);
    let (engine, mut ports) = Engine::builder(spec().build_partitions(1).unwrap())
        .pinning(Pinning::Spread)
        .wait(Wait::Dedicated)
        .start()
        .unwrap();
    let mut verdicts = Verdicts::new();
    ports[0].observe(&keys, &mut verdicts).unwrap();
    assert_eq!(duplicates(&verdicts), oracle(&keys).0);
    drop(ports);
    engine.shutdown().unwrap();
}
