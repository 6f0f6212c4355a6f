//! Engines: shutdown, workers that panic, and options that are rejected.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use echoless::assembly::EngineBuilder;
use echoless::transport::Wait;
use echoless::{
    BuildError, Engine, ExchangeError, KeyHash, Partitioned, Partitioning, Pinning, Port, Verdicts,
};

use crate::streams::{oracle, spec, stream};
use crate::stub::{BAD_KEY, Stub, fragile, fragile_at};

#[test]
fn a_worker_that_panics_is_an_error_and_not_a_hang() {
    let (engine, mut ports) = Engine::builder(fragile(2)).ring_depth(2).build().unwrap();
    let mut verdicts = Verdicts::new();
    let good = [
        KeyHash::from_uniform(0),
        KeyHash::from_uniform(u64::MAX - 1),
    ];
    ports[0].observe(&good, &mut verdicts).unwrap();
    // A batch without keys of the lost partition is returned before the error.
    ports[0].submit(&[KeyHash::from_uniform(0)]).unwrap();
    ports[0].submit(&[BAD_KEY]).unwrap();
    assert_eq!(ports[0].drain(&mut verdicts), Ok(true));
    assert_eq!(verdicts.len(), 1);
    let lost = ExchangeError::Panicked(1);
    assert_eq!(ports[0].drain(&mut verdicts), Err(lost));
    for _ in 0..3 {
        assert_eq!(ports[0].submit(&[BAD_KEY]), Err(lost));
        assert_eq!(ports[0].observe(&good, &mut verdicts), Err(lost));
        assert_eq!(ports[0].poll(&mut verdicts), Err(lost));
    }
    let error = engine.shutdown().err().unwrap();
    assert_eq!(
        error.to_string(),
        "partition 1 is lost: its owner panicked (this key panics on purpose)"
    );
}

#[test]
fn a_lost_partition_is_an_error_for_ports_that_sent_it_no_keys() {
    let (engine, mut ports) = Engine::builder(fragile(2)).ports(2).build().unwrap();
    let lost = ExchangeError::Panicked(1);
    let mut verdicts = Verdicts::new();
    assert_eq!(ports[0].observe(&[BAD_KEY], &mut verdicts), Err(lost));
    // The worker may still be unwinding, so the first batches may succeed; none has keys of its
    // partition.
    let elsewhere = [KeyHash::from_uniform(0)];
    let error = loop {
        match ports[1].observe(&elsewhere, &mut verdicts) {
            Ok(()) => assert_eq!(verdicts.len(), 1),
            Err(error) => break error,
        }
    };
    assert_eq!(error, lost);
    assert_eq!(ports[1].submit(&elsewhere), Err(lost));
    assert_eq!(ports[1].poll(&mut verdicts), Err(lost));
    assert_eq!(ports[1].drain(&mut verdicts), Err(lost));
    assert!(engine.shutdown().is_err());
}

#[test]
fn shutdown_reports_every_lost_partition_and_returns_the_others() {
    let keys = [
        KeyHash::from_uniform(0),
        KeyHash::from_uniform(1 << 63),
        KeyHash::from_uniform(u64::MAX),
    ];
    let filters = [keys[0], KeyHash::from_uniform(1), keys[2]]
        .map(fragile_at)
        .to_vec();
    let thirds = Partitioned::new(Partitioning::new(100, 3).unwrap(), filters).unwrap();
    let (engine, mut ports) = Engine::builder(thirds).build().unwrap();
    ports[0].submit(&keys).unwrap();
    let error = engine.shutdown().err().unwrap();
    let lost: Vec<usize> = error.lost.iter().map(|(index, _)| *index).collect();
    assert_eq!(lost, [0, 2]);
    for (_, message) in error.lost {
        assert_eq!(message, "this key panics on purpose");
    }
    assert_eq!(error.survivors.len(), 1);
    let (index, survivor) = &error.survivors[0];
    assert_eq!((*index, survivor.state), (1, KeyHash::from_uniform(1)));
}

/// A filter that calls a closure for each batch.
fn calling<F: FnMut() + Send>(each_batch: F) -> Stub<F> {
    Stub::new(each_batch, |each_batch, _keys| each_batch())
}

#[test]
fn dropping_an_engine_drops_its_filter_although_ports_remain() {
    // The filter owns the sender, so the receiver is disconnected once the filter is dropped.
    let (witness, dropped) = mpsc::channel::<()>();
    let filter = calling(move || drop(witness.clone()));
    let (engine, mut ports) = Engine::builder(filter.undivided()).build().unwrap();
    let mut verdicts = Verdicts::new();
    ports[0].submit(&[KeyHash::from_uniform(1)]).unwrap();
    drop(engine);
    assert_eq!(dropped.recv(), Err(mpsc::RecvError));
    assert_eq!(ports[0].drain(&mut verdicts), Ok(true), "submitted before");
    assert_eq!(
        ports[0].observe(&[KeyHash::from_uniform(2)], &mut verdicts),
        Err(ExchangeError::Disconnected(0))
    );
}

