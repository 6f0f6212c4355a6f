//! The filters as published: positions scattered over the whole memory, random choices from one
//! seeded generator.
//!
//! They are the reference for the line forms, and they reproduce the tables of the papers.
//! Correctness comes before speed here. Five mechanisms, each with a choice of policy, cover
//! all that have no window by event time:
//!
//! | module | mechanism | policy | filters |
//! |---|---|---|---|
//! | `bits` | k bit filters | how bits age | Bloom, RSBF, BSBF, BSBFSD, RLBSBF |
//! | `cells` | packed counters | which counters decay, and when | SBF, FP-SBF, `b_DBF` |
//! | `rows` | fingerprint rows | victim, effect of a hit | SQF, QHT family, row-LRU, cuckoo |
//! | `generations` | two Bloom filters | when they rotate | A2, double buffering |
//! | `buffers` | an exact LRU buffer | the verdict of a miss | LRU, `FPBuffering` |
//!
//! Those with a window in ticks have a mechanism each: `windows` holds timers (TBF, equal
//! timers), the jumping window (GBF) and age-partitioned slices (APBF). `mechanism` makes filters
//! and rows of all of them.

pub(crate) mod bits;
pub(crate) mod buffers;
pub(crate) mod cells;
pub(crate) mod generations;
mod mechanism;
pub(crate) mod random;
pub(crate) mod rows;
mod storage;
pub(crate) mod windows;
mod words;
