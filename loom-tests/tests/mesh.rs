//! Nodes of a mesh: each serves the other while it waits, in the order of the batch numbers.

#![cfg(loom)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use echoless::transport::Wait;
use echoless::{ExchangeError, KeyHash, LossPolicy, Mesh, Node, Verdicts};
use echoless_loom::{
    Exact, PANICS, Preemptions, Sometimes, check, duplicates, expected, key, unknown,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

const LOW: KeyHash = key(0, 1);
const LOWER: KeyHash = key(0, 2);
const LOWEST: KeyHash = key(0, 3);
const HIGH: KeyHash = key(1, 1);

/// Two nodes whose rings have room for one message.
fn two_nodes() -> (Node<Exact>, Node<Exact>) {
    two_nodes_with(LossPolicy::Error)
}

fn two_nodes_with(policy: LossPolicy) -> (Node<Exact>, Node<Exact>) {
    let mesh = Mesh::builder(Exact::partitions(2))
        .on_loss(policy)
        .ring_depth(1)
        .wait(Wait::Shared)
        .build()
        .expect("a small power of two");
    let mut nodes = mesh.into_nodes();
    let second = nodes.remove(1);
    (nodes.remove(0), second)
}

fn observe(node: &mut Node<Exact>, number: u64, batch: &[KeyHash]) -> Vec<bool> {
    let mut verdicts = Verdicts::new();
    node.observe(number, batch, &mut verdicts).unwrap();
    duplicates(&verdicts)
}

#[test]
fn mesh_of_two_serve_each_other() {
    const BATCHES: [&[KeyHash]; 2] = [&[LOW, HIGH], &[HIGH, LOW]];
    for first_submits in [0, 1] {
        check(
            &format!("mesh_of_two_serve_each_other, batch {first_submits} on the first thread"),
            Preemptions::AtMost(2),
            move || {
                let (mut first, mut second) = two_nodes();
                let (mine, other) = (first_submits, 1 - first_submits);
                let peer = thread::spawn(move || {
                    let answer = observe(&mut second, other as u64, BATCHES[other]);
                    (answer, second.finish().unwrap())
                });
                let answer = observe(&mut first, mine as u64, BATCHES[mine]);
                let low = first.finish().unwrap();
                let (peer_answer, high) = peer.join().unwrap();
                let mut answers = [answer, peer_answer];
                if mine == 1 {
                    answers.reverse();
                }
                assert_eq!(answers, *expected(&BATCHES));
                assert_eq!(low.0.into_iter().collect::<Vec<_>>(), [LOW]);
                assert_eq!(high.0.into_iter().collect::<Vec<_>>(), [HIGH]);
            },
        );
    }
}

/// Two nodes send the same key to a third one, which owns it: it is fresh in the batch with the
/// lower number, in any order of arrival of the messages. The owner waits for both nodes, and each
/// of them for the owner.
#[test]
fn mesh_of_three_in_the_order_of_the_batches() {
    const BATCHES: [&[KeyHash]; 3] = [&[LOW], &[LOW, LOWER], &[LOWER, LOW]];
    for (owner, one, other) in [(0, 1, 2), (2, 1, 0)] {
        check(
            &format!("mesh_of_three_in_the_order_of_the_batches, batch {owner} at the owner"),
            Preemptions::AtMost(0),
            move || {
                let mesh = Mesh::builder(Exact::partitions(3))
                    .ring_depth(1)
                    .wait(Wait::Shared)
                    .build()
                    .expect("a small power of two");
                let mut nodes = mesh.into_nodes();
                let peers = [(other, nodes.remove(2)), (one, nodes.remove(1))];
                let peers = peers.map(|(number, mut node)| {
                    thread::spawn(move || {
                        let answer = observe(&mut node, number as u64, BATCHES[number]);
                        node.finish().unwrap();
                        (number, answer)
                    })
                });
                let mut first = nodes.remove(0);
                let mut answers = vec![(owner, observe(&mut first, owner as u64, BATCHES[owner]))];
                let low = first.finish().unwrap();
                answers.extend(peers.map(|peer| peer.join().unwrap()));
                answers.sort();
                let answers: Vec<_> = answers.into_iter().map(|(_, answer)| answer).collect();
                assert_eq!(answers, *expected(&BATCHES));
                assert_eq!(low.0.len(), 2);
            },
        );
    }
}

/// A batch with more keys for one partition than fit in a message (two under loom).
#[test]
fn mesh_batch_of_two_messages() {
    const BATCHES: [&[KeyHash]; 2] = [&[LOW, LOWER, LOW], &[LOWER, LOW, LOWEST]];
    for first_submits in [0, 1] {
        check(
            &format!("mesh_batch_of_two_messages, batch {first_submits} on the first thread"),
            Preemptions::AtMost(1),
            move || {
                let (mut first, mut second) = two_nodes();
                let (mine, other) = (first_submits, 1 - first_submits);
                let peer = thread::spawn(move || {
                    let answer = observe(&mut second, other as u64, BATCHES[other]);
                    second.finish().unwrap();
                    answer
                });
                let answer = observe(&mut first, mine as u64, BATCHES[mine]);
                let low = first.finish().unwrap();
                let mut answers = [answer, peer.join().unwrap()];
                if mine == 1 {
                    answers.reverse();
                }
                assert_eq!(answers, *expected(&BATCHES));
                assert_eq!(low.0.len(), 3);
            },
        );
    }
}

/// The node has no room for its second batch before its peer answers the first. The peer, whose
/// batch is due first, has no room for its second message before the node serves the first.
#[test]
fn mesh_serves_while_it_waits_for_room() {
    const BATCHES: [&[KeyHash]; 3] = [&[LOW, LOWER, LOW], &[LOW, HIGH], &[HIGH]];
    check(
        "mesh_serves_while_it_waits_for_room",
        Preemptions::AtMost(1),
        || {
            let (mut first, mut second) = two_nodes();
            let peer = thread::spawn(move || {
                let answer = observe(&mut second, 0, BATCHES[0]);
                second.finish().unwrap();
                answer
            });
            let mut answers = Vec::new();
            let mut verdicts = Verdicts::new();
            for number in [1, 2] {
                first.submit(number as u64, BATCHES[number]).unwrap();
            }
            while first.drain(&mut verdicts).unwrap() {
                answers.push(duplicates(&verdicts));
            }
            first.finish().unwrap();
            answers.insert(0, peer.join().unwrap());
            assert_eq!(answers, expected(&BATCHES));
        },
    );
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
                        Some(ExchangeError::Peer(1) | ExchangeError::Partition(1))
                    ),
                    "{lost:?}"
                );
                peer.join().unwrap();
            },
        );
    }
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
                Err(ExchangeError::Peer(1) | ExchangeError::Partition(1))
            ),
            "{answer:?}"
        );
        AT_THE_SERVER.note(answer == Err(ExchangeError::Peer(1)));
        AT_THE_PORT.note(answer == Err(ExchangeError::Partition(1)));
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
                        matches!(lost, ExchangeError::Peer(1) | ExchangeError::Partition(1)),
                        "{lost}"
                    );
                    assert_eq!(first.observe(2, &[], &mut verdicts), Err(lost));
                }
            }
            assert!(matches!(
                first.finish(),
                Err(ExchangeError::Peer(1) | ExchangeError::Partition(1))
            ));
            peer.join().unwrap();
            ANSWERED.note(answer.is_ok());
            LOST.note(answer.is_err());
        },
    );
    ANSWERED.assert();
    LOST.assert();
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
                ExchangeError::Partition(1),
            ]
            .map(Some);
            assert!(expected.contains(&lost), "{lost:?}");
            drop(first);
            let lost = peer.join().unwrap();
            let expected = [
                ExchangeError::MissingBatch(0),
                ExchangeError::Peer(0),
                ExchangeError::Partition(0),
            ]
            .map(Some);
            assert!(expected.contains(&lost), "{lost:?}");
        },
    );
}

