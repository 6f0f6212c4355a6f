//! `echoless dedup`: the stages of the data path, and the loop that takes every chunk through them.
//!
//! A chunk is filled, read (records found, keys hashed), judged and written before the next one is filled. Reading needs nothing but the
//! chunk; filling, judging and writing go in the order of the stream.

pub(crate) mod chunk;
pub(crate) mod detector;
pub(crate) mod fields;
pub(crate) mod input;
pub(crate) mod keys;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod quoting;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod split;
pub(crate) mod summary;
pub(crate) mod terminators;

mod header;
mod job;
mod mark;
mod pipeline;
mod place;

pub(crate) use job::Job;
pub(crate) use pipeline::run;
