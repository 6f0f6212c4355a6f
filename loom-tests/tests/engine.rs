//! Ports and the workers of an engine: how keys and verdicts are handed over, and the outcome when
//! one side ends.

#![cfg(loom)]

use std::future::poll_fn;
use std::sync::Arc;

use echoless::transport::Wait;
use echoless::{Engine, ExchangeError, KeyHash, LossPolicy, Partitioned, Port, Verdicts};
use echoless_loom::{
    Exact, PANICS, Preemptions, Sometimes, check, duplicates, expected, key, unknown,
};
use loom::thread;

const A: KeyHash = key(0, 1);
const B: KeyHash = key(0, 2);
const HIGH: KeyHash = key(1, 1);

/// An engine whose rings have room for one message.
fn start(workers: usize, ports: usize) -> (Engine<Exact>, Vec<Port>) {
    start_with(LossPolicy::Error, workers, ports)
}

fn start_with(policy: LossPolicy, workers: usize, ports: usize) -> (Engine<Exact>, Vec<Port>) {
    Engine::builder(Exact::partitions(workers))
        .on_loss(policy)
        .ports(ports)
        .ring_depth(1)
        .wait(Wait::Shared)
        .build()
        .expect("loom starts threads")
}

/// The keys that the partitions hold, sorted.
fn held(filter: Partitioned<Exact>) -> Vec<KeyHash> {
    let (_, parts) = filter.into_parts();
    let mut keys: Vec<_> = parts.into_iter().flat_map(|part| part.0).collect();
    keys.sort();
    keys
}

/// The partitions whose workers panicked.
fn lost_by(engine: Engine<Exact>) -> Vec<usize> {
    let error = engine.shutdown().expect_err("a worker panicked");
    error.lost.into_iter().map(|(index, _)| index).collect()
}

fn hand_over(
    property: &str,
    workers: usize,
    preemptions: Preemptions,
    batches: &'static [&[KeyHash]],
    shut_down: bool,
) {
    check(property, preemptions, move || {
        let (engine, mut ports) = start(workers, 1);
        let mut port = ports.remove(0);
        let mut verdicts = Verdicts::new();
        let mut answers = Vec::new();
        for batch in batches {
            port.submit(batch).unwrap();
        }
        while port.drain(&mut verdicts).unwrap() {
            answers.push(duplicates(&verdicts));
        }
        assert_eq!(answers, expected(batches));
        assert_eq!(port.in_flight(), 0);
        drop(port);
        if !shut_down {
            return;
        }
        let mut keys = batches.concat();
        keys.sort();
        keys.dedup();
        assert_eq!(held(engine.shutdown().unwrap()), keys);
    });
}

#[test]
fn port_and_server_hand_over() {
    hand_over(
        "port_and_server_hand_over",
        1,
        Preemptions::AtMost(2),
        &[&[A, B], &[B]],
        true,
    );
}

#[test]
fn port_and_two_servers_hand_over() {
    hand_over(
        "port_and_two_servers_hand_over, 2 batches",
        2,
        Preemptions::AtMost(0),
        &[&[A, HIGH, A], &[HIGH]],
        true,
    );
    // Drops the engine: joining its workers as well makes the model too large for loom.
    hand_over(
        "port_and_two_servers_hand_over, 1 batch",
        2,
        Preemptions::AtMost(1),
        &[&[A, HIGH]],
        false,
    );
}

/// A pass counts its keys before its duplicates, and both before its answers.
#[test]
fn counts_of_a_running_engine() {
    let between = Arc::new(Sometimes::new());
    let noted = Arc::clone(&between);
    let property = "counts_of_a_running_engine";
    check(property, Preemptions::AtMost(2), move || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        port.submit(&[A, A]).unwrap();
        let early = engine.counts();
        assert!(early.duplicates <= early.judged, "{early:?}");
        noted.note((early.judged, early.duplicates) == (2, 0));
        assert_eq!(port.drain(&mut Verdicts::new()), Ok(true));
        let counts = engine.counts();
        assert_eq!((counts.judged, counts.duplicates), (2, 1));
    });
    between.assert();
}

/// More keys than fit in a message (two under loom) and room for one message: the port wakes the
/// server before it blocks for room.
#[test]
fn batch_of_two_messages() {
    hand_over(
        "batch_of_two_messages",
        1,
        Preemptions::AtMost(2),
        &[&[A, B, A]],
        false,
    );
}

