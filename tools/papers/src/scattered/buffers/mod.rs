//! Exact buffers of whole key hashes (paper 004, section 5.2): the baselines for approximate
//! filters of equal memory.

mod filter;
mod lru;

pub(crate) use filter::ROWS;
