//! Rows of fingerprints (paper 002): a hash picks the row, a short fingerprint represents the key
//! in it, and a policy picks the victim of a full row.

mod cuckoo;
mod fingerprint;
mod store;
mod table;

pub(crate) use cuckoo::CUCKOO;
pub(crate) use table::{QUEUES, RANDOM_ROWS, SQF, counters};
