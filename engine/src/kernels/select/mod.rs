//! Eight keys at a time: which lie at a border or beyond, and those of a set moved together. What routing keys to partitions is made of.
//!
//! A key that goes to one of two partitions is a coin toss that no branch predictor wins; these operations take no branch.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod ops;

pub(crate) use ops::{GROUP, SelectOps};
