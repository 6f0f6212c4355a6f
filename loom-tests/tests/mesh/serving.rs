//! A node serves its peer while it waits: for room, its verdicts or another condition.

use echoless::{KeyHash, Verdicts};
use echoless_loom::{Preemptions, Sometimes, check, duplicates, expected};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::{HIGH, LOW, LOWER, observe, two_nodes};

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
