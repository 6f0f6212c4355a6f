//! Nodes that wait, leave, panic and are dropped, and batch numbers that are wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use echoless::{FingerprintLines, KeyHash, Lost, Mesh, Node, Verdicts};

use crate::fragile::{BAD_KEY, fragile};
use crate::streams::{spec, stream};

#[test]
fn a_node_that_panics_or_is_dropped_is_an_error_at_its_peers() {
    for panics in [true, false] {
        let mut nodes = Mesh::new().nodes(fragile(2)).unwrap();
        let mut second = nodes.pop().unwrap();
        let mut first = nodes.pop().unwrap();
        let peer = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            if panics {
                second.observe(0, &[BAD_KEY], &mut verdicts).unwrap();
            }
            drop(second);
        });
        let error = loop {
            // Batch 0 is the peer's, so nothing is ever applied.
            if let Err(error) = first.submit(1, &[KeyHash(0), BAD_KEY]) {
                break error;
            }
            match first.drain(&mut Verdicts::new()) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, Lost::Peer(1) | Lost::Partition(1)),
            "{error}"
        );
        assert_eq!(peer.join().is_err(), panics);
    }
}

#[test]
fn a_batch_number_that_was_left_out_is_an_error() {
    let mut node = Mesh::new().nodes(fragile(1)).unwrap().remove(0);
    assert_eq!(
        node.observe(1, &[KeyHash(0)], &mut Verdicts::new()),
        Err(Lost::Turn(0))
    );
}

#[test]
fn nodes_finish_though_some_have_no_input() {
    let nodes = Mesh::new()
        .nodes(spec().build_partitions(3).unwrap())
        .unwrap();
    let keys = stream(1000, 3);
    let counts: Vec<u64> = thread::scope(|scope| {
        let run = |(index, mut node): (usize, Node<FingerprintLines>)| {
            let keys = &keys;
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                if index == 1 {
                    node.observe(0, keys, &mut verdicts).unwrap();
                }
                node.finish().unwrap().report().observed
            })
        };
        let threads: Vec<_> = nodes.into_iter().enumerate().map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(counts.iter().sum::<u64>(), 1000);
    assert!(counts.iter().all(|count| *count > 0));
}

#[test]
fn a_node_can_wait_for_something_else_and_serve() {
    let mut nodes = Mesh::new()
        .nodes(spec().build_partitions(2).unwrap())
        .unwrap();
    let (mut busy, mut waiting) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let done = AtomicU64::new(0);
    let doorbell = waiting.doorbell();
    thread::scope(|scope| {
        scope.spawn(|| {
            waiting
                .serve_until(|| done.load(Ordering::Acquire) == 1)
                .unwrap();
            waiting.finish().unwrap();
        });
        // Without its peer serving, this would wait for ever.
        busy.observe(0, &stream(5000, 1), &mut Verdicts::new())
            .unwrap();
        done.store(1, Ordering::Release);
        doorbell.ring();
        busy.finish().unwrap();
    });
}
