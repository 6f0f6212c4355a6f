//! Nodes of a mesh: each serves the other while it waits, in the order of the numbers.

#![cfg(loom)]

use echoless::transport::Wait;
use echoless::{KeyHash, Lost, Mesh, Node, Verdicts};
use echoless_loom::{Exact, Preemptions, Sometimes, check, expected, heard, key};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

const LOW: KeyHash = key(0, 1);
const HIGH: KeyHash = key(1, 1);

/// Two nodes whose rings have room for one message.
fn two_nodes() -> (Node<Exact>, Node<Exact>) {
    let mut nodes = Mesh::new()
        .ring_depth(1)
        .wait(Wait::Shared)
        .nodes(Exact::partitions(2))
        .expect("a small power of two");
    let second = nodes.remove(1);
    (nodes.remove(0), second)
}

fn observe(node: &mut Node<Exact>, number: u64, batch: &[KeyHash]) -> Vec<bool> {
    let mut verdicts = Verdicts::new();
    node.observe(number, batch, &mut verdicts).unwrap();
    heard(&verdicts)
}

#[test]
fn mesh_of_two_serve_each_other() {
    const BATCHES: [&[KeyHash]; 2] = [&[LOW, HIGH], &[HIGH, LOW]];
    for first_brings in [0, 1] {
        check(
            &format!("mesh_of_two_serve_each_other, batch {first_brings} on the first thread"),
            Preemptions::AtMost(2),
            move || {
                let (mut first, mut second) = two_nodes();
                let (mine, other) = (first_brings, 1 - first_brings);
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

#[test]
fn mesh_node_dropped_is_error() {
    static AT_THE_SERVER: Sometimes = Sometimes::new();
    static AT_THE_PORT: Sometimes = Sometimes::new();
    check("mesh_node_dropped_is_error", Preemptions::AtMost(2), || {
        let (mut first, second) = two_nodes();
        // Batch 0 is the peer's, which never brings it.
        let peer = thread::spawn(move || drop(second));
        let answer = first.observe(1, &[LOW, HIGH], &mut Verdicts::new());
        assert!(
            matches!(answer, Err(Lost::Peer(1) | Lost::Partition(1))),
            "{answer:?}"
        );
        AT_THE_SERVER.note(answer == Err(Lost::Peer(1)));
        AT_THE_PORT.note(answer == Err(Lost::Partition(1)));
        peer.join().unwrap();
    });
    AT_THE_SERVER.assert();
    AT_THE_PORT.assert();
}

/// The peer brings its batch and is gone without farewell: what it still answered counts, and the end is an error.
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
                Ok(()) => assert_eq!(heard(&verdicts), [true, false]),
                Err(lost) => {
                    assert!(matches!(lost, Lost::Peer(1) | Lost::Partition(1)), "{lost}");
                    assert_eq!(first.observe(2, &[], &mut verdicts), Err(lost));
                }
            }
            assert!(matches!(
                first.finish(),
                Err(Lost::Peer(1) | Lost::Partition(1))
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
fn mesh_number_left_out_is_error() {
    check(
        "mesh_number_left_out_is_error",
        Preemptions::AtMost(2),
        || {
            let (mut first, second) = two_nodes();
            // Nobody brings batch 0. Whoever finds out first is gone for the other.
            let peer = thread::spawn(move || second.finish().err());
            let lost = first.observe(1, &[LOW], &mut Verdicts::new()).err();
            let expected = [Lost::Turn(0), Lost::Peer(1), Lost::Partition(1)].map(Some);
            assert!(expected.contains(&lost), "{lost:?}");
            drop(first);
            let lost = peer.join().unwrap();
            let expected = [Lost::Turn(0), Lost::Peer(0), Lost::Partition(0)].map(Some);
            assert!(expected.contains(&lost), "{lost:?}");
        },
    );
}

#[test]
fn mesh_serves_until_the_doorbell() {
    check(
        "mesh_serves_until_the_doorbell",
        Preemptions::AtMost(1),
        || {
            let (mut waiting, mut busy) = two_nodes();
            let done = Arc::new(AtomicBool::new(false));
            let (doorbell, said) = (waiting.doorbell(), Arc::clone(&done));
            let peer = thread::spawn(move || {
                assert_eq!(
                    observe(&mut busy, 0, &[LOW, HIGH, LOW]),
                    [false, false, true]
                );
                said.store(true, Ordering::Release);
                doorbell.ring();
                busy.finish().unwrap()
            });
            waiting
                .serve_until(|| done.load(Ordering::Acquire))
                .unwrap();
            let low = waiting.finish().unwrap();
            assert_eq!(low.0.into_iter().collect::<Vec<_>>(), [LOW]);
            let high = peer.join().unwrap();
            assert_eq!(high.0.into_iter().collect::<Vec<_>>(), [HIGH]);
        },
    );
}
