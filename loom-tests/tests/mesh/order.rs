//! Numbered batches have the verdicts of sequential ones, in any order of arrival.

use echoless::transport::Wait;
use echoless::{KeyHash, Mesh};
use echoless_loom::{Exact, Preemptions, check, expected};
use loom::thread;

use super::{HIGH, LOW, LOWER, LOWEST, observe, two_nodes};

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
