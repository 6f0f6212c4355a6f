//! Ports and engines that come and go: a batch has its verdicts, or it is rejected and not
//! recorded.

use echoless::{ExchangeError, Port, Verdicts};
use echoless_loom::{Preemptions, Sometimes, check, duplicates};
use loom::sync::Arc;
use loom::thread;

use super::{A, B, held, start};

/// A batch submitted before is answered; a later one has its verdicts, or is rejected and not
/// recorded (1 worker, 2 batches).
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
                assert_eq!(error, ExchangeError::Disconnected(0));
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
            let lost = Err(ExchangeError::Disconnected(0));
            assert_eq!(port.observe(&[B], &mut verdicts), lost);
        },
    );
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
                    Err(error) => assert_eq!(error, ExchangeError::Disconnected(0)),
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

/// A report counts what had verdicts before it, and not more than was submitted, while a port
/// observes.
#[test]
fn report_while_observing() {
    static BEFORE: Sometimes = Sometimes::new();
    static AFTER: Sometimes = Sometimes::new();
    check("report_while_observing", Preemptions::AtMost(2), || {
        let (engine, mut ports) = start(1, 1);
        let mut port = ports.remove(0);
        let mut verdicts = Verdicts::new();
        port.observe(&[A], &mut verdicts).unwrap();
        let ingest = thread::spawn(move || port.observe(&[B], &mut Verdicts::new()));
        let fresh = engine.report().unwrap().tally.fresh.unwrap();
        ingest.join().unwrap().unwrap();
        assert!((1..=2).contains(&fresh), "{fresh}");
        assert_eq!(held(engine.shutdown().unwrap()), [A, B]);
        BEFORE.note(fresh == 1);
        AFTER.note(fresh == 2);
    });
    BEFORE.assert();
    AFTER.assert();
}

/// A report that races with the shutdown returns: with the counts, or that the worker is gone.
///
/// Catches a mailbox that keeps a question which it gets after it was closed.
#[test]
fn report_while_the_engine_ends() {
    static REPORTED: Sometimes = Sometimes::new();
    static GONE: Sometimes = Sometimes::new();
    check(
        "report_while_the_engine_ends",
        Preemptions::AtMost(2),
        || {
            let (engine, _) = start(1, 0);
            let engine = Arc::new(engine);
            let other = Arc::clone(&engine);
            let reporter = thread::spawn(move || other.report());
            engine.shutdown().expect("no worker panicked");
            let reported = reporter.join().unwrap();
            match &reported {
                Ok(report) => assert_eq!(report.tally.fresh, Some(0)),
                Err(error) => assert_eq!(*error, ExchangeError::Disconnected(0)),
            }
            REPORTED.note(reported.is_ok());
            GONE.note(reported.is_err());
        },
    );
    REPORTED.assert();
    GONE.assert();
}
