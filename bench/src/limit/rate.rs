//! How fast something consumes a stream.

use echoless::KeyHash;

use crate::clock::thread_seconds;
use crate::streams::{BATCH, Stream};

/// Keys per second of CPU time while `take` consumes batches of a stream, at least `keys` in all.
pub(super) fn rate(stream: &mut Stream, keys: u64, mut take: impl FnMut(&[KeyHash])) -> f64 {
    let mut consumed = 0;
    let start = thread_seconds();
    while consumed < keys {
        take(stream.batch());
        consumed += BATCH as u64;
    }
    consumed as f64 / (thread_seconds() - start)
}
