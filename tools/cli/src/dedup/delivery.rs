//! The end of the data path: takes chunks with verdicts in the order of the stream, writes them,
//! counts them, and finally reports on the run.

use std::mem;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use echoless::Report;
use echoless_records::chunk::Chunk;
use echoless_records::failure::{
    self, ENDED_BY_SIGNAL, FAILED, FOUND_DUPLICATES, Failure, LOST_PACKETS, graver,
};
use echoless_records::files::Target;
use echoless_records::partial::{Loss, PartialInput};
use echoless_records::position::FaultReporter;
use echoless_records::progress::{Counted, ProgressLine, are_shown};
use echoless_records::restart::InputPosition;

use super::backwards::{BackwardVerdicts, changed};
use super::clock::StreamClock;
use super::exact::{ExactCounts, ExactPhase, ExactVerdicts, StoredKeys};
use super::feed::StreamEnd;
use super::observers::Observers;
use super::outputs::Outputs;
use super::reports::ending::Ending;
use super::reports::stats::{Setup, Stats, Sums};
use super::seen_files::SeenFiles;
use super::state::{Restart, RunState, WantedBlocks};
use crate::config::{ClockSource, Content, DedupConfig, Keep, StateConfig, Summary};
use crate::packets::live::LiveCapture;

/// Between two looks at whether a file is over.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// Writes and counts chunks that have verdicts.
#[derive(Debug)]
pub(crate) struct Delivery<'a> {
    config: &'a DedupConfig,
    setup: Setup,
    outputs: Outputs,
    /// Whether the outputs were begun.
    begun: bool,
    /// What features do with each chunk.
    observers: Observers<'a>,
    sums: Sums,
    /// The state that the run keeps.
    state: Option<RunState>,
    /// The verdicts of the pass before, if the inputs are read twice.
    backwards: Option<BackwardVerdicts>,
    /// Those of an exact run.
    exact: Option<ExactVerdicts>,
    /// The passes over the inputs that have ended.
    passes: u64,
    has_failed_input: bool,
    /// What is done of the current input.
    done: InputPosition,
    /// The content of messages about records; packets are located by their reader.
    reporter: Option<FaultReporter>,
    progress: ProgressLine,
    /// The first statistics, until they are written.
    first_stats: Option<String>,
    /// What failed while the stream paused.
    pause_failure: Option<Failure>,
}

impl<'a> Delivery<'a> {
    /// Opens the outputs. Nothing is written before the first chunk arrives.
    pub(crate) fn open(
        config: &'a DedupConfig,
        setup: Setup,
        seen: Option<SeenFiles>,
    ) -> Result<Self, Failure> {
        let run = &config.run;
        let is_stdout = matches!(run.output, Target::Stdout) && !run.count;
        let shows_progress = !run.quiet && !are_shown(is_stdout);
        // First: without memory for a feature, the run leaves no outputs.
        let observers = Observers::open(config, seen)?;
        let mut delivery = Self {
            config,
            setup,
            outputs: Outputs::open(config, setup.threads)?,
            begun: false,
            observers,
            sums: Sums::new(config),
            state: None,
            backwards: BackwardVerdicts::new(config.keep),
            exact: config.exact.map(|_| ExactVerdicts::new()),
            passes: 0,
            has_failed_input: false,
            done: InputPosition::default(),
            reporter: fault_reporter(config),
            progress: ProgressLine::new(Counted::Bytes, progress_bytes(config), shows_progress),
            first_stats: None,
            pause_failure: None,
        };
        let file = delivery.outputs.stats.as_ref();
        if file.is_some_and(super::outputs::stats_file::StatsFile::is_replaceable) {
            let observers = Observers::unbegun(config);
            let none = Report::default();
            let stats = Stats::new(
                config,
                &delivery.sums,
                &observers,
                setup,
                None,
                none,
                Ending::RUNNING,
            );
            delivery.first_stats = Some(stats.json());
        }
        // The input may pause for long before its first record.
        if delivery.may_write_stats() {
            delivery.write_first_stats()?;
        }
        Ok(delivery)
    }

