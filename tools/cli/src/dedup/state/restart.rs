//! Opening a state, and what a run notes in it.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use echoless::filters::lines::Progress;
use echoless::state::StateError;
use echoless::{LineFilter, Partitioned, SpecError};
use echoless_durable::storage::RealStorage;
use echoless_durable::{Journal, JournalError, check_hasher, verify};
use echoless_records::chunk::Chunk;
use echoless_records::failure::{self, Failure, without_controls};
use echoless_records::restart::{InputPosition, StreamRestart};

use super::committer::{Committer, LoggedKeys, WantedBlocks};
use super::inputs::SavedInputs;
use super::known_inputs::known_inputs;
use super::saved_run::SavedRun;
use crate::config::{DedupConfig, StateConfig, check_options};
use crate::dedup::clock::StreamClock;
use crate::dedup::exact::{SavedKeys, StoredKeys, set_window};
use crate::dedup::outputs::{Outputs, SavedOutput};
use crate::dedup::reports::stats::{RunCounts, RunTotals, Sums};

/// A state that is open, before the run.
#[derive(Debug)]
pub(in crate::dedup) struct Restart {
    journal: Journal,
    commit: SavedRun,
    inputs: SavedInputs,
    /// Whether inputs begin that the state does not know.
    has_new_inputs: bool,
    progress: Progress,
    keys: Option<Arc<StoredKeys>>,
}

impl Restart {
    /// Opens the state of the configuration, or begins one. Returns the filter as it was at the
    /// last commit, in so many partitions. Removes the inputs from the configuration that were read
    /// to their end, and notes where the others go on. Fails if the state is damaged, in use, or of
    /// another filter, or an option differs that must not change.
    pub(in crate::dedup) fn open(
        config: &mut DedupConfig,
        state: &StateConfig,
        partitions: usize,
    ) -> Result<(Self, Partitioned<Box<dyn LineFilter>>), Failure> {
        if fs::metadata(&state.folder).is_ok_and(|metadata| !metadata.is_dir()) {
            let folder = state.folder.display().to_string();
            return Err(SpecError::new("--state", folder, "a folder, or a new name").into());
        }
        let (spec, hasher) = (&config.filter, &config.run.hasher);
        let storage = Arc::new(RealStorage);
        let opened = Journal::open(storage, &state.folder, spec, hasher, partitions)
            .map_err(|error| name_option(error, config, state))?;
        if let Some(cut) = opened.cut.as_ref().filter(|cut| cut.torn.is_some())
            && let Some(commit) = &opened.commit
            && SavedRun::decode(&commit.bytes).is_ok_and(|commit| commit.ended)
        {
            let path = cut.path.display();
            failure::warn(&format!(
                "{path}: is damaged behind its last commit but one, and goes on there"
            ));
        }
        let (progress, mut commit) = match &opened.commit {
            None => (Progress::default(), SavedRun::new(state.options.clone())),
            Some(saved) => {
                let commit = SavedRun::of(&state.folder, &saved.bytes)?;
                let commit = commit.ok_or_else(|| Failure::Capture {
                    name: state.folder.display().to_string(),
                    problem: "another program has written it".to_owned(),
                })?;
                let place = format!("the state {}", state.folder.display());
                check_options(&state.options, &commit.options, &place)?;
                (saved.progress, commit)
            }
        };
        let keys = match config.exact {
            None => None,
            Some(_) => {
                let window = config.window.as_ref();
                let window = set_window(config).zip(window.map(|window| commit.clock.tick(window)));
                let none = || SavedKeys::none(window.is_some());
                let saved = commit.exact.get_or_insert_with(none);
                Some(Arc::new(StoredKeys::open(&state.folder, saved, window)?))
            }
        };
        let mut inputs =
            SavedInputs::new(commit.inputs.clone(), commit.awaited.clone(), commit.ended);
        let (stream, has_new_inputs) =
            known_inputs(config, state, &mut inputs, commit.last_commit)?;
        config.restart = Some(StreamRestart {
            header: commit.header.clone(),
            has_begun: commit.begun,
            terminator: commit.terminator.clone(),
            ..stream
        });
        let restart = Self {
            journal: opened.journal,
            commit,
            inputs,
            has_new_inputs,
            progress,
            keys,
        };
        Ok((restart, opened.filter))
    }

