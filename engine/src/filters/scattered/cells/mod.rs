//! Cells of a few bits: stable Bloom filters (paper 004), their fingerprinted form (paper 003), and
//! block-decaying timestamps (paper 002, section 6.1).

mod decaying;
mod fingerprint_stable;
mod stable;

pub use decaying::{DecayingBloom, DecayingSpec};
pub use fingerprint_stable::{FingerprintStableBloom, FingerprintStableSpec, Refill};
pub use stable::{Decrement, DecrementCount, StableBloom, StableSpec, Update};
