//! What a filter can say of itself while it runs and when it is done.

use crate::kernels::isa::Kernel;

/// A filter's account of itself.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The memory of the filter's state, in bytes.
    pub memory_bytes: u64,
    /// How much of it lies on huge pages, in bytes; 0 where the system does not tell.
    pub huge_page_bytes: u64,
    /// The kernel in use.
    pub kernel: Kernel,
    /// The width of a slot in bits.
    pub slot_bits: u32,
    /// Keys observed.
    pub observed: u64,
    /// Keys that were called fresh.
    pub fresh: u64,
    /// Fingerprints that were pushed out by others. While this is 0, no duplicate was missed.
    pub evictions: u64,
    /// The share of slots that are taken, 0 to 1.
    pub fill: f64,
    /// The probability that a key never seen before would now be called a duplicate. A bound for QQHTD, whose slots may hold copies of one key.
    pub expected_fpr: f64,
    /// The expected number of keys so far that were called duplicates without being any; with a bound on the rate, a bound too.
    pub expected_false_duplicates: f64,
    /// The age at which 1 duplicate in 1000 is missed; younger duplicates are safer, older ones are not. In distinct keys since the key
    /// was recorded (FIFO) or last seen (LRU), or in arrivals since it was last seen (QQHTD, which records each of them).
    pub miss_age_keys: f64,
}
