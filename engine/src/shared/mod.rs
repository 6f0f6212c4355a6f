//! One filter for any number of threads: `&self`, no worker threads, no locks.
//!
//! All that a key reads and writes is ONE 64-bit word, so one compare-and-swap or one `fetch_or` decides. That is what makes the
//! promise of [`SharedFilter`] possible; rows of several words could not give it, so there are none here.

mod filter;
mod rule;
mod spec;

pub use filter::SharedFilter;
pub use spec::{SharedLayout, SharedSpec};