    /// Goes on with an earlier run, whose outputs are cut to what it has committed once this one
    /// begins to write.
    pub(super) fn go_on(mut self, state: &StateConfig, restart: Restart) -> Result<Self, Failure> {
        self.sums = restart.sums(self.config)?;
        self.outputs.count_from(self.sums.counts.bytes_out);
        let started = restart.start(self.config, state, &mut self.outputs)?;
        let state = self.state.insert(started);
        // Renamed from now on, they are found again after a kill, also those that are still empty.
        if state.has_new_inputs {
            state.commit_inputs(self.sums.counts)?;
        }
        Ok(self)
    }

    /// The clock before the first chunk.
    pub(super) fn clock(&self) -> StreamClock {
        (self.state.as_ref()).map_or_else(StreamClock::default, RunState::clock)
    }

    /// The lines of the filter that the state asks for.
    pub(super) fn wanted_blocks(&self) -> Option<WantedBlocks> {
        // Other passes have no filter that the state knows.
        let finds = |exact: &ExactVerdicts| exact.phase == ExactPhase::Find;
        let state = self.state.as_ref();
        let state = state.filter(|_| self.exact.as_ref().is_none_or(finds));
        state.map(RunState::wanted)
    }

    /// The keys that earlier runs of the state have passed on, if it is one of exact runs.
    pub(super) fn stored_keys(&self) -> Option<Arc<StoredKeys>> {
        self.state.as_ref().and_then(RunState::stored_keys)
    }

    /// How often to call [`work_in_pause`](Self::work_in_pause) while the stream pauses.
    pub(super) fn pause_interval(&self) -> Option<Duration> {
        let follows_time = self.outputs.follows_time().then_some(BETWEEN_LOOKS);
        (self.state.as_ref().map(|state| state.interval)).or(follows_time)
    }

