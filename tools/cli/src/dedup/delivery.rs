//! The end of the data path: takes chunks with verdicts in the order of the stream, writes them,
//! counts them, and finally reports on the run.

use std::process::ExitCode;
use std::time::Instant;

use echoless::Report;

use super::audit::RunAudit;
use super::feed::StreamEnd;
use super::outputs::Outputs;
use super::progress::Progress;
use super::repeated::Repeated;
use super::summary::{Counts, Stats};
use crate::config::{Content, DedupConfig};
use crate::failure::{self, ENDED_BY_SIGNAL, FOUND_DUPLICATES, Failure, graver};
use crate::files::{Source, Target};
use crate::packets::report::CopyReport;
use crate::records::chunk::Chunk;
use crate::records::position::{FaultReporter, InputPosition};

/// Writes and counts chunks that have verdicts.
#[derive(Debug)]
pub(crate) struct Delivery {
    began: Instant,
    outputs: Outputs,
    begun: bool,
    sources: Vec<Source>,
    /// The number of known inputs, the first ones.
    known: usize,
    /// Finds the records of `--repeated`.
    repeated: Option<Repeated>,
    /// What is done of the current input.
    done: InputPosition,
    /// What messages say of records; packets are located by their reader.
    reporter: Option<FaultReporter>,
    counts: Counts,
    audit: RunAudit,
    /// The report on packets, if it is requested.
    report: Option<CopyReport>,
    fixes_header: bool,
    progress: Progress,
    quiet: bool,
}

impl Delivery {
    /// Opens the outputs. Nothing is written before the first chunk arrives.
    pub(crate) fn open(config: &DedupConfig, began: Instant) -> Result<Self, Failure> {
        let records_on_stdout = matches!(config.run.output, Target::Stdout) && !config.run.count;
        let (fixes_header, repeated) = match &config.content {
            Content::Records(records) => (records.fix_header, records.outputs.repeated),
            Content::Packets(_) => (false, false),
        };
        let outputs = Outputs::open(config)?;
        if fixes_header {
            outputs.check_rewritable()?;
        }
        Ok(Self {
            began,
            outputs,
            fixes_header,
            begun: false,
            sources: config.sources.clone(),
            known: config.known,
            repeated: (repeated.then(|| Repeated::new(&config.filter))).transpose()?,
            done: InputPosition::default(),
            reporter: config.content.format().cloned().map(FaultReporter::new),
            counts: Counts::default(),
            audit: RunAudit::new(config),
            report: match &config.content {
                Content::Packets(packets) if packets.report => Some(CopyReport::new()),
                Content::Packets(_) | Content::Records(_) => None,
            },
            progress: Progress::new(config.input_bytes, !config.run.quiet, records_on_stdout),
            quiet: config.run.quiet,
        })
    }

    /// Writes and counts the next chunk of the stream.
    ///
    /// # Errors
    /// [`Failure`] if writing fails, or if the chunk has a faulty record; the records before it are
    /// written.
    pub(crate) fn deliver(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        self.audit.observe(chunk);
        if let Some(clock) = chunk.clock {
            let first = (self.counts.clock).map_or(chunk.first_tick, |(first, _)| first);
            self.counts.clock = Some((first, clock));
        }
        if chunk.source < self.known {
            self.count_known(chunk);
        } else {
            self.write(chunk)?;
        }
        let input = || self.sources[chunk.source].name();
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
        self.progress.set(chunk.read_until);
        Ok(())
    }

    /// Counts the records of a known input. No output gets anything of them.
    fn count_known(&mut self, chunk: &Chunk) {
        self.counts.known += chunk.records() as u64;
        self.counts.known_unjudged += chunk.unkeyed.len() as u64;
        // Errors up to here affect no output, unless they concern later records.
        self.counts.known_missed = self.audit.missed();
        self.counts.known_mistaken = self.audit.mistaken();
    }

