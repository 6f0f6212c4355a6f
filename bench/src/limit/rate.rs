//! How fast something consumes a stream.

use echoless::KeyHash;

use crate::clock::thread_seconds;
use crate::streams::{BATCH, Stream};

/// Keys per second of CPU time while `take` consumes batches of a stream, at least `keys` in all.
pub(super) fn rate(
    stream: &mut Stream,
    batch: usize,
    keys: u64,
    mut take: impl FnMut(&[KeyHash]),
) -> f64 {
    let mut collected = Vec::with_capacity(batch);
    let mut consumed = 0;
    let start = thread_seconds();
    while consumed < keys {
        if batch == BATCH {
            take(stream.batch());
        } else {
            collected.clear();
            while collected.len() < batch {
                collected.extend_from_slice(stream.batch());
            }
            take(&collected);
        }
        consumed += batch as u64;
    }
    consumed as f64 / (thread_seconds() - start)
}
