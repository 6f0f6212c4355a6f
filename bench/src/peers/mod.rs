//! Echoless against the structures that a user would choose instead: the same keys, the same
//! memory, one thread, each checked for its counts.
//!
//! Every peer does the same in one call: report whether a key was seen before, and insert it if
//! not. Keys are 64-bit hashes. A peer that accepts a hash gets it, so that hashing costs it
//! nothing; the column `hashing` names the hash function that the others apply themselves.
//!
//! Each peer gets the memory of its row or less (column `measured_mib`), except exact sets, which
//! take what the keys need. All get huge pages if the system provides them (`pages.rs`). `qfilter`
//! and `cuckoofilter` have powers of two as sizes; the most accurate of those that fit is built.
//!
//! Left out are sharded or exact structures on disk, and filters that answer lookups only after a
//! build step (xor and ribbon filters).
//!
//! To add a peer, see `catalogue.rs`: it is the only file to change.

mod candidate;
mod catalogue;
mod measure;
mod ours;
mod pages;
mod rates;
mod stream;
mod workload;

pub use candidate::{Ages, Budget, Candidate, Peer};
pub use catalogue::catalogue;
pub use measure::{Arguments, run};
pub use stream::LabelledStream;
