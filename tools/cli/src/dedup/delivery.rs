//! The end of the data path: takes chunks with verdicts in the order of the stream, writes them,
//! counts them, and finally reports on the run.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use echoless::Report;
use echoless_records::chunk::{Chunk, NO_TIME};
use echoless_records::failure::{self, ENDED_BY_SIGNAL, FAILED, FOUND_DUPLICATES, Failure, graver};
use echoless_records::files::{Source, Target};
use echoless_records::partial::{Loss, PartialInput};
use echoless_records::position::{FaultReporter, InputPosition};

use super::audit::RunAudit;
use super::backwards::BackwardVerdicts;
use super::clock::StreamClock;
use super::feed::StreamEnd;
use super::outputs::Outputs;
use super::repeated::Repeated;
use super::reports::ending::Ending;
use super::reports::progress::Progress;
use super::reports::stats::{Observed, RunCounts, RunTotals, Setup, Stats};
use super::seen_files::SeenFiles;
use super::state::{Restart, RunState, WantedBlocks};
use super::top_keys::TopKeys;
use crate::config::{ClockSource, Content, DedupConfig, Keep, StateConfig, Summary};
use crate::packets::report::CopyReport;

/// Writes and counts chunks that have verdicts.
#[derive(Debug)]
pub(crate) struct Delivery {
    began: Instant,
    outputs: Outputs,
    begun: bool,
    sources: Vec<Source>,
    /// The number of known inputs, the first ones.
    known: usize,
    /// The verdicts of the pass before, if the inputs are read twice.
    backwards: Option<BackwardVerdicts>,
    /// The bytes that the run had read before it was started again.
    bytes_in_before: u64,
    /// The bytes that the progress line shows before those of this pass.
    bytes_before: u64,
    /// Finds the records of `--repeated`.
    repeated: Option<Repeated>,
    /// Counts the duplicates of keys for `--top-keys`.
    top_keys: Option<TopKeys>,
    /// What is done of the current input.
    done: InputPosition,
    /// The content of messages about records; packets are located by their reader.
    reporter: Option<FaultReporter>,
    counts: RunCounts,
    /// The message about the first input of which records were lost.
    lost: Option<String>,
    audit: RunAudit,
    /// The report on packets, if it is requested.
    report: Option<CopyReport>,
    fixes_header: bool,
    progress: Progress,
    setup: Setup,
    /// The list of the files that were read, which this run completes.
    seen: Option<SeenFiles>,
    /// The first statistics, until they are written.
    first_stats: Option<Stats>,
    quiet: bool,
    /// Whether a packet with a time was read of the current input.
    has_begun_input: bool,
    /// The state that the run keeps, and the clock that it began with.
    state: Option<RunState>,
    clock: StreamClock,
    /// The sums of the runs before this one, if there is a state.
    totals: Option<RunTotals>,
    /// The failure of a commit in a pause of the stream.
    failed_commit: Option<Failure>,
    /// Whether a chunk was delivered in part: the last commit stands.
    is_cut: bool,
    /// Whether that commit is in front of this chunk, whose fault ends the run.
    is_committed_to_fault: bool,
}

