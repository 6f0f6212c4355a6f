//! The published filters, one cache line for each key: the key's hash picks a line, and all that the key reads or writes lies in it.
//!
//! A line is a small filter of its own, of 512 bits, which sees the keys that its hash range holds. What a policy asks of the whole filter (a load,
//! a count of arrivals, a random bit) it asks of the line. Random choices are drawn from the key hash, the seed and the line's content, so a
//! line's future depends only on its own keys in their order: verdicts are the same for any partitioning and on every kernel.
//!
//! | rule | filters | in a line |
//! |---|---|---|
//! | `bits` | Bloom, RSBF, BSBF, BSBFSD, RLBSBF | k ranges of 512/k bits |
//! | `stable` | SBF | 512/d cells of d bits |
//! | `fingerprint_stable` | FP-SBF | 64 or 32 cells of counter and fingerprint |
//! | `row` | QHT, QHTD | a row of 64 to 8 fingerprints, random victim |
//!
//! The rows that are queues (QQHT, QQHTD, row-LRU) are [`FingerprintLines`](crate::FingerprintLines).

mod ageing;
mod bits;
mod draw;
mod filter;
mod fingerprint_stable;
mod places;
mod row;
mod spec;
mod stable;

pub use filter::LineForm;
pub use spec::{LineKind, LineSpec};
