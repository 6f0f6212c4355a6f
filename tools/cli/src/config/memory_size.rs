//! The memory of a run whose user chose none: less of it for short inputs.
//!
//! Touching the default 256 MiB takes longer than the rest of a run over a file of a megabyte. If
//! the length of every input is known, it bounds the number of distinct keys, and the filter gets
//! as many lines as keep an eviction improbable at that number ([`EVICTION_PROBABILITY`]). The
//! bound is the number of records as far as it was estimated (`records/count.rs`); else it assumes
//! the shortest possible ones. An input that grows while it is read, or hides short records between
//! blocks of long ones, may exceed the bound: its evictions are counted and reported as always.

use std::sync::OnceLock;

use echoless::FingerprintGeometry;
use echoless::memory::{LINE_BYTES, available};

/// The memory of a filter where neither the length of the input nor the memory of the machine
/// limits it, in bytes.
pub(super) const MOST_DEFAULT_MEMORY: u64 = 256 << 20;

/// The least memory, in bytes: a line for each of the 1024 threads that `--threads` allows.
const LEAST_MEMORY: u64 = 64 << 10;

/// Memory that no machine lacks, in bytes.
const LITTLE_MEMORY: u64 = 1 << 20;

/// The size of a huge page of most systems in bytes. A filter of whole ones starts sooner than a
/// smaller one in many small pages, each of which is cleared when it is first touched.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// The highest probability that a filter sized by the length of the input evicts anything.
///
/// The memory is inversely proportional to its 16th root for slots of 32 bits: with half as many
/// keys again as the bound, the probability is 0.1.
const EVICTION_PROBABILITY: f64 = 1e-4;

/// The memory of a filter where the length of the input does not limit it, in bytes:
/// [`MOST_DEFAULT_MEMORY`], or in a process with less than twice of that available the largest
/// power of two that leaves as much again for everything else.
///
/// It is read once, so that all parts of a run agree.
pub(super) fn default_memory() -> u64 {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    *MEMORY.get_or_init(|| default_of(available()))
}

/// The memory that is enough, if that is known, or the default if that is less. Little memory is
/// always there, and finding out how much takes a good part of a short run.
pub(super) fn at_most_default(enough: Option<u64>) -> u64 {
    match enough {
        Some(bytes) if bytes <= LITTLE_MEMORY => bytes,
        Some(bytes) => bytes.min(default_memory()),
        None => default_memory(),
    }
}

fn default_of(available: Option<u64>) -> u64 {
    let half = available.map_or(u64::MAX, |bytes| bytes / 2);
    if half >= MOST_DEFAULT_MEMORY {
        return MOST_DEFAULT_MEMORY;
    }
    half.checked_ilog2()
        .map_or(0, |log| 1 << log)
        .max(LEAST_MEMORY)
}

/// The memory of a filter of this shape for an input with at most so many distinct keys: that of
/// the shape, or less.
pub(super) fn memory_for(keys: u64, shape: FingerprintGeometry) -> u64 {
    // A line evicts once it holds one key more than it has slots. `n` keys put `k` or more of them
    // in one of `L` lines with a probability of at most
    //
    //     L * (n choose k) / L^k  <=  L * (n / L)^k / k!
    //
    // which is the allowed one at L = (n^k / (k! * allowed))^(1 / (k - 1)).
    let k = f64::from(shape.width.slots() + 1);
    let log_factorial: f64 = (1..=shape.width.slots() + 1)
        .map(|i| f64::from(i).ln())
        .sum();
    let log_power = k * (keys as f64).ln() - log_factorial - EVICTION_PROBABILITY.ln();
    let lines = (log_power / (k - 1.0)).exp().ceil();
    // The cast saturates: without keys the logarithm is minus infinity and there are 0 lines.
    let bytes = (lines as u64).saturating_mul(LINE_BYTES).min(shape.bytes());
    let bytes = if bytes > LITTLE_MEMORY {
        bytes.next_multiple_of(HUGE_PAGE_BYTES)
    } else {
        bytes.max(LEAST_MEMORY)
    };
    bytes.min(shape.bytes())
}

