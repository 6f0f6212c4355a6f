//! Ports in tasks: the verdicts are those of blocking calls, no wake-up is lost, and losses are
//! errors.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use echoless::{Engine, ExchangeError, FilterSpec, KeyHash, Partitioned, Port, Verdicts};
use pollster::block_on;
use proptest::prelude::*;

use crate::streams::{batches, oracle, partitions, spec, stream};
use crate::stub::{BAD_KEY, Stub, fragile};

/// Counts how often its task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    /// Blocks until the task was woken once.
    fn wait_for_one(&self) {
        while self.0.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
    }
}

/// A filter that waits for a permission before each batch, and blocks the thread of its worker.
type Gated = Stub<Arc<std::sync::Mutex<Receiver<()>>>>;

fn gated() -> (Sender<()>, Partitioned<Gated>) {
    let (permit, permits) = channel();
    let permits = Arc::new(std::sync::Mutex::new(permits));
    let stub = Stub::new(permits, |permits, _| {
        permits.lock().unwrap().recv().ok();
    });
    (permit, stub.undivided())
}

/// The verdicts of all batches, with as many in flight as the port accepts.
async fn observe_all(port: &mut Port, batches: &[&[KeyHash]]) -> Vec<bool> {
    let (mut verdicts, mut all) = (Verdicts::new(), Vec::new());
    for batch in batches {
        while !port.try_submit(batch).unwrap() {
            assert!(drain(port, &mut verdicts).await);
            all.extend(verdicts.to_bools());
        }
    }
    while drain(port, &mut verdicts).await {
        all.extend(verdicts.to_bools());
    }
    all
}

async fn drain(port: &mut Port, verdicts: &mut Verdicts) -> bool {
    poll_fn(|context| port.poll_drain(context, verdicts))
        .await
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn tasks_get_the_verdicts_of_the_undivided_filter(
        partitions in partitions(4),
        depth in prop_oneof![Just(1usize), Just(2), Just(16)],
        size in 1usize..700,
        seed: u32,
    ) {
        let keys = stream(5_000, u64::from(seed));
        let (engine, mut ports) = Engine::builder(spec().build_partitions(partitions).unwrap())
            .ring_depth(depth)
            .build()
            .unwrap();
        let verdicts = block_on(observe_all(&mut ports[0], &batches(&keys, size)));
        prop_assert_eq!(verdicts, oracle(&keys).0);
        drop(ports);
        engine.shutdown().unwrap();
    }
}

/// 1,000 tasks wait at the same time, and each is woken.
#[test]
fn many_tasks_wait_for_one_worker() {
    let (permit, filter) = gated();
    let (engine, ports) = Engine::builder(filter).ports(1000).build().unwrap();
    let mut verdicts = Verdicts::new();
    let mut waiting = Vec::new();
    for mut port in ports {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        assert_eq!(port.try_submit(&[BAD_KEY; 3]), Ok(true));
        let polled = port.poll_drain(&mut Context::from_waker(&waker), &mut verdicts);
        assert_eq!(polled, Poll::Pending);
        waiting.push((port, wakes));
    }
    drop(permit);
    for (port, wakes) in &mut waiting {
        wakes.wait_for_one();
        assert!(block_on(drain(port, &mut verdicts)));
        assert_eq!(verdicts.len(), 3);
    }
    drop(waiting);
    assert_eq!(engine.counts().judged, 3000);
    engine.shutdown().unwrap();
}

/// A port that changes tasks wakes the last one.
#[test]
fn the_last_task_is_woken() {
    let (permit, filter) = gated();
    let (engine, mut ports) = Engine::builder(filter).build().unwrap();
    let port = &mut ports[0];
    let mut verdicts = Verdicts::new();
    let [first, second] = [(); 2].map(|()| Arc::new(Wakes::default()));
    assert_eq!(port.try_submit(&[BAD_KEY]), Ok(true));
    for wakes in [&first, &second] {
        let waker = Waker::from(Arc::clone(wakes));
        let polled = port.poll_drain(&mut Context::from_waker(&waker), &mut verdicts);
        assert_eq!(polled, Poll::Pending);
    }
    permit.send(()).unwrap();
    second.wait_for_one();
    assert_eq!(first.0.load(Ordering::Relaxed), 0);
    assert_eq!(Arc::strong_count(&first), 1);
    drop(ports);
    engine.shutdown().unwrap();
}

/// Messages that only move the clock have no answer, and their room is only hinted.
#[test]
fn ticks_without_keys_are_sent_although_nothing_is_answered() {
    for blocking in [false, true] {
        let spec: FilterSpec = "stamped:window=10,memory=1MiB".parse().unwrap();
        let (engine, mut ports) = Engine::builder(spec.build_partitions(2).unwrap())
            .ring_depth(1)
            .build()
            .unwrap();
        let port = &mut ports[0];
        let mut verdicts = Verdicts::new();
        let mut batches = 0;
        for tick in 1..=200 {
            while !port.try_submit_at(tick, &[]).unwrap() {
                let drained = if blocking {
                    port.drain(&mut verdicts)
                } else {
                    block_on(poll_fn(|context| port.poll_drain(context, &mut verdicts)))
                };
                assert_eq!(drained, Ok(true));
                batches += 1;
            }
        }
        block_on(poll_fn(|context| port.poll_ready(context))).unwrap();
        while port.drain(&mut verdicts).unwrap() {
            batches += 1;
        }
        assert_eq!(batches, 200);
        drop(ports);
        engine.shutdown().unwrap();
    }
}

