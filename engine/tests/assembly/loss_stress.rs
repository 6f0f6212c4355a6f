//! Engines whose partitions are lost again and again while several threads use and replace them:
//! exactly one port gets `Fresh`, and nothing hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use echoless::{Engine, ExchangeError, KeyHash, KeyHasher, LossPolicy, Port, Verdicts};

use crate::breakable::{Exact, Keys};
use crate::streams::stream;

/// Partitions whose filters panic again and again, `left` times at most, and keep their keys.
struct Losses {
    sets: Vec<Keys>,
    left: AtomicU64,
}

const LOSSES: u64 = 60;
const PORTS: usize = 3;
const WORKERS: usize = 3;

impl Losses {
    fn start(policy: LossPolicy) -> (Self, Engine<Exact>, Vec<Port>) {
        let filter = Exact::partitions(WORKERS, Some(2));
        let sets = filter
            .filters()
            .iter()
            .map(|part| Arc::clone(&part.keys))
            .collect();
        let builder = Engine::builder(filter).ports(PORTS).ring_depth(2);
        let (engine, ports) = builder.on_loss(policy).build().unwrap();
        let left = AtomicU64::new(LOSSES);
        (Self { sets, left }, engine, ports)
    }

    fn restored(&self, partition: usize) -> Exact {
        let breaks = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        Exact {
            keys: Arc::clone(&self.sets[partition]),
            passes_left: breaks.ok().map(|left| left % 7),
        }
    }
}

/// How often each key was fresh, and how often it had no verdict at all.
fn sum<const N: usize>(keys: usize, ports: Vec<Vec<[u64; N]>>) -> Vec<[u64; N]> {
    let mut total = vec![[0; N]; keys];
    for port in ports {
        for (total, key) in total.iter_mut().zip(port) {
            for (total, count) in total.iter_mut().zip(key) {
                *total += count;
            }
        }
    }
    total
}

/// Every port submits every key, and submits again what is unknown. A pass that panics records
/// nothing, so over all ports each key is fresh exactly once if retries send the unknown only.
#[test]
fn of_ports_that_retry_exactly_one_gets_fresh() {
    let (losses, engine, ports) = Losses::start(LossPolicy::Error);
    let keys: Vec<KeyHash> = (0..6000)
        .map(|key| KeyHasher::seeded(3).hash_u64(key))
        .collect();
    let chunk = 130;
    // A loss costs a port at most one partial batch and one rejected one.
    let limit = keys.len() / chunk + 1 + 2 * (LOSSES as usize + WORKERS);
    let ingest = |mut port: Port| {
        let mut fresh = vec![[0]; keys.len()];
        let mut verdicts = Verdicts::new();
        let mut rounds = 0;
        for first in (0..keys.len()).step_by(chunk) {
            let mut rest: Vec<usize> = (first..keys.len().min(first + chunk)).collect();
            while !rest.is_empty() {
                rounds += 1;
                assert!(rounds <= limit, "no progress");
                let batch: Vec<KeyHash> = rest.iter().map(|index| keys[*index]).collect();
                let lost = port.observe(&batch, &mut verdicts).err();
                if lost.is_none() || port.take_partial(&mut verdicts) {
                    let mut unknown = Vec::new();
                    for (position, index) in rest.iter().enumerate() {
                        if verdicts.is_unknown(position) {
                            unknown.push(*index);
                        } else {
                            fresh[*index][0] += u64::from(!verdicts.is_duplicate(position));
                        }
                    }
                    assert_eq!(unknown.is_empty(), lost.is_none());
                    rest = unknown;
                }
                match lost {
                    None => {}
                    Some(ExchangeError::Panicked(partition)) => {
                        // Another port may have replaced it.
                        drop(engine.replace(partition, losses.restored(partition)));
                    }
                    Some(other) => panic!("{other}"),
                }
            }
        }
        fresh
    };
    let fresh: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = ports
            .into_iter()
            .map(|port| scope.spawn(|| ingest(port)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for (index, [fresh]) in sum(keys.len(), fresh).into_iter().enumerate() {
        assert_eq!(fresh, 1, "key {index}");
    }
    assert!(engine.counts().unknown > 0);
    assert!(
        engine.shutdown().is_ok(),
        "every loss was heard and replaced"
    );
}

/// The same without retries, under the policies, while another thread replaces lost partitions.
#[test]
fn ports_go_on_while_partitions_are_lost_and_replaced() {
    for policy in [LossPolicy::AsDuplicate, LossPolicy::AsFresh] {
        let (losses, engine, ports) = Losses::start(policy);
        let keys: Vec<KeyHash> = (0..6000)
            .map(|key| KeyHasher::seeded(5).hash_u64(key))
            .collect();
        let ingest = |mut port: Port| {
            let mut verdicts = Verdicts::new();
            let mut counts = vec![[0, 0]; keys.len()];
            let mut first = 0;
            for batch in keys.chunks(97) {
                port.observe(batch, &mut verdicts).unwrap();
                for (position, [fresh, unknown]) in
                    counts[first..][..batch.len()].iter_mut().enumerate()
                {
                    let duplicate = verdicts.is_duplicate(position);
                    if verdicts.is_unknown(position) {
                        *unknown += 1;
                        assert_eq!(duplicate, policy == LossPolicy::AsDuplicate);
                    } else {
                        *fresh += u64::from(!duplicate);
                    }
                }
                first += batch.len();
            }
            counts
        };
        let counts: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = ports
                .into_iter()
                .map(|port| scope.spawn(|| ingest(port)))
                .collect();
            while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
                for (partition, _) in engine.lost() {
                    engine
                        .replace(partition, losses.restored(partition))
                        .unwrap();
                }
                thread::yield_now();
            }
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let mut total = 0;
        for (index, [fresh, unknown]) in sum(keys.len(), counts).into_iter().enumerate() {
            // A key is recorded by the first port that gets a verdict.
            let expected = u64::from(unknown < PORTS as u64);
            assert_eq!(fresh, expected, "key {index}");
            total += unknown;
        }
        assert!(total > 0);
        assert_eq!(engine.counts().unknown, total);
    }
}

/// Shutdown while partitions are lost, at any moment: no port hangs, and every batch comes out.
#[test]
fn shutdown_ends_although_partitions_are_lost() {
    for round in 0..60u64 {
        let policy = [LossPolicy::Error, LossPolicy::AsFresh][round as usize % 2];
        let filter = Exact::partitions(WORKERS, Some(round / 8));
        let builder = Engine::builder(filter).ports(PORTS).ring_depth(1);
        let (engine, ports) = builder.on_loss(policy).build().unwrap();
        let ingest = |mut port: Port| {
            thread::spawn(move || {
                let mut verdicts = Verdicts::new();
                let (mut submitted, mut returned) = (0, 0);
                while submitted < 400 && port.submit(&stream(50, submitted)).is_ok() {
                    submitted += 1;
                    if port.poll(&mut verdicts) == Ok(true) || port.take_partial(&mut verdicts) {
                        returned += 1;
                    }
                }
                while port.drain(&mut verdicts) == Ok(true) || port.take_partial(&mut verdicts) {
                    assert_eq!(verdicts.len(), 50);
                    returned += 1;
                }
                assert_eq!((returned, port.in_flight()), (submitted, 0));
            })
        };
        let threads: Vec<_> = ports.into_iter().map(ingest).collect();
        for _ in 0..round * 20 {
            thread::yield_now();
        }
        drop(engine.shutdown());
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
