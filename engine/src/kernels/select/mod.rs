//! Selecting keys by partition, eight at a time: which hashes are at or above a border, and the
//! keys of a set moved together. Routing keys to partitions consists of these operations.
//!
//! Whether a key belongs to one of two partitions is random, and no branch predictor can guess it.
//! `at_least` and `pick` therefore take no branch.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod ops;

pub(crate) use ops::{GROUP, SelectOps};