    /// Writes and counts the records of a chunk.
    fn write(&mut self, chunk: &mut Chunk) -> Result<(), Failure> {
        self.begin(chunk.header.take().as_deref(), chunk.terminator)?;
        chunk.spread_verdicts();
        if chunk.frames {
            self.counts.records += chunk.hashes.len() as u64;
            self.counts.frame_blocks += chunk.unkeyed.len() as u64;
        } else {
            self.counts.records += chunk.records() as u64;
            let rejected = chunk.rejected.len() as u64;
            self.counts.rejected += rejected;
            self.counts.unkeyed += chunk.unkeyed.len() as u64 - rejected;
        }
        self.counts.duplicates += chunk.verdicts.count_duplicates();
        self.counts.late += chunk.late;
        self.counts.bytes_in = chunk.input_until;
        if let Some(repeated) = &mut self.repeated {
            self.counts.repeated += repeated.mark(chunk);
        }
        let input = || self.sources[chunk.source].name();
        (self.outputs).write(chunk, input, self.done, self.reporter.as_ref())?;
        if let Some(report) = &mut self.report {
            report.observe(chunk);
        }
        Ok(())
    }

    /// Writes the output that depends on the whole stream.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.begin(None, b"")?;
        self.outputs.finish(&self.counts)?;
        if self.fixes_header {
            self.outputs.fix_headers(&self.counts)?;
        }
        Ok(())
    }

    /// Reports on the run and returns its exit code. `passed` is the outcome of the stream.
    pub(crate) fn conclude(
        mut self,
        config: &DedupConfig,
        passed: Result<StreamEnd, Failure>,
        report: impl FnOnce() -> Report,
        threads: usize,
    ) -> Result<ExitCode, Failure> {
        let passed = passed.and_then(|end| self.finish().map(|()| end));
        // Compressed outputs end properly even if the run failed.
        let closed = self.outputs.close();
        let (signal, whole) = match graver(passed, closed) {
            Ok(end) => {
                self.counts.bytes_in = end.bytes_read;
                (end.signal, end.signal.is_none())
            }
            // A reader such as `head` that closes the pipe ends the stream early; the report goes
            // elsewhere and is still written.
            Err(Failure::ReaderGone) => (None, false),
            Err(failure) => return Err(failure),
        };
        self.progress.end();
        self.counts.bytes_out = self.outputs.bytes();
        self.write_report(config, report, threads)?;
        // Last, because a run that fails leaves the input as it was.
        if whole {
            self.outputs.commit()?;
        } else if let Some(name) = self.outputs.uncommitted() {
            failure::warn(&format!(
                "{name}: left as it was, as a signal ended the run"
            ));
        }
        if let Some(seen) = config.seen.as_ref().filter(|_| whole) {
            seen.commit()?;
        }
        if let Some(signal) = signal {
            return Ok(ExitCode::from(ENDED_BY_SIGNAL + signal));
        }
        if config.run.fail_on_duplicates && self.counts.duplicates > 0 {
            return Ok(ExitCode::from(FOUND_DUPLICATES));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the summary and the statistics, if either is requested. The filter reports only
    /// then, since that may read all of its memory.
    fn write_report(
        &mut self,
        config: &DedupConfig,
        report: impl FnOnce() -> Report,
        threads: usize,
    ) -> Result<(), Failure> {
        if config.run.quiet && self.outputs.stats.is_none() {
            return Ok(());
        }
        let elapsed = self.began.elapsed();
        let stats = Stats::new(
            self.counts,
            &self.audit,
            self.report.as_ref(),
            config,
            report(),
            elapsed,
            threads,
        );
        if let Some(sink) = &mut self.outputs.stats {
            sink.truncate()?;
            sink.write_bytes(stats.json().as_bytes())?;
            sink.close()?;
        }
        if !config.run.quiet {
            failure::write_stderr(&stats.summary());
        }
        Ok(())
    }

    fn begin(&mut self, header: Option<&[u8]>, terminator: &'static [u8]) -> Result<(), Failure> {
        if !self.begun {
            self.begun = true;
            self.outputs.begin(header, terminator)?;
        }
        Ok(())
    }
}
