//! Rows of fingerprints: a hash picks the row, a short fingerprint stands for the key in it, and a policy says who makes room.

mod cuckoo;
mod fingerprint;
mod store;
mod table;

pub use cuckoo::{CuckooFilter, CuckooSpec};
pub use store::RowEncoding;
pub use table::{RowFilter, RowPolicy, RowSpec, SqfSpec};
