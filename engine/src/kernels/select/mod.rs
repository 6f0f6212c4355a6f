//! Eight keys at a time: which lie at a border or beyond, and those of a set moved together. What routing keys to partitions is made of.
//!
//! A key that goes to one of two partitions is a coin toss that no branch predictor wins: `at_least` and `pick` take no branch, and `deposit` without
//! the instruction for it is a loop. There is no AVX2 form: that has no compress, and no comparison of unsigned numbers.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod ops;

pub(crate) use ops::{GROUP, SelectOps};