/// The first batch has no key of the node that waits, so its end is only hinted; the second one, of
/// another thread than the first, has one.
#[test]
fn mesh_batch_without_keys_is_hinted() {
    check(
        "mesh_batch_without_keys_is_hinted",
        Preemptions::AtMost(2),
        || {
            let (mut first, mut second) = two_nodes();
            let peer = thread::spawn(move || {
                assert_eq!(observe(&mut second, 1, &[LOW]), [false]);
                second.finish().unwrap()
            });
            assert_eq!(observe(&mut first, 0, &[]), [false; 0]);
            let low = first.finish().unwrap();
            assert_eq!(low.0.into_iter().collect::<Vec<_>>(), [LOW]);
            assert!(peer.join().unwrap().0.is_empty());
        },
    );
}

#[test]
fn mesh_serves_until_woken() {
    check("mesh_serves_until_woken", Preemptions::AtMost(1), || {
        let (mut waiting, mut busy) = two_nodes();
        let done = Arc::new(AtomicBool::new(false));
        let (doorbell, signal) = (waiting.doorbell(), Arc::clone(&done));
        let peer = thread::spawn(move || {
            assert_eq!(
                observe(&mut busy, 0, &[LOW, HIGH, LOW]),
                [false, false, true]
            );
            signal.store(true, Ordering::Release);
            doorbell.wake();
            busy.finish().unwrap()
        });
        waiting
            .serve_until(|| done.load(Ordering::Acquire))
            .unwrap();
        let low = waiting.finish().unwrap();
        assert_eq!(low.0.into_iter().collect::<Vec<_>>(), [LOW]);
        let high = peer.join().unwrap();
        assert_eq!(high.0.into_iter().collect::<Vec<_>>(), [HIGH]);
    });
}

