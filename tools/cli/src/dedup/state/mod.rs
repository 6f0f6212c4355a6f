//! `dedup --state`: what a run needs to go on after it was killed, or with the next inputs.
//!
//! ```text
//! delivery: chunk 0, chunk 1, chunk 2, commit, chunk 3 ...
//!              |        |        |       |
//! committer:  keys     keys     keys    sync outputs, then write and sync the commit
//! ```
//!
//! The [delivery](super::delivery) passes the keys of each chunk that it has written to a thread,
//! the [`Committer`](committer::Committer), which appends them to the journal in the folder of the
//! state. A commit, of a [`SavedRun`], says how far inputs and outputs are, and comes behind the keys
//! of the chunks before it. Filter and commit are one point of the stream: what was judged beyond
//! it is in no file, and is judged again after a restart.

mod committer;
mod inputs;
mod known_inputs;
mod restart;
mod saved_run;

pub(super) use committer::WantedBlocks;
pub(super) use restart::{Restart, RunState};
pub(crate) use saved_run::SavedRun;