impl Delivery {
    /// Opens the outputs. Nothing is written before the first chunk arrives.
    pub(crate) fn open(
        config: &DedupConfig,
        began: Instant,
        setup: Setup,
        seen: Option<SeenFiles>,
    ) -> Result<Self, Failure> {
        let records_on_stdout = matches!(config.run.output, Target::Stdout) && !config.run.count;
        let repeated = match &config.content {
            Content::Records(records) => records.outputs.repeated,
            Content::Packets(_) => false,
        };
        // First: without memory for it, the run leaves no outputs.
        let repeated = (repeated.then(|| Repeated::new(&config.filter))).transpose()?;
        let outputs = Outputs::open(config)?;
        let replaceable = outputs.stats.as_ref().filter(|file| file.is_replaceable());
        let audit = RunAudit::new(config);
        let first_stats = replaceable.map(|_| {
            let observed = Observed {
                counts: RunCounts::default(),
                audit: &audit,
                judging: None,
                top_keys: None,
                copies: None,
                totals: None,
                elapsed: began.elapsed(),
                setup,
            };
            Stats::new(config, observed, Report::default(), Ending::RUNNING)
        });
        let mut delivery = Self {
            began,
            outputs,
            first_stats,
            fixes_header: config.content.fixes_header(),
            begun: false,
            sources: config.sources.clone(),
            known: config.known,
            backwards: BackwardVerdicts::new(config.keep),
            bytes_in_before: 0,
            bytes_before: 0,
            top_keys: match &config.content {
                Content::Records(records) => {
                    let top = records.outputs.top_keys.as_ref();
                    top.map(|(_, listed)| TopKeys::new(records, *listed))
                }
                Content::Packets(_) => None,
            },
            repeated,
            done: InputPosition::default(),
            reporter: fault_reporter(config),
            counts: RunCounts::default(),
            lost: None,
            audit,
            report: match &config.content {
                Content::Packets(packets) if packets.reading.report => Some(CopyReport::new()),
                Content::Packets(_) | Content::Records(_) => None,
            },
            setup,
            seen,
            progress: Progress::new(progress_bytes(config), !config.run.quiet, records_on_stdout),
            quiet: config.run.quiet,
            has_begun_input: false,
            state: None,
            clock: StreamClock::default(),
            totals: None,
            failed_commit: None,
            is_cut: false,
            is_committed_to_fault: false,
        };
        // The input may pause for long before its first record.
        if delivery.may_write_stats() {
            delivery.write_first_stats()?;
        }
        Ok(delivery)
    }

    /// Goes on with an earlier run, whose outputs are cut to what it has committed once this one
    /// begins to write.
    pub(super) fn go_on(
        mut self,
        config: &DedupConfig,
        state: &StateConfig,
        restart: Restart,
    ) -> Result<Self, Failure> {
        self.clock = restart.clock();
        (self.counts, self.audit) = restart.counts_and_audit(config)?;
        self.totals = restart.totals();
        self.bytes_in_before = self.counts.bytes_in;
        self.outputs.count_from(self.counts.bytes_out);
        self.lost = restart.lost();
        self.sources.clone_from(&config.sources);
        let state = self
            .state
            .insert(restart.start(config, state, &mut self.outputs)?);
        // Renamed from now on, they are found again after a kill, also those that are still empty.
        if state.has_new_inputs() {
            state.commit_inputs(self.counts)?;
        }
        Ok(self)
    }

    /// The clock before the first chunk.
    pub(super) const fn clock(&self) -> StreamClock {
        self.clock
    }

    /// The lines of the filter that the state asks for.
    pub(super) fn wanted_blocks(&self) -> Option<WantedBlocks> {
        self.state.as_ref().map(RunState::wanted)
    }

    /// How often to call [`commit_if_due`](Self::commit_if_due) while the stream pauses.
    pub(super) fn commit_interval(&self) -> Option<Duration> {
        self.state.as_ref().map(RunState::interval)
    }

