//! Cells of a few bits: stable Bloom filters (paper 004), their fingerprinted form (paper 003), and
//! block-decaying timestamps (paper 002, section 6.1).

mod decaying;
mod fingerprint_stable;
mod stable;

pub(crate) use decaying::DECAYING;
pub(crate) use fingerprint_stable::{FINGERPRINT_STABLE, FingerprintStableSpec};
pub(crate) use stable::{Decrement, STABLE, StableSpec, Update};
