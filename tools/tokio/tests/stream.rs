//! Streams without duplicates: all records come out once, in order, in time, or with an error.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use echoless::{
    Batch, Engine, ExchangeError, Filter, FilterSpec, FingerprintSpec, KeyHash, KeyHasher,
    Partitioned, Partitioning, Port, Tally, Verdict,
};
use echoless_tokio::{Batching, Dedup};
use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio::time::{Instant, advance, pause, sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};

fn key(record: &u64) -> KeyHash {
    KeyHasher::seeded(0).hash_u64(*record)
}

fn engine(partitions: usize, depth: usize) -> (Engine<impl Filter + 'static>, Port) {
    let filter = FingerprintSpec::new(1 << 16).build_partitions(partitions);
    let (engine, mut ports) = Engine::builder(filter.unwrap())
        .ring_depth(depth)
        .build()
        .unwrap();
    (engine, ports.remove(0))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn each_record_comes_out_once_and_in_order(
        records in prop::collection::vec(0u64..2000, 0..3000),
        partitions in 1usize..4,
        depth in prop_oneof![Just(1usize), Just(16)],
        batch in 1usize..600,
        in_flight in 1usize..4,
    ) {
        let (engine, port) = engine(partitions, depth);
        let batching = Batching::default().records(batch).in_flight(in_flight);
        let judged = runtime().block_on(
            tokio_stream::iter(records.clone())
                .with_verdicts(port, key, batching)
                .collect::<Result<Vec<_>, _>>(),
        );
        let mut seen = HashSet::new();
        let expected = records.iter().map(|record| {
            let fresh = seen.insert(*record);
            (*record, if fresh { Verdict::Fresh } else { Verdict::Duplicate })
        });
        prop_assert_eq!(judged.unwrap(), expected.collect::<Vec<_>>());
        engine.shutdown().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_record_is_a_duplicate_within_the_window_only(
        records in prop::collection::vec((0u64..20, 0u64..30), 0..600),
        window in 1u64..100,
        partitions in 1usize..4,
        batch in 1usize..600,
        in_flight in 1usize..4,
    ) {
        // Times with a trend, some of them late.
        let records: Vec<(u64, u64)> =
            (1..).zip(records).map(|(at, (time, key))| (at + time, key)).collect();
        let spec = format!("stamped:bits=64,window={window},refresh=false,memory=64KiB");
        let spec: FilterSpec = spec.parse().unwrap();
        let filter = spec.build_partitions(partitions).unwrap();
        let (engine, mut ports) = Engine::builder(filter).build().unwrap();
        let batching = Batching::default().records(batch).in_flight(in_flight);
        let judged = runtime().block_on(
            tokio_stream::iter(records.clone())
                .with_verdicts(ports.remove(0), |(_, id)| key(id), batching)
                .with_ticks(|(time, _)| *time)
                .collect::<Result<Vec<_>, _>>(),
        );
        let mut clock = 0;
        let mut passed = HashMap::new();
        let expected = records.iter().map(|(time, id)| {
            clock = clock.max(*time);
            let fresh = passed.get(id).is_none_or(|last| clock - last > window);
            if fresh {
                passed.insert(*id, clock);
            }
            ((*time, *id), if fresh { Verdict::Fresh } else { Verdict::Duplicate })
        });
        prop_assert_eq!(judged.unwrap(), expected.collect::<Vec<_>>());
        engine.shutdown().unwrap();
    }
}

/// Virtual time: the test does not depend on a clock.
#[tokio::test]
async fn a_lone_record_comes_out_after_the_delay() {
    pause();
    let (_engine, port) = engine(1, 16);
    let (sender, receiver) = mpsc::unbounded_channel();
    let batching = Batching::default().delay(Duration::from_millis(5));
    let mut fresh = pin!(UnboundedReceiverStream::new(receiver).dedup(port, key, batching));
    for record in 0..3 {
        let start = Instant::now();
        sender.send(record).unwrap();
        assert_eq!(fresh.next().await.unwrap().unwrap(), record);
        let waited = start.elapsed();
        // Timers have a resolution of a millisecond.
        assert!((5..8).contains(&waited.as_millis()), "{waited:?}");
        advance(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn a_full_batch_does_not_wait() {
    pause();
    let (_engine, port) = engine(1, 16);
    let (sender, receiver) = mpsc::unbounded_channel();
    let batching = Batching::default()
        .records(10)
        .delay(Duration::from_secs(100));
    let mut fresh = pin!(UnboundedReceiverStream::new(receiver).dedup(port, key, batching));
    let start = Instant::now();
    for record in 0..10 {
        sender.send(record).unwrap();
    }
    for record in 0..10 {
        assert_eq!(fresh.next().await.unwrap().unwrap(), record);
    }
    assert!(start.elapsed() < Duration::from_secs(100));
}

/// Without a delay, what has arrived is a batch; with an endless one, the end of the stream ends
/// it.
#[tokio::test]
async fn delays_may_be_zero_or_endless() {
    pause();
    for delay in [Duration::ZERO, Duration::MAX] {
        let (_engine, port) = engine(1, 16);
        let (sender, receiver) = mpsc::unbounded_channel();
        let batching = Batching::default().delay(delay);
        let mut fresh = pin!(UnboundedReceiverStream::new(receiver).dedup(port, key, batching));
        let start = Instant::now();
        for record in 0..10 {
            sender.send(record).unwrap();
        }
        if delay == Duration::MAX {
            drop(sender);
        }
        for record in 0..10 {
            assert_eq!(fresh.next().await.unwrap().unwrap(), record);
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}

/// A run of duplicates that has its verdicts already lets other tasks of its thread go on.
#[tokio::test]
async fn a_long_run_of_duplicates_yields() {
    let (_engine, port) = engine(1, 1 << 10);
    let batching = Batching::default().records(10_000);
    let input = tokio_stream::iter([7; 10_000]).chain(tokio_stream::iter([8]));
    let mut fresh = Box::pin(input.dedup(port, key, batching));
    assert_eq!(fresh.next().await.unwrap().unwrap(), 7);
    let wakes = Arc::new(Wakes(AtomicU64::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    // Of 9,999 duplicates, 4,096 are dropped in a poll.
    for wakes_before in 0..2 {
        assert_eq!(wakes.0.load(Ordering::Relaxed), wakes_before);
        let polled = fresh.as_mut().poll_next(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
    assert_eq!(fresh.next().await.unwrap().unwrap(), 8);
    assert!(fresh.next().await.is_none());
}

/// Counts how often its task is woken.
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// At most the batches in flight, one that is collected and one that is given out.
#[tokio::test]
async fn the_input_is_not_read_ahead_of_the_limit() {
    let (_engine, port) = engine(1, 16);
    let read = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&read);
    let input = tokio_stream::iter((0..).inspect(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    let batching = Batching::default().records(10).in_flight(3);
    let mut fresh = pin!(input.dedup(port, key, batching));
    for record in 0..200 {
        assert_eq!(fresh.next().await.unwrap().unwrap(), record);
        let ahead = read.load(Ordering::Relaxed) - record;
        assert!(ahead <= (3 + 2) * 10, "{ahead}");
    }
}

#[tokio::test]
async fn the_end_of_the_engine_is_an_error_with_the_records() {
    let (engine, port) = engine(1, 16);
    let (sender, receiver) = mpsc::unbounded_channel();
    let batching = Batching::default().records(2);
    let mut fresh = pin!(UnboundedReceiverStream::new(receiver).dedup(port, key, batching));
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert_eq!(fresh.next().await.unwrap().unwrap(), 1);
    assert_eq!(fresh.next().await.unwrap().unwrap(), 2);
    engine.shutdown().unwrap();
    sender.send(3).unwrap();
    sender.send(4).unwrap();
    let unknown = fresh.next().await.unwrap().unwrap_err();
    assert_eq!(unknown.cause, ExchangeError::Disconnected(0));
    assert_eq!(unknown.records, [3, 4]);
    drop(sender);
    assert!(fresh.next().await.is_none());
}

/// Futures of next records are dropped again and again; no record is lost.
#[tokio::test]
async fn dropped_futures_lose_nothing() {
    pause();
    let (_engine, port) = engine(2, 1);
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for record in 0..200 {
            sender.send(record % 150).unwrap();
            sleep(Duration::from_millis(1)).await;
        }
    });
    let batching = Batching::default().records(7);
    let mut fresh = pin!(UnboundedReceiverStream::new(receiver).dedup(port, key, batching));
    let mut records = Vec::new();
    loop {
        match timeout(Duration::from_millis(2), fresh.next()).await {
            Ok(Some(record)) => records.push(record.unwrap()),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_eq!(records, (0..150).collect::<Vec<_>>());
}

/// An exact filter that panics at one key.
#[derive(Default)]
struct Fragile(HashSet<KeyHash>);

const BAD: KeyHash = KeyHash::from_uniform(u64::MAX);

impl Filter for Fragile {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        if batch.keys().contains(&BAD) {
            std::panic::resume_unwind(Box::new("this key panics on purpose"));
        }
        batch.observe_each(duplicates, |key| !self.0.insert(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.0.contains(&key)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn tally(&self) -> Tally {
        Tally::default()
    }
}

#[tokio::test]
async fn records_without_verdicts_come_with_the_error_and_the_stream_goes_on() {
    let partitioning = Partitioning::new(2, 2).unwrap();
    let filters = vec![Fragile::default(), Fragile::default()];
    let filter = Partitioned::new(partitioning, filters).unwrap();
    let (engine, mut ports) = Engine::builder(filter).build().unwrap();
    let (sender, receiver) = mpsc::unbounded_channel();
    let batching = Batching::default().records(3);
    let records = UnboundedReceiverStream::new(receiver);
    let hash = |record: &u64| KeyHash::from_uniform(*record);
    let mut fresh = pin!(records.dedup(ports.remove(0), hash, batching));
    for record in [1, 2, u64::MAX] {
        sender.send(record).unwrap();
    }
    assert_eq!(fresh.next().await.unwrap().unwrap(), 1);
    assert_eq!(fresh.next().await.unwrap().unwrap(), 2);
    let lost = fresh.next().await.unwrap().unwrap_err();
    assert_eq!(
        (lost.cause, &lost.records[..]),
        (ExchangeError::Panicked(1), &[u64::MAX][..])
    );
    assert_eq!(
        lost.to_string(),
        "records without a verdict, 1: partition 1 is lost: its owner panicked"
    );

    for record in [3, 2, 4] {
        sender.send(record).unwrap();
    }
    let lost = fresh.next().await.unwrap().unwrap_err();
    assert_eq!(
        (lost.cause, &lost.records[..]),
        (ExchangeError::Panicked(1), &[3, 2, 4][..])
    );

    engine.replace(1, Fragile::default()).unwrap();
    for record in [3, 2, 4] {
        sender.send(record).unwrap();
    }
    drop(sender);
    assert_eq!(fresh.next().await.unwrap().unwrap(), 3);
    assert_eq!(fresh.next().await.unwrap().unwrap(), 4);
    assert!(fresh.next().await.is_none());
}
