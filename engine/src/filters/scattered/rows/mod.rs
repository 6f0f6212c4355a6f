//! Rows of fingerprints: a hash picks the row, a short fingerprint stands for the key in it, and a policy says who makes room.

mod cuckoo;
mod fingerprint;
mod store;
mod table;

pub use cuckoo::{CuckooFilter, CuckooSpec};
pub use fingerprint::Fingerprint;
pub use store::RowEncoding;
pub(crate) use table::MOST_SLOTS;
pub use table::{OnHit, RowFilter, RowSpec, Victim};