    /// Puts what was delivered on the disk, if there is a state and it is time for that.
    ///
    /// # Errors
    /// [`Failure`] if that fails, or an earlier commit has.
    pub(super) fn commit_if_due(&mut self) -> Result<(), Failure> {
        if let Some(failure) = self.failed_commit.take() {
            return Err(failure);
        }
        match &mut self.state {
            Some(state) if !self.is_cut && state.is_due() => {
                let lost = self.lost.as_deref();
                state.commit(self.counts, &self.audit, &mut self.outputs, lost)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Commits a run that ends early and is to go on, before its outputs are closed.
    fn commit_to_go_on(&mut self) -> Result<(), Failure> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let lost = self.lost.as_deref();
        state.interrupt(self.counts, &self.audit, &mut self.outputs, lost)
    }

    /// Ends the run with the failure of a commit, at its next chunk or its end.
    pub(super) fn note_failed_commit(&mut self, failure: Failure) {
        self.failed_commit = Some(failure);
    }

    /// Whether the file of statistics may be replaced: for certain once the run cannot be rejected
    /// any more.
    fn may_write_stats(&self) -> bool {
        let file = self.outputs.stats.as_ref();
        file.is_some_and(|file| file.is_replaceable() && (self.begun || file.is_expendable()))
    }

    /// Writes the statistics of a run that goes on, unless that is done.
    fn write_first_stats(&mut self) -> Result<(), Failure> {
        match (&mut self.outputs.stats, self.first_stats.take()) {
            (Some(file), Some(stats)) => file.write(&stats),
            (_, None) | (None, _) => Ok(()),
        }
    }

    /// Writes and counts the next chunk of the stream.
    ///
    /// # Errors
    /// [`Failure`] if writing fails, or if the chunk has a faulty record; the records before it are
    /// written.
    pub(crate) fn deliver(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        let delivered = self.try_deliver(chunk);
        // Outputs may have a part of the chunk.
        self.is_cut |= delivered.is_err();
        delivered
    }

    fn try_deliver(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        if self.is_judging() {
            return self.collect(chunk);
        }
        if let Some(state) = &mut self.state {
            state.open_input(chunk, || self.sources[chunk.input.source].name());
        }
        self.prepare_outputs(chunk.layout.terminator)?;
        if chunk.fault.is_some() {
            // The run is to go on in front of this chunk, behind whose outputs others may write.
            self.commit_to_go_on()?;
            self.is_committed_to_fault = true;
        }
        // Most are in front of the records, which may have a fault.
        self.leave(&mut chunk.input.left);
        if self.judges_forwards() {
            self.audit.observe(chunk);
        }
        if let Some(clock) = chunk.clock.after {
            let first = (self.counts.clock).map_or(chunk.clock.first, |(first, _)| first);
            self.counts.clock = Some((first, clock));
        }
        if chunk.input.source < self.known {
            self.count_known(chunk);
        } else {
            self.write(chunk)?;
        }
        self.warn_if_input_begins_late(chunk);
        let input = || self.sources[chunk.input.source].name();
        if let Some(reporter) = &mut self.reporter {
            if let Some(fault) = chunk.fault {
                return Err(reporter.failure(chunk, fault, input(), self.done));
            }
            let stray = reporter.pass(chunk, input);
            if let Some(warning) = stray.filter(|_| !self.quiet) {
                failure::warn(&warning);
            }
        }
        self.done.pass(chunk);
        self.progress
            .set(self.bytes_before + chunk.input.read_until);
        if let Some(state) = &mut self.state {
            let lines = self.reporter.as_ref().map_or(0, FaultReporter::lines);
            state.pass(chunk, self.done, lines)?;
        }
        self.commit_if_due()
    }

    /// Prepares the outputs of a run with a state for the next chunk.
    fn prepare_outputs(&mut self, terminator: &'static [u8]) -> Result<(), Failure> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let lost = self.lost.as_deref();
        state.prepare(self.counts, &self.audit, &mut self.outputs, lost)?;
        match state.header().filter(|_| self.begun) {
            // For a file that was emptied or removed meanwhile.
            Some(header) => self.outputs.write_header(header, terminator),
            None => Ok(()),
        }
    }

    /// Whether this pass only judges the records, for another one that writes them.
    fn is_judging(&self) -> bool {
        (self.backwards.as_ref()).is_some_and(BackwardVerdicts::is_judging)
    }

    /// Whether verdicts of the pass that writes count.
    fn judges_forwards(&self) -> bool {
        (self.backwards.as_ref()).is_none_or(BackwardVerdicts::judges_twice)
    }

    /// Takes the verdicts on the next chunk of the pass that only judges.
    fn collect(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        self.audit.observe(chunk);
        let is_known = chunk.input.source < self.known;
        if is_known {
            self.counts.known_errors = Some(self.audit.counts());
        }
        if let Some(backwards) = &mut self.backwards {
            backwards.push(chunk, is_known)?;
        }
        self.progress.set(chunk.input.read_until);
        Ok(())
    }

    /// Warns of inputs that were left before their end.
    fn leave(&mut self, inputs: &mut Vec<PartialInput>) {
        for input in inputs.drain(..) {
            if input.loss != Loss::Nothing || !self.quiet {
                failure::warn(&input.warning());
            }
            self.counts.partial_inputs += u64::from(input.loss != Loss::Nothing);
            if input.loss == Loss::Records {
                self.lost.get_or_insert_with(|| input.failure.to_string());
            }
        }
    }

    /// Whether the pass that only judges met a faulty record.
    pub(crate) fn has_fault(&self) -> bool {
        (self.backwards.as_ref()).is_some_and(BackwardVerdicts::has_fault)
    }

    /// Begins the pass that writes, after the one that only judges, whose filter has this report.
    pub(crate) fn begin_writing(&mut self, config: &DedupConfig, report: &Report) {
        let Some(backwards) = &mut self.backwards else {
            return;
        };
        let found = self.audit.counts();
        let found = (self.counts.known_errors).map_or(found, |known| found.since(&known));
        backwards.begin_writing(found.estimates(Some(report)), report);
        if backwards.judges_twice() {
            self.audit = RunAudit::new(config);
            self.counts.known_errors = None;
        }
        self.bytes_before = config.input_bytes.unwrap_or(0);
    }

    /// Warns of a capture that begins before the clock by more than the window: its files are not
    /// in the order of time.
    fn warn_if_input_begins_late(&mut self, chunk: &Chunk) {
        if chunk.input.is_first {
            self.has_begun_input = false;
        }
        if !chunk.input.is_capture || self.has_begun_input {
            return;
        }
        let has_time = chunk.keys.times.iter().any(|tick| *tick != NO_TIME);
        if !has_time && chunk.clock.late == 0 {
            return;
        }
        self.has_begun_input = true;
        if chunk.input.source > 0 && chunk.clock.begins_late && !self.quiet {
            failure::warn(&format!(
                "{}: begins before packets of the inputs in front of it by more than the window, \
                 so packets pass unjudged: join the files in the order of time first (mergecap)",
                self.sources[chunk.input.source].name()
            ));
        }
    }

    /// Counts the records of a known input. No output gets anything of them.
    fn count_known(&mut self, chunk: &Chunk) {
        self.counts.known += chunk.own_records() as u64;
        self.counts.known_unjudged += chunk.unkeyed.own_records() as u64;
        // Errors up to here affect no output, unless they concern later records.
        if self.judges_forwards() {
            self.counts.known_errors = Some(self.audit.counts());
        }
    }

    /// Writes and counts the records of a chunk.
    fn write(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        if let Some(state) = &mut self.state {
            state.note_header(chunk);
        }
        let mark = (chunk.header.copies_mark).then(|| &chunk.bytes.buffer[..chunk.bytes.mark]);
        self.begin(
            mark,
            chunk.header.of_stream.as_deref(),
            chunk.layout.terminator,
        )?;
        chunk.header.of_stream = None;
        if let Some(backwards) = &mut self.backwards {
            backwards.complete(chunk, &self.sources[chunk.input.source])?;
        }
        chunk.spread_verdicts();
        let rejected = chunk.unkeyed.rejected.len() as u64;
        self.counts.records += chunk.own_records() as u64;
        self.counts.frame_blocks += chunk.unkeyed.frame.len() as u64;
        self.counts.comments += chunk.unkeyed.comments.len() as u64;
        self.counts.conditions += chunk.keys.packets.conditions;
        self.counts.rejected += rejected;
        self.counts.unkeyed += chunk.unkeyed.own_records() as u64 - rejected;
        self.counts.duplicates += chunk.verdicts.of_keys.count_duplicates();
        self.counts.of_known_states += chunk.known.count();
        self.counts.late += chunk.clock.late;
        self.counts.ahead += chunk.clock.ahead;
        self.counts.bytes_in = self.bytes_in_before + chunk.input.input_until;
        if let Some(top_keys) = &mut self.top_keys {
            top_keys.observe(chunk)?;
        }
        if let Some(repeated) = &mut self.repeated {
            self.counts.repeated += repeated.mark(chunk);
        }
        let input = || self.sources[chunk.input.source].name();
        (self.outputs).write(chunk, input, self.done, self.reporter.as_ref())?;
        if let Some(report) = &mut self.report {
            report.observe(chunk);
        }
        Ok(())
    }

    /// Writes the output that depends on the whole stream.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.prepare_outputs(b"")?;
        self.begin(None, None, b"")?;
        self.outputs.finish(&self.counts)?;
        if self.fixes_header {
            self.outputs.fix_headers(&self.counts)?;
        }
        Ok(())
    }

    fn write_top_keys(&mut self) -> Result<(), Failure> {
        match &self.top_keys {
            Some(top_keys) => self.outputs.write_top_keys(top_keys),
            None => Ok(()),
        }
    }

    /// Reports on the run and returns its exit code. `passed` is the outcome of the stream, and
    /// `explain` completes its failure, and those of the outputs that are written last.
    pub(crate) fn conclude(
        mut self,
        config: &DedupConfig,
        passed: Result<StreamEnd, Failure>,
        explain: impl Fn(Failure) -> Failure,
        report: impl FnOnce() -> Report,
    ) -> Result<ExitCode, Failure> {
        let passed = passed.and_then(|mut end| {
            // Without a whole record of any input, outputs keep what they hold.
            let mut partial = end.partial_inputs.iter();
            let lossy = partial.position(|input| input.loss != Loss::Nothing);
            if let Some(lossy) = lossy.filter(|_| !self.begun) {
                return Err(end.partial_inputs.swap_remove(lossy).failure);
            }
            self.leave(&mut end.partial_inputs);
            self.finish().map(|()| end)
        });
        let passed = match passed {
            // As the report, it goes elsewhere than the records.
            Ok(_) | Err(Failure::ReaderGone) => graver(passed, self.write_top_keys()),
            Err(_) => passed,
        };
        // The run is to go on, so the commit is in front of what ends its outputs.
        let goes_on = match &passed {
            Ok(end) => end.signal.is_some(),
            Err(Failure::ReaderGone) => false,
            Err(_) => self.is_committed_to_fault || !self.is_cut,
        };
        let committed = match goes_on && !self.is_cut {
            true => self.commit_to_go_on(),
            false => Ok(()),
        };
        // Compressed outputs end properly even if the run failed.
        let closed = self.outputs.close();
        let stopped = match self.state.take_if(|_| goes_on) {
            Some(state) if committed.is_ok() && closed.is_ok() => state.stop(&mut self.outputs),
            Some(_) | None => Ok(()),
        };
        let passed = passed.and_then(|end| committed.and(stopped).map(|()| end));
        self.counts.bytes_out = self.outputs.bytes_out();
        let closed = closed.and(self.failed_commit.take().map_or(Ok(()), Err));
        let (signal, ending) = match graver(passed, closed).map_err(&explain) {
            Ok(end) => {
                self.counts.bytes_in = self.bytes_in_before + end.bytes_read;
                let ending = match (end.signal, &self.lost) {
                    (Some(_), _) => Ending::SIGNAL,
                    (None, Some(message)) => Ending::with_error(message),
                    (None, None) => Ending::END_OF_INPUT,
                };
                (end.signal, ending)
            }
            // A reader such as `head` that closes the pipe ends the stream early; the report goes
            // elsewhere and is still written.
            Err(Failure::ReaderGone) => (None, Ending::READER_LEFT),
            Err(failure) => return Err(self.fail(config, failure)),
        };
        self.progress.end();
        let whole = ending == Ending::END_OF_INPUT;
        let reported = self.write_report(config, report, ending);
        // Behind the report: a run that is killed before this writes both again. One whose report
        // fails has ended all the same: its outputs are closed.
        if let Some(state) = self.state.take().filter(|_| !self.is_cut) {
            let lost = self.lost.as_deref();
            let ended = state.end(self.counts, &self.audit, &mut self.outputs, lost);
            ended.map_err(|failure| self.fail(config, explain(failure)))?;
        }
        reported.map_err(&explain)?;
        // Last, because a run that fails leaves the input as it was.
        if whole {
            let committed = self.outputs.commit();
            committed.map_err(|failure| self.fail(config, explain(failure)))?;
        } else if let Some(name) = self.outputs.uncommitted() {
            let why = match signal {
                Some(_) => "a signal ended the run",
                None => "it was not read to its end",
            };
            failure::warn(&format!("{name}: left as it was, as {why}"));
        }
        if let Some(seen) = self.seen.as_ref().filter(|_| whole) {
            seen.commit()
                .map_err(|failure| self.fail(config, explain(failure)))?;
        }
        if let Some(signal) = signal {
            return Ok(ExitCode::from(ENDED_BY_SIGNAL + signal));
        }
        if self.lost.is_some() {
            return Ok(ExitCode::from(FAILED));
        }
        if config.run.fail_on_duplicates && self.counts.duplicates > 0 {
            return Ok(ExitCode::from(FOUND_DUPLICATES));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Reports on a run that goes on: to the file of statistics, and, if `asked`, to standard
    /// error. The filter has not reported.
    pub(crate) fn report_so_far(&mut self, config: &DedupConfig, asked: bool) {
        self.counts.bytes_out = self.outputs.bytes_out();
        let stats = self.stats(config, Report::default(), Ending::RUNNING);
        if asked {
            self.progress.pause(|| failure::write_stderr(&stats.line()));
        }
        // A stream gets the final ones only.
        let may_write = self.may_write_stats();
        let file = self.outputs.stats.as_mut();
        if let Some(file) = file.filter(|_| may_write)
            && let Err(failure) = file.write(&stats)
        {
            failure::warn(&failure.to_string());
        }
    }

    /// The statistics of the run so far, with this report of the filter.
    pub(crate) fn stats(&self, config: &DedupConfig, report: Report, ending: Ending) -> Stats {
        let observed = Observed {
            counts: self.counts,
            audit: &self.audit,
            judging: self.backwards.as_ref().and_then(BackwardVerdicts::errors),
            top_keys: self.top_keys.as_ref(),
            copies: self.report.as_ref(),
            totals: self.totals,
            elapsed: self.began.elapsed(),
            setup: self.setup,
        };
        Stats::new(config, observed, report, ending)
    }

    /// Writes the summary and the statistics, if either is requested. The filter reports only
    /// then, since that may read all of its memory.
    fn write_report(
        &mut self,
        config: &DedupConfig,
        report: impl FnOnce() -> Report,
        ending: Ending,
    ) -> Result<(), Failure> {
        let summary = config.run.summary.unwrap_or_else(Summary::of_terminal);
        let summary = (!config.run.quiet).then_some(summary);
        let report = match (&self.outputs.stats, summary) {
            (None, None) => return Ok(()),
            (Some(_), _) | (None, Some(_)) => report(),
        };
        let stats = self.stats(config, report, ending);
        if let Some(file) = &mut self.outputs.stats {
            file.write(&stats)?;
        }
        match summary {
            None => {}
            Some(Summary::Full) => failure::write_stderr(&stats.summary(config)),
            Some(Summary::Line) => {
                // A requested report is no summary to shorten.
                let text = stats.line() + &stats.copies_report();
                failure::write_stderr(&text);
            }
        }
        Ok(())
    }

    /// Writes the statistics of a run that failed. Returns the failure, also if they cannot be
    /// written.
    ///
    /// The filter does not report: it may have got keys of records that were not written, how many
    /// depends on the threads.
    fn fail(&mut self, config: &DedupConfig, failure: Failure) -> Failure {
        if self.outputs.stats.is_some() {
            let ending = Ending::failed(&failure);
            let stats = self.stats(config, Report::default(), ending);
            if let Some(file) = &mut self.outputs.stats {
                let _ = file.write(&stats);
            }
        }
        failure
    }

    fn begin(
        &mut self,
        mark: Option<&[u8]>,
        header: Option<&[u8]>,
        terminator: &'static [u8],
    ) -> Result<(), Failure> {
        if !self.begun {
            self.begun = true;
            self.outputs.begin(mark)?;
            self.write_first_stats()?;
            // Outputs that did not exist before begin with the header, too.
            if let (None, Some(header)) = (header, self.state.as_ref().and_then(RunState::header)) {
                self.outputs.write_header(header, terminator)?;
            }
            self.outputs.write_carried()?;
        }
        // Comment lines may come before it.
        header.map_or(Ok(()), |header| {
            self.outputs.write_header(header, terminator)
        })
    }
}

/// The content of messages about records; `None` for packets, which their reader locates.
pub(super) fn fault_reporter(config: &DedupConfig) -> Option<FaultReporter> {
    let reporter = FaultReporter::new(config.content.format()?.clone());
    match config.window.as_ref().map(|window| &window.clock) {
        Some(ClockSource::Field(time)) => Some(reporter.with_time_format(time.format.clone())),
        _ => Some(reporter),
    }
}

/// The bytes that are read until the end, if they are known.
fn progress_bytes(config: &DedupConfig) -> Option<u64> {
    let passes = match config.keep {
        Keep::First => 1,
        Keep::Last | Keep::None => 2,
    };
    config.input_bytes.map(|bytes| bytes.saturating_mul(passes))
}
