//! One filter for any number of threads: it takes `&self`, and needs no worker threads and no
//! locks.
//!
//! A key reads and writes exactly one 64-bit word, so one compare-and-swap or one `fetch_or`
//! decides its verdict. This is what makes the guarantee of [`SharedFilter`] possible. A row of
//! several words could not give it, so no layout here has one.

mod clock;
mod filter;
mod report;
mod rule;
mod spec;
mod stamped;
mod striped;

pub use filter::SharedFilter;
pub use spec::{SharedLayout, SharedSpec};
