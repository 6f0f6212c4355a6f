//! Code of the caller that panics on a thread of the engine, other than the filters' own passes: no
//! other port is affected, and nothing is lost.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use echoless::{
    Batch, Engine, ExchangeError, KeyHash, LossPolicy, OrderedFilter, Partitioned, Partitioning,
    Port, Verdicts,
};
use proptest::prelude::*;

use crate::stub::{BAD_KEY, Stub};

const GOOD_KEY: KeyHash = KeyHash::from_uniform(1);

/// The payload of a panic, which panics again when it is dropped.
struct Payload {
    panics: bool,
}

impl Drop for Payload {
    fn drop(&mut self) {
        if self.panics && !thread::panicking() {
            resume_unwind(Box::new(Self { panics: false }));
        }
    }
}

/// The waker of an executor with bugs.
#[derive(Debug, Clone, Copy)]
struct Bugs {
    wake_panics: bool,
    drop_panics: bool,
    payload_panics: bool,
}

struct BadWaker(Bugs);

impl BadWaker {
    fn panic(&self) -> ! {
        let panics = self.0.payload_panics;
        resume_unwind(Box::new(Payload { panics }))
    }
}

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {
        if self.0.wake_panics {
            self.panic();
        }
    }
}

impl Drop for BadWaker {
    fn drop(&mut self) {
        // A second panic during the first one ends every process.
        if self.0.drop_panics && !thread::panicking() {
            self.panic();
        }
    }
}

/// Waits for the verdicts with a waker that only the port keeps.
fn poll_with(bugs: Bugs, port: &mut Port, verdicts: &mut Verdicts) -> Poll<()> {
    let waker = Waker::from(Arc::new(BadWaker(bugs)));
    let polled = port.poll_drain(&mut Context::from_waker(&waker), verdicts);
    // If the port has not kept it, the bug is met here.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(waker))) {
        std::mem::forget(panic);
    }
    polled.map(|drained| assert_eq!(drained, Ok(true)))
}

/// What the task of a port does while the worker is busy.
#[derive(Debug, Clone)]
struct Task {
    /// It polls with each of these wakers.
    polls: Vec<Bugs>,
    /// It drops its port, with the verdicts still to come.
    leaves: bool,
}

fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let bugs = any::<[bool; 3]>().prop_map(|[wake_panics, drop_panics, payload_panics]| Bugs {
        wake_panics,
        drop_panics,
        payload_panics,
    });
    let polls = prop::collection::vec(bugs, 1..4);
    let task =
        (polls, prop::bool::weighted(0.3)).prop_map(|(polls, leaves)| Task { polls, leaves });
    prop::collection::vec(task, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn wakers_that_panic_affect_no_other_port(tasks in tasks(), stops_first: bool) {
        let (permit, permits) = channel::<()>();
        let gate = Stub::new(Arc::new(Mutex::new(permits)), |permits, _| {
            permits.lock().unwrap().recv().ok();
        });
        let builder = Engine::builder(gate.undivided()).ports(tasks.len() + 1);
        let (engine, mut ports) = builder.build().unwrap();
        let mut innocent = ports.pop().unwrap();
        innocent.submit(&[GOOD_KEY; 3]).unwrap();
        let mut verdicts = Verdicts::new();
        let mut waiting = Vec::new();
        for (mut port, task) in ports.into_iter().zip(&tasks) {
            port.submit(&[GOOD_KEY]).unwrap();
            for bugs in &task.polls {
                prop_assert_eq!(poll_with(*bugs, &mut port, &mut verdicts), Poll::Pending);
            }
            if !task.leaves {
                waiting.push(port);
            }
        }
        drop(permit);
        let mut engine = Some(engine);
        if stops_first {
            // The rings close while tasks may be waiting.
            prop_assert!(engine.take().unwrap().shutdown().is_ok());
        }
        for port in [&mut innocent].into_iter().chain(&mut waiting) {
            prop_assert_eq!(port.drain(&mut verdicts), Ok(true));
        }
        if let Some(engine) = engine {
            prop_assert_eq!(innocent.observe(&[GOOD_KEY], &mut verdicts), Ok(()));
            prop_assert!(engine.lost().is_empty());
            prop_assert!(engine.shutdown().is_ok());
        }
    }
}

/// Two filters that panic at one key, with a payload that panics when it is dropped.
fn explosive() -> Partitioned<Stub<()>> {
    let filter = Stub::new((), |(), keys| {
        if keys.contains(&BAD_KEY) {
            resume_unwind(Box::new(Payload { panics: true }));
        }
    });
    Partitioned::new(
        Partitioning::new(2, 2).unwrap(),
        vec![filter.clone(), filter],
    )
    .unwrap()
}

#[test]
fn the_payload_of_a_panic_may_panic_again() {
    let keys = [GOOD_KEY, BAD_KEY];
    let mut verdicts = Verdicts::new();
    let new = || explosive().into_parts().1.remove(1);

    let (engine, mut ports) = Engine::builder(explosive()).build().unwrap();
    for _ in 0..2 {
        let lost = ports[0].observe(&keys, &mut verdicts);
        assert_eq!(lost, Err(ExchangeError::Panicked(1)));
        assert!(ports[0].take_partial(&mut verdicts));
        assert!(verdicts.unknown().eq([1]));
        engine.replace(1, new()).unwrap();
    }
    ports[0].observe(&keys[..1], &mut verdicts).unwrap();
    engine.shutdown().unwrap();

    let builder = OrderedFilter::builder(explosive()).on_loss(LossPolicy::AsDuplicate);
    let filter = builder.build();
    for _ in 0..2 {
        filter.handle().observe(&keys, &mut verdicts).unwrap();
        assert!(verdicts.unknown().eq([1]));
        filter.replace(1, new()).unwrap();
    }
    filter.shutdown().unwrap();
}

/// A filter that panics when the shutdown moves its clock, with a payload that panics again.
#[test]
fn the_payload_of_a_panic_at_the_end_may_panic_again() {
    let unmovable = || {
        Stub::new((), |(), keys| {
            if keys.is_empty() {
                resume_unwind(Box::new(Payload { panics: true }));
            }
            resume_unwind(Box::new("lost once"));
        })
    };
    let whole = || unmovable().undivided();
    let mut verdicts = Verdicts::new();
    let expected = [(0, "a panic without a message".to_owned())];

    let (engine, mut ports) = Engine::builder(whole()).build().unwrap();
    ports[0].submit_at(1, &[GOOD_KEY]).unwrap();
    ports[0].drain(&mut verdicts).unwrap_err();
    engine.replace(0, unmovable()).unwrap();
    assert_eq!(engine.shutdown().err().unwrap().lost, expected);

    let filter = OrderedFilter::builder(whole()).build();
    let mut handle = filter.handle();
    let observed = handle.observe(Batch::at(&[GOOD_KEY], 1), &mut verdicts);
    observed.unwrap_err();
    filter.replace(0, unmovable()).unwrap();
    assert_eq!(filter.shutdown().err().unwrap().lost, expected);
}
