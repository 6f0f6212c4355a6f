//! From arguments to configurations: every value checked, every default filled in. One file for each subcommand.

mod dedup;
mod eval;
mod generate;
mod hash_key;
mod plan;

use std::num::NonZeroUsize;

use echoless::SpecError;

pub(crate) use dedup::DedupConfig;
pub(crate) use eval::{EvalConfig, Input};
pub(crate) use generate::GenConfig;
pub(crate) use plan::PlanConfig;

/// The most threads: more than most machines have cores. The rings of so many take 3.5 GB, which is asked for before they start;
/// chunks and batches, 2 GB and more, come as they are used.
const MOST_THREADS: u64 = 1024;

pub(crate) fn thread_count(count: u64) -> Result<NonZeroUsize, SpecError> {
    usize::try_from(count.min(MOST_THREADS + 1))
        .ok()
        .filter(|count| *count as u64 <= MOST_THREADS)
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| SpecError::new("threads", count.to_string(), format!("1 to {MOST_THREADS}")))
}
