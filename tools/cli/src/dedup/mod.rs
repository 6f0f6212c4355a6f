//! `echoless dedup`: the stages of the data path, and the loops that pass every chunk through them.
//!
//! ```text
//! fill (feed) -> read records, hash keys -> filter -> write (delivery)
//! ```
//!
//! With a window, the [`clock`] of the stream passes from chunk to chunk between reading and
//! filter. Reading depends on nothing but the chunk. Filling, filtering and writing happen in the
//! order of the stream, on one thread ([`pipeline`]) or several ([`threads`]).

mod audit;
mod backwards;
mod clock;
mod delivery;
mod exact;
mod feed;
mod known_states;
mod observers;
mod outputs;
mod pipeline;
mod repeated;
mod reports;
mod seen_files;
mod state;
mod threads;
mod top_keys;

pub(crate) use observers::{Observer, Words};
pub(crate) use outputs::Outputs;
pub(crate) use outputs::rotation::{MostOfFile, RotatedFiles};
pub(crate) use outputs::stats_file::replace_unread;
pub(crate) use pipeline::run;
pub(crate) use reports::fields::Fields;
pub(crate) use reports::stats::RunCounts;
pub(crate) use state::SavedRun;
