//! Meshes: nodes that wait, finish, panic and are dropped, and invalid batch numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use echoless::{ExchangeError, Filter, KeyHash, LineFilter, Mesh, Node, Partitioned, Verdicts};

use crate::streams::{oracle, spec, stream};
use crate::stub::{BAD_KEY, Fragile, fragile};
use crate::testing::duplicates;

fn connect<F: Filter>(filter: Partitioned<F>) -> Vec<Node<F>> {
    Mesh::builder(filter).build().unwrap().into_nodes()
}

/// The nodes of a mesh over a small filter.
fn nodes(count: usize) -> Vec<Node<Box<dyn LineFilter>>> {
    connect(spec().build_partitions(count).unwrap())
}

#[test]
fn a_node_that_panics_or_is_dropped_is_an_error_at_its_peers() {
    for panics in [true, false] {
        let mut nodes = connect(fragile(2));
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
            // Batch 0 is the peer's, so no batch of this node is ever applied.
            if let Err(error) = first.submit(1, &[KeyHash::from_uniform(0), BAD_KEY]) {
                break error;
            }
            match first.drain(&mut Verdicts::new()) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        let expected = if panics {
            &[ExchangeError::Panicked(1)][..]
        } else {
            &[ExchangeError::Peer(1), ExchangeError::Disconnected(1)]
        };
        assert!(expected.contains(&error), "{error}");
        assert_eq!(peer.join().is_err(), panics);
    }
}

#[test]
fn a_skipped_batch_number_is_an_error() {
    let mut node = connect(fragile(1)).remove(0);
    assert_eq!(
        node.observe(1, &[KeyHash::from_uniform(0)], &mut Verdicts::new()),
        Err(ExchangeError::MissingBatch(0))
    );
}

#[test]
fn nodes_finish_although_some_have_no_input() {
    let nodes = nodes(3);
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
    let mut nodes = nodes(2);
    let (mut busy, mut waiting) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let done = AtomicU64::new(0);
    let doorbell = waiting.doorbell();
    let keys = stream(5000, 1);
    let (expected, _) = oracle(&[&keys[..], &keys].concat());
    thread::scope(|scope| {
        scope.spawn(|| {
            waiting
                .serve_until(|| done.load(Ordering::Acquire) == 1)
                .unwrap();
            waiting.finish().unwrap();
        });
        let mut verdicts = Verdicts::new();
        for (number, expected) in expected.chunks(keys.len()).enumerate() {
            // Blocks forever unless its peer serves.
            busy.observe(number as u64, &keys, &mut verdicts).unwrap();
            assert_eq!(duplicates(&verdicts), expected);
        }
        done.store(1, Ordering::Release);
        doorbell.wake();
        busy.finish().unwrap();
    });
}

#[test]
fn a_node_waits_for_its_batch_or_something_else() {
    let mut nodes = nodes(2);
    let (mut peer, mut node) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let keys = stream(5000, 1);
    let mut verdicts = Verdicts::new();
    // Nothing is in flight.
    node.serve_until_ready(|| true).unwrap();
    thread::scope(|scope| {
        node.submit(0, &keys).unwrap();
        // The peer does not serve yet.
        node.serve_until_ready(|| true).unwrap();
        assert!(!node.poll(&mut verdicts).unwrap());
        let (polled, has_polled) = std::sync::mpsc::channel();
        let keys = &keys;
        scope.spawn(move || {
            peer.observe(1, keys, &mut Verdicts::new()).unwrap();
            has_polled.recv().unwrap();
        });
        node.serve_until_ready(|| false).unwrap();
        assert!(node.poll(&mut verdicts).unwrap());
        assert_eq!(verdicts.len(), keys.len());
        polled.send(()).unwrap();
        // A peer that leaves is an error, not something to wait for.
        let gone = node.serve_until_ready(|| false).unwrap_err();
        assert_eq!(gone, ExchangeError::Peer(1));
    });
}

