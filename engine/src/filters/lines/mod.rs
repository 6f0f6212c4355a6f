//! The published filters, one cache line for each key: the key's hash picks a line, and all that the key reads or writes lies in it.
//!
//! A line is a small filter of its own, of 512 bits, which sees the keys that its hash range holds. What a policy asks of the whole filter (a load,
//! a count of arrivals, a random bit) it asks of the line. Random choices are drawn from the key hash, the seed and the line's content, so a
//! line's future depends only on its own keys in their order: verdicts are the same for any partitioning and on every kernel.
//!
//! | rule | filters | in a line |
//! |---|---|---|
//! | `bits` | Bloom, BSBF, BSBFSD, RLBSBF | k ranges of 512/k bits |
//! | `bits` | RSBF | k ranges of 496/k bits, a count of 16 bits |
//! | `stable` | SBF | 504/d cells of d bits, a count of 8 bits |
//! | `fingerprint_stable` | FP-SBF | 64 or 32 cells of counter and fingerprint |
//! | `row` | QHT | a row of 64 to 8 fingerprints, random victim |
//! | `row` | QHTD | a row of 63 to 7 fingerprints, random victim, a count in the last slot |
//!
//! A line that arrivals leave as they find it would draw the same choice for ever, and few keys that keep coming back would lead it in circles.
//! So the filters that change a line for duplicates too count their updates in it, and the count is part of the content. The others keep none:
//! keys that come round for ever and undo each other can stay missed. Of BSBF that was measured for 2 keys in 1000 at most with up to 4 filters
//! and for 1 in 100 with 8 of them, where a scattered filter misses none; FP-SBF in
//! its repaired form misses as often as in its scattered form, but up to twice as often the same keys.
//!
//! The rows that are queues (QQHT, QQHTD, row-LRU) are [`FingerprintLines`](crate::FingerprintLines).

mod ageing;
mod bits;
mod filter;
pub mod fingerprint;
mod fingerprint_stable;
mod layout;
mod random;
mod row;
mod spec;
mod stable;

pub use crate::kernels::LineRange;
pub use filter::LineForm;
pub use spec::{LineKind, LineSpec};