/// As [`batch_of_two_messages`], in a task: what has no room is sent when the port is polled.
#[test]
fn task_and_server_hand_over() {
    check("task_and_server_hand_over", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        let mut verdicts = Verdicts::new();
        let mut answers = Vec::new();
        let batches: [&[KeyHash]; 2] = [&[A, B, A], &[B]];
        loom::future::block_on(async {
            for batch in batches {
                poll_fn(|context| port.poll_ready(context)).await.unwrap();
                assert_eq!(port.try_submit(batch), Ok(true));
            }
            while poll_fn(|context| port.poll_drain(context, &mut verdicts))
                .await
                .unwrap()
            {
                answers.push(duplicates(&verdicts));
            }
        });
        assert_eq!(answers, expected(&batches));
        drop(port);
        drop(engine);
    });
}

/// Room that messages without keys leave is only hinted, and a task waits for that, too.
#[test]
fn task_waits_for_hinted_room() {
    check("task_waits_for_hinted_room", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let port = &mut ports[0];
        let mut verdicts = Verdicts::new();
        for tick in 1..=3 {
            assert_eq!(port.try_submit_at(tick, &[]), Ok(true));
            loom::future::block_on(poll_fn(|context| port.poll_ready(context))).unwrap();
            assert_eq!(port.poll(&mut verdicts), Ok(true));
        }
        drop(ports);
        drop(engine);
    });
}

/// A task that waits for verdicts is woken by the end of the engine.
#[test]
fn task_and_shutdown() {
    static JUDGED: Sometimes = Sometimes::new();
    static LOST: Sometimes = Sometimes::new();
    check("task_and_shutdown", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        let waiting = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            let submitted = port.try_submit(&[A, B, A]);
            let drained =
                loom::future::block_on(poll_fn(|context| port.poll_drain(context, &mut verdicts)));
            match (submitted, drained) {
                (Ok(true), Ok(true)) => {
                    assert_eq!(duplicates(&verdicts), [false, false, true]);
                    true
                }
                (Ok(true) | Err(_), Err(_)) => false,
                outcome => panic!("{outcome:?}"),
            }
        });
        engine.shutdown().unwrap();
        let judged = waiting.join().unwrap();
        JUDGED.note(judged);
        LOST.note(!judged);
    });
    JUDGED.assert();
    LOST.assert();
}

#[test]
fn ports_one_fresh() {
    static FIRST: Sometimes = Sometimes::new();
    static SECOND: Sometimes = Sometimes::new();
    fn observe(mut port: Port) -> bool {
        let mut verdicts = Verdicts::new();
        port.observe(&[A], &mut verdicts).unwrap();
        !verdicts.is_duplicate(0)
    }
    check("ports_one_fresh", Preemptions::AtMost(1), || {
        let (engine, mut ports) = start(1, 2);
        let (second, first) = (ports.remove(1), ports.remove(0));
        let peer = thread::spawn(move || observe(second));
        let fresh = observe(first);
        assert_ne!(fresh, peer.join().unwrap(), "exactly one port gets Fresh");
        assert_eq!(held(engine.shutdown().unwrap()), [A]);
        FIRST.note(fresh);
        SECOND.note(!fresh);
    });
    FIRST.assert();
    SECOND.assert();
}

#[test]
fn shutdown_while_submitting() {
    static ANSWERED: Sometimes = Sometimes::new();
    static LOST: Sometimes = Sometimes::new();
    check("shutdown_while_submitting", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        port.submit(&[A]).unwrap();
        let ingest = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            assert_eq!(port.drain(&mut verdicts), Ok(true), "submitted before");
            assert_eq!(duplicates(&verdicts), [false]);
            let second = port.observe(&[B, A], &mut verdicts);
            let answer = duplicates(&verdicts);
            assert_eq!(port.drain(&mut verdicts), second.map(|()| false));
            (second, answer)
        });
        let filter = engine.shutdown().expect("no worker panicked");
        let (second, verdicts) = ingest.join().unwrap();
        match second {
            Ok(()) => {
                assert_eq!(verdicts, [false, true]);
                assert_eq!(held(filter), [A, B]);
            }
            Err(error) => {
                assert_eq!(error, ExchangeError::Partition(0));
                assert_eq!(held(filter), [A], "a rejected batch is not recorded");
            }
        }
        ANSWERED.note(second.is_ok());
        LOST.note(second.is_err());
    });
    ANSWERED.assert();
    LOST.assert();
}

/// A worker ends although a port of its engine still exists, and answers what another thread
/// submitted before.
#[test]
fn shutdown_answers_what_was_submitted() {
    check(
        "shutdown_answers_what_was_submitted",
        Preemptions::AtMost(2),
        || {
            let (engine, mut ports) = start(1, 1);
            let mut port = ports.remove(0);
            let ingest = thread::spawn(move || {
                port.submit(&[A]).unwrap();
                port
            });
            let mut port = ingest.join().unwrap();
            assert_eq!(held(engine.shutdown().unwrap()), [A]);
            let mut verdicts = Verdicts::new();
            assert_eq!(port.drain(&mut verdicts), Ok(true));
            assert_eq!(duplicates(&verdicts), [false]);
            let lost = Err(ExchangeError::Partition(0));
            assert_eq!(port.observe(&[B], &mut verdicts), lost);
        },
    );
}