/// The highest number of distinct records in `bytes` bytes, if each has `overhead` bytes that are
/// not content.
///
/// Few distinct records are short: 1 has no content, 256 have one byte, 65,536 have two.
pub(super) fn most_distinct_records(bytes: u64, overhead: u64) -> u64 {
    let mut left = bytes;
    let mut records = 0;
    let mut distinct = 1_u64;
    for length in 0_u64.. {
        // A record without content and overhead takes no bytes of the input, and there is one.
        let size = length + overhead;
        let fitting = left.checked_div(size).unwrap_or(1).min(distinct);
        records += fitting;
        left -= fitting * size;
        if fitting < distinct {
            break;
        }
        distinct = distinct.saturating_mul(256);
    }
    records
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use echoless::SlotWidth;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn shape(width: SlotWidth) -> FingerprintGeometry {
        let lines = MOST_DEFAULT_MEMORY / LINE_BYTES;
        FingerprintGeometry::new(lines, width)
    }

    /// A bound on the probability that `keys` keys overflow a line, one factor at a time.
    fn eviction_probability(keys: u64, memory: u64, width: SlotWidth) -> f64 {
        let lines = (memory / LINE_BYTES) as f64;
        let factor = |i: u32| keys as f64 / lines / f64::from(i);
        lines * (1..=width.slots() + 1).map(factor).product::<f64>()
    }

    #[test]
    fn a_small_machine_leaves_half_of_its_memory() {
        assert_eq!(default_of(None), MOST_DEFAULT_MEMORY);
        assert_eq!(default_of(Some(512 << 20)), MOST_DEFAULT_MEMORY);
        assert_eq!(default_of(Some((512 << 20) - 1)), 128 << 20);
        assert_eq!(default_of(Some(128_000_000)), 32 << 20);
        assert_eq!(default_of(Some(0)), LEAST_MEMORY);
    }

    #[test]
    fn short_inputs_get_little_memory_and_long_ones_the_default() {
        let memory = |keys| memory_for(keys, shape(SlotWidth::Bits32));
        assert_eq!(memory(0), LEAST_MEMORY);
        assert_eq!(memory(1), LEAST_MEMORY);
        assert!(memory(most_distinct_records(1_000_000, 1)) < 12 << 20);
        assert_eq!(memory(10_000_000), MOST_DEFAULT_MEMORY);
        assert_eq!(memory(u64::MAX), MOST_DEFAULT_MEMORY);
    }

    #[test]
    fn distinct_records_are_bounded_by_their_bytes() {
        for (bytes, overhead, records) in [
            (0, 1, 0),
            (1, 1, 1),
            (2, 1, 1),
            (3, 1, 2),
            (1 + 256 * 2, 1, 257),
            (1 + 256 * 2 + 65_536 * 3 + 4, 1, 1 + 256 + 65_536 + 1),
            (256, 0, 257),
            (258, 0, 258),
        ] {
            assert_eq!(
                most_distinct_records(bytes, overhead),
                records,
                "{bytes}, {overhead}"
            );
        }
        for overhead in [0, 1, 2] {
            let most = most_distinct_records(u64::MAX, overhead);
            assert!(most > u64::MAX / 12 && most < u64::MAX / 7, "{most}");
        }
    }

    proptest! {
        #[test]
        fn memory_rises_with_the_keys_up_to_the_default(keys: u64, shift in 0_u32..64) {
            let keys = keys >> shift;
            for width in SlotWidth::ALL {
                let memory = memory_for(keys, shape(*width));
                prop_assert!((LEAST_MEMORY..=MOST_DEFAULT_MEMORY).contains(&memory));
                prop_assert!(memory_for(keys / 2, shape(*width)) <= memory);
                if memory < MOST_DEFAULT_MEMORY {
                    let probability = eviction_probability(keys, memory, *width);
                    prop_assert!(probability <= EVICTION_PROBABILITY * 1.001, "{}", probability);
                }
            }
        }

        #[test]
        fn memory_never_exceeds_that_of_the_shape(keys: u64, lines in 1_u64..1 << 22) {
            let shape = FingerprintGeometry::new(lines, SlotWidth::Bits32);
            prop_assert!(memory_for(keys, shape) <= shape.bytes());
        }

        #[test]
        fn no_input_has_more_distinct_records(
            input in vec(prop::sample::select(b"ab\n".to_vec()), 0..300),
        ) {
            let distinct: HashSet<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
            // The last record may lack its terminator.
            let bytes = input.len() as u64 + 1;
            prop_assert!(distinct.len() as u64 <= most_distinct_records(bytes, 1));
        }
    }
}
