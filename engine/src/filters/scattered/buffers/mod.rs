//! Exact buffers of whole key hashes: the baselines that approximate filters are compared with at equal memory.

mod filter;
mod lru;

pub use filter::{Accounting, BufferSpec, LruFilter};
