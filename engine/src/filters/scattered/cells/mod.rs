//! Cells of a few bits: stable Bloom filters (paper 004), their fingerprinted form (paper 003), and
//! block-decaying timestamps (paper 002, section 6.1).

mod decaying;
mod fingerprint_stable;
mod fingerprint_stable_spec;
mod primes;
mod stable;
mod stable_spec;

pub use decaying::{DecayingBloom, DecayingSpec};
pub use fingerprint_stable::FingerprintStableBloom;
pub use fingerprint_stable_spec::{FingerprintStableSpec, Refill};
pub use stable::StableBloom;
pub use stable_spec::{Decrement, DecrementCount, StableSpec, Update};
