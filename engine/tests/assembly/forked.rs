//! What a forked process does with what its parent has built: every call returns an error, and none
//! blocks, as it would for threads that only the parent has.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};

use echoless::{
    Engine, ExchangeError, KeyHash, LossPolicy, NotReplaceable, OrderedFilter, SharedSpec, Verdict,
    Verdicts,
};
use fork::{Fork, WEXITSTATUS, WIFEXITED, fork, waitpid};

use crate::breakable::Exact;

const LOW: KeyHash = KeyHash::from_uniform(1);
const HIGH: KeyHash = KeyHash::from_uniform(u64::MAX);
const FORKED: ExchangeError = ExchangeError::Forked;

/// Runs a check in a child of this process, which has no other thread.
fn in_child(check: impl FnOnce()) {
    match fork().unwrap() {
        Fork::Child => {
            let passed = catch_unwind(AssertUnwindSafe(check)).is_ok();
            // Without the end of the test harness, whose threads are not here.
            exit(if passed { 17 } else { 1 });
        }
        Fork::Parent(child) => {
            let status = waitpid(child).unwrap();
            assert!(WIFEXITED(status), "{status}");
            assert_eq!(WEXITSTATUS(status), 17, "the check failed in the child");
        }
    }
}

#[test]
fn ports_of_the_parent_are_errors() {
    for policy in [LossPolicy::Error, LossPolicy::AsFresh] {
        let builder = Engine::builder(Exact::partitions(2, None)).ports(4);
        let (engine, mut ports) = builder.on_loss(policy).ring_depth(1).build().unwrap();
        let mut verdicts = Verdicts::new();
        ports[0].observe(&[LOW, HIGH], &mut verdicts).unwrap();
        // Two batches in flight, of which the second is not sent whole.
        ports[1].submit(&[LOW]).unwrap();
        assert_eq!(ports[1].try_submit(&[HIGH; 200]), Ok(true));
        let mut engine = Some(engine);
        in_child(|| {
            let engine = engine.take().unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let port = &mut ports[0];
            assert_eq!(port.observe(&[LOW], &mut verdicts), Err(FORKED));
            assert_eq!(port.submit(&[LOW]), Err(FORKED));
            assert_eq!(port.try_submit(&[LOW]), Err(FORKED));
            assert_eq!(port.poll(&mut verdicts), Err(FORKED));
            assert!(!port.take_partial(&mut verdicts));
            assert_eq!(port.poll_ready(&mut context), Poll::Ready(Err(FORKED)));

            let port = &mut ports[1];
            let drained = port.poll_drain(&mut context, &mut verdicts);
            // The answer to the first batch may have arrived before the fork.
            if drained == Poll::Ready(Err(FORKED)) {
                assert!(port.take_partial(&mut verdicts));
                assert!(verdicts.is_unknown(0));
            } else {
                assert_eq!(drained, Poll::Ready(Ok(true)));
            }
            assert_eq!(port.drain(&mut verdicts), Err(FORKED));
            assert_eq!(port.submit(&[LOW]), Err(FORKED));
            assert!(port.take_partial(&mut verdicts));
            assert!(verdicts.count_unknown() >= 200 - 64);
            assert_eq!(port.in_flight(), 0);

            let waiting = &mut ports[2];
            assert_eq!(waiting.drain(&mut verdicts), Err(FORKED));
            let mut new = engine.attach().unwrap();
            assert_eq!(new.observe(&[LOW], &mut verdicts), Err(FORKED));

            let rejected = engine.replace(0, Exact::default()).unwrap_err();
            assert_eq!(rejected.reason, NotReplaceable::Ended);
            ports.clear();
            let error = engine.shutdown().err().unwrap();
            assert!(error.survivors.is_empty());
            let forked = FORKED.to_string();
            assert_eq!(error.lost, [(0, forked.clone()), (1, forked)]);

            // What the child builds is its own, and so on.
            let (engine, mut ports) = Engine::builder(Exact::partitions(2, None)).build().unwrap();
            ports[0].observe(&[LOW, LOW], &mut verdicts).unwrap();
            assert_eq!(verdicts.to_bools(), [false, true]);
            in_child(|| assert_eq!(ports[0].observe(&[LOW], &mut verdicts), Err(FORKED)));
            ports[0].observe(&[LOW], &mut verdicts).unwrap();
            engine.shutdown().unwrap();
        });
        // The parent goes on.
        while ports[1].drain(&mut verdicts).unwrap() {}
        ports[0].observe(&[LOW, HIGH], &mut verdicts).unwrap();
        assert_eq!(verdicts.to_bools(), [true, true]);
        drop(ports);
        engine.unwrap().shutdown().unwrap();
    }
}