#[test]
fn a_batch_number_used_twice_is_an_error() {
    for (mine, others) in [
        (&[0][..], &[0][..]),
        (&[0, 2], &[1, 2]),
        (&[0, 3], &[1, 2, 3]),
    ] {
        let mut nodes = nodes(2);
        let second = nodes.pop().unwrap();
        let submit_all = |mut node: Node<Box<dyn LineFilter>>, numbers: &'static [u64]| {
            let mut verdicts = Verdicts::new();
            for number in numbers {
                node.observe(*number, &stream(500, *number), &mut verdicts)?;
            }
            node.finish().map(|_| ())
        };
        let peer = thread::spawn(move || submit_all(second, others));
        let errors =
            [submit_all(nodes.remove(0), mine), peer.join().unwrap()].map(Result::unwrap_err);
        let repeated = ExchangeError::Repeated(*mine.last().unwrap());
        assert!(errors.contains(&repeated), "{errors:?}");
        for error in errors {
            // The node that fails first is disconnected for the other.
            assert!(
                error == repeated
                    || matches!(
                        error,
                        ExchangeError::Peer(_) | ExchangeError::Disconnected(_)
                    ),
                "{error}"
            );
        }
    }
}

#[test]
fn a_number_that_does_not_rise_is_rejected_without_effect() {
    let mut node = nodes(1).remove(0);
    let (keys, mut verdicts) = (stream(100, 1), Verdicts::new());
    node.observe(0, &keys, &mut verdicts).unwrap();
    node.submit(1, &keys).unwrap();
    for number in [1, 0] {
        assert_eq!(
            node.submit(number, &keys),
            Err(ExchangeError::Repeated(number))
        );
    }
    assert_eq!(node.in_flight(), 1);
    assert!(node.drain(&mut verdicts).unwrap());
    node.observe(2, &keys, &mut verdicts).unwrap();
    assert_eq!(verdicts.count_duplicates(), 100);
    assert_eq!(node.finish().unwrap().report().tally.observed, Some(300));
}

/// The first of two nodes, and the thread of the second: that node finishes without a batch, and
/// panics when it serves a batch with [`BAD_KEY`].
fn beside_one_that_panics_after_it_finished() -> (Node<Fragile>, thread::JoinHandle<()>) {
    let mut nodes = connect(fragile(2));
    let second = nodes.pop().unwrap();
    let peer = thread::spawn(move || drop(second.finish()));
    (nodes.remove(0), peer)
}

#[test]
fn a_node_that_lost_a_peer_returns_errors_instead_of_waiting() {
    let (mut first, peer) = beside_one_that_panics_after_it_finished();
    let lost = ExchangeError::Panicked(1);
    let mut verdicts = Verdicts::new();
    assert_eq!(first.observe(0, &[BAD_KEY], &mut verdicts), Err(lost));
    assert_eq!(first.serve_until(|| false), Err(lost));
    assert_eq!(first.poll(&mut verdicts), Err(lost));
    assert_eq!(first.submit(1, &[KeyHash::from_uniform(0)]), Err(lost));
    assert_eq!(first.finish().err(), Some(lost));
    assert!(peer.join().is_err());
}

#[test]
fn finish_is_an_error_if_a_batch_was_never_applied() {
    for _ in 0..100 {
        let (mut first, peer) = beside_one_that_panics_after_it_finished();
        first
            .submit(0, &[KeyHash::from_uniform(0), BAD_KEY])
            .unwrap();
        assert_eq!(first.finish().err(), Some(ExchangeError::Panicked(1)));
        assert!(peer.join().is_err());
    }
}

#[test]
fn finish_waits_until_batches_in_flight_are_applied() {
    let mesh = Mesh::builder(spec().build_partitions(2).unwrap())
        .ring_depth(1)
        .build()
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
        let threads: Vec<_> = mesh.into_iter().enumerate().map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(observed, 4000);
}

#[test]
fn an_idle_node_returns_an_error_when_a_peer_is_dropped() {
    type Idle = fn(Node<Box<dyn LineFilter>>) -> Result<(), ExchangeError>;
    let waits: [Idle; 2] = [
        |mut node| node.serve_until(|| false),
        |node| node.finish().map(|_| ()),
    ];
    for wait in waits {
        let mut nodes = nodes(2);
        let second = nodes.pop().unwrap();
        let first = nodes.remove(0);
        let waiting = thread::spawn(move || wait(first));
        // The other node is usually parked by then. The outcome must be the same whether it is or
        // not.
        thread::sleep(Duration::from_millis(20));
        drop(second);
        let lost = waiting.join().unwrap();
        assert!(
            matches!(
                lost,
                Err(ExchangeError::Peer(1) | ExchangeError::Disconnected(1))
            ),
            "{lost:?}"
        );
    }
}
