//! How long the chunks of a run on several threads are, and how many of them are under way.

use crate::reading::CHUNK_BYTES;

/// The chunks of a run on several threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dedup) struct ChunkSize {
    /// The length of a chunk without a long record.
    pub(super) bytes: usize,
    /// The number of chunks that a thread has submitted at a time: it fills and reads the next ones
    /// while the verdicts of one are under way.
    pub(super) in_flight: usize,
}

impl ChunkSize {
    /// The chunks of threads that use a filter in turns: they exchange no keys.
    pub(super) const IN_TURNS: Self = Self {
        bytes: CHUNK_BYTES,
        in_flight: 6,
    };

    /// The chunks of a mesh of so many threads.
    ///
    /// A chunk of 256 KiB has 2,600 records of 100 bytes: 64 keys, a whole message, for each of 41
    /// partitions, but 10 for each of 256. So chunks grow with the threads, and fewer of them are
    /// under way. On 2 cores, 64 threads take 2.0 GB of call records in 0.79 times the time with
    /// chunks of 1 MiB in place of 256 KiB, and 256 threads in 0.31 times with 2 MiB, for 4.9 in
    /// place of 16.2 s of CPU time (`echoless dedup -q -m 64MiB --threads N`, medians of three runs
    /// in turns, AMD EPYC with Zen 4, 2026-11-23). Two threads gain 3 % with 1 MiB, and lose 9 %
    /// with 2 MiB.
    pub(super) fn of_mesh(threads: usize) -> Self {
        let factor = (threads / 16).next_power_of_two().min(8);
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
            (31, 256, 6),
            (32, 512, 3),
            (64, 1024, 2),
            (128, 2048, 2),
            (1024, 2048, 2),
        ] {
            let size = ChunkSize::of_mesh(threads);
            let expected = (kibibytes << 10, in_flight);
            assert_eq!((size.bytes, size.in_flight), expected, "{threads}");
        }
    }
}
