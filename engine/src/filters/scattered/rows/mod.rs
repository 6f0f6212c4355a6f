//! Rows of fingerprints (paper 002): a hash picks the row, a short fingerprint represents the key
//! in it, and a policy picks the victim of a full row.

mod cuckoo;
mod fingerprint;
mod sqf;
mod store;
mod table;

pub(in crate::filters) use cuckoo::CUCKOO;
pub(in crate::filters) use sqf::SQF;
pub(crate) use store::RowEncoding;
pub(in crate::filters) use table::{RANDOM_ROWS, queue_row};
pub(crate) use table::{RowPolicy, RowSpec};
