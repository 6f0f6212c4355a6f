//! Against what a user would pick instead: the same keys, the same memory, one thread, each checked for its count.
//!
//! Every peer answers the same request in one call: was this key seen before, and if not, record it. The keys are 64-bit hashes.
//! Peers with a call for a given hash get it, so that hashing is counted against nobody; the column `hashing` names what the others
//! compute inside. Each peer gets the memory of its row or less (the column `measured_mib`), but for exact sets, which take what the
//! keys take. All get huge pages where the system grants them (`pages.rs`). `qfilter` and `cuckoofilter` know powers of two only; of those that fit the most accurate is built.
//!
//! Left out: sharded or exact structures on disk, and crates that only answer "is it in" after a build step (xor and ribbon filters).

mod candidate;
mod catalogue;
mod measure;
mod pages;
mod rates;
mod stream;
mod workload;

pub use candidate::{Ages, Candidate, Peer};
pub use catalogue::catalogue;
pub use measure::{Arguments, run};
pub use stream::LabelledStream;
