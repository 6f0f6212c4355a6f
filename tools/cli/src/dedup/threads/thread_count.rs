//! The number of threads of a run whose user chose none: fewer for short inputs, where starting a
//! thread takes longer than its work, and for windows that threads cannot divide.

use echoless::FilterSpec;

/// The length of input that makes another thread worthwhile. A file of 10 MB with lines of 40 bytes
/// takes one thread 20 ms of CPU time and two threads 27 ms together: starting the second one and
/// the memory of its chunks cost as much as it gains (`echoless dedup -q --threads N`, median of 21
/// runs on a busy Intel Xeon with 2 cores, 2026-11-22).
const BYTES_PER_THREAD: u64 = 10 << 20;

/// The length of input below which a thread has next to nothing to do.
const LEAST_BYTES_PER_THREAD: u64 = 4 << 10;

/// The keys of a tick that each partition must have on average, at least: four messages.
///
/// Two threads that divide a filter pass 20 million short records of a window in 0.75 times the
/// time of two that use it in turns if a tick has 5000 of them. With 500 it is 0.9 times, for 1.45
/// times the CPU time, and with one 3.3 times. Records 3 s apart, in a window of 10 minutes, take
/// 4.9 times (`echoless dedup -q --window N --threads 2`, fastest of three runs, AMD EPYC with 2
/// cores, 2026-11-22).
const KEYS_PER_PARTITION: u64 = 256;

/// The highest number of threads worth starting for an input of this length.
pub(in crate::dedup) fn worthwhile_threads(input_bytes: Option<u64>) -> u64 {
    input_bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(BYTES_PER_THREAD).max(1))
}

/// The highest number of threads that an input of this length can keep busy at all.
pub(in crate::dedup) fn useful_threads(input_bytes: Option<u64>) -> u64 {
    let threads = |bytes: u64| bytes.div_ceil(LEAST_BYTES_PER_THREAD).max(1);
    input_bytes.map_or(u64::MAX, threads)
}

/// Whether the keys of a tick are enough to be divided among so many partitions. `None` is a tick
/// of time, which has any number of records.
pub(in crate::dedup) fn has_keys_for_partitions(
    records_per_tick: Option<u64>,
    partitions: usize,
) -> bool {
    records_per_tick.is_some_and(|records| records / KEYS_PER_PARTITION >= partitions as u64)
}

/// The highest number of threads worth starting for a window: as many as can divide the filter if
/// the records of a tick are known. With a window of time, threads gain by reading records.
pub(in crate::dedup) fn worthwhile_for_window(records_per_tick: Option<u64>) -> u64 {
    records_per_tick.map_or(u64::MAX, |records| (records / KEYS_PER_PARTITION).max(1))
}

/// The highest number of threads that can share the work: one for each line, or dense page, of a
/// filter that has partitions, any number where one thread at a time uses the whole filter.
pub(in crate::dedup) fn most_threads(spec: &FilterSpec) -> u64 {
    if spec.has_partitions() {
        spec.most_partitions()
    } else {
        u64::MAX
    }
}

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
    fn only_long_ticks_are_divided() {
        for (records, partitions, divided) in [
            (None, 2, false),
            (Some(1), 2, false),
            (Some(500), 2, false),
            (Some(1000), 2, true),
            (Some(1000), 3, true),
            (Some(1000), 4, false),
            (Some(500_000), 1024, true),
        ] {
            assert_eq!(has_keys_for_partitions(records, partitions), divided);
            // Where the number of threads is not given, there is one, or all divide the filter.
            let most = usize::try_from(worthwhile_for_window(records)).unwrap();
            assert!(
                most == 1 || records.is_none() || has_keys_for_partitions(records, most),
                "{records:?}"
            );
        }
    }
}
