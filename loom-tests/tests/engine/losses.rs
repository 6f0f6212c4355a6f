//! Filters that panic: errors or unknown keys instead of waits without end, and a new filter that
//! takes over.

use echoless::{Engine, ExchangeError, LossPolicy, Port, Verdicts};
use echoless_loom::{Exact, PANICS, Preemptions, Sometimes, check, duplicates, unknown};
use loom::thread;

use super::{A, B, HIGH, held, start, start_with};

/// The partitions whose workers panicked.
fn lost_by(engine: Engine<Exact>) -> Vec<usize> {
    let error = engine.shutdown().expect_err("a worker panicked");
    error.lost.into_iter().map(|(index, _)| index).collect()
}

/// Verdicts answered before are returned first, then every call is an error (1 worker, 2 batches).
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

/// A batch of two partitions, one of which panics: one verdict, one unknown key, and later batches
/// are rejected (2 workers, 1 batch).
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
                assert_eq!(engine.counts().unknown, 1);
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
