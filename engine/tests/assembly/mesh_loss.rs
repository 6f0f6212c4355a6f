//! Meshes whose partitions are lost: a panic that a caller catches, policies, and replacements.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use echoless::{
    ExchangeError, Filter, KeyHash, LossPolicy, Mesh, Node, NotReplaceable, Partitioned,
    Partitioning, Verdicts,
};

use crate::breakable::{Exact, Keys};
use crate::loss::Model;
use crate::streams::{batches, stream};

const LOW: KeyHash = KeyHash::from_uniform(1);
const HIGH: KeyHash = KeyHash::from_uniform(u64::MAX);

/// Two nodes, of which the second panics in its first pass.
fn second_panics(policy: LossPolicy) -> (Node<Exact>, Node<Exact>) {
    let (partitioning, mut filters) = Exact::partitions(2, None).into_parts();
    filters[1].passes_left = Some(0);
    let filter = Partitioned::new(partitioning, filters).unwrap();
    let mut nodes = Mesh::builder(filter)
        .on_loss(policy)
        .build()
        .unwrap()
        .into_nodes();
    let second = nodes.pop().unwrap();
    (nodes.pop().unwrap(), second)
}

/// A node is used after the caller caught the panic of its filter, so it is neither dropped nor
/// idle.
#[test]
fn a_caught_panic_leaves_a_lost_node_and_errors_at_its_peers() {
    for _ in 0..50 {
        let (mut first, mut second) = second_panics(LossPolicy::Error);
        let lost = ExchangeError::Panicked(1);
        // Keeps the second node alive until the first has its outcome.
        let (done, wait) = mpsc::channel::<()>();
        let peer = thread::spawn(move || {
            let mut verdicts = Verdicts::new();
            let observed = catch_unwind(AssertUnwindSafe(|| {
                second.observe(0, &[HIGH, LOW], &mut Verdicts::new())
            }));
            let panic = observed.unwrap_err();
            assert_eq!(
                *panic.downcast::<&str>().unwrap(),
                "this filter panics on purpose"
            );
            assert_eq!(
                second.loss().as_deref(),
                Some("this filter panics on purpose")
            );
            for number in 2..5 {
                assert_eq!(second.submit(number, &[LOW]), Err(lost));
                assert_eq!(second.serve_until(|| false), Err(lost));
                assert_eq!(second.poll(&mut verdicts), Err(lost));
                assert_eq!(second.drain(&mut verdicts), Err(lost));
                assert_eq!(second.observe(number, &[LOW], &mut verdicts), Err(lost));
                assert_eq!(second.in_flight(), 1);
            }
            assert!(second.take_partial(&mut verdicts));
            assert!(verdicts.is_unknown(0));
            let rejected = second.replace(Exact::default()).unwrap_err();
            assert_eq!(rejected.reason, NotReplaceable::Ended);
            assert_eq!(
                rejected.to_string(),
                "partition 1 cannot be replaced: its mesh has ended, its worker panicked outside \
                 the filter, or this process is a fork of theirs"
            );
            wait.recv().unwrap_err();
            assert!(second.into_filter().is_none());
        });
        let mut verdicts = Verdicts::new();
        verdicts.reset(3);
        // The second node has applied nothing and never will.
        assert_eq!(first.observe(1, &[HIGH, LOW], &mut verdicts), Err(lost));
        assert!(verdicts.is_empty());
        assert_eq!(first.submit(2, &[LOW]), Err(lost));
        assert_eq!(first.serve_until(|| false), Err(lost));
        if first.in_flight() > 0 {
            assert!(first.take_partial(&mut verdicts));
            assert!(verdicts.is_unknown(0));
            assert!(!verdicts.is_duplicate(0));
        }
        assert_eq!(first.poll(&mut verdicts), Err(lost));
        drop(done);
        peer.join().unwrap();
        assert!(first.into_filter().is_some());
    }
}

/// A thread that panics outside its filter drops its node while it unwinds.
#[test]
fn peers_can_tell_a_panic_from_a_drop() {
    for panics in [true, false] {
        let (first, second) = second_panics(LossPolicy::AsFresh);
        let peer = thread::spawn(move || {
            let _second = second;
            if panics {
                std::panic::resume_unwind(Box::new("outside the filter"));
            }
        });
        assert_eq!(peer.join().is_err(), panics);
        let lost = first.finish().err().unwrap();
        if panics {
            assert_eq!(lost, ExchangeError::Panicked(1));
        } else {
            assert!(
                matches!(
                    lost,
                    ExchangeError::Peer(1) | ExchangeError::Disconnected(1)
                ),
                "{lost}"
            );
        }
    }
}

/// A filter that is freed slowly, like one of many pages.
#[derive(Default)]
struct FreedSlowly(Exact);

impl Drop for FreedSlowly {
    fn drop(&mut self) {
        thread::sleep(Duration::from_millis(2));
    }
}

impl Filter for FreedSlowly {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        self.0.observe_words(keys, duplicates);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.0.contains(key)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }
}

/// The peer does not join the thread first, so it may find the closed rings at any step of the
/// unwinding. The loss is set before all of them.
#[test]
fn a_panic_outside_the_filter_is_known_before_any_ring_closes() {
    for round in 0..200 {
        let partitioning = Partitioning::new(100, 2).unwrap();
        let filters = vec![FreedSlowly::default(), FreedSlowly::default()];
        let filter = Partitioned::new(partitioning, filters).unwrap();
        let mut nodes = Mesh::builder(filter).build().unwrap().into_nodes();
        let second = nodes.pop().unwrap();
        let mut first = nodes.pop().unwrap();
        let peer = thread::spawn(move || {
            let _second = second;
            std::panic::resume_unwind(Box::new("outside the filter"));
        });
        let outcome = match round % 3 {
            0 => first.finish().map(drop),
            1 => first.serve_until(|| false),
            _ => first.observe(0, &[LOW, HIGH], &mut Verdicts::new()),
        };
        assert_eq!(outcome, Err(ExchangeError::Panicked(1)), "round {round}");
        assert!(peer.join().is_err());
    }
}

