//! Rows of fingerprints (paper 002): a hash picks the row, a short fingerprint represents the key
//! in it, and a policy picks the victim of a full row.

mod cuckoo;
mod fingerprint;
mod store;
mod table;

pub use cuckoo::{CuckooFilter, CuckooSpec};
pub use fingerprint::Fingerprint;
pub use store::RowEncoding;
pub(crate) use table::MOST_SLOTS;
pub use table::{OnHit, RowFilter, RowSpec, Victim};
