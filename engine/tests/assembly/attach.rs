//! Ports that come and go while their engine runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use echoless::{Engine, ExchangeError, FingerprintSpec, KeyHash, LossPolicy, Verdicts};

use crate::streams::{batches, oracle, spec, stream};
use crate::stub::{BAD_KEY, fragile};

/// One port at a time, each for a few batches: one order, so the verdicts of the undivided filter.
#[test]
fn ports_in_turns_have_the_verdicts_of_the_undivided_filter() {
    let keys = stream(20_000, 1);
    let (expected, _) = oracle(&keys);
    for partitions in [1, 3] {
        let parts = spec().build_partitions(partitions).unwrap();
        let (engine, none) = Engine::builder(parts).ports(0).build().unwrap();
        assert!(none.is_empty());
        let mut answers = Vec::new();
        let mut verdicts = Verdicts::new();
        for batches in batches(&keys, 50).chunks(7) {
            let mut port = engine.attach().unwrap();
            for batch in batches {
                port.submit(batch).unwrap();
            }
            while port.drain(&mut verdicts).unwrap() {
                answers.extend(verdicts.to_bools());
            }
        }
        assert_eq!(answers, expected, "{partitions} partitions");
        let parts = engine.shutdown().unwrap();
        assert_eq!(parts.filters().len(), partitions);
    }
}

/// Ports that never rest beside many that come, submit a few keys and go, from several threads.
#[test]
fn each_key_is_fresh_at_one_port() {
    const CLIENTS: u64 = 300;
    let parts = FingerprintSpec::new(1 << 20).build_partitions(3).unwrap();
    let (engine, ports) = Engine::builder(parts)
        .ports(2)
        .ring_depth(4)
        .build()
        .unwrap();
    let keys = stream(4000, 2);
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let (fresh, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for mut port in ports {
            let (fresh, keys, done) = (&fresh, &keys, &done);
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                // At least once, so that every key is submitted.
                loop {
                    for batch in batches(keys, 100) {
                        port.observe(batch, &mut verdicts).unwrap();
                        let count = verdicts.len() as u64 - verdicts.count_duplicates();
                        fresh.fetch_add(count, Ordering::Relaxed);
                    }
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let clients: Vec<_> = (0..2)
            .map(|_| {
                let (attacher, fresh, keys) = (engine.attacher(), &fresh, &keys);
                scope.spawn(move || {
                    let mut verdicts = Verdicts::new();
                    for client in 0..CLIENTS as usize {
                        let mut port = attacher.attach().unwrap();
                        let batch = &keys[client * 13 % 3000..][..200];
                        port.submit(&batch[..100]).unwrap();
                        port.submit(&batch[100..]).unwrap();
                        while port.drain(&mut verdicts).unwrap() {
                            let count = verdicts.len() as u64 - verdicts.count_duplicates();
                            fresh.fetch_add(count, Ordering::Relaxed);
                        }
                        // Dropped with a batch in flight, whose verdicts are lost: its keys are
                        // known already.
                        port.submit(batch).unwrap();
                    }
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fresh.into_inner(), distinct.len() as u64);
    engine.shutdown().unwrap();
}

#[test]
fn a_port_that_attaches_to_an_engine_that_ended_returns_errors() {
    let end: [fn(Engine<_>); 2] = [|engine| drop(engine.shutdown().unwrap()), drop];
    for end in end {
        let parts = spec().build_partitions(2).unwrap();
        let (engine, _ports) = Engine::builder(parts).build().unwrap();
        let attacher = engine.attacher();
        let mut early = attacher.attach().unwrap();
        end(engine);
        let mut late = attacher.attach().unwrap();
        let mut verdicts = Verdicts::new();
        for port in [&mut early, &mut late] {
            // The workers of a dropped engine end a little later.
            let lost = loop {
                if let Err(lost) = port.observe(&[KeyHash::from_uniform(1)], &mut verdicts) {
                    break lost;
                }
            };
            assert!(matches!(lost, ExchangeError::Disconnected(_)), "{lost}");
        }
        drop((early, late));
    }
}

#[test]
fn a_port_that_attaches_to_a_lost_partition_knows_it() {
    for policy in [LossPolicy::Error, LossPolicy::AsDuplicate] {
        let (engine, mut ports) = Engine::builder(fragile(2)).on_loss(policy).build().unwrap();
        let mut verdicts = Verdicts::new();
        let first = ports[0].observe(&[BAD_KEY], &mut verdicts);
        let mut late = engine.attach().unwrap();
        let second = late.observe(&[BAD_KEY], &mut verdicts);
        let expected = match policy {
            LossPolicy::Error => Err(ExchangeError::Panicked(1)),
            _ => Ok(()),
        };
        assert_eq!((first, second), (expected, expected));
    }
}