#[test]
fn worker_panic_is_error() {
    check("worker_panic_is_error", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        let mut verdicts = Verdicts::new();
        let lost = ExchangeError::Panicked(0);
        port.submit(&[A, A]).unwrap();
        port.submit(&[PANICS]).unwrap();
        assert_eq!(port.drain(&mut verdicts), Ok(true), "answered before");
        assert_eq!(duplicates(&verdicts), [false, true]);
        assert_eq!(port.drain(&mut verdicts), Err(lost));
        assert_eq!(port.poll(&mut verdicts), Err(lost));
        assert_eq!(port.submit(&[B]), Err(lost));
        assert_eq!(port.observe(&[B], &mut verdicts), Err(lost));
        assert_eq!(lost_by(engine), [0]);
    });
}

/// One port submits the key at which the worker panics, while the other port blocks for an answer
/// or for room.
#[test]
fn worker_panic_is_error_at_every_port() {
    static ANSWERED: Sometimes = Sometimes::new();
    static LOST: Sometimes = Sometimes::new();
    check(
        "worker_panic_is_error_at_every_port",
        Preemptions::AtMost(1),
        || {
            let (engine, mut ports) = start(1, 2);
            let (mut second, mut first) = (ports.remove(1), ports.remove(0));
            let lost = ExchangeError::Panicked(0);
            let peer = thread::spawn(move || {
                let mut verdicts = Verdicts::new();
                assert_eq!(second.observe(&[PANICS], &mut verdicts), Err(lost));
            });
            let mut verdicts = Verdicts::new();
            let answer = first.observe(&[A], &mut verdicts);
            assert!(answer == Err(lost) || duplicates(&verdicts) == [false]);
            peer.join().unwrap();
            assert_eq!(first.submit(&[B]), Err(lost));
            assert_eq!(first.drain(&mut verdicts), Err(lost));
            assert_eq!(lost_by(engine), [0]);
            ANSWERED.note(answer.is_ok());
            LOST.note(answer.is_err());
        },
    );
    ANSWERED.assert();
    LOST.assert();
}

#[test]
fn lost_partition_leaves_the_other_verdicts() {
    check(
        "lost_partition_leaves_the_other_verdicts",
        Preemptions::AtMost(1),
        || {
            let (_engine, mut ports) = start(2, 1);
            let mut port = ports.remove(0);
            let mut verdicts = Verdicts::new();
            let lost = Err(ExchangeError::Panicked(0));
            assert_eq!(port.observe(&[HIGH, PANICS], &mut verdicts), lost);
            assert!(verdicts.is_empty());
            assert!(port.take_partial(&mut verdicts));
            assert_eq!(duplicates(&verdicts), [false, false]);
            assert_eq!(unknown(&verdicts), [false, true]);
            assert_eq!(port.submit(&[HIGH]), lost);
            assert_eq!(port.in_flight(), 0);
        },
    );
}

/// A batch that is submitted after the replacement is judged by the new filter, although the worker
/// is parked and not woken by the replacement.
#[test]
fn replaced_partition_goes_on() {
    for policy in [LossPolicy::Error, LossPolicy::AsDuplicate] {
        check(
            &format!("replaced_partition_goes_on, {policy:?}"),
            Preemptions::AtMost(2),
            move || {
                let (engine, mut ports) = start_with(policy, 1, 1);
                let mut port = ports.remove(0);
                let mut verdicts = Verdicts::new();
                let observed = port.observe(&[PANICS], &mut verdicts);
                if policy == LossPolicy::Error {
                    assert_eq!(observed, Err(ExchangeError::Panicked(0)));
                    assert!(port.take_partial(&mut verdicts));
                } else {
                    assert_eq!((observed, duplicates(&verdicts)), (Ok(()), vec![true]));
                }
                assert_eq!(unknown(&verdicts), [true]);
                engine.replace(0, Exact::default()).unwrap();
                port.observe(&[A, A], &mut verdicts).unwrap();
                assert_eq!(duplicates(&verdicts), [false, true]);
                assert_eq!(unknown(&verdicts), [false, false]);
                assert_eq!(engine.unknown_keys(), 1);
                assert_eq!(held(engine.shutdown().unwrap()), [A]);
            },
        );
    }
}

