//! Engines that are shut down, whose workers panic, and that cannot start.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use echoless::transport::Wait;
use echoless::{
    BuildError, Disconnected, Engine, Filter, KeyHash, LineFilter, Mesh, Partitioned, Partitioning,
    Pinning, Port, Verdicts,
};

use crate::fragile::{BAD_KEY, Fragile, fragile};
use crate::streams::{duplicates, oracle, spec, stream};

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
    let lost = Disconnected::Partition(1);
    assert_eq!(ports[0].drain(&mut verdicts), Err(lost));
    for _ in 0..3 {
        assert_eq!(ports[0].submit(&[BAD_KEY]), Err(lost));
        assert_eq!(ports[0].observe(&good, &mut verdicts), Err(lost));
        assert_eq!(ports[0].poll(&mut verdicts), Err(lost));
    }
    let error = engine.shutdown().err().unwrap();
    assert_eq!(
        error.to_string(),
        "partition 1 is lost: its worker panicked (this key panics on purpose)"
    );
}

#[test]
fn a_partition_is_lost_for_ports_that_asked_it_nothing() {
    let (engine, mut ports) = Engine::builder(fragile(2)).ports(2).start().unwrap();
    let lost = Disconnected::Partition(1);
    let mut verdicts = Verdicts::new();
    assert_eq!(ports[0].observe(&[BAD_KEY], &mut verdicts), Err(lost));
    // The worker may not be through with its end yet; it is not asked for anything.
    let elsewhere = [KeyHash(0)];
    let heard = loop {
        match ports[1].observe(&elsewhere, &mut verdicts) {
            Ok(()) => assert_eq!(verdicts.len(), 1),
            Err(error) => break error,
        }
    };
    assert_eq!(heard, lost);
    assert_eq!(ports[1].submit(&elsewhere), Err(lost));
    assert_eq!(ports[1].poll(&mut verdicts), Err(lost));
    assert_eq!(ports[1].drain(&mut verdicts), Err(lost));
    assert!(engine.shutdown().is_err());
}

#[test]
fn shutdown_names_all_that_are_lost_and_gives_the_others_back() {
    let keys = [KeyHash(0), KeyHash(1 << 63), KeyHash(u64::MAX)];
    let filters = vec![Fragile(keys[0]), Fragile(KeyHash(1)), Fragile(keys[2])];
    let thirds = Partitioned::new(Partitioning::new(100, 3).unwrap(), filters).unwrap();
    let (engine, mut ports) = Engine::builder(thirds).start().unwrap();
    ports[0].submit(&keys).unwrap();
    let error = engine.shutdown().err().unwrap();
    let lost: Vec<usize> = error.lost.iter().map(|(index, _)| *index).collect();
    assert_eq!(lost, [0, 2]);
    for (_, message) in error.lost {
        assert_eq!(message, "this key panics on purpose");
    }
    assert_eq!(error.survivors.len(), 1);
    assert_eq!(
        (error.survivors[0].0, error.survivors[0].1.0),
        (1, KeyHash(1))
    );
}

/// A filter that does nothing but this for each batch.
struct Each<F>(F);