    /// The sums of the runs that have ended.
    fn totals(&self) -> Option<RunTotals> {
        let before = self.commit.totals?;
        Some(if self.commit.ended {
            before.with(&self.commit.counts)
        } else {
            before
        })
    }

    /// What the run goes on with: its counts, without those of a run that has ended, and its
    /// estimates. Fails if the commit has no such estimates.
    pub(in crate::dedup) fn sums(&self, config: &DedupConfig) -> Result<Sums, Failure> {
        let mut sums = Sums::new(config);
        if !self.commit.audit.is_empty() {
            sums.audit = sums.audit.load(&self.commit.audit).ok_or_else(|| {
                let problem = "its commit has no estimates of this filter".into();
                let name = "the state".into();
                Failure::Capture { name, problem }
            })?;
        }
        if self.commit.ended {
            sums.counts.known_errors = Some(sums.audit.counts());
        } else {
            sums.counts = self.commit.counts;
            sums.lost.clone_from(&self.commit.lost);
        }
        sums.totals = self.totals();
        sums.bytes_in_before = sums.counts.bytes_in;
        Ok(sums)
    }

    /// Checks the outputs, and starts the thread that commits.
    pub(in crate::dedup) fn start(
        self,
        config: &DedupConfig,
        state: &StateConfig,
        outputs: &mut Outputs,
    ) -> Result<RunState, Failure> {
        let goes_on = !self.commit.ended && !self.commit.inputs.is_empty();
        let totals = self.totals();
        let gone_on = outputs.go_on(&self.commit.outputs, goes_on)?;
        if goes_on && gone_on.is_final && !config.run.quiet {
            let input = SavedInputs::last_read(&self.commit.inputs);
            let place = input.map_or_else(String::new, |input| {
                let InputPosition { bytes, .. } = input.restart.position;
                format!(" behind byte {bytes} of {}", without_controls(&input.name))
            });
            failure::warn(&format!(
                "records{place} may have been written to standard output or a pipe before, and are \
                 written again"
            ));
        }
        let committer = Committer::start(self.journal)?;
        Ok(RunState {
            committer,
            has_begun: false,
            interval: state.interval,
            committed: Instant::now(),
            changed: false,
            awaits_header: false,
            other_outputs: gone_on.others,
            read_again: 0,
            read: 0,
            input_from: 0,
            has_new_inputs: self.has_new_inputs,
            is_cut: false,
            failure: None,
            commit: SavedRun {
                ended: false,
                totals,
                ..self.commit
            },
            inputs: self.inputs,
            progress: self.progress,
            keys: self.keys,
        })
    }
}

/// Names the option that makes a filter, or the hash of its keys, another one than that of the
/// state.
fn name_option(error: JournalError, config: &DedupConfig, state: &StateConfig) -> Failure {
    let JournalError::State {
        error: StateError::Mismatch { saved, expected },
        ..
    } = &error
    else {
        return error.into();
    };
    let Ok(contents) = verify(&RealStorage, &state.folder) else {
        return error.into();
    };
    let place = format!("the state {}", state.folder.display());
    let check = || {
        if let Ok(Some(commit)) = SavedRun::of(&state.folder, &contents.caller) {
            check_options(&state.options, &commit.options, &place)?;
        }
        let id = u64::from_str_radix(&contents.hasher, 16).unwrap_or_default();
        check_hasher(&contents.algorithm, id, &config.run.hasher, &place)
    };
    if let Err(failure) = check() {
        return failure.into();
    }
    let memory = |text: &'_ str| text.strip_prefix("memory=").map(str::to_owned);
    let (option, now, saved) = match (memory(expected), memory(saved)) {
        (Some(now), Some(saved)) if !expected.contains(',') => ("--memory", now, saved),
        _ => (
            "--filter",
            config.filter.to_string(),
            contents.spec.to_string(),
        ),
    };
    Failure::Usage(format!(
        "invalid {option}={now}: expected {option}={saved}, as in {place}"
    ))
}

