//! Rows of fingerprints (paper 002): a hash picks the row, a short fingerprint represents the key
//! in it, and a policy picks the victim of a full row.

mod cuckoo;
mod fingerprint;
mod spec;
mod sqf;
mod store;
mod table;

pub use cuckoo::{CuckooFilter, CuckooSpec};
pub use spec::{RowPolicy, RowSpec};
pub use sqf::SqfSpec;
pub use store::RowEncoding;
pub use table::RowFilter;