impl<F: FnMut() + Send> Filter for Each<F> {
    fn observe_words(&mut self, _keys: &[KeyHash], duplicates: &mut [u64]) {
        self.0();
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

#[test]
fn an_engine_that_is_dropped_lets_go_of_its_filter_though_ports_live_on() {
    // The filter holds the sending end, so the receiving end hears when it is dropped.
    let (witness, dropped) = mpsc::channel::<()>();
    let filter = Each(move || drop(witness.clone()));
    let whole = Partitioned::new(Partitioning::new(1, 1).unwrap(), vec![filter]);
    let (engine, mut ports) = Engine::builder(whole.unwrap()).start().unwrap();
    let mut verdicts = Verdicts::new();
    ports[0].submit(&[KeyHash(1)]).unwrap();
    drop(engine);
    assert_eq!(dropped.recv(), Err(mpsc::RecvError));
    assert_eq!(ports[0].drain(&mut verdicts), Ok(true), "submitted before");
    assert_eq!(
        ports[0].observe(&[KeyHash(2)], &mut verdicts),
        Err(Disconnected::Partition(0))
    );
}

#[test]
fn shutdown_answers_what_was_submitted_and_ends_the_ports() {
    let keys = stream(5000, 2);
    let (engine, mut ports) = Engine::builder(spec().build_partitions(2).unwrap())
        .start()
        .unwrap();
    ports[0].submit(&keys).unwrap();
    let filter = engine.shutdown().unwrap();
    assert_eq!(
        echoless::report_of(filter.filters()).tally.observed,
        Some(5000)
    );
    let mut verdicts = Verdicts::new();
    assert!(ports[0].drain(&mut verdicts).unwrap());
    assert_eq!(duplicates(&verdicts), oracle(&keys).0);
    // A batch that is refused has no verdicts.
    assert!(matches!(
        ports[0].submit(&keys),
        Err(Disconnected::Partition(_))
    ));
    assert!(matches!(
        ports[0].drain(&mut verdicts),
        Err(Disconnected::Partition(_))
    ));
    assert!(matches!(
        ports[0].observe(&keys, &mut verdicts),
        Err(Disconnected::Partition(_))
    ));
}

/// What ports have done.
#[derive(Default)]
struct Ingest {
    submitted: AtomicU64,
    ended: AtomicUsize,
}

/// A filter that ports outrun: it judges no batch before there is another one, so that its worker never finds the rings empty.
struct Outrun {
    observed: u64,
    ingest: Arc<Ingest>,
}

const PORTS: usize = 3;

impl Filter for Outrun {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        self.observed += keys.len() as u64;
        let Ingest { submitted, ended } = &*self.ingest;
        while submitted.load(Ordering::Acquire) <= self.observed
            && ended.load(Ordering::Acquire) < PORTS
        {
            thread::yield_now();
        }
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

#[test]
fn shutdown_ends_though_ports_never_pause() {
    let ingest = Arc::new(Ingest::default());
    let outrun = Outrun {
        observed: 0,
        ingest: Arc::clone(&ingest),
    };
    let whole = Partitioned::new(Partitioning::new(1, 1).unwrap(), vec![outrun]);
    // More room than one pass of the worker takes, else the ports would wait for the filter that waits for them.
    let (engine, ports) = Engine::builder(whole.unwrap())
        .ports(PORTS)
        .ring_depth(128)
        .start()
        .unwrap();
    let (submitting, under_way) = mpsc::channel();
    let submit_until_lost = |mut port: Port| {
        let (submitting, ingest) = (submitting.clone(), Arc::clone(&ingest));
        thread::spawn(move || {
            let (mut verdicts, mut answered) = (Verdicts::new(), 0);
            for batch in 0.. {
                if port.submit(&[KeyHash(batch)]).is_err() {
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
            // What was answered before the end can still be taken.
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
    let observed = engine.shutdown().unwrap().filters()[0].observed;
    let answered = threads.into_iter().map(|thread| thread.join().unwrap());
    let answered: u64 = answered.sum();
    assert_eq!(answered, observed, "what is recorded is answered");
    assert!(
        answered >= 11 * PORTS as u64,
        "all that was submitted before"
    );
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

#[test]
#[cfg(target_os = "linux")]
fn a_pinned_worker_runs_on_its_core_and_no_other() {
    let last = core_affinity::get_core_ids().unwrap().pop().unwrap().id;
    let (tell, told) = mpsc::channel();
    let filter = Each(move || tell.send(core_affinity::get_core_ids().unwrap()).unwrap());
    let whole = Partitioned::new(Partitioning::new(8, 1).unwrap(), vec![filter]).unwrap();
    let (engine, mut ports) = Engine::builder(whole)
        .pinning(Pinning::Cores(vec![last]))
        .start()
        .unwrap();
    ports[0]
        .observe(&[KeyHash(1)], &mut Verdicts::new())
        .unwrap();
    drop(ports);
    assert!(engine.shutdown().is_ok());
    let seen: Vec<usize> = told.recv().unwrap().iter().map(|core| core.id).collect();
    assert_eq!(seen, [last]);
}