#[test]
fn an_engine_is_dropped_in_a_child() {
    let (engine, ports) = Engine::builder(Exact::partitions(3, None))
        .ports(3)
        .build()
        .unwrap();
    let mut both = Some((engine, ports));
    in_child(|| drop(both.take()));
    let (engine, mut ports) = both.unwrap();
    ports[2].observe(&[LOW], &mut Verdicts::new()).unwrap();
    engine.shutdown().unwrap();
}

#[test]
fn tickets_of_the_parent_are_errors() {
    let filter = OrderedFilter::builder(Exact::partitions(2, None)).build();
    let mut verdicts = Verdicts::new();
    filter
        .handle()
        .observe(&[LOW, HIGH], &mut verdicts)
        .unwrap();
    let (mut first, mut handle) = (filter.handle(), filter.handle());
    // All later tickets wait for this one, which the child has as well.
    let mut earlier = first.ticket();
    earlier.contains_each(&[LOW], &mut verdicts).unwrap();
    let mut filter = Some(filter);
    in_child(|| {
        let keys = [LOW, HIGH, LOW];
        assert_eq!(handle.observe(&keys, &mut verdicts), Err(FORKED));
        assert!(verdicts.is_empty());
        assert!(handle.take_partial(&mut verdicts));
        assert!(verdicts.unknown().eq(0..3));
        let mut ticket = handle.ticket();
        assert_eq!(ticket.contains_each(&keys, &mut verdicts), Err(FORKED));
        assert_eq!(ticket.observe(&keys, &mut verdicts), Err(FORKED));
        assert_eq!(handle.ticket().report().err(), Some(FORKED));
        drop(handle.ticket());
        assert_eq!(earlier.contains_each(&keys, &mut verdicts), Err(FORKED));
        let filter = filter.take().unwrap();
        let rejected = filter.replace(1, Exact::default()).unwrap_err();
        assert_eq!(rejected.reason, NotReplaceable::Ended);
        assert_eq!(filter.shutdown().err().unwrap().lost.len(), 2);
    });
    earlier.observe(&[LOW], &mut verdicts).unwrap();
    handle.observe(&[LOW, HIGH], &mut verdicts).unwrap();
    assert_eq!(verdicts.to_bools(), [true, true]);
    filter.unwrap().shutdown().unwrap();
}

/// Threads of the parent may be anywhere when it forks, also in the middle of a wake-up.
#[test]
fn forks_amid_traffic_end() {
    let (engine, mut ports) = Engine::builder(Exact::partitions(2, None))
        .ports(3)
        .build()
        .unwrap();
    let filter = OrderedFilter::builder(Exact::partitions(2, None)).build();
    let mut idle = Some((ports.pop().unwrap(), filter.handle(), engine));
    std::thread::scope(|scope| {
        let (stop, stopped) = channel::<()>();
        let stopped = Arc::new(std::sync::Mutex::new(stopped));
        for mut port in ports {
            let stopped = Arc::clone(&stopped);
            let mut handle = filter.handle();
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                let is_running = || {
                    let received = stopped.lock().unwrap().try_recv();
                    received == Err(std::sync::mpsc::TryRecvError::Empty)
                };
                while is_running() {
                    port.observe(&[LOW, HIGH], &mut verdicts).unwrap();
                    drop(handle.ticket());
                    handle.observe(&[LOW, HIGH], &mut verdicts).unwrap();
                }
            });
        }
        for _ in 0..50 {
            in_child(|| {
                let (mut port, mut handle, engine) = idle.take().unwrap();
                let mut verdicts = Verdicts::new();
                assert_eq!(port.observe(&[LOW], &mut verdicts), Err(FORKED));
                assert_eq!(handle.observe(&[LOW], &mut verdicts), Err(FORKED));
                drop(port);
                drop(handle);
                assert!(engine.shutdown().is_err());
            });
        }
        drop(stop);
    });
}

/// No thread takes part in it, so a child goes on with a copy.
#[test]
fn a_shared_filter_is_copied() {
    let filter = SharedSpec::new(1 << 16).build().unwrap();
    assert_eq!(filter.observe_one(LOW), Verdict::Fresh);
    in_child(|| {
        assert_eq!(filter.observe_one(LOW), Verdict::Duplicate);
        assert_eq!(filter.observe_one(HIGH), Verdict::Fresh);
    });
    assert_eq!(filter.observe_one(HIGH), Verdict::Fresh);
}
