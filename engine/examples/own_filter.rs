//! A filter of one's own in an engine, and batches that lose no key when it panics.
//!
//! A filter needs five methods. This one is exact, for a stream whose keys fit in memory, and has a
//! bug: it panics at one key. The engine goes on without that partition; the caller takes what
//! is known of the batch, replaces the partition and sends only the unknown keys again. The example
//! `two_phase` is about sinks that fail.
//!
//! ```sh
//! cargo run --release -p echoless --example own_filter
//! ```

use std::collections::HashSet;
use std::error::Error;

use echoless::{
    Batch, Engine, ExchangeError, Filter, KeyHash, KeyHasher, Partitioned, Partitioning, Port,
    Tally, Verdicts,
};

/// Keeps every key.
#[derive(Default)]
struct Exact {
    keys: HashSet<KeyHash>,
    /// The key at which it panics.
    bad: Option<KeyHash>,
}

impl Filter for Exact {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        let keys = batch.keys();
        assert!(self.bad.is_none_or(|bad| !keys.contains(&bad)), "a bug");
        batch.observe_each(duplicates, |key| !self.keys.insert(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.keys.contains(&key)
    }

    fn clear(&mut self) {
        self.keys.clear();
    }

    fn tally(&self) -> Tally {
        Tally::new((self.keys.capacity() * size_of::<KeyHash>()) as u64)
    }
}

/// Passes a batch, again and again until every key has a verdict. Returns the indices of the fresh
/// keys.
fn pass(
    engine: &Engine<Exact>,
    port: &mut Port,
    keys: &[KeyHash],
) -> Result<Vec<usize>, Box<dyn Error>> {
    let mut fresh = Vec::new();
    let mut verdicts = Verdicts::new();
    let mut left: Vec<usize> = (0..keys.len()).collect();
    while !left.is_empty() {
        let batch: Vec<KeyHash> = left.iter().map(|index| keys[*index]).collect();
        match port.observe(&batch, &mut verdicts) {
            Ok(()) => {}
            // What is known of the batch, or nothing, if a partition was lost before it was sent.
            Err(ExchangeError::Panicked(_)) => {
                port.take_partial(&mut verdicts);
            }
            Err(gone) => return Err(gone.into()),
        }
        for (partition, message) in engine.lost() {
            eprintln!("partition {partition} is replaced: {message}");
            // Its keys are lost with it: duplicates of them pass.
            engine.replace(partition, Exact::default())?;
        }
        if verdicts.is_empty() {
            continue;
        }
        let judged = |at: &usize| !verdicts.is_unknown(*at);
        fresh.extend(verdicts.fresh().filter(judged).map(|at| left[at]));
        left = verdicts.unknown().map(|at| left[at]).collect();
    }
    fresh.sort_unstable();
    Ok(fresh)
}

fn main() -> Result<(), Box<dyn Error>> {
    let hasher = KeyHasher::seeded(0);
    let keys: Vec<KeyHash> = (0..10_000).map(|id| hasher.hash_u64(id % 8_000)).collect();
    // Partitions are cut from lines; a filter without lines takes as many as it likes.
    let partitioning = Partitioning::new(1 << 20, 4)?;
    let filters = (0..4).map(|_| Exact {
        keys: HashSet::new(),
        bad: Some(keys[0]),
    });
    let parts = Partitioned::new(partitioning, filters.collect())?;
    let (engine, mut ports) = Engine::builder(parts).build()?;

    // The bad key comes first, so its partition had recorded nothing when it was lost.
    let fresh = pass(&engine, &mut ports[0], &keys)?;
    println!("{} of {} keys are fresh", fresh.len(), keys.len());
    assert_eq!(fresh, (0..8_000).collect::<Vec<_>>());
    assert!(engine.lost().is_empty() && engine.counts().unknown > 0);
    engine.shutdown()?;
    Ok(())
}
