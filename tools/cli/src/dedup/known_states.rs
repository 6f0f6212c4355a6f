//! Reading the filters of `--known-state`, and whether their keys are those of the run.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use echoless::state::{StateError, StateReader};
use echoless::{LineFilter, SpecError, report_of};
use echoless_durable::check_hasher;
use echoless_records::failure::Failure;
use echoless_records::number::grouped;

use super::observers::{Observer, Words};
use super::reports::fields::Fields;
use super::reports::stats::RunCounts;
use super::state::SavedRun;
use crate::args::key_options;
use crate::config::{KnownStates, RunConfig, check_options};

impl KnownStates {
    /// Reads the filters. Fails if a file is no whole state, or its keys are others than those of
    /// the run.
    pub(super) fn load(&mut self, run: &RunConfig) -> Result<(), Failure> {
        let mut rates = Some(Vec::new());
        for path in &self.paths {
            let filter = self.read(path, run)?;
            let rate = report_of(std::slice::from_ref(&filter)).expected_fpr;
            rates = rates.zip(rate).map(|(mut rates, rate)| {
                rates.push(rate);
                rates
            });
            self.filters.push(filter);
        }
        self.rates = rates;
        Ok(())
    }

    fn read(&self, path: &Path, run: &RunConfig) -> Result<Box<dyn LineFilter>, Failure> {
        let name = path.display().to_string();
        let is_file = path.metadata().map(|metadata| metadata.is_file());
        if !is_file.map_err(Failure::file(&name))? {
            let allowed = "a file of echoless state export";
            return Err(SpecError::new("--known-state", name, allowed).into());
        }
        let file = File::open(path).map_err(Failure::file(&name))?;
        let unreadable = |error| match error {
            StateError::Io(error) => Failure::file(&name)(error),
            StateError::Build(error) => error.into(),
            other => Failure::file(&name)(io::Error::other(other)),
        };
        let saved = StateReader::open(BufReader::new(file)).map_err(unreadable)?;
        let header = saved.header();
        let invalid = |allowed: &str| Err(SpecError::new("--known-state", &name, allowed).into());
        if !header.is_whole() {
            return invalid("a whole filter, not a part of one");
        }
        let spec = header.spec.lines().map_err(unreadable)?;
        if spec.facts().window.is_some() {
            return invalid("a filter without a window, as its keys never expire");
        }
        check_hasher(&header.algorithm, header.hasher, &run.hasher, &name)?;
        let restored = saved.restore().map_err(unreadable)?;
        // A filter that another program has saved says nothing of its keys.
        if let Some(commit) = SavedRun::of(path, &restored.bytes)? {
            let saved = key_options(&commit.options);
            check_options(&self.key_options, &saved, &name)?;
        }
        Ok(restored.filter)
    }
}

impl Observer for &KnownStates {
    fn stats(&self, counts: &RunCounts, fields: &mut Fields) {
        fields.add("known_state_duplicates", counts.of_known_states);
        if let Some(rate) = self.fpr() {
            fields.add("known_state_fpr", rate);
        }
    }

    fn words(&self, counts: &RunCounts, words: &mut Words) {
        let found = counts.of_known_states;
        if found > 0 {
            let _ = write!(words.records, ", {} by --known-state", grouped(found));
        }
    }
}