#[test]
fn a_batch_without_room_is_accepted_whole_and_no_other_before_it_is_sent() {
    let (permit, filter) = gated();
    let (engine, mut ports) = Engine::builder(filter).ring_depth(1).build().unwrap();
    let port = &mut ports[0];
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut verdicts = Verdicts::new();
    let batch: Vec<_> = (0..200).map(KeyHash::from_uniform).collect();

    // Four messages, and room for one.
    assert_eq!(port.try_submit(&batch), Ok(true));
    assert_eq!(port.try_submit(&batch), Ok(false));
    assert_eq!(port.in_flight(), 1);
    assert_eq!(port.poll_ready(&mut context), Poll::Pending);
    assert_eq!(port.poll_drain(&mut context, &mut verdicts), Poll::Pending);
    assert_eq!(port.poll(&mut verdicts), Ok(false));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    permit.send(()).unwrap();
    wakes.wait_for_one();

    for _ in 0..3 {
        permit.send(()).unwrap();
    }
    block_on(poll_fn(|context| port.poll_ready(context))).unwrap();
    assert_eq!(port.try_submit(&batch[..1]), Ok(true));
    permit.send(()).unwrap();
    // Blocking calls go on with what tasks have begun.
    assert_eq!(port.drain(&mut verdicts), Ok(true));
    assert_eq!(verdicts.len(), 200);
    assert_eq!(port.try_submit(&batch), Ok(true));
    for _ in 0..8 {
        permit.send(()).unwrap();
    }
    port.submit(&batch).unwrap();
    let lengths = [1, 200, 200].map(|_| {
        assert_eq!(port.drain(&mut verdicts), Ok(true));
        verdicts.len()
    });
    assert_eq!(lengths, [1, 200, 200]);
    assert_eq!(port.drain(&mut verdicts), Ok(false));
    drop(ports);
    engine.shutdown().unwrap();
}

#[test]
fn a_dropped_port_leaves_no_waker_behind() {
    let (permit, filter) = gated();
    let (engine, mut ports) = Engine::builder(filter).build().unwrap();
    let mut port = ports.remove(0);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    assert_eq!(port.try_submit(&[BAD_KEY]), Ok(true));
    let mut verdicts = Verdicts::new();
    let mut context = Context::from_waker(&waker);
    assert_eq!(port.poll_drain(&mut context, &mut verdicts), Poll::Pending);
    assert_eq!(Arc::strong_count(&wakes), 3);
    drop(port);
    drop(waker);
    // The worker, which is still behind the gate, holds a doorbell of the port.
    assert_eq!(Arc::strong_count(&wakes), 1);
    permit.send(()).unwrap();
    engine.shutdown().unwrap();
}

#[test]
fn a_waiting_task_is_woken_by_the_end_of_the_engine() {
    let (permit, filter) = gated();
    let (engine, mut ports) = Engine::builder(filter).ring_depth(1).build().unwrap();
    let port = &mut ports[0];
    let batch: Vec<_> = (0..200).map(KeyHash::from_uniform).collect();
    assert_eq!(port.try_submit(&batch), Ok(true));
    thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let mut verdicts = Verdicts::new();
            let drained = block_on(poll_fn(|context| port.poll_drain(context, &mut verdicts)));
            match drained {
                // The engine ended before the batch was sent whole.
                Err(lost) => {
                    assert_eq!(lost, ExchangeError::Disconnected(0));
                    assert!(port.take_partial(&mut verdicts));
                    assert!(verdicts.count_unknown() <= 200 - 64);
                    assert_eq!(port.try_submit(&batch[..1]), Err(lost));
                    let ready = block_on(poll_fn(|context| port.poll_ready(context)));
                    assert_eq!(ready, Err(lost));
                }
                Ok(drained) => assert!(drained),
            }
            assert_eq!(verdicts.len(), 200);
        });
        drop(permit);
        engine.shutdown().unwrap();
        waiting.join().unwrap();
    });
}

#[test]
fn a_lost_partition_is_an_error_and_what_is_known_comes_back() {
    let (_engine, mut ports) = Engine::builder(fragile(2)).build().unwrap();
    let port = &mut ports[0];
    let mut verdicts = Verdicts::new();
    let good = KeyHash::from_uniform(0);
    assert_eq!(port.try_submit(&[good, BAD_KEY]), Ok(true));
    let lost = ExchangeError::Panicked(1);
    let drained = block_on(poll_fn(|context| port.poll_drain(context, &mut verdicts)));
    assert_eq!(drained, Err(lost));
    assert!(port.take_partial(&mut verdicts));
    assert!(!verdicts.is_unknown(0) && verdicts.is_unknown(1));
    let ready = block_on(poll_fn(|context| port.poll_ready(context)));
    assert_eq!(ready, Err(lost));
    assert_eq!(port.try_submit(&[good]), Err(lost));
    assert_eq!(port.in_flight(), 0);
}

#[test]
fn a_batch_that_is_not_accepted_is_not_in_flight() {
    let (permit, filter) = gated();
    let (engine, mut ports) = Engine::builder(filter).ring_depth(1).build().unwrap();
    let port = &mut ports[0];
    let batch: Vec<_> = (0..200).map(KeyHash::from_uniform).collect();
    assert_eq!(port.try_submit(&batch), Ok(true));
    assert_eq!((port.try_submit(&batch), port.in_flight()), (Ok(false), 1));
    drop(permit);
    block_on(poll_fn(|context| port.poll_ready(context))).unwrap();
    assert_eq!(port.try_submit(&batch), Ok(true));
    let mut verdicts = Verdicts::new();
    let mut next = || block_on(poll_fn(|context| port.poll_drain(context, &mut verdicts)));
    assert_eq!([next(), next(), next()], [Ok(true), Ok(true), Ok(false)]);
    drop(ports);
    engine.shutdown().unwrap();
}
