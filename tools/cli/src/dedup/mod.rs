//! `echoless dedup`: the stages of the data path, and the loops that pass every chunk through them.
//!
//! ```text
//! fill (feed) -> read records, hash keys -> filter -> write (delivery)
//! ```
//!
//! With a window, the [`clock`] of the stream passes from chunk to chunk between reading and
//! filter. Reading depends on nothing but the chunk. Filling, filtering and writing happen in the
//! order of the stream, on one thread ([`pipeline`]) or several ([`parallel`]).

mod audit;
mod busiest;
mod chunk_order;
#[cfg(test)]
mod chunk_order_tests;
mod chunk_size;
mod clock;
mod compressed;
mod delivery;
mod ended_pipe;
mod ending;
mod feed;
pub(crate) mod filter;
mod locked_filter;
mod monitor;
mod output;
mod outputs;
mod parallel;
pub(crate) mod pinning;
mod pipeline;
mod progress;
mod record_positions;
mod repeated;
mod runs;
mod seen_files;
pub(crate) mod sizing;
mod stages;
mod stats;
mod stats_file;
mod summary;
mod window_audit;
#[cfg(test)]
mod window_bounds;
mod worker;
mod worker_loop;

pub(crate) use pipeline::run;
pub(crate) use seen_files::SeenFiles;
pub(crate) use stats_file::replace_unread;