/// As before, where the node that waits has a batch of its own in flight: it comes first, or the
/// other condition does.
#[test]
fn mesh_serves_until_ready() {
    static READY: Sometimes = Sometimes::new();
    static WOKEN: Sometimes = Sometimes::new();
    check("mesh_serves_until_ready", Preemptions::AtMost(1), || {
        let (mut waiting, mut busy) = two_nodes();
        let done = Arc::new(AtomicBool::new(false));
        let (doorbell, signal) = (waiting.doorbell(), Arc::clone(&done));
        let peer = thread::spawn(move || {
            signal.store(true, Ordering::Release);
            doorbell.wake();
            assert_eq!(observe(&mut busy, 1, &[LOW, HIGH]), [true, true]);
            busy.finish().unwrap()
        });
        let mut verdicts = Verdicts::new();
        waiting.submit(0, &[LOW, HIGH]).unwrap();
        waiting
            .serve_until_ready(|| done.load(Ordering::Acquire))
            .unwrap();
        let is_ready = waiting.poll(&mut verdicts).unwrap();
        READY.note(is_ready);
        WOKEN.note(!is_ready);
        if !is_ready {
            waiting.serve_until_ready(|| false).unwrap();
            assert!(waiting.poll(&mut verdicts).unwrap());
        }
        assert_eq!(verdicts.to_bools(), [false, false]);
        let low = waiting.finish().unwrap();
        assert_eq!(low.0.into_iter().collect::<Vec<_>>(), [LOW]);
        let high = peer.join().unwrap();
        assert_eq!(high.0.into_iter().collect::<Vec<_>>(), [HIGH]);
    });
    READY.assert();
    WOKEN.assert();
}

/// The first node goes on to be used after its caller caught the panic of its filter.
#[test]
fn mesh_caught_panic_is_error() {
    static APPLIED: Sometimes = Sometimes::new();
    static UNKNOWN: Sometimes = Sometimes::new();
    check("mesh_caught_panic_is_error", Preemptions::AtMost(2), || {
        let (mut first, mut second) = two_nodes();
        let lost = ExchangeError::Panicked(0);
        let peer = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            let answer = second.observe(1, &[LOW, HIGH], &mut verdicts);
            assert_eq!(answer, Err(lost));
            assert!(verdicts.is_empty());
            assert_eq!(second.submit(2, &[HIGH]), Err(lost));
            let applied = second.take_partial(&mut verdicts) && {
                assert!(verdicts.is_unknown(0));
                !verdicts.is_unknown(1)
            };
            if applied {
                // After batch 0, or not at all.
                assert!(verdicts.is_duplicate(1));
            }
            APPLIED.note(applied);
            UNKNOWN.note(!applied);
            second
        });
        let mut verdicts = Verdicts::new();
        let observed = catch_unwind(AssertUnwindSafe(|| {
            first.observe(0, &[PANICS, HIGH], &mut verdicts)
        }));
        assert!(observed.unwrap_err().is::<KeyHash>());
        assert_eq!(first.poll(&mut verdicts), Err(lost));
        assert_eq!(first.serve_until(|| false), Err(lost));
        assert!(first.take_partial(&mut verdicts));
        assert!(verdicts.is_unknown(0));
        let second = peer.join().unwrap();
        assert!(first.into_filter().is_none());
        assert!(second.into_filter().is_some());
    });
    APPLIED.assert();
    UNKNOWN.assert();
}

/// The first node loses its filter and gets a new one, while its peer submits the next batch.
#[test]
fn mesh_goes_on_without_a_filter() {
    static KNOWN: Sometimes = Sometimes::new();
    static UNKNOWN: Sometimes = Sometimes::new();
    check(
        "mesh_goes_on_without_a_filter",
        Preemptions::AtMost(1),
        || {
            let (mut first, mut second) = two_nodes_with(LossPolicy::AsFresh);
            let peer = thread::spawn(move || {
                let mut verdicts = Verdicts::new();
                second.observe(1, &[LOW, HIGH], &mut verdicts).unwrap();
                assert_eq!(duplicates(&verdicts), [false, true]);
                assert!(!verdicts.is_unknown(1));
                second.finish().unwrap();
                verdicts.is_unknown(0)
            });
            let mut verdicts = Verdicts::new();
            first.observe(0, &[PANICS, HIGH], &mut verdicts).unwrap();
            assert_eq!(duplicates(&verdicts), [false, false]);
            assert_eq!(unknown(&verdicts), [true, false]);
            first.replace(Exact::default()).unwrap();
            let low = first.finish().unwrap();
            let unknown = peer.join().unwrap();
            assert_eq!(low.0.contains(&LOW), !unknown);
            KNOWN.note(!unknown);
            UNKNOWN.note(unknown);
        },
    );
    KNOWN.assert();
    UNKNOWN.assert();
}
