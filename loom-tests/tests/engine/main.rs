//! Ports and the workers of an engine: how keys and verdicts are handed over, and the outcome when
//! one side ends.

#![cfg(loom)]

mod ends;
mod hand_over;
mod losses;
mod tasks;

use echoless::transport::Wait;
use echoless::{Engine, KeyHash, LossPolicy, Partitioned, Port};
use echoless_loom::{Exact, key};

const A: KeyHash = key(0, 1);
const B: KeyHash = key(0, 2);
const HIGH: KeyHash = key(1, 1);

/// An engine whose rings have room for one message.
fn start(workers: usize, ports: usize) -> (Engine<Exact>, Vec<Port>) {
    start_with(LossPolicy::Error, workers, ports)
}

fn start_with(policy: LossPolicy, workers: usize, ports: usize) -> (Engine<Exact>, Vec<Port>) {
    Engine::builder(Exact::partitions(workers))
        .on_loss(policy)
        .ports(ports)
        .ring_depth(1)
        .wait(Wait::Shared)
        .build()
        .expect("loom starts threads")
}

/// The keys that the partitions hold, sorted.
fn held(filter: Partitioned<Exact>) -> Vec<KeyHash> {
    let (_, parts) = filter.into_parts();
    let mut keys: Vec<_> = parts.into_iter().flat_map(|part| part.0).collect();
    keys.sort();
    keys
}
