//! What a run of `echoless dedup` shall do: every value checked, every default filled in.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use echoless::assembly::pin_thread;
use echoless::{KeyHasher, Pinning, SpecError};

use super::fields::FieldList;
use super::filter::FilterChoice;
use super::keys::Missing;
use super::records::Framing;
use crate::files::{Source, Target};

/// A run of `echoless dedup`.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) sources: Vec<Source>,
    pub(crate) framing: Framing,
    /// The longest record, terminator included.
    pub(crate) max_record: usize,
    pub(crate) header: bool,
    /// The fields to compare; `None` compares whole records.
    pub(crate) key: Option<FieldList>,
    pub(crate) delimiter: u8,
    pub(crate) missing: Missing,
    pub(crate) hasher: KeyHasher,
    /// Whether the hash has a secret key.
    pub(crate) keyed_hash: bool,
    pub(crate) filter: FilterChoice,
    /// Files that options were read from: no output may overwrite them either.
    pub(crate) settings: Vec<Source>,
    pub(crate) output: Target,
    pub(crate) duplicates: Option<Target>,
    pub(crate) stats: Option<Target>,
    pub(crate) invert: bool,
    pub(crate) count: bool,
    pub(crate) fail_on_duplicates: bool,
    pub(crate) quiet: bool,
    pub(crate) threads: Threads,
    /// Whether each thread stays on a core of its own.
    pub(crate) pin: bool,
}

impl Job {
    /// The core that each thread is to stay on; none if that was not asked for.
    pub(crate) fn cores(&self, threads: usize) -> Result<Vec<Option<usize>>, SpecError> {
        if !self.pin {
            return Ok(vec![None; threads]);
        }
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        if threads > cores {
            let allowed = format!("1 to {cores} with --pin, a core for each");
            return Err(SpecError::new("threads", threads.to_string(), allowed));
        }
        let places = Pinning::Spread.cores(threads)?;
        if places.contains(&None) {
            let allowed = "nothing, for this system does not say which cores there are";
            return Err(SpecError::new("pin", "a core for each thread", allowed));
        }
        Ok(places)
    }
}

/// Has this thread stay on a core, if one is given.
pub(crate) fn pin(core: Option<usize>) -> Result<(), SpecError> {
    if pin_thread(core) {
        return Ok(());
    }
    let asked = core.map_or_else(String::new, |core| format!("core {core}"));
    let allowed = "a core that the system lets this process choose";
    Err(SpecError::new("pin", asked, allowed))
}

/// How many threads share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// As many as this process may use cores.
    AllCores,
    /// So many.
    Count(NonZeroUsize),
}

impl Threads {
    /// The number of threads, of which so many can have a part of the work.
    pub(crate) fn count(self, most: u64) -> usize {
        match self {
            Self::Count(count) => count.get(),
            Self::AllCores => {
                let cores = available_parallelism().map_or(1, NonZeroUsize::get);
                cores
                    .min(usize::try_from(most).unwrap_or(usize::MAX))
                    .max(1)
            }
        }
    }
}