    /// Puts what was delivered on the disk, if there is a state and it is time for that, and
    /// completes files that are over. A failure ends the run at its next chunk, or its end.
    pub(super) fn work_in_pause(&mut self) {
        if self.pause_failure.is_none() {
            self.pause_failure = self.outputs.pass_time().err();
        }
        if let Some(state) = &mut self.state {
            state.commit_in_pause(&self.sums, &mut self.outputs);
        }
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

    /// Writes and counts the next chunk of the stream. If it has a faulty record, those before it
    /// are written.
    pub(crate) fn deliver(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        self.pause_failure.take().map_or(Ok(()), Err)?;
        match (self.completes(chunk)?, self.is_judging()) {
            (false, _) => self.progress.set(chunk.input.read_until),
            (true, true) => self.collect(chunk)?,
            (true, false) => self.write_next(chunk)?,
        }
        chunk.failure.take().map_or(Ok(()), |error| {
            let source = &self.config.sources[chunk.input.source];
            Err(Failure::file(source.name())(error))
        })
    }

    /// Adds to the verdicts on the next chunk what other passes have found. Returns whether these
    /// are all.
    fn completes(&mut self, chunk: &mut Chunk) -> Result<bool, Failure> {
        let (is_judging, judges_forwards) = (self.is_judging(), self.judges_forwards());
        let Some(exact) = &mut self.exact else {
            return Ok(true);
        };
        match exact.phase {
            ExactPhase::Find => {
                if let Some(state) = &mut self.state {
                    // What this cuts off is in no commit, and written again.
                    state.prepare(&self.sums, &mut self.outputs)?;
                    state.log(chunk)?;
                }
            }
            ExactPhase::Name => {}
            // What the pass that writes has from the one that judges is complete.
            ExactPhase::Deliver if !is_judging && !judges_forwards => return Ok(true),
            ExactPhase::Judge | ExactPhase::Deliver => {
                let completed = exact.complete(&mut chunk.verdicts.of_keys);
                completed.map_err(Failure::file("the verdicts"))?;
            }
        }
        let is_complete = exact.phase == ExactPhase::Deliver;
        if chunk.fault.is_some() && !is_complete {
            self.note_failed_input();
            return Err(changed(&self.config.sources[chunk.input.source]));
        }
        Ok(is_complete)
    }

    /// Notes that what ends this pass is in an input, and so ends the next one, too, which says what
    /// it is.
    pub(super) fn note_failed_input(&mut self) {
        self.has_failed_input = true;
    }

    /// Whether an input has ended the last pass.
    pub(super) fn ends_again(&mut self) -> bool {
        mem::take(&mut self.has_failed_input)
    }

    /// Whether no pass has begun whose records are written.
    fn is_before_writing(&self) -> bool {
        let delivers = |exact: &ExactVerdicts| exact.phase == ExactPhase::Deliver;
        self.is_judging() || !self.exact.as_ref().is_none_or(delivers)
    }

    fn write_next(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        let source = &self.config.sources[chunk.input.source];
        let input = || source.name();
        if let Some(state) = &mut self.state {
            state.open_input(chunk, input);
        }
        self.prepare_outputs(chunk.layout.terminator)?;
        if let Some(state) = &mut self.state
            && chunk.fault.is_some()
        {
            state.interrupt(&self.sums, &mut self.outputs)?;
        }
        if let Some((_, bytes)) = chunk.input.file.left_at {
            warn_of_unfinished(&input(), bytes);
        }
        // Most are in front of the records, which may have a fault.
        self.leave(&mut chunk.input.left);
        if self.judges_forwards() && self.exact.is_none() {
            self.sums.audit.observe(chunk);
        }
        if let Some(clock) = chunk.clock.after {
            let known = self.sums.counts.clock;
            let first = known.map_or(chunk.clock.first, |(first, _)| first);
            self.sums.counts.clock = Some((first, clock));
        }
        if chunk.input.source < self.config.known {
            let errors = self.judges_forwards().then(|| self.sums.audit.counts());
            self.sums.counts.count_known(chunk, errors);
        } else {
            self.write(chunk)?;
        }
        if let Some(reporter) = &mut self.reporter {
            if let Some(fault) = chunk.fault {
                return Err(reporter.failure(chunk, fault, input(), self.done));
            }
            let stray = reporter.pass(chunk, input);
            if let Some(warning) = stray.filter(|_| !self.config.run.quiet) {
                failure::warn(&warning);
            }
        }
        self.done.pass(chunk);
        self.progress.set(chunk.input.read_until);
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let lines = self.reporter.as_ref().map_or(0, FaultReporter::lines);
        state.pass(chunk, self.done, lines)?;
        state.commit_if_due(&self.sums, &mut self.outputs)
    }

    /// Prepares the outputs of a run with a state for the next chunk.
    fn prepare_outputs(&mut self, terminator: &'static [u8]) -> Result<(), Failure> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        state.prepare(&self.sums, &mut self.outputs)?;
        match state.header().filter(|_| self.begun) {
            // For a file that was emptied or removed meanwhile.
            Some(header) => self.outputs.write_header(header, terminator),
            None => Ok(()),
        }
    }

    /// Whether this pass only judges the records, for another one that writes them.
    fn is_judging(&self) -> bool {
        (self.backwards.as_ref()).is_some_and(|verdicts| verdicts.is_judging)
    }

    /// Whether verdicts of the pass that writes count.
    fn judges_forwards(&self) -> bool {
        (self.backwards.as_ref()).is_none_or(BackwardVerdicts::judges_twice)
    }

    /// Takes the verdicts on the next chunk of the pass that only judges.
    fn collect(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        if self.exact.is_none() {
            self.sums.audit.observe(chunk);
        }
        let is_known = chunk.input.source < self.config.known;
        if is_known {
            self.sums.counts.known_errors = Some(self.sums.audit.counts());
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
            if input.loss != Loss::Nothing || !self.config.run.quiet {
                failure::warn(&input.warning());
            }
            self.sums.counts.partial_inputs += u64::from(input.loss != Loss::Nothing);
            if input.loss == Loss::Records {
                (self.sums.lost).get_or_insert_with(|| input.failure.to_string());
            }
        }
    }

    /// Whether the pass that only judges met a faulty record.
    pub(crate) fn has_fault(&self) -> bool {
        (self.backwards.as_ref()).is_some_and(|verdicts| verdicts.has_fault)
    }

    /// Begins the pass that writes, after the one that only judges, whose filter has this report.
    pub(crate) fn begin_writing(&mut self, report: &Report) {
        let Some(backwards) = &mut self.backwards else {
            return;
        };
        backwards.begin_writing(self.sums.errors(report), report);
        if backwards.judges_twice() {
            self.sums = Sums {
                exact: self.sums.exact,
                ..Sums::new(self.config)
            };
        }
        // A round of an exact run begins its own.
        if self.exact.is_none() || self.config.keep == Keep::Last {
            self.begin_pass();
        }
    }

    /// Begins the next pass over the inputs.
    fn begin_pass(&mut self) {
        self.passes += 1;
        let bytes = self.config.input_bytes.unwrap_or(0);
        self.progress.begin_after(bytes.saturating_mul(self.passes));
    }

    /// Ends the first pass of an exact run, with so many suspects, which are compared in so many
    /// rounds of so many passes.
    pub(crate) fn begin_exact(&mut self, suspects: u64, rounds: u64, passes_each: u64) {
        // Backwards, an index is made first, which is no progress.
        let (passes, indexes) = match self.config.keep {
            Keep::First => (1 + rounds * passes_each, 0),
            Keep::Last => (2 + rounds, rounds),
            Keep::None => (1 + 2 * rounds, rounds),
        };
        self.sums.exact = Some(ExactCounts {
            suspects,
            passes: passes + indexes,
        });
        if let Some(bytes) = self.config.input_bytes {
            self.progress.set_total(bytes.saturating_mul(passes));
        }
    }

    /// Begins a pass of an exact run that names the suspects of a round.
    pub(crate) fn begin_naming(&mut self) {
        if let Some(exact) = &mut self.exact {
            exact.begin_naming();
        }
        self.begin_pass();
    }

    /// Begins to judge a round of an exact run.
    pub(crate) fn begin_round(&mut self, is_first: bool, is_last: bool) {
        if let Some(exact) = &mut self.exact {
            exact.begin_round(is_first, is_last);
        }
        self.begin_pass();
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
        let source = &self.config.sources[chunk.input.source];
        if let Some(backwards) = &mut self.backwards {
            backwards.complete(chunk, source)?;
        }
        chunk.spread_verdicts();
        let counts = &mut self.sums.counts;
        counts.count(chunk);
        counts.bytes_in = self.sums.bytes_in_before + chunk.input.input_until;
        self.observers.on_chunk(chunk, counts)?;
        let input = || source.name();
        (self.outputs).write(chunk, input, self.done, self.reporter.as_ref())
    }

    /// Writes the output that depends on the whole stream.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.prepare_outputs(b"")?;
        self.begin(None, None, b"")?;
        self.outputs.finish(&self.sums.counts)?;
        if self.config.content.fixes_header() {
            self.outputs.fix_headers(&self.sums.counts)?;
        }
        Ok(())
    }

