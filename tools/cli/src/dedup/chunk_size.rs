//! How long the chunks of a run on several threads are, and how many of them are under way.

use crate::reading::CHUNK_BYTES;

/// The chunks of a run on several threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkSize {
    /// The length of a chunk without a long record.
    pub(super) bytes: usize,
    /// The number of chunks that a thread has submitted at a time: it fills and reads the next ones
    /// while the verdicts of one are under way.
    pub(super) in_flight: usize,
}

impl ChunkSize {
    /// The chunks of a run on so many threads.
    ///
    /// A chunk of 256 KiB has 2,600 records of 100 bytes: 64 keys, a whole message, for each of 41
    /// partitions, but 10 for each of 256. So chunks grow with the threads, and fewer of them are
    /// under way. 256 threads on 2 cores take 2.0 GB of call records in 0.34 times the time with
    /// chunks of 2 MiB in place of 256 KiB, for 5.9 in place of 18.9 s of CPU time, and 64 threads
    /// in 0.79 times the time with 1 MiB (`echoless dedup -q -m 64MiB --threads N`, medians of three
    /// runs in turns, AMD EPYC with Zen 4, 2026-11-23). With 2 threads there is no difference beyond
    /// noise.
    pub(super) fn for_threads(threads: usize) -> Self {
        let factor = (threads / 32).next_power_of_two().min(8);
        Self {
            bytes: factor * CHUNK_BYTES,
            in_flight: (6 / factor).max(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_with_the_threads_and_fewer_are_under_way() {
        for (threads, kibibytes, in_flight) in [
            (2, 256, 6),
            (63, 256, 6),
            (64, 512, 3),
            (128, 1024, 2),
            (255, 2048, 2),
            (1024, 2048, 2),
        ] {
            let size = ChunkSize::for_threads(threads);
            let expected = (kibibytes << 10, in_flight);
            assert_eq!((size.bytes, size.in_flight), expected, "{threads}");
        }
    }
}