/// The state of a run.
#[derive(Debug)]
pub(in crate::dedup) struct RunState {
    committer: Committer,
    /// How long until it may be time for a commit.
    pub(in crate::dedup) interval: Duration,
    /// Whether the outputs were begun, which a commit comes before.
    has_begun: bool,
    /// When the last commit was begun.
    committed: Instant,
    /// Whether a chunk was delivered since.
    changed: bool,
    /// Whether the last chunk was comment lines in front of a header. A run that goes on begins
    /// with no header in front of it, so it cannot begin here.
    awaits_header: bool,
    /// The outputs of runs before that this one does not write.
    other_outputs: Vec<SavedOutput>,
    /// The bytes that are read of the current input beyond what is delivered.
    read_again: u64,
    /// The bytes of the inputs that were read up to the last chunk, and up to its input.
    read: u64,
    input_from: u64,
    /// Whether inputs begin that no commit has. They are to be in one before their first record is
    /// written: renamed and killed afterwards, the run has to find them again.
    pub(in crate::dedup) has_new_inputs: bool,
    /// Whether a chunk is being delivered, or was in part: the last commit stands.
    is_cut: bool,
    /// The failure of a commit in a pause of the stream.
    failure: Option<Failure>,
    commit: SavedRun,
    inputs: SavedInputs,
    progress: Progress,
    /// The keys of an exact run. It is committed as a whole: its filter is at the end of the stream
    /// before the first record is written.
    keys: Option<Arc<StoredKeys>>,
}

impl RunState {
    /// The clock of the stream.
    pub(in crate::dedup) const fn clock(&self) -> StreamClock {
        self.commit.clock
    }

    /// Notes that the last chunk was delivered in part at most.
    pub(in crate::dedup) fn note_cut(&mut self) {
        self.is_cut = true;
    }

