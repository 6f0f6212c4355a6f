//! `--exact`: verdicts without errors in bounded memory, by several passes over the inputs.
//!
//! What a filter calls fresh is fresh, as long as nothing was evicted; only what it calls a duplicate
//! may be another key of the same fingerprint. So most keys need no second look:
//!
//! ```text
//! 1   the filter judges all keys               suspects: what may occur again, by hash
//! 2   the keys of suspects are compared        verdicts; the records are written
//! ```
//!
//! In the second pass, [`names::KeyNames`] gives each suspect a number of its own, found by a keyed
//! digest of 128 bits of the key, and an [`ExactSet`] over the numbers takes the place of the filter.
//! Everything else of a run is as without the option: threads, order, windows and outputs.
//!
//! With a state, the filter has the keys of earlier runs, too, and is kept by the first pass as in any
//! run. Their digests are on the disk ([`stored`]): another pass only names the suspects, and what
//! is found there counts as seen. The last pass adds the digests of the fresh keys. With a window,
//! their ticks are stored, too, also those of duplicates that renew their key, and what is found
//! there counts as seen then. A run commits once, at its end.
//!
//! If the numbers of all suspects need more memory than the filter had, the second pass is several
//! ones, each for a share of the suspects by their hashes. All but the last only judge; a verdict
//! takes a bit from one to the next.

mod names;
mod set;
mod stored;
mod suspects;
mod table;
mod verdicts;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use echoless::hash::KeyDigester;
use echoless::{FingerprintGeometry, OrderedFilter};
use echoless_records::chunk::{Chunk, RunPart};
use echoless_records::failure::{Failure, lock};
use echoless_records::keys::KeyReader;
use echoless_records::signals::Signals;
use serde::Serialize;

use self::names::KeyNames;
use self::set::{ExactSet, SetWindow};
pub(crate) use self::stored::SavedKeys;
pub(super) use self::stored::StoredKeys;
pub(super) use self::suspects::Suspects;
use self::table::DIGEST_BYTES;
pub(super) use self::verdicts::{ExactPhase, ExactVerdicts};
use super::backwards::Versions;
use super::delivery::Delivery;
use super::feed::{Direction, StreamEnd};
use super::pipeline::{AnyFilter, no_filter, share, whole};
use super::threads::parallel::{self, Pass};
use crate::config::DedupConfig;

/// The most passes of a direction. More would each read all inputs for next to nothing.
const MOST_ROUNDS: u64 = 1000;

/// What a run has compared, for its report.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct ExactCounts {
    /// The keys that are compared, estimated; evicted ones that came back count again.
    pub(crate) suspects: u64,
    /// How often the inputs were read.
    pub(crate) passes: u64,
}

/// What is done with the keys of a chunk beside a filter.
#[derive(Debug, Clone, Copy)]
pub(super) enum ExactStage<'a> {
    /// The filter finds the suspects.
    Find(&'a Suspects),
    /// They get names, by which they are compared, and the keys of earlier runs are found.
    Name(&'a KeyNames, &'a Suspects),
}

impl ExactStage<'_> {
    /// Between reading a chunk and judging it.
    pub(super) fn read(self, reader: &mut KeyReader, chunk: &mut Chunk) -> Result<(), Failure> {
        match self {
            Self::Find(_) => Ok(()),
            Self::Name(names, suspects) => names.name(suspects, reader, chunk),
        }
    }

    /// Behind the filter.
    pub(super) fn judged(self, chunk: &Chunk) {
        if let Self::Find(suspects) = self {
            suspects.mark(&chunk.keys.hashes, &chunk.verdicts.of_keys);
        }
    }
}

/// The suspects of a run, found by its first pass.
#[derive(Debug)]
pub(super) struct ExactRun<'a> {
    versions: &'a Versions,
    suspects: Suspects,
    digester: KeyDigester,
    /// The keys of earlier runs, if the fresh ones are stored, too.
    stored: Option<Arc<StoredKeys>>,
    has_stored: bool,
    /// How many suspects there are, estimated.
    found: u64,
    rounds: u64,
    /// What in an input has ended a pass that only finds or judges. The pass that delivers meets it
    /// again, behind the records in front of it.
    failure: Option<Failure>,
}

