//! The filters of the papers in lines. A policy that needs the fill, a count of arrivals or a random
//! bit of the whole filter takes that of the line instead. Random choices are drawn from the key
//! hash, the seed and the content of the line.
//!
//! | rule | filters | in a line |
//! |---|---|---|
//! | `bits` | Bloom, BSBF, BSBFSD, RLBSBF | k ranges of 512/k bits |
//! | `bits` | RSBF | k ranges of 496/k bits, a count of 16 bits |
//! | `stable` | SBF | 504/d cells of d bits, a count of 8 bits |
//! | `fingerprint_stable` | FP-SBF | 64 or 32 cells of counter and fingerprint |
//! | `rows` | QHT | a row of 64 to 8 fingerprints, random victim |
//! | `rows` | QHTD | a row of 63 to 7 fingerprints, random victim, a count in the last slot |
//!
//! An unchanged line repeats its draw, so a few recurring keys could cycle forever. Rules with
//! random draws that change a line for duplicates too therefore count their updates in the
//! line, and the count is part of the content that the next draw depends on. The other rules
//! have no count, so keys that recur and undo each other can stay missed. Measured for BSBF,
//! these are at most 2 keys in 1000 with up to 4 filters in a line and 1 in 100 with 8, where a
//! scattered filter misses none. FP-SBF in its repaired form misses as often as in its
//! scattered form, but the same keys up to twice as often.

mod ageing;
pub(crate) mod bits;
pub(crate) mod fingerprint_stable;
mod layout;
mod random;
pub(crate) mod rows;
pub(crate) mod stable;