    /// Reports on the run and returns its exit code. `passed` is the outcome of the stream, and
    /// `explain` completes its failure, and those of the outputs that are written last.
    pub(crate) fn conclude(
        mut self,
        passed: Result<StreamEnd, Failure>,
        explain: impl Fn(Failure) -> Failure,
        report: impl FnOnce() -> Report,
    ) -> Result<ExitCode, Failure> {
        let paused = self.pause_failure.take().map_or(Ok(()), Err);
        let passed = passed.and_then(|end| paused.map(|()| end));
        let passed = passed.and_then(|mut end| {
            // Without a whole record of any input, outputs keep what they hold.
            let mut partial = end.partial_inputs.iter();
            let lossy = partial.position(|input| input.loss != Loss::Nothing);
            if let Some(lossy) = lossy.filter(|_| !self.begun) {
                return Err(end.partial_inputs.swap_remove(lossy).failure);
            }
            self.leave(&mut end.partial_inputs);
            if end.signal.is_some() && self.is_before_writing() {
                // Outputs keep what they hold.
                return Ok(end);
            }
            self.finish().map(|()| end)
        });
        let passed = match passed {
            // As the report, it goes elsewhere than the records.
            Ok(_) | Err(Failure::ReaderGone) => {
                graver(passed, self.observers.finish(&mut self.outputs))
            }
            Err(_) => passed,
        };
        let passed = self.close(passed);
        let (signal, ending) = match passed.map_err(&explain) {
            Ok(end) => {
                self.sums.counts.bytes_in = self.sums.bytes_in_before + end.bytes_read;
                let of_copies = self.config.rereading.as_ref();
                let signal = end
                    .signal
                    .or(of_copies.and_then(|rereading| rereading.ended_by));
                let ending = match (signal, &self.sums.lost) {
                    (Some(_), _) => Ending::SIGNAL,
                    (None, Some(message)) => Ending::with_error(message),
                    (None, None) => Ending::END_OF_INPUT,
                };
                (signal, ending)
            }
            // A reader such as `head` that closes the pipe ends the stream early; the report goes
            // elsewhere and is still written.
            Err(Failure::ReaderGone) => {
                // Found when a compressed output was completed, maybe.
                self.state.iter_mut().for_each(RunState::note_cut);
                (None, Ending::READER_LEFT)
            }
            Err(failure) => {
                if let Some(state) = self.state.take() {
                    // The failure before is the one to report.
                    let _ = state.leave(&self.outputs);
                }
                return Err(self.fail(failure));
            }
        };
        self.progress.end();
        let whole = ending == Ending::END_OF_INPUT;
        let reported = self.write_report(report, ending);
        // Behind the report: a run that is killed before this writes both again. One whose report
        // fails has ended all the same: its outputs are closed.
        let state = self.state.take();
        let ended = state.map_or(Ok(()), |state| state.end(&self.sums, &mut self.outputs));
        ended.map_err(|failure| self.fail(explain(failure)))?;
        reported.map_err(&explain)?;
        // Last, because a run that fails leaves the input as it was.
        if whole {
            let committed = self.outputs.commit();
            let committed = committed.and_then(|()| self.observers.end_well());
            committed.map_err(|failure| self.fail(explain(failure)))?;
        } else if let Some(name) = self.outputs.uncommitted() {
            let why = match signal {
                Some(_) => "a signal ended the run",
                None => "it was not read to its end",
            };
            failure::warn(&format!("{name}: left as it was, as {why}"));
        }
        if let Content::Packets(packets) = &self.config.content
            && packets.live.as_ref().is_some_and(LiveCapture::fails)
        {
            // An interface that was removed counts for more.
            let is_removed = self.sums.lost.is_some();
            return Ok(ExitCode::from(if is_removed {
                FAILED
            } else {
                LOST_PACKETS
            }));
        }
        if let Some(signal) = signal {
            return Ok(ExitCode::from(ENDED_BY_SIGNAL + signal));
        }
        if self.sums.lost.is_some() {
            return Ok(ExitCode::from(FAILED));
        }
        if self.config.run.fail_on_duplicates && self.sums.counts.duplicates > 0 {
            return Ok(ExitCode::from(FOUND_DUPLICATES));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Closes the outputs of a run with this outcome. If it has not ended but is to go on, a commit
    /// is in front of what ends its outputs, and another one behind that.
    fn close(&mut self, passed: Result<StreamEnd, Failure>) -> Result<StreamEnd, Failure> {
        let mut stopped = self.state.take_if(|state| match &passed {
            Ok(end) => end.signal.is_some(),
            Err(Failure::ReaderGone) => false,
            Err(_) => state.can_stop(),
        });
        let committed = match &mut stopped {
            Some(state) => state.interrupt(&self.sums, &mut self.outputs),
            None => Ok(()),
        };
        // Compressed outputs end properly even if the run failed.
        let closed = self.outputs.close();
        self.sums.counts.bytes_out = self.outputs.bytes_out();
        let stopped = stopped.map_or(Ok(()), |state| state.leave(&self.outputs));
        let passed = passed.and_then(|end| committed.and(stopped).map(|()| end));
        let failed = (self.state.as_mut()).map_or(Ok(()), RunState::take_failure);
        graver(passed, closed.and(failed))
    }

    /// Reports on a run that goes on: to the file of statistics, and, if `asked`, to standard
    /// error. The filter has not reported.
    pub(crate) fn report_so_far(&mut self, asked: bool) {
        self.sums.counts.bytes_out = self.outputs.bytes_out();
        let stats = self.stats(Report::default(), Ending::RUNNING);
        // A stream gets the final ones only.
        let json = self.may_write_stats().then(|| stats.json());
        if asked {
            self.progress.pause(|| failure::write_stderr(&stats.line()));
        }
        if let (Some(file), Some(json)) = (&mut self.outputs.stats, json)
            && let Err(failure) = file.write(&json)
        {
            failure::warn(&failure.to_string());
        }
    }

    /// The fields of the statistics of a run that goes on, with this report of the filter.
    pub(crate) fn fields_so_far(&mut self, report: Report) -> echoless_metrics::Fields {
        self.sums.counts.bytes_out = self.outputs.bytes_out();
        let json = self.stats(report, Ending::RUNNING).json();
        serde_json::from_str(&json)
            .unwrap_or_else(|error| unreachable!("statistics are JSON: {error}"))
    }

    /// The statistics of the run so far, with this report of the filter.
    fn stats(&self, report: Report, ending: Ending) -> Stats<'_> {
        let judging = self.backwards.as_ref().and_then(BackwardVerdicts::errors);
        Stats::new(
            self.config,
            &self.sums,
            &self.observers,
            self.setup,
            judging,
            report,
            ending,
        )
    }

    /// Writes the summary and the statistics, if either is requested. The filter reports only
    /// then, since that may read all of its memory.
    fn write_report(
        &mut self,
        report: impl FnOnce() -> Report,
        ending: Ending,
    ) -> Result<(), Failure> {
        let run = &self.config.run;
        let summary = run.summary.unwrap_or_else(Summary::of_terminal);
        let summary = (!run.quiet).then_some(summary);
        let report = match (&self.outputs.stats, summary) {
            (None, None) => return Ok(()),
            (Some(_), _) | (None, Some(_)) => report(),
        };
        let stats = self.stats(report, ending);
        let text = summary.map(|summary| match summary {
            Summary::Full => stats.summary(),
            // A requested report is no summary to shorten.
            Summary::Line => stats.line() + &stats.requested_report(),
        });
        let json = self.outputs.stats.is_some().then(|| stats.json());
        if let (Some(file), Some(json)) = (&mut self.outputs.stats, json) {
            file.write(&json)?;
        }
        text.iter().for_each(|text| failure::write_stderr(text));
        Ok(())
    }

    /// Writes the statistics of a run that failed. Returns the failure, also if they cannot be
    /// written.
    ///
    /// The filter does not report: it may have got keys of records that were not written, how many
    /// depends on the threads.
    fn fail(&mut self, failure: Failure) -> Failure {
        if self.outputs.stats.is_some() {
            let stats = self.stats(Report::default(), Ending::failed(&failure));
            let json = stats.json();
            if let Some(file) = &mut self.outputs.stats {
                let _ = file.write(&json);
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

/// Warns of a last record that has no end yet.
fn warn_of_unfinished(name: &str, bytes: usize) {
    let (last, are, them, they_are) = match bytes {
        1 => ("byte has", "is", "it", "it is"),
        _ => ("bytes have", "are", "them", "they are"),
    };
    failure::warn(&format!(
        "{name}: its last {bytes} {last} no end of a record yet, and {are} left to the next run, \
         which reads {them} with what follows, or as {they_are} if nothing does"
    ));
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
