//! `echoless dedup`: the stages of the data path, and the runs that take every chunk through them.
//!
//! A chunk is filled ([`feed`]), read (records found, keys hashed), judged and written ([`delivery`]). Reading needs nothing but the
//! chunk; filling, judging and writing go in the order of the stream, on one thread ([`pipeline`]) or several ([`parallel`]).

pub(crate) mod account;
pub(crate) mod chunk;
pub(crate) mod fields;
pub(crate) mod filter;
pub(crate) mod hash_key;
pub(crate) mod input;
pub(crate) mod keys;
pub(crate) mod output;
pub(crate) mod place;
pub(crate) mod progress;
pub(crate) mod quoting;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod split;
pub(crate) mod summary;
pub(crate) mod terminators;

mod delivery;
mod feed;
mod header;
mod job;
mod mark;
mod parallel;
mod pipeline;
mod seat;

pub(crate) use job::{Job, Threads};
pub(crate) use pipeline::run;
