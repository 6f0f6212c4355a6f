//! Nodes of a mesh: each serves the other while it waits, in the order of the batch numbers.

#![cfg(loom)]

mod disconnected;
mod losses;
mod order;
mod serving;

use echoless::transport::Wait;
use echoless::{KeyHash, LossPolicy, Mesh, Node, Verdicts};
use echoless_loom::{Exact, duplicates, key};

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
