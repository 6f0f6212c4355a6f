//! The filters as their papers publish them: positions scattered over the whole memory, random choices from one seeded generator.
//!
//! They are the reference that the one-line forms and the printed tables are held against: right first, fast second. Five mechanisms carry
//! all of them, each with a choice of policy:
//!
//! | module | mechanism | policy |
//! |---|---|---|
//! | [`bits`] | k bit filters, one bit of each a key | how bits age: Bloom, RSBF, BSBF, BSBFSD, RLBSBF |
//! | [`cells`] | packed counters | what lowers them, and when: SBF, FP-SBF, `b_DBF` |
//! | [`rows`] | rows of fingerprints | fingerprint, victim, what a hit does: SQF, QHT, QHTD, QQHT, QQHTD, row-LRU, cuckoo |
//! | [`generations`] | two Bloom filters | when they take turns: A2, double buffering |
//! | [`buffers`] | an exact least-recently-used buffer | what a miss answers: LRU, `FPBuffering` |

pub mod bits;
pub mod buffers;
pub mod cells;
pub(crate) mod checks;
pub mod generations;
mod key_by_key;
pub(crate) mod random;
pub mod rows;
mod storage;