/// A peer that has sent its end leaves no ring that looks closed to this node's server, so the
/// outcome of one call must not be forgotten by the next, and a wait must end without any.
#[test]
fn a_loss_behind_the_end_of_a_peer_is_kept() {
    type Call = fn(&mut Node<Exact>) -> Result<(), ExchangeError>;
    let wait: Call = |node| node.serve_until(|| false);
    let calls: [Call; 5] = [
        wait,
        |node| node.serve_until_ready(|| false),
        |node| node.poll(&mut Verdicts::new()).map(drop),
        |node| node.drain(&mut Verdicts::new()).map(drop),
        |node| node.submit(1, &[LOW]),
    ];
    for first_call in calls {
        let (mut first, second) = second_panics(LossPolicy::Error);
        // It panics at the end of the batch, of which it has no key.
        let peer = thread::spawn(move || second.finish().map(drop));
        let mut verdicts = Verdicts::new();
        first.observe(0, &[LOW], &mut verdicts).unwrap();
        assert!(peer.join().is_err());
        let lost = Err(ExchangeError::Panicked(1));
        assert_eq!(first_call(&mut first), lost);
        for later_call in calls {
            assert_eq!(later_call(&mut first), lost);
        }
        assert_eq!(first.finish().map(drop), lost);
    }
}

/// A node may wait already when its peer fails.
#[test]
fn a_wait_ends_with_a_peer_that_had_sent_its_end() {
    for _ in 0..50 {
        let (mut first, second) = second_panics(LossPolicy::Error);
        let peer = thread::spawn(move || second.finish().map(drop));
        first.submit(0, &[LOW]).unwrap();
        let lost = ExchangeError::Panicked(1);
        assert_eq!(first.serve_until(|| false), Err(lost));
        assert!(peer.join().is_err());
        // The verdict of its own partition was there before.
        let mut verdicts = Verdicts::new();
        assert_eq!(first.drain(&mut verdicts), Ok(true));
        assert_eq!(first.drain(&mut verdicts), Err(lost));
    }
}

#[test]
fn a_node_that_finishes_without_its_filter_is_an_error_of_its_own() {
    let (mut first, second) = second_panics(LossPolicy::AsDuplicate);
    let peer = thread::spawn(move || second.finish().err());
    let mut verdicts = Verdicts::new();
    first.observe(0, &[LOW, HIGH], &mut verdicts).unwrap();
    assert_eq!(
        (verdicts.words(), verdicts.unknown_words()),
        (&[0b10][..], &[0b10][..])
    );
    assert!(first.loss().is_none());
    let error = first.replace(Exact::default()).unwrap_err();
    assert_eq!((error.partition, error.partitions), (0, 2));
    assert_eq!(error.reason, NotReplaceable::NotLost);
    assert!(first.finish().is_ok());
    assert_eq!(peer.join().unwrap(), Some(ExchangeError::Panicked(1)));
}

/// Batches of a mesh have an order, so the known verdicts are those of one set in that order.
#[test]
fn a_mesh_goes_on_while_partitions_are_lost_and_replaced() {
    const NODES: usize = 3;
    let keys = stream(20_000, 8);
    for policy in [LossPolicy::AsDuplicate, LossPolicy::AsFresh] {
        let filter = Exact::partitions(NODES, Some(5));
        let sets: Vec<Keys> = filter
            .filters()
            .iter()
            .map(|part| Arc::clone(&part.keys))
            .collect();
        let batches = batches(&keys, 100);
        let builder = Mesh::builder(filter).ring_depth(2).on_loss(policy);
        let nodes = builder.build().unwrap();
        let run = |(index, mut node): (usize, Node<Exact>)| {
            let mut verdicts = Verdicts::new();
            let (mut returned, mut replaced) = (Vec::new(), 0);
            let mut oldest = index;
            for number in (index..batches.len()).step_by(NODES) {
                node.submit(number as u64, batches[number]).unwrap();
                if node.loss().is_some() {
                    let keys = Arc::clone(&sets[index]);
                    node.replace(Exact {
                        keys,
                        passes_left: None,
                    })
                    .unwrap();
                    replaced += 1;
                }
                while node.in_flight() > 1 {
                    assert!(node.drain(&mut verdicts).unwrap());
                    returned.push((oldest, verdicts.clone()));
                    oldest += NODES;
                }
            }
            while node.drain(&mut verdicts).unwrap() {
                returned.push((oldest, verdicts.clone()));
                oldest += NODES;
            }
            let unknown = node.unknown_keys();
            node.finish().unwrap();
            (returned, replaced, unknown)
        };
        let mut returned = Vec::new();
        let mut unknown = 0;
        thread::scope(|scope| {
            let nodes = nodes.into_iter().enumerate();
            let threads: Vec<_> = nodes.map(|node| scope.spawn(|| run(node))).collect();
            for thread in threads {
                let (more, replaced, keys) = thread.join().unwrap();
                assert_eq!(replaced, 1);
                returned.extend(more);
                unknown += keys;
            }
        });
        returned.sort_by_key(|(number, _)| *number);
        assert_eq!(returned.len(), batches.len());
        let mut model = Model::default();
        for (number, verdicts) in &returned {
            model.apply(batches[*number], verdicts, policy);
        }
        assert!(model.unknown > 0);
        assert_eq!(model.unknown, unknown);
    }
}