/// A port submits a key while its partition is replaced: the key has a verdict exactly if the new
/// filter recorded it, so over both ports one known verdict is Fresh.
#[test]
fn replace_while_submitting() {
    static KNOWN: Sometimes = Sometimes::new();
    static UNKNOWN: Sometimes = Sometimes::new();
    fn submit(mut port: Port) -> bool {
        let mut verdicts = Verdicts::new();
        port.observe(&[A], &mut verdicts).unwrap();
        assert_eq!(duplicates(&verdicts), [false]);
        verdicts.is_unknown(0)
    }
    for replaces in ["first", "second"] {
        check(
            &format!("replace_while_submitting, replaced on the {replaces} thread"),
            Preemptions::AtMost(1),
            move || {
                let (engine, mut ports) = start_with(LossPolicy::AsFresh, 1, 2);
                let (second, mut first) = (ports.remove(1), ports.remove(0));
                let mut verdicts = Verdicts::new();
                first.observe(&[PANICS], &mut verdicts).unwrap();
                let (unknown, _engine) = if replaces == "first" {
                    let peer = thread::spawn(move || submit(second));
                    engine.replace(0, Exact::default()).unwrap();
                    (peer.join().unwrap(), engine)
                } else {
                    let peer = thread::spawn(move || {
                        engine.replace(0, Exact::default()).unwrap();
                        engine
                    });
                    (submit(second), peer.join().unwrap())
                };
                first.observe(&[A], &mut verdicts).unwrap();
                assert_eq!(duplicates(&verdicts), [!unknown]);
                assert!(!verdicts.is_unknown(0));
                KNOWN.note(!unknown);
                UNKNOWN.note(unknown);
            },
        );
    }
    KNOWN.assert();
    UNKNOWN.assert();
}

/// Two messages in a ring with room for both: the worker may take the first while the second is
/// published, and must apply that, too.
#[test]
fn second_message_is_noticed() {
    check("second_message_is_noticed", Preemptions::AtMost(2), || {
        let (_engine, mut ports) = Engine::builder(Exact::partitions(1))
            .ring_depth(2)
            .wait(Wait::Shared)
            .build()
            .expect("loom starts threads");
        let mut verdicts = Verdicts::new();
        ports[0].submit(&[A]).unwrap();
        ports[0].submit(&[A]).unwrap();
        for duplicate in [false, true] {
            assert_eq!(ports[0].drain(&mut verdicts), Ok(true));
            assert_eq!(duplicates(&verdicts), [duplicate]);
        }
    });
}

/// A port attaches and submits while its engine is shut down or dropped: its batch is judged, or it
/// is an error.
#[test]
fn attach_while_the_engine_ends() {
    static JUDGED: Sometimes = Sometimes::new();
    static REJECTED: Sometimes = Sometimes::new();
    for shut_down in [true, false] {
        check(
            &format!("attach_while_the_engine_ends, shut down: {shut_down}"),
            Preemptions::AtMost(1),
            move || {
                let (engine, _) = start(1, 0);
                let attacher = engine.attacher();
                let client = thread::spawn(move || {
                    let mut port = attacher.attach().unwrap();
                    let mut verdicts = Verdicts::new();
                    let observed = port.observe(&[A], &mut verdicts);
                    (observed, duplicates(&verdicts))
                });
                let filter = if shut_down {
                    Some(engine.shutdown().expect("no worker panicked"))
                } else {
                    drop(engine);
                    None
                };
                let (observed, answer) = client.join().unwrap();
                match observed {
                    Ok(()) => assert_eq!(answer, [false]),
                    Err(error) => assert_eq!(error, ExchangeError::Partition(0)),
                }
                if let Some(filter) = filter {
                    assert_eq!(held(filter).is_empty(), observed.is_err());
                }
                JUDGED.note(observed.is_ok());
                REJECTED.note(observed.is_err());
            },
        );
    }
    JUDGED.assert();
    REJECTED.assert();
}

/// A port attaches while another one, whose index it may get, submits the same key and is dropped.
#[test]
fn attach_while_a_port_is_dropped() {
    static FIRST: Sometimes = Sometimes::new();
    static SECOND: Sometimes = Sometimes::new();
    check(
        "attach_while_a_port_is_dropped",
        Preemptions::AtMost(1),
        || {
            fn observe(mut port: Port) -> bool {
                let mut verdicts = Verdicts::new();
                port.observe(&[A], &mut verdicts).unwrap();
                !verdicts.is_duplicate(0)
            }
            let (engine, mut ports) = start(1, 1);
            let first = ports.remove(0);
            let attacher = engine.attacher();
            let client = thread::spawn(move || observe(attacher.attach().unwrap()));
            let fresh = observe(first);
            assert_ne!(fresh, client.join().unwrap(), "exactly one port gets Fresh");
            FIRST.note(fresh);
            SECOND.note(!fresh);
        },
    );
    FIRST.assert();
    SECOND.assert();
}