    /// The failure of a commit in a pause of the stream.
    pub(in crate::dedup) fn take_failure(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Commits the inputs of a run that has these counts, and nothing else. Returns once it is on
    /// the disk.
    pub(in crate::dedup) fn commit_inputs(&mut self, counts: RunCounts) -> Result<(), Failure> {
        self.commit.counts = counts;
        self.note_inputs();
        self.committer.commit(self.progress, self.commit.encode())?;
        self.committer.wait()
    }

    /// Takes the inputs and the time over into the next commit.
    fn note_inputs(&mut self) {
        self.commit.inputs = self.inputs.all.clone();
        self.commit.awaited = self.inputs.awaited.clone();
        self.has_new_inputs = false;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.commit.last_commit = now.ok().map(|since| since.as_secs());
        self.commit.first_commit = self.commit.first_commit.or(self.commit.last_commit);
    }

    /// Notes the file of a chunk that is about to be written, the first one of the input `name`.
    pub(in crate::dedup) fn open_input(&mut self, chunk: &Chunk, name: impl Fn() -> String) {
        self.has_new_inputs |= self.inputs.open(chunk, name);
        // Until it has passed, also if writing it panics.
        self.is_cut = true;
    }

    /// The lines that the journal asks for.
    pub(in crate::dedup) fn wanted(&self) -> WantedBlocks {
        self.committer.wanted()
    }

    /// The header that was written to the outputs before.
    pub(in crate::dedup) fn header(&self) -> Option<&[u8]> {
        self.commit.header.as_ref()?.record.as_deref()
    }

    /// Notes a chunk that was delivered, and appends its keys to the journal, or those of an exact
    /// run that count as seen from now on to its keys. Of its input, `position` and `lines` are
    /// done.
    pub(in crate::dedup) fn pass(
        &mut self,
        chunk: &mut Chunk,
        position: InputPosition,
        lines: u64,
    ) -> Result<(), Failure> {
        self.changed = true;
        self.awaits_header = chunk.input.awaits_header && !chunk.input.is_last;
        // A run that goes on reads these bytes again.
        let (file, read) = (&chunk.input.file, chunk.input.input_until);
        if file.opened.is_some() {
            self.input_from = self.read;
        }
        self.read = read;
        self.read_again = match file {
            _ if chunk.input.is_last => 0,
            file if file.is_compressed => read.saturating_sub(self.input_from),
            file => file.read.saturating_sub(position.bytes),
        };
        self.inputs.pass(chunk, position, lines);
        if let Some(names) = &chunk.header.field_names
            && let Some(header) = &mut self.commit.header
            && names.number as usize > header.later.len()
        {
            header.later.push(names.now.to_vec());
        }
        self.commit.clock.pass(chunk);
        if !chunk.layout.terminator.is_empty() {
            self.commit.terminator = String::from_utf8_lossy(chunk.layout.terminator).into();
        }
        match &self.keys {
            Some(keys) => keys.append(chunk)?,
            None => self.log(chunk)?,
        }
        self.is_cut = false;
        Ok(())
    }

    /// Appends the keys of the next chunk to the journal.
    pub(in crate::dedup) fn log(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        let turn = std::mem::take(&mut chunk.turn);
        self.progress = turn.progress;
        // The filter of an exact run has no window.
        let ticks = match self.keys {
            None => chunk.clock.ticks.clone(),
            Some(_) => Vec::new(),
        };
        let (keys, verdicts) = chunk.judged();
        let logged = LoggedKeys {
            keys: keys.to_vec(),
            clock: ticks.last().copied().unwrap_or(0),
            ticks,
            verdicts: verdicts.clone(),
            copied: turn.copied,
        };
        self.committer.log(logged)
    }

    /// The keys of an exact run.
    pub(in crate::dedup) fn stored_keys(&self) -> Option<Arc<StoredKeys>> {
        self.keys.clone()
    }

    /// Notes the header of the stream: as it is written, and the names of its fields.
    pub(in crate::dedup) fn note_header(&mut self, chunk: &Chunk) {
        self.commit.begun = true;
        let Some(names) = &chunk.header.field_names else {
            return;
        };
        let header = self.commit.header.get_or_insert_default();
        if header.names.is_empty() {
            header.names = names.first.to_vec();
        }
        if let Some(record) = &chunk.header.of_stream {
            header.record = Some(record.clone());
        }
    }

    /// Prepares the outputs for the next chunk. Before the first one, a commit says that the run
    /// has begun, and then they are cut to where they go on: it is on the disk before an output
    /// loses or gets a byte. Later on, they [follow](Outputs::follow) other programs, and a commit
    /// has that, too. Fails if an output is not what the state has written.
    pub(in crate::dedup) fn prepare(
        &mut self,
        sums: &Sums,
        outputs: &mut Outputs,
    ) -> Result<(), Failure> {
        // Before an output gets another byte.
        self.take_failure()?;
        if self.has_begun {
            // Where no run can go on, what has happened is found at the next chunk.
            if self.awaits_header {
                return Ok(());
            }
            let has_changed = outputs.follow()?;
            if has_changed {
                self.committer.sync_outputs(outputs.durable_files()?)?;
            }
            if self.keys.is_some() {
                return outputs.check_followed();
            }
            if has_changed || self.has_new_inputs {
                self.commit(sums, outputs)?;
                self.committer.wait()?;
            }
            return outputs.check_followed();
        }
        // The input may have paused for long since this was checked first.
        self.other_outputs = outputs.go_on(&self.commit.outputs, false)?.others;
        self.committer.sync_outputs(outputs.durable_files()?)?;
        self.commit(sums, outputs)?;
        self.committer.wait()?;
        self.has_begun = true;
        if let Some(keys) = &self.keys {
            // The last two commits have the same keys.
            keys.merge()?;
        }
        outputs.cut()
    }

    /// Whether a run can go on behind the last chunk. If not, the commit before stands.
    const fn can_go_on(&self) -> bool {
        self.has_begun && !self.awaits_header && self.keys.is_none()
    }

    /// Commits what was delivered, if it is time for that.
    pub(in crate::dedup) fn commit_if_due(
        &mut self,
        sums: &Sums,
        outputs: &mut Outputs,
    ) -> Result<(), Failure> {
        self.take_failure()?;
        let is_time = self.changed && self.committed.elapsed() >= self.interval;
        let is_time = is_time && self.keys.is_none();
        if is_time && !self.is_cut && !self.awaits_header && !self.committer.is_busy() {
            self.commit(sums, outputs)?;
        }
        Ok(())
    }

    /// As [`commit_if_due`](Self::commit_if_due), while the stream pauses. A failure ends the run at
    /// its next chunk, or its end.
    pub(in crate::dedup) fn commit_in_pause(&mut self, sums: &Sums, outputs: &mut Outputs) {
        self.failure = self.commit_if_due(sums, outputs).err();
    }

    /// Whether a run that has failed is to go on where it has committed, behind outputs that are
    /// closed.
    pub(in crate::dedup) const fn can_stop(&self) -> bool {
        self.failure.is_none() && !self.is_cut
    }

    /// Commits what was delivered. Fails if an earlier commit has.
    fn commit(&mut self, sums: &Sums, outputs: &mut Outputs) -> Result<(), Failure> {
        self.commit.counts = sums.counts;
        self.commit.lost.clone_from(&sums.lost);
        let bytes_in = &mut self.commit.counts.bytes_in;
        *bytes_in = bytes_in.saturating_sub(self.read_again);
        self.commit.audit = sums.audit.save();
        if let Some(keys) = &self.keys {
            self.commit.exact = Some(keys.flush()?);
        }
        if outputs.follow()? {
            self.committer.sync_outputs(outputs.durable_files()?)?;
        }
        self.commit.outputs = outputs.positions()?;
        self.commit.counts.bytes_out = outputs.committed_bytes_out();
        self.commit
            .outputs
            .extend(self.other_outputs.iter().cloned());
        self.note_inputs();
        self.committed = Instant::now();
        self.changed = false;
        self.committer.commit(self.progress, self.commit.encode())
    }

    /// Commits a run that a signal or a failure ends and that is to go on, before its outputs are
    /// closed: if the failure is in a chunk, in front of it.
    pub(in crate::dedup) fn interrupt(
        &mut self,
        sums: &Sums,
        outputs: &mut Outputs,
    ) -> Result<(), Failure> {
        if !self.can_go_on() {
            return Ok(());
        }
        self.commit(sums, outputs)
    }

    /// Ends a run after its outputs were closed: the last commit stands. It is written once more,
    /// with the lengths at which they were closed, or the next run would take what others
    /// append for what this one has written. Returns once it is on the disk.
    ///
    /// And damage behind the last commit but one looks like a write that a crash has cut short: this
    /// leaves nothing else there.
    pub(in crate::dedup) fn leave(mut self, outputs: &Outputs) -> Result<(), Failure> {
        let mut durable = self.committer.finish()?;
        if !self.has_begun {
            return Ok(());
        }
        if self.keys.is_some() && self.changed {
            failure::warn(
                "the run did not end, so the state has none of it: the next one writes its records \
                 again",
            );
        }
        let last = durable.journal.last_commit().clone();
        let mut commit = SavedRun::decode(&last.bytes).map_err(Failure::Panic)?;
        outputs.note_closed(&mut commit.outputs);
        durable.journal.rewind()?;
        durable.commit(last.progress, &commit.encode())?;
        outputs.check_followed()
    }

    /// The last commit of a run that has ended, after the outputs were closed. Returns once it is
    /// on the disk. A run that has delivered a chunk in part has not ended.
    pub(in crate::dedup) fn end(
        mut self,
        sums: &Sums,
        outputs: &mut Outputs,
    ) -> Result<(), Failure> {
        if !self.is_cut && !self.awaits_header {
            self.commit.ended = true;
            self.read_again = 0;
            self.commit(sums, outputs)?;
        }
        self.leave(outputs)
    }
}
