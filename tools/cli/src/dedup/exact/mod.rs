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
//! If the numbers of all suspects need more memory than the filter had, the second pass is several
//! ones, each for a share of the suspects by their hashes. All but the last only judge; a verdict
//! takes a bit from one to the next.

mod names;
mod set;
mod suspects;
mod table;
mod verdicts;

use std::ops::ControlFlow;
use std::sync::Mutex;

use echoless::FingerprintGeometry;
use echoless::hash::KeyDigester;
use echoless_records::chunk::Chunk;
use echoless_records::failure::{Failure, lock};
use echoless_records::keys::KeyReader;
use serde::Serialize;

use self::names::KeyNames;
pub(crate) use self::set::{ExactSet, SetWindow};
use self::suspects::Suspects;
use self::table::DIGEST_BYTES;
pub(super) use self::verdicts::{ExactPhase, ExactVerdicts};
use super::delivery::Delivery;
use super::feed::{Direction, StreamEnd};
use super::pipeline::{AnyFilter, no_filter, share, whole};
use super::threads::parallel::{self, Pass};
use crate::config::{DedupConfig, WindowConfig};

/// The most passes of a direction. More would each read all inputs for next to nothing.
const MOST_ROUNDS: u64 = 1000;

/// What a run has compared, for its report.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct ExactCounts {
    /// The keys that were compared, estimated.
    pub(crate) suspects: u64,
    /// How often the inputs were read.
    pub(crate) passes: u64,
}

/// What is done with the keys of a chunk beside a filter.
#[derive(Debug)]
pub(super) enum ExactStage {
    /// The filter finds the suspects.
    Find(Suspects),
    /// They are compared.
    Compare(Box<KeyNames>, Suspects),
}

impl ExactStage {
    /// Between reading a chunk and judging it.
    ///
    /// # Errors
    /// [`Failure`] without memory.
    pub(super) fn read(&self, reader: &mut KeyReader, chunk: &mut Chunk) -> Result<(), Failure> {
        match self {
            Self::Find(_) => Ok(()),
            Self::Compare(names, suspects) => names.name(suspects, reader, chunk),
        }
    }

    /// Behind the filter.
    pub(super) fn judged(&self, chunk: &Chunk) {
        if let Self::Find(suspects) = self {
            suspects.mark(&chunk.keys.hashes, &chunk.verdicts.of_keys);
        }
    }
}

/// The suspects of a run, found by its first pass.
#[derive(Debug)]
pub(super) struct ExactRun {
    /// `None` while they are with a stage.
    suspects: Option<Suspects>,
    digester: KeyDigester,
    /// How many suspects there are, estimated.
    found: u64,
    rounds: u64,
    /// What has ended a pass that only finds or judges. The pass that delivers meets it again, behind
    /// the records in front of it.
    failure: Option<Failure>,
}

impl ExactRun {
    /// Finds the suspects with this filter, of which no memory is left. Returns how the pass ended
    /// if a signal has ended it.
    ///
    /// # Errors
    /// [`Failure`] without memory for the marks, or if an input has changed.
    pub(super) fn find(
        config: &DedupConfig,
        shape: FingerprintGeometry,
        filter: &mut AnyFilter,
        cores: &[Option<usize>],
        delivery: &Mutex<Delivery<'_>>,
    ) -> Result<ControlFlow<StreamEnd, Self>, Failure> {
        let stage = ExactStage::Find(Suspects::new(shape)?);
        let pass = Pass {
            direction: Direction::Forwards,
            exact: Some(&stage),
        };
        let passed = parallel::pass(config, pass, filter, cores, delivery);
        *filter = no_filter(cores.len());
        let failure = match passed {
            Ok(end) if end.signal.is_some() => return Ok(ControlFlow::Break(end)),
            passed => passed.err(),
        };
        let ExactStage::Find(suspects) = stage else {
            unreachable!("made above");
        };
        let found = suspects.estimate();
        // `--repeated` needs the names of all duplicates at once.
        let rounds = match config.content.is_repeated() {
            true => 1,
            false => (found.saturating_mul(DIGEST_BYTES)).div_ceil(memory_bytes(shape)),
        };
        let run = Self {
            suspects: Some(suspects),
            digester: KeyDigester::random(),
            found,
            rounds: rounds.clamp(1, MOST_ROUNDS),
            failure,
        };
        lock(delivery).begin_exact(found, run.rounds);
        Ok(ControlFlow::Continue(run))
    }

    /// Judges the stream in this direction, and delivers it once all verdicts are found. Leaves the
    /// set that has judged last.
    ///
    /// # Errors
    /// [`Failure`] of the stream.
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
            *filter = share(whole(Box::new(set(config))), cores.len());
            lock(delivery).begin_round(is_last);
            let digester = self.digester.clone();
            let share = self.found.div_ceil(self.rounds);
            let names = KeyNames::new(digester, (round, self.rounds), share)?;
            let suspects = self.suspects.take().expect("left by the round before");
            let stage = ExactStage::Compare(Box::new(names), suspects);
            let pass = Pass {
                direction,
                exact: Some(&stage),
            };
            let passed = parallel::pass(config, pass, filter, cores, delivery);
            if let ExactStage::Compare(_, suspects) = stage {
                self.suspects = Some(suspects);
            }
            match passed {
                passed if is_last => return passed,
                Ok(end) if end.signal.is_some() => return Ok(end),
                Ok(_) => {}
                Err(failure) => drop(self.failure.get_or_insert(failure)),
            }
        }
        unreachable!("the last round ends the loop")
    }

    /// The failure of a pass before, which the one that delivered has not met.
    ///
    /// # Errors
    /// It.
    pub(super) fn end(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// The memory of the first pass: that of the filter, and of the marks.
pub(crate) fn memory_bytes(shape: FingerprintGeometry) -> u64 {
    shape.bytes() + shape.lines * Suspects::BYTES_PER_LINE
}

/// The set of a run.
pub(super) fn set(config: &DedupConfig) -> ExactSet {
    let window = |window: &WindowConfig| SetWindow {
        ticks: window.ticks,
        refresh: window.refresh,
    };
    ExactSet::new(config.window.as_ref().map(window))
}
