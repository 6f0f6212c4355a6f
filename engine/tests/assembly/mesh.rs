//! Nodes that wait, leave, panic and are dropped, and batch numbers that are wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use echoless::{Disconnected, KeyHash, LineFilter, Mesh, Node, Verdicts};

use crate::fragile::{BAD_KEY, Fragile, fragile};
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
            matches!(error, Disconnected::Peer(1) | Disconnected::Partition(1)),
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
        Err(Disconnected::MissingBatch(0))
    );
}

#[test]
fn nodes_finish_though_some_have_no_input() {
    let nodes = Mesh::new()
        .nodes(spec().build_partitions(3).unwrap())
        .unwrap();
    let keys = stream(1000, 3);
    let counts: Vec<u64> = thread::scope(|scope| {
        let run = |(index, mut node): (usize, Node<Box<dyn LineFilter>>)| {
            let keys = &keys;
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                if index == 1 {
                    node.observe(0, keys, &mut verdicts).unwrap();
                }
                node.finish().unwrap().report().tally.observed.unwrap()
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

#[test]
fn a_batch_number_that_comes_twice_is_an_error() {
    for (mine, others) in [
        (&[0][..], &[0][..]),
        (&[0, 2], &[1, 2]),
        (&[0, 3], &[1, 2, 3]),
    ] {
        let mut nodes = Mesh::new()
            .nodes(spec().build_partitions(2).unwrap())
            .unwrap();
        let second = nodes.pop().unwrap();
        let bring = |mut node: Node<Box<dyn LineFilter>>, numbers: &'static [u64]| {
            let mut verdicts = Verdicts::new();
            for number in numbers {
                node.observe(*number, &stream(500, *number), &mut verdicts)?;
            }
            node.finish().map(|_| ())
        };
        let peer = thread::spawn(move || bring(second, others));
        let errors = [bring(nodes.remove(0), mine), peer.join().unwrap()].map(Result::unwrap_err);
        let repeated = Disconnected::Repeated(*mine.last().unwrap());
        assert!(errors.contains(&repeated), "{errors:?}");
        for error in errors {
            // Who finds out first is gone for the other.
            assert!(
                error == repeated
                    || matches!(error, Disconnected::Peer(_) | Disconnected::Partition(_)),
                "{error}"
            );
        }
    }
}

#[test]
fn a_number_that_does_not_rise_is_refused_and_changes_nothing() {
    let mut node = Mesh::new()
        .nodes(spec().build_partitions(1).unwrap())
        .unwrap()
        .remove(0);
    let (keys, mut verdicts) = (stream(100, 1), Verdicts::new());
    node.observe(0, &keys, &mut verdicts).unwrap();
    node.submit(1, &keys).unwrap();
    for number in [1, 0] {
        assert_eq!(
            node.submit(number, &keys),
            Err(Disconnected::Repeated(number))
        );
    }
    assert_eq!(node.in_flight(), 1);
    assert!(node.drain(&mut verdicts).unwrap());
    node.observe(2, &keys, &mut verdicts).unwrap();
    assert_eq!(verdicts.count_duplicates(), 100);
    assert_eq!(node.finish().unwrap().report().tally.observed, Some(300));
}

/// The first of two nodes, and the thread of the second: it has said that it brings nothing, and panics over the next batch with [`BAD_KEY`].
fn beside_one_that_panics_after_its_farewell() -> (Node<Fragile>, thread::JoinHandle<()>) {
    let mut nodes = Mesh::new().nodes(fragile(2)).unwrap();
    let second = nodes.pop().unwrap();
    let peer = thread::spawn(move || drop(second.finish()));
    (nodes.remove(0), peer)
}

#[test]
fn a_node_that_has_lost_a_peer_does_not_wait_for_it() {
    let (mut first, peer) = beside_one_that_panics_after_its_farewell();
    let lost = Disconnected::Partition(1);
    let mut verdicts = Verdicts::new();
    assert_eq!(first.observe(0, &[BAD_KEY], &mut verdicts), Err(lost));
    assert_eq!(first.serve_until(|| false), Err(lost));
    assert_eq!(first.poll(&mut verdicts), Err(lost));
    assert_eq!(first.submit(1, &[KeyHash(0)]), Err(lost));
    assert_eq!(first.finish().err(), Some(lost));
    assert!(peer.join().is_err());
}

#[test]
fn no_node_finishes_with_batches_that_were_never_applied() {
    for _ in 0..100 {
        let (mut first, peer) = beside_one_that_panics_after_its_farewell();
        first.submit(0, &[KeyHash(0), BAD_KEY]).unwrap();
        assert_eq!(first.finish().err(), Some(Disconnected::Partition(1)));
        assert!(peer.join().is_err());
    }
}

#[test]
fn a_node_that_finishes_with_batches_in_flight_has_them_applied() {
    let nodes = Mesh::new()
        .ring_depth(1)
        .nodes(spec().build_partitions(2).unwrap())
        .unwrap();
    let keys = stream(1000, 6);
    let observed: u64 = thread::scope(|scope| {
        let run = |(index, mut node): (usize, Node<Box<dyn LineFilter>>)| {
            let keys = &keys;
            scope.spawn(move || {
                for number in [index, index + 2] {
                    node.submit(number as u64, keys).unwrap();
                }
                node.finish().unwrap().report().tally.observed.unwrap()
            })
        };
        let threads: Vec<_> = nodes.into_iter().enumerate().map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(observed, 4000);
}

#[test]
fn a_node_with_nothing_to_do_hears_that_a_peer_was_dropped() {
    type Idle = fn(Node<Box<dyn LineFilter>>) -> Result<(), Disconnected>;
    let waits: [Idle; 2] = [
        |mut node| node.serve_until(|| false),
        |node| node.finish().map(|_| ()),
    ];
    for wait in waits {
        let mut nodes = Mesh::new()
            .nodes(spec().build_partitions(2).unwrap())
            .unwrap();
        let second = nodes.pop().unwrap();
        let first = nodes.remove(0);
        let waiting = thread::spawn(move || wait(first));
        // Most of the time, the other one sleeps by then; at no time may it sleep on.
        thread::sleep(Duration::from_millis(20));
        drop(second);
        let lost = waiting.join().unwrap();
        assert!(
            matches!(
                lost,
                Err(Disconnected::Peer(1) | Disconnected::Partition(1))
            ),
            "{lost:?}"
        );
    }
}
