//! `echoless dedup`: the stages of the data path, and the runs that take every chunk through them.
//!
//! A chunk is filled ([`feed`]), read (records found, keys hashed), judged and written ([`delivery`]). Reading needs nothing but the
//! chunk; filling, judging and writing go in the order of the stream, on one thread ([`pipeline`]) or several ([`parallel`]).

mod delivery;
mod feed;
pub(crate) mod filter;
mod input;
mod output;
mod parallel;
pub(crate) mod pinning;
mod pipeline;
mod progress;
mod runs;
pub(crate) mod sizing;
mod summary;
mod worker;

pub(crate) use pipeline::run;
