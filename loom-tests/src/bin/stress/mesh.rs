//! Meshes: the verdicts that are known equal those of one set that gets the batches in the order of
//! their numbers, also if a node leaves or its filter panics.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, yield_now};

use echoless::transport::Wait;
use echoless::{ExchangeError, KeyHash, Mesh, Node, Partitioned, Verdicts};

use crate::filter::Exact;
use crate::random::Random;

/// The keys of each batch, whether each is a duplicate, and the node that submits it.
struct Batches {
    keys: Vec<Vec<KeyHash>>,
    duplicates: Vec<Vec<bool>>,
    nodes: Vec<usize>,
}

impl Batches {
    fn drawn(random: &mut Random, nodes: usize) -> Self {
        let count = random.below(60);
        let universe = 1 + random.below(3000);
        let longest = 1 + random.below(300);
        let keys: Vec<Vec<KeyHash>> = (0..count)
            .map(|_| {
                let length = random.below(longest);
                random.keys(length, universe)
            })
            .collect();
        let mut seen = HashSet::new();
        let duplicates = keys
            .iter()
            .map(|batch| batch.iter().map(|key| !seen.insert(*key)).collect())
            .collect();
        let nodes = keys.iter().map(|_| random.below(nodes)).collect();
        Self {
            keys,
            duplicates,
            nodes,
        }
    }

    /// The numbers of the batches of a node.
    fn of(&self, node: usize) -> Vec<usize> {
        let numbers = 0..self.keys.len();
        numbers
            .filter(|number| self.nodes[*number] == node)
            .collect()
    }

    /// Checks the verdicts of a batch, as far as they are known.
    fn check(&self, number: usize, verdicts: &Verdicts) {
        let expected = &self.duplicates[number];
        assert_eq!(verdicts.len(), expected.len(), "batch {number}");
        for (index, duplicate) in expected.iter().enumerate() {
            if !verdicts.is_unknown(index) {
                assert_eq!(
                    verdicts.is_duplicate(index),
                    *duplicate,
                    "key {index} of batch {number}"
                );
            }
        }
    }
}

/// The nodes of a mesh over these partitions.
fn nodes(random: &mut Random, partitions: Partitioned<Exact>) -> Vec<Node<Exact>> {
    let wait = if random.once_in(2) {
        Wait::Shared
    } else {
        Wait::Dedicated
    };
    let builder = Mesh::builder(partitions)
        .ring_depth(1 << random.below(5))
        .wait(wait);
    builder.build().expect("small rings").into_nodes()
}

/// Submits the first `most` batches of a node in its own way, and checks all verdicts that come.
///
/// # Errors
/// The first error of the node, after what was known of its batches was checked.
fn submit(
    node: &mut Node<Exact>,
    batches: &Batches,
    numbers: &[usize],
    random: &mut Random,
) -> Result<(), ExchangeError> {
    let mut verdicts = Verdicts::new();
    let mut returned = numbers.iter().copied();
    let outcome = (|| {
        for number in numbers {
            node.submit(*number as u64, &batches.keys[*number])?;
            match random.below(7) {
                0 if node.poll(&mut verdicts)? => {
                    batches.check(returned.next().expect("a batch in flight"), &verdicts);
                }
                1 | 2 => {
                    while node.drain(&mut verdicts)? {
                        batches.check(returned.next().expect("a batch in flight"), &verdicts);
                    }
                }
                3 => node.serve_until(|| true)?,
                4 => yield_now(),
                5 => {
                    let mut tests_left = random.below(3);
                    node.serve_until_ready(|| {
                        tests_left = tests_left.saturating_sub(1);
                        tests_left == 0
                    })?;
                }
                _ => {}
            }
        }
        while node.drain(&mut verdicts)? {
            batches.check(returned.next().expect("a batch in flight"), &verdicts);
        }
        Ok(())
    })();
    if outcome.is_err() {
        while node.take_partial(&mut verdicts) {
            batches.check(returned.next().expect("a batch in flight"), &verdicts);
        }
    }
    outcome
}

pub(crate) fn all_nodes_finish(random: &mut Random) {
    let count = 1 + random.below(5);
    let batches = Batches::drawn(random, count);
    let nodes = nodes(random, Exact::partitions(count));
    let held: usize = thread::scope(|scope| {
        let run = |(index, mut node): (usize, Node<Exact>)| {
            let (batches, mut random) = (&batches, random.split());
            scope.spawn(move || {
                submit(&mut node, batches, &batches.of(index), &mut random).expect("all go on");
                node.finish()
                    .expect("all finish")
                    .keys
                    .lock()
                    .unwrap()
                    .len()
            })
        };
        let threads: Vec<_> = nodes.into_iter().enumerate().map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let distinct: HashSet<_> = batches.keys.iter().flatten().collect();
    assert_eq!(held, distinct.len());
}

/// One node is dropped before it has submitted all of its batches, or leaves one out: the others
/// end with an error, if they did not finish before.
pub(crate) fn a_node_leaves(random: &mut Random) {
    let count = 2 + random.below(4);
    let batches = Batches::drawn(random, count);
    let nodes = nodes(random, Exact::partitions(count));
    let leaves = random.below(count);
    let drops = random.once_in(2);
    thread::scope(|scope| {
        for (index, mut node) in nodes.into_iter().enumerate() {
            let (batches, mut random) = (&batches, random.split());
            scope.spawn(move || {
                let mut numbers = batches.of(index);
                if index != leaves {
                    let submitted = submit(&mut node, batches, &numbers, &mut random);
                    drop(submitted.and_then(|()| node.finish()));
                } else if drops {
                    numbers.truncate(random.below(numbers.len() + 1));
                    let _ = submit(&mut node, batches, &numbers, &mut random);
                } else if let Some(last) = numbers.len().checked_sub(1) {
                    let skipped = numbers.remove(random.below(last + 1));
                    let submitted = submit(&mut node, batches, &numbers, &mut random);
                    let finished = submitted.and_then(|()| node.finish().map(drop));
                    // Without the last number of all, none is missing.
                    assert!(finished.is_err() || skipped + 1 == batches.keys.len());
                } else {
                    drop(node.finish());
                }
            });
        }
    });
}

/// The filter of one node panics; its caller may catch that and go on.
pub(crate) fn a_filter_panics(random: &mut Random) {
    let count = 1 + random.below(4);
    let batches = Batches::drawn(random, count);
    let mut partitions = Exact::partitions(count);
    let panics = random.below(count);
    partitions.filters_mut()[panics].passes_left = Some(random.below(20));
    let nodes = nodes(random, partitions);
    thread::scope(|scope| {
        for (index, mut node) in nodes.into_iter().enumerate() {
            let (batches, mut random) = (&batches, random.split());
            scope.spawn(move || {
                let numbers = batches.of(index);
                // After a panic a mesh may end with an error, but known verdicts stay right.
                let submitted = catch_unwind(AssertUnwindSafe(|| {
                    submit(&mut node, batches, &numbers, &mut random)
                }));
                if submitted.is_ok() {
                    let finished = catch_unwind(AssertUnwindSafe(|| node.finish()));
                    assert!(finished.is_ok() || index == panics);
                } else {
                    assert_eq!(index, panics);
                    assert_eq!(
                        node.serve_until(|| false),
                        Err(ExchangeError::Panicked(panics))
                    );
                }
            });
        }
    });
}
