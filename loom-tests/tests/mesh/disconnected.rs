//! Peers that are dropped, and numbers that are missing or used twice: both nodes are woken, and
//! return errors.

use echoless::{ExchangeError, Node, Verdicts};
use echoless_loom::{Exact, Preemptions, Sometimes, check, duplicates};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::{HIGH, LOW, observe, two_nodes};

#[test]
fn mesh_node_dropped_is_error() {
    static AT_THE_SERVER: Sometimes = Sometimes::new();
    static AT_THE_PORT: Sometimes = Sometimes::new();
    check("mesh_node_dropped_is_error", Preemptions::AtMost(2), || {
        let (mut first, second) = two_nodes();
        // Batch 0 is the peer's, which never submits it.
        let peer = thread::spawn(move || drop(second));
        let answer = first.observe(1, &[LOW, HIGH], &mut Verdicts::new());
        assert!(
            matches!(
                answer,
                Err(ExchangeError::Peer(1) | ExchangeError::Disconnected(1))
            ),
            "{answer:?}"
        );
        AT_THE_SERVER.note(answer == Err(ExchangeError::Peer(1)));
        AT_THE_PORT.note(answer == Err(ExchangeError::Disconnected(1)));
        peer.join().unwrap();
    });
    AT_THE_SERVER.assert();
    AT_THE_PORT.assert();
}

/// The peer submits its batch and is dropped without finishing. Its answers are returned, and
/// `finish` is an error.
#[test]
fn mesh_node_dropped_after_its_batch_is_error() {
    static ANSWERED: Sometimes = Sometimes::new();
    static LOST: Sometimes = Sometimes::new();
    check(
        "mesh_node_dropped_after_its_batch_is_error",
        Preemptions::AtMost(2),
        || {
            let (mut first, mut second) = two_nodes();
            let peer = thread::spawn(move || {
                assert_eq!(observe(&mut second, 0, &[LOW]), [false]);
            });
            let mut verdicts = Verdicts::new();
            let answer = first.observe(1, &[LOW, HIGH], &mut verdicts);
            match answer {
                Ok(()) => assert_eq!(duplicates(&verdicts), [true, false]),
                Err(lost) => {
                    assert!(
                        matches!(
                            lost,
                            ExchangeError::Peer(1) | ExchangeError::Disconnected(1)
                        ),
                        "{lost}"
                    );
                    assert_eq!(first.observe(2, &[], &mut verdicts), Err(lost));
                }
            }
            assert!(matches!(
                first.finish(),
                Err(ExchangeError::Peer(1) | ExchangeError::Disconnected(1))
            ));
            peer.join().unwrap();
            ANSWERED.note(answer.is_ok());
            LOST.note(answer.is_err());
        },
    );
    ANSWERED.assert();
    LOST.assert();
}

/// A node in `serve_until` or `finish` returns an error when its peer is dropped without finishing.
#[test]
fn mesh_node_dropped_wakes_idle() {
    type Idle = fn(Node<Exact>) -> Option<ExchangeError>;
    let waits: [(&str, Idle); 2] = [
        ("serve_until", |mut node| node.serve_until(|| false).err()),
        ("finish", |node| node.finish().err()),
    ];
    for (name, wait) in waits {
        check(
            &format!("mesh_node_dropped_wakes_idle, {name}"),
            Preemptions::AtMost(2),
            move || {
                let (first, second) = two_nodes();
                let peer = thread::spawn(move || drop(second));
                let lost = wait(first);
                assert!(
                    matches!(
                        lost,
                        Some(ExchangeError::Peer(1) | ExchangeError::Disconnected(1))
                    ),
                    "{lost:?}"
                );
                peer.join().unwrap();
            },
        );
    }
}

#[test]
fn mesh_missing_batch_is_error() {
    check(
        "mesh_missing_batch_is_error",
        Preemptions::AtMost(2),
        || {
            let (mut first, second) = two_nodes();
            // No node submits batch 0. The node that fails first is disconnected for the other.
            let peer = thread::spawn(move || second.finish().err());
            let lost = first.observe(1, &[LOW], &mut Verdicts::new()).err();
            let expected = [
                ExchangeError::MissingBatch(0),
                ExchangeError::Peer(1),
                ExchangeError::Disconnected(1),
            ]
            .map(Some);
            assert!(expected.contains(&lost), "{lost:?}");
            drop(first);
            let lost = peer.join().unwrap();
            let expected = [
                ExchangeError::MissingBatch(0),
                ExchangeError::Peer(0),
                ExchangeError::Disconnected(0),
            ]
            .map(Some);
            assert!(expected.contains(&lost), "{lost:?}");
        },
    );
}

/// Both nodes submit batch 0.
#[test]
fn mesh_repeated_batch_is_error() {
    check(
        "mesh_repeated_batch_is_error",
        Preemptions::AtMost(1),
        || {
            fn submit(mut node: Node<Exact>) -> ExchangeError {
                let observed = node.observe(0, &[LOW, HIGH], &mut Verdicts::new());
                observed
                    .and_then(|()| node.finish().map(|_| ()))
                    .expect_err("the other node submits batch 0 as well")
            }
            let (first, second) = two_nodes();
            let peer = thread::spawn(move || submit(second));
            let lost = [submit(first), peer.join().unwrap()];
            assert!(lost.contains(&ExchangeError::Repeated(0)), "{lost:?}");
        },
    );
}

/// A node is in `finish` when its peer submits the number of one of its batches again.
#[test]
fn mesh_repeated_batch_wakes_idle() {
    check(
        "mesh_repeated_batch_wakes_idle",
        Preemptions::AtMost(1),
        || {
            let (mut first, mut second) = two_nodes();
            let done = Arc::new(AtomicBool::new(false));
            let (doorbell, signal) = (second.doorbell(), Arc::clone(&done));
            let peer = thread::spawn(move || {
                let served = second.serve_until(|| done.load(Ordering::Acquire));
                served.and_then(|()| second.observe(0, &[LOW], &mut Verdicts::new()))
            });
            assert_eq!(observe(&mut first, 0, &[HIGH]), [false]);
            signal.store(true, Ordering::Release);
            doorbell.wake();
            let finished = first.finish().map(|_| ());
            let again = peer.join().unwrap();
            let lost =
                [finished, again].map(|result| result.expect_err("batch 0 was submitted twice"));
            assert!(lost.contains(&ExchangeError::Repeated(0)), "{lost:?}");
        },
    );
}