#[test]
fn shutdown_answers_what_was_submitted_and_disconnects_the_ports() {
    let keys = stream(5000, 2);
    let (engine, mut ports) = Engine::builder(spec().build_partitions(2).unwrap())
        .build()
        .unwrap();
    ports[0].submit(&keys).unwrap();
    let filter = engine.shutdown().unwrap();
    assert_eq!(
        echoless::report_of(filter.filters()).tally.observed,
        Some(5000)
    );
    let mut verdicts = Verdicts::new();
    assert!(ports[0].drain(&mut verdicts).unwrap());
    assert_eq!(verdicts.to_bools(), oracle(&keys).0);
    // A rejected batch has no verdicts.
    let results = [
        ports[0].submit(&keys),
        ports[0].drain(&mut verdicts).map(|_| ()),
        ports[0].observe(&keys, &mut verdicts),
    ];
    for result in results {
        assert!(matches!(result, Err(ExchangeError::Disconnected(_))));
    }
}

/// The progress of all ports.
#[derive(Default)]
struct Ingest {
    submitted: AtomicU64,
    ended: AtomicUsize,
}

/// The state of a filter that ports outrun: it returns no verdicts before the next batch is
/// submitted, so its worker never finds the rings empty.
struct Outrun {
    observed: u64,
    ingest: Arc<Ingest>,
}

impl Outrun {
    fn observe(&mut self, keys: &[KeyHash]) {
        self.observed += keys.len() as u64;
        let Ingest { submitted, ended } = &*self.ingest;
        while submitted.load(Ordering::Acquire) <= self.observed
            && ended.load(Ordering::Acquire) < PORTS
        {
            thread::yield_now();
        }
    }
}

const PORTS: usize = 3;

#[test]
fn shutdown_ends_although_ports_never_pause() {
    let ingest = Arc::new(Ingest::default());
    let outrun = Outrun {
        observed: 0,
        ingest: Arc::clone(&ingest),
    };
    // Deeper rings than one pass of the worker empties, or the ports would block on the filter that
    // blocks on them.
    let (engine, ports) = Engine::builder(Stub::new(outrun, Outrun::observe).undivided())
        .ports(PORTS)
        .ring_depth(128)
        .build()
        .unwrap();
    let (submitting, under_way) = mpsc::channel();
    let submit_until_lost = |mut port: Port| {
        let (submitting, ingest) = (submitting.clone(), Arc::clone(&ingest));
        thread::spawn(move || {
            let (mut verdicts, mut answered) = (Verdicts::new(), 0);
            for batch in 0.. {
                if port.submit(&[KeyHash::from_uniform(batch)]).is_err() {
                    break;
                }
                ingest.submitted.fetch_add(1, Ordering::Release);
                if batch == 10 {
                    submitting.send(()).unwrap();
                }
                while port.poll(&mut verdicts) == Ok(true) {
                    answered += 1;
                }
            }
            ingest.ended.fetch_add(1, Ordering::Release);
            // Batches answered before the end can still be drained.
            while port.drain(&mut verdicts) == Ok(true) {
                answered += 1;
            }
            answered
        })
    };
    let threads: Vec<_> = ports.into_iter().map(submit_until_lost).collect();
    for _ in &threads {
        under_way.recv().unwrap();
    }
    let observed = engine.shutdown().unwrap().filters()[0].state.observed;
    let answered = threads.into_iter().map(|thread| thread.join().unwrap());
    let answered: u64 = answered.sum();
    assert_eq!(answered, observed, "every recorded key is answered");
    assert!(
        answered >= 11 * PORTS as u64,
        "every batch submitted before the shutdown"
    );
}

#[test]
fn invalid_options_are_rejected() {
    let halves = || spec().build_partitions(2).unwrap();
    let engine = || Engine::builder(halves());
    let field = |error: BuildError| match error {
        BuildError::Spec(error) => error.field,
        other => panic!("{other}"),
    };
    let engine_field = |builder: EngineBuilder<_>| field(builder.build().unwrap_err());
    assert_eq!(engine_field(engine().ring_depth(3)), "ring_depth");
    assert_eq!(engine_field(engine().ports(0).ring_depth(3)), "ring_depth");
    let one_core = Pinning::Cores(vec![0]);
    assert_eq!(engine_field(engine().pinning(one_core)), "pinning");
    assert_eq!(engine_field(engine().ring_depth(0)), "ring_depth");
    let two = Partitioning::new(100, 2).unwrap();
    let one_filter = Partitioned::new(two, vec![fragile_at(BAD_KEY)]);
    assert_eq!(one_filter.err().unwrap().field, "filters");
}

#[test]
fn pinning_and_waiting_leave_the_verdicts_unchanged() {
    let keys = stream(20_000, 5);
    let (engine, mut ports) = Engine::builder(spec().build_partitions(1).unwrap())
        .pinning(Pinning::Spread)
        .wait(Wait::Dedicated)
        .build()
        .unwrap();
    let mut verdicts = Verdicts::new();
    ports[0].observe(&keys, &mut verdicts).unwrap();
    assert_eq!(verdicts.to_bools(), oracle(&keys).0);
    drop(ports);
    engine.shutdown().unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_pinned_worker_runs_on_its_core_and_no_other() {
    let last = core_affinity::get_core_ids().unwrap().pop().unwrap().id;
    let (sender, receiver) = mpsc::channel();
    let filter = calling(move || sender.send(core_affinity::get_core_ids().unwrap()).unwrap());
    let (engine, mut ports) = Engine::builder(filter.undivided())
        .pinning(Pinning::Cores(vec![last]))
        .build()
        .unwrap();
    ports[0]
        .observe(&[KeyHash::from_uniform(1)], &mut Verdicts::new())
        .unwrap();
    drop(ports);
    assert!(engine.shutdown().is_ok());
    let seen: Vec<usize> = receiver
        .recv()
        .unwrap()
        .iter()
        .map(|core| core.id)
        .collect();
    assert_eq!(seen, [last]);
}