impl<'a> ExactRun<'a> {
    /// Finds the suspects with this filter, which is not needed afterwards. `suspects` are those of
    /// what it holds. Returns how the pass ended if a signal has ended it.
    pub(super) fn find<F: RunPart>(
        config: &DedupConfig,
        shape: FingerprintGeometry,
        (filter, suspects): (&OrderedFilter<F>, Suspects),
        cores: &[Option<usize>],
        delivery: &Mutex<Delivery<'_>>,
        versions: &'a Versions,
    ) -> Result<ControlFlow<StreamEnd, Self>, Failure> {
        let pass = Pass {
            direction: Direction::Forwards,
            exact: Some(ExactStage::Find(&suspects)),
        };
        let mut failure = None;
        let end = pass_before(config, pass, filter, cores, delivery, &mut failure)?;
        if end.signal.is_some() {
            return Ok(ControlFlow::Break(end));
        }
        let found = suspects.estimate();
        let names = found.saturating_mul(DIGEST_BYTES);
        let needed = names.saturating_add(ExactSet::bytes_of(set_window(config), names / 16));
        // `--repeated` needs the names of all duplicates at once.
        let rounds = match config.content.is_repeated() {
            true => 1,
            false => needed.div_ceil(shape.bytes()),
        };
        let mut delivery = lock(delivery);
        let stored = delivery.stored_keys();
        let run = Self {
            versions,
            suspects,
            has_stored: stored.as_ref().is_some_and(|keys| !keys.is_empty()),
            digester: stored
                .as_ref()
                .map_or_else(KeyDigester::random, |keys| keys.digester.clone()),
            stored,
            found,
            rounds: rounds.clamp(1, MOST_ROUNDS),
            failure,
        };
        delivery.begin_exact(found, run.rounds, 1 + u64::from(run.has_stored));
        Ok(ControlFlow::Continue(run))
    }

    /// Judges the stream in this direction, and delivers it once all verdicts are found. Leaves the
    /// set that has judged last. Fails if an input has changed.
    pub(super) fn pass(
        &mut self,
        config: &DedupConfig,
        direction: Direction,
        filter: &mut AnyFilter,
        cores: &[Option<usize>],
        delivery: &Mutex<Delivery<'_>>,
    ) -> Result<StreamEnd, Failure> {
        for round in 0..self.rounds {
            let is_last = round + 1 == self.rounds;
            // Before anything is written.
            self.versions.check(&config.sources)?;
            // Before another set and its names are made: they share the memory.
            *filter = no_filter(cores.len());
            let found = self.found.div_ceil(self.rounds);
            let mut names = KeyNames::new(self.digester.clone(), (round, self.rounds), found)?;
            let beside = names.memory_bytes() + self.suspects.memory_bytes();
            let mut set = set(config).with_room(names.slots(), beside)?;
            let failure = &mut self.failure;
            if let Some(stored) = self.stored.as_ref().filter(|_| self.has_stored) {
                lock(delivery).begin_naming();
                let naming = Pass {
                    direction,
                    exact: Some(ExactStage::Name(&names, &self.suspects)),
                };
                let end = pass_before(config, naming, filter, cores, delivery, failure)?;
                if end.signal.is_some() {
                    return Ok(end);
                }
                // Without the lock of the delivery: statistics are asked for meanwhile.
                let signals = Signals::catch().map_err(Failure::file("signals"))?;
                let found = |number, tick| set.insert(number, tick);
                let caught = || signals.caught();
                let signal = names.find_stored(&mut stored.store(), caught, found)?;
                if signal.is_some() {
                    return Ok(StreamEnd { signal, ..end });
                }
            }
            names.keep_digests(is_last && self.stored.is_some());
            lock(delivery).begin_round(round == 0, is_last);
            *filter = share(whole(Box::new(set)), cores.len());
            let judging = Pass {
                direction,
                exact: Some(ExactStage::Name(&names, &self.suspects)),
            };
            if is_last {
                return parallel::pass(config, judging, filter, cores, delivery);
            }
            let end = pass_before(config, judging, filter, cores, delivery, failure)?;
            if end.signal.is_some() {
                return Ok(end);
            }
        }
        unreachable!("the last round ends the loop")
    }

    /// Ends a run whose passes have ended well. Fails with what a pass before has met, and the one
    /// that delivered has not.
    pub(super) fn end(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// A pass that does not deliver. What in an input has ended it is left in `failure`. Anything else
/// is returned.
fn pass_before<F: RunPart>(
    config: &DedupConfig,
    pass: Pass<'_>,
    filter: &OrderedFilter<F>,
    cores: &[Option<usize>],
    delivery: &Mutex<Delivery<'_>>,
    failure: &mut Option<Failure>,
) -> Result<StreamEnd, Failure> {
    match parallel::pass(config, pass, filter, cores, delivery) {
        Err(failed) if lock(delivery).ends_again() => {
            failure.get_or_insert(failed);
            Ok(StreamEnd::default())
        }
        passed => passed,
    }
}

/// How long a key counts as seen; `None` is forever.
pub(super) fn set_window(config: &DedupConfig) -> Option<SetWindow> {
    config.window.as_ref().map(|window| SetWindow {
        ticks: window.ticks,
        refresh: window.refresh,
    })
}

/// A set without keys, for the window of a run.
pub(super) fn set(config: &DedupConfig) -> ExactSet {
    ExactSet::new(set_window(config))
}
