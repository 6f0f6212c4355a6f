//! Counters packed into few bits: stable Bloom filters, their fingerprinted form, and block-decaying timestamps.

mod decaying;
mod fingerprint_stable;
mod stable;

pub use decaying::{DecayingBloom, DecayingSpec};
pub use fingerprint_stable::{FingerprintStableBloom, FingerprintStableSpec, Refill};
pub use stable::{Decrement, Lowering, StableBloom, StableSpec, Update};
