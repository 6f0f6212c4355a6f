//! How a run is divided: the number of threads where its user chose none, the partitions of the
//! filter, and the length of the chunks. No verdict depends on any of them.

use std::time::Duration;

use echoless::FilterSpec;
use echoless_records::files::Source;

/// The length of input that makes another thread worthwhile. A file of 10 MB with lines of 40 bytes
/// takes one thread 20 ms of CPU time and two threads 27 ms together: starting the second one and
/// the memory of its chunks cost as much as it gains (`echoless dedup -q --threads N`, median of 21
/// runs on a busy Intel Xeon with 2 cores, 2026-11-22).
const BYTES_PER_THREAD: u64 = 10 << 20;

/// The length of input below which a thread has next to nothing to do.
const LEAST_BYTES_PER_THREAD: u64 = 4 << 10;

/// The threads for which one partition is enough: a thread reads, hashes and writes records for
/// longer than it uses the filter.
const THREADS_PER_PARTITION: usize = 4;

/// The highest number of threads worth starting for an input of this length.
pub(in crate::dedup) fn worthwhile_threads(input_bytes: Option<u64>) -> u64 {
    input_bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(BYTES_PER_THREAD).max(1))
}

/// The highest number of threads that an input of this length can keep busy at all.
pub(in crate::dedup) fn useful_threads(input_bytes: Option<u64>) -> u64 {
    let threads = |bytes: u64| bytes.div_ceil(LEAST_BYTES_PER_THREAD).max(1);
    input_bytes.map_or(u64::MAX, threads)
}

/// So many threads start in some 10 ms, and their rings take 14 MB.
///
/// Hundreds of threads are worth starting for a long stream only: the rings between a thousand of
/// them take seconds and gigabytes. A short pipe has usually ended by the time that its reader
/// starts. Whether it has depends on chance.
pub(in crate::dedup) const CHEAP_THREADS: usize = 64;

/// How long to wait for the end of a pipe: less than the threads beyond the cheap ones take.
const PATIENCE: Duration = Duration::from_millis(50);

/// The length of all inputs in bytes, if each is a regular file or a pipe that ends soon.
pub(in crate::dedup) fn bytes_if_ended(sources: &[Source]) -> Option<u64> {
    Source::total_of(sources, |source| {
        source.length().or_else(|| rest_of_pipe(source))
    })
}

/// The bytes that are left in standard input, if it is a pipe without a writer.
fn rest_of_pipe(source: &Source) -> Option<u64> {
    use std::os::unix::fs::FileTypeExt;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // A named pipe gets its writer when it is opened, which is later.
    if !matches!(source, Source::Stdin) {
        return None;
    }
    let pipe = source.open().ok()?;
    if !pipe.metadata().ok()?.file_type().is_fifo() {
        return None;
    }
    let patience = Timespec::try_from(PATIENCE).ok();
    // Without a request for data, `poll` waits until the last writer is gone.
    let mut polled = [PollFd::new(&pipe, PollFlags::HUP)];
    poll(&mut polled, patience.as_ref()).ok()?;
    let has_ended = polled[0].revents().contains(PollFlags::HUP);
    has_ended
        .then(|| rustix::io::ioctl_fionread(&pipe).ok())
        .flatten()
}

/// The number of partitions of a filter that so many threads on so many cores use in turns. One
/// partition needs no division of the keys, and serves a filter that has no partitions.
pub(in crate::dedup) fn partitions(spec: &FilterSpec, threads: usize, cores: usize) -> usize {
    if !spec.has_partitions() {
        return 1;
    }
    let most = usize::try_from(spec.most_partitions()).unwrap_or(usize::MAX);
    threads
        .min(cores)
        .div_ceil(THREADS_PER_PARTITION)
        .clamp(1, most.max(1))
}

/// The length of a chunk without a long record, on several threads. Each chunk takes some waits and
/// wake-ups.
pub(in crate::dedup) const CHUNK_BYTES: usize = 1 << 20;

/// The number of chunks that a thread has judged and not delivered at a time, at most: it passes
/// the next ones while another thread has the chunk that is delivered next.
pub(super) const CHUNKS_IN_FLIGHT: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_inputs_get_one_thread_and_unknown_lengths_do_not_limit_threads() {
        assert_eq!(worthwhile_threads(Some(0)), 1);
        assert_eq!(worthwhile_threads(Some(10 << 20)), 1);
        assert_eq!(worthwhile_threads(Some((10 << 20) + 1)), 2);
        assert_eq!(
            worthwhile_threads(Some(u64::MAX)),
            u64::MAX.div_ceil(10 << 20)
        );
        assert_eq!(worthwhile_threads(None), u64::MAX);
        assert_eq!(useful_threads(Some(0)), 1);
        assert_eq!(useful_threads(Some((4 << 10) + 1)), 2);
        assert_eq!(useful_threads(None), u64::MAX);
    }

    #[test]
    fn partitions_follow_the_threads_that_run_at_a_time() {
        let lines: FilterSpec = "fingerprint:memory=1MiB".parse().unwrap();
        for (threads, cores, expected) in [
            (1, 64, 1),
            (4, 64, 1),
            (5, 64, 2),
            (64, 2, 1),
            (64, 64, 16),
            (1000, 64, 16),
        ] {
            assert_eq!(partitions(&lines, threads, cores), expected, "{threads}");
        }
        let few: FilterSpec = "fingerprint:memory=128B".parse().unwrap();
        assert_eq!(partitions(&few, 64, 64), 2);
        let scattered = echoless_papers::parse("bloom:k=4,form=scattered,memory=1MiB").unwrap();
        assert_eq!(partitions(&scattered, 64, 64), 1);
    }
}
