//! Where the records of a run go: passed, dropped and rejected ones, their verdicts and positions,
//! and the statistics.

use std::fs::File;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use echoless_durable::storage::{RealStorage, Storage};
use echoless_records::chunk::Chunk;
use echoless_records::failure::{Failure, graver};
use echoless_records::files::{Target, Targets};
use echoless_records::position::FaultReporter;
use echoless_records::restart::InputPosition;
use echoless_records::tag::{Tag, Tagger};

use super::compressed::CompressedOutput;
use super::lines::Lines;
use super::rotation::Rotation;
use super::runs::Runs;
use super::saved_output::SavedOutput;
use super::sink::Sink;
use super::stats_file::StatsFile;
use crate::config::{Content, DedupConfig};
use crate::dedup::reports::stats::RunCounts;

use crate::packets::tag::append_blocks;

/// The outputs of a run.
#[derive(Debug)]
pub(crate) struct Outputs {
    /// The main one first.
    all: Vec<Output>,
    pub(in crate::dedup) stats: Option<StatsFile>,
    passed: Passed,
    /// The files of the main output, if it has several.
    rotation: Option<Rotation>,
    /// Whether the number of the records replaces them in the main output.
    count_only: bool,
    /// What is made for an output of the current chunk.
    made: Lines,
    /// A bit for each record of the current chunk, set for the rejected ones.
    withheld: Vec<u64>,
}

/// A file and what it gets.
#[derive(Debug)]
struct Output {
    gets: Gets,
    sink: Sink,
}

/// What an output gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gets {
    /// What [`Passed`] says.
    Passed,
    Dropped,
    /// The positions of the dropped records.
    DroppedPositions,
    /// The verdict on each record.
    Verdicts,
    /// Faulty records.
    Rejected,
    RejectedPositions,
    /// The keys with the most duplicates.
    TopKeys,
    /// The drawing of a diagnosis.
    Drawing,
}

impl Gets {
    /// The option that names the file.
    const fn option(self) -> &'static str {
        match self {
            Self::Passed => "--output",
            Self::Dropped => "--duplicates",
            Self::DroppedPositions => "--explain",
            Self::Verdicts => "--tag-file",
            Self::Rejected => "--rejects",
            Self::RejectedPositions => "--rejects (positions)",
            Self::TopKeys => "--top-keys",
            Self::Drawing => "--svg",
        }
    }

    /// Whether it gets records of the inputs.
    const fn are_records(self) -> bool {
        matches!(self, Self::Passed | Self::Dropped | Self::Rejected)
    }
}

/// The outputs that a configuration names, without the statistics.
fn named_outputs(config: &DedupConfig) -> impl Iterator<Item = (Gets, &Target)> {
    let run = &config.run;
    let mut all = vec![
        (Gets::Passed, Some(&run.output)),
        (Gets::Dropped, run.duplicates.as_ref()),
        (Gets::DroppedPositions, run.explain.as_ref()),
    ];
    if let Content::Packets(packets) = &config.content
        && let Some(diagnosis) = &packets.diagnosis
    {
        all.push((Gets::Drawing, diagnosis.svg.as_ref()));
    }
    if let Content::Records(records) = &config.content {
        let outputs = &records.outputs;
        let rejects = outputs.rejects.as_ref();
        all.extend([
            (Gets::Verdicts, outputs.tag_file.as_ref()),
            (Gets::Rejected, rejects.map(|rejects| &rejects.records)),
            (
                Gets::RejectedPositions,
                rejects.map(|rejects| &rejects.record_positions),
            ),
            (
                Gets::TopKeys,
                outputs.top_keys.as_ref().map(|(target, _)| target),
            ),
        ]);
    }
    (all.into_iter()).filter_map(|(gets, target)| Some((gets, target?)))
}

/// The targets of a configuration, without the statistics.
pub(super) fn targets(config: &DedupConfig) -> impl Iterator<Item = &Target> {
    named_outputs(config).map(|(_, target)| target)
}

/// How the outputs go on behind earlier runs.
#[derive(Debug)]
pub(in crate::dedup) struct GoneOn {
    /// Whether one of them cannot be taken back: a pipe, or standard output.
    pub(in crate::dedup) is_final: bool,
    /// The outputs of earlier runs that are not written now, and that are still there.
    pub(in crate::dedup) others: Vec<SavedOutput>,
}

/// Which records the main output gets.
#[derive(Debug)]
enum Passed {
    /// The records that are no duplicates.
    Fresh,
    Duplicates,
    /// The first duplicate of each key.
    Repeated,
    /// All records as they came; their verdicts go elsewhere.
    All,
    Tagged(Arc<Tagger>),
    /// All packets, of which duplicates have a comment.
    TaggedPackets,
    /// No packets: a diagnosis takes their place.
    Diagnosis,
}

impl Passed {
    fn new(config: &DedupConfig) -> Self {
        let selected = if config.run.invert {
            Self::Duplicates
        } else {
            Self::Fresh
        };
        match &config.content {
            Content::Records(records) => match (&records.tagger, &records.outputs) {
                (_, outputs) if outputs.repeated => Self::Repeated,
                (Some(tagger), _) => Self::Tagged(Arc::clone(tagger)),
                (None, outputs) if outputs.tag_file.is_some() => Self::All,
                (None, _) => selected,
            },
            Content::Packets(packets) if packets.diagnosis.is_some() => Self::Diagnosis,
            Content::Packets(packets) if packets.reading.tag => Self::TaggedPackets,
            Content::Packets(_) => selected,
        }
    }

    /// The number of these records.
    const fn count(&self, counts: &RunCounts) -> u64 {
        match self {
            Self::Fresh => counts.records - counts.duplicates - counts.rejected,
            Self::Duplicates => counts.duplicates,
            Self::Repeated => counts.repeated,
            Self::Diagnosis => 0,
            Self::All | Self::Tagged(_) | Self::TaggedPackets => counts.records - counts.rejected,
        }
    }
}

impl Outputs {
    /// Opens the outputs. Nothing is written or truncated yet. If one cannot be opened, or if its
    /// file header cannot be rewritten as requested, those that were created are removed again. Up
    /// to so many `threads` compress them.
    pub(in crate::dedup) fn open(config: &DedupConfig, threads: usize) -> Result<Self, Failure> {
        let mut targets = Targets::new(config.all_inputs())
            .with_known(&config.sources[..config.known])
            .with_settings(&config.run.settings)
            .with_state(config.state_folder());
        let outputs = Self::open_all(config, &mut targets, threads)?;
        if config.content.fixes_header() {
            let mut records = outputs
                .all
                .iter()
                .filter(|output| output.gets.are_records());
            records.try_for_each(|output| output.sink.check_rewritable())?;
        }
        targets.keep();
        Ok(outputs)
    }

    fn open_all(
        config: &DedupConfig,
        targets: &mut Targets,
        threads: usize,
    ) -> Result<Self, Failure> {
        let run = &config.run;
        // Only regular files never pause.
        let prompt = config.input_bytes.is_none();
        let others = self::targets(config).skip(1).chain(&run.stats);
        let mut rotation = match &config.content {
            Content::Packets(packets) => (packets.rotated.as_ref())
                .map(|files| Rotation::new(files, others))
                .transpose()?,
            Content::Records(_) => None,
        };
        let open = |(gets, target): (Gets, &Target)| {
            let format = (gets.are_records()).then(|| config.content.format().cloned());
            let format = format.flatten();
            let opened = match &mut rotation {
                Some(rotation) if gets == Gets::Passed => rotation.create(targets)?,
                _ => targets.open(target)?,
            };
            // A count is no record.
            let is_compressed = match gets {
                Gets::Passed => !run.count,
                Gets::Dropped => true,
                _ => false,
            };
            let compression = run.compress.filter(|_| is_compressed);
            let sink = match gets {
                Gets::Passed => Sink::main(opened, format),
                _ => Sink::side(opened, format),
            };
            let compressed = |compression| CompressedOutput::new(compression, prompt, threads);
            let sink = sink.compressed(compression.map(compressed));
            Ok(Output { gets, sink })
        };
        let all: Result<Vec<Output>, Failure> = named_outputs(config).map(open).collect();
        let all = all?;
        let stats = match &run.stats {
            Some(target) => Some(StatsFile::new(targets.open(target)?, target)?),
            None => None,
        };
        Ok(Self {
            all,
            stats,
            passed: Passed::new(config),
            rotation,
            // Not with all records, tagged or not: these options exclude each other.
            count_only: run.count,
            made: Lines::default(),
            withheld: Vec::new(),
        })
    }

    /// The output of the records that pass.
    fn main(&mut self) -> &mut Sink {
        &mut self.all[0].sink
    }

    /// Finds where the outputs go on behind what earlier runs wrote, and which begin. An output
    /// that begins takes the records over that no file has, because a killed run had not completed
    /// their frame. If the run itself goes on, a file that is another one gets a warning. Fails if
    /// a file is not empty, and is not what was written to it.
    pub(in crate::dedup) fn go_on(
        &mut self,
        saved: &[SavedOutput],
        run_goes_on: bool,
    ) -> Result<GoneOn, Failure> {
        let mut is_final = false;
        let mut others = saved.to_vec();
        let mut written = Vec::new();
        for Output { gets, sink } in &mut self.all {
            let option = gets.option();
            sink.open_to_append()?;
            let target = &sink.target;
            is_final |= target.id.is_none();
            let (taken, position) = match SavedOutput::of(target, option, saved)? {
                Some(own) => (Some(own), own.position_in(target)?),
                None => {
                    let of_option = || saved.iter().filter(|output| output.option == option);
                    if let Some(left) = of_option().next().filter(|_| run_goes_on) {
                        left.warn_if_left(target);
                    }
                    let taken = of_option().find(|output| output.has_open_frame());
                    let position = taken.map(|taken| taken.position.unfinished());
                    (taken, position.unwrap_or_default())
                }
            };
            // Its open frame is that of this output now.
            let both = others.iter_mut().zip(saved);
            let taken =
                both.filter(|(_, saved)| taken.is_some_and(|own| std::ptr::eq(own, *saved)));
            taken.for_each(|(other, _)| other.leave_open_frame());
            written.push((option, target.name.clone(), target.id));
            sink.go_on(position);
        }
        others.retain(|output| output.is_other_than(&written));
        Ok(GoneOn { is_final, others })
    }

    /// Cuts the files to where they go on.
    pub(in crate::dedup) fn cut(&mut self) -> Result<(), Failure> {
        (self.all.iter_mut()).try_for_each(|output| output.sink.truncate())
    }

    /// Follows what other programs have done to the files since they were written. Returns whether
    /// there was any, so that a commit must come before the next record.
    pub(in crate::dedup) fn follow(&mut self) -> Result<bool, Failure> {
        let mut has_changed = false;
        for output in &mut self.all {
            has_changed |= output.sink.follow()?;
        }
        Ok(has_changed)
    }

    /// Checks that the outputs have what was written. Fails if another program has appended to a
    /// compressed one meanwhile.
    pub(in crate::dedup) fn check_followed(&self) -> Result<(), Failure> {
        (self.all.iter()).try_for_each(|output| output.sink.check_followed())
    }

    /// Notes which of these outputs were closed, and how.
    pub(in crate::dedup) fn note_closed(&self, saved: &mut [SavedOutput]) {
        for (output, saved) in self.all.iter().zip(saved) {
            saved.close(&output.sink);
        }
    }

    /// Where the outputs could go on after a restart. Fails if an earlier write has.
    pub(in crate::dedup) fn positions(&mut self) -> Result<Vec<SavedOutput>, Failure> {
        let saved = |output: &mut Output| SavedOutput::new(output.gets.option(), &mut output.sink);
        self.all.iter_mut().map(saved).collect()
    }

    /// The files that must be on the disk before a commit. Their names are there when this returns:
    /// a file that is on the disk without one is lost.
    pub(in crate::dedup) fn durable_files(&self) -> Result<Vec<(String, File)>, Failure> {
        let mut files = Vec::new();
        for output in &self.all {
            let target = &output.sink.target;
            let failed = || Failure::file(target.name.as_str());
            let Some(file) = target.file.durable().map_err(failed())? else {
                continue;
            };
            if let Some(folder) = target.folder() {
                RealStorage.sync_folder(folder).map_err(failed())?;
            }
            files.push((target.name.clone(), file));
        }
        Ok(files)
    }

    /// The bytes of the main output that the run had written before it was started again.
    pub(in crate::dedup) fn count_from(&mut self, bytes: u64) {
        self.main().count_from(bytes);
    }

    /// The number of bytes that the run has written to the main output.
    pub(in crate::dedup) fn bytes_out(&self) -> u64 {
        self.all[0].sink.bytes_out()
    }

    /// The same up to the [positions](Self::positions) that were last asked for.
    pub(in crate::dedup) fn committed_bytes_out(&self) -> u64 {
        self.all[0].sink.committed
    }

    /// Writes the records that lost files have left, behind the header.
    pub(in crate::dedup) fn write_carried(&mut self) -> Result<(), Failure> {
        (self.all.iter_mut()).try_for_each(|output| output.sink.write_carried())
    }

    /// Truncates the files. The byte order mark of a stream without a header begins the main
    /// output.
    pub(in crate::dedup) fn begin(&mut self, mark: Option<&[u8]>) -> Result<(), Failure> {
        self.cut()?;
        match mark {
            Some(mark) if !self.count_only => self.main().write_mark(mark),
            _ => Ok(()),
        }
    }

    /// Writes the header to each output of records: later commands can select fields of any of them
    /// by name.
    pub(in crate::dedup) fn write_header(
        &mut self,
        header: &[u8],
        terminator: &'static [u8],
    ) -> Result<(), Failure> {
        for Output { gets, sink } in self.all.iter_mut().rev() {
            match (gets, &self.passed) {
                (Gets::Passed, _) if self.count_only => {}
                (Gets::Passed, Passed::Diagnosis) => {}
                (Gets::Passed, Passed::Tagged(tagger)) => {
                    sink.write_header(&tagger.header(header), terminator)?;
                }
                (gets, _) if gets.are_records() => sink.write_header(header, terminator)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the records of a chunk with verdicts, which is from this input. The main output comes
    /// last, so the others are complete even if its reader closes the pipe.
    pub(in crate::dedup) fn write(
        &mut self,
        chunk: &Chunk,
        input: impl Fn() -> String,
        done: InputPosition,
        reporter: Option<&FaultReporter>,
    ) -> Result<(), Failure> {
        let (records, made) = (chunk.records(), &mut self.made);
        let duplicates = || Runs::new(chunk.framed_duplicates(), records, true);
        let rejected = &chunk.unkeyed.rejected;
        for Output { gets, sink } in self.all.iter_mut().rev() {
            made.clear();
            match gets {
                Gets::Passed if self.count_only => {}
                Gets::Passed if self.rotation.is_some() => {
                    if let Passed::TaggedPackets = self.passed {
                        append_blocks(chunk, &mut made.bytes, &mut made.lengths);
                    } else {
                        let runs = match self.passed {
                            Passed::Duplicates => duplicates(),
                            _ => Runs::new(chunk.withheld(), records, false),
                        };
                        for record in runs.flatten() {
                            let block = chunk.bytes_of(record..record + 1);
                            made.bytes.extend_from_slice(block);
                            made.lengths.push(block.len() as u64);
                        }
                    }
                    if let Some(rotation) = &mut self.rotation {
                        rotation.write(sink, made)?;
                    }
                }
                Gets::Passed => match &self.passed {
                    Passed::Diagnosis => {}
                    Passed::Repeated => {
                        let repeated = Runs::new(&chunk.verdicts.repeated, records, true);
                        sink.write_runs(chunk, repeated)?;
                    }
                    Passed::Duplicates => sink.write_runs(chunk, duplicates())?,
                    Passed::Fresh => {
                        sink.write_runs(chunk, Runs::new(chunk.withheld(), records, false))?;
                    }
                    Passed::All => {
                        self.withheld.clear();
                        self.withheld.resize(records.div_ceil(64), 0);
                        for record in chunk.unkeyed.rejected_records() {
                            self.withheld[record / 64] |= 1 << (record % 64);
                        }
                        sink.write_runs(chunk, Runs::new(&self.withheld, records, false))?;
                    }
                    Passed::Tagged(tagger) => {
                        tagger.tag(chunk, &mut made.bytes, &mut made.lengths);
                        sink.write_lines(made, chunk.layout.terminator)?;
                    }
                    Passed::TaggedPackets => {
                        append_blocks(chunk, &mut made.bytes, &mut made.lengths);
                        sink.write_lines(made, chunk.layout.terminator)?;
                    }
                },
                Gets::Dropped => sink.write_runs(chunk, duplicates())?,
                Gets::DroppedPositions => {
                    let input = input();
                    for record in Runs::new(chunk.duplicates(), records, true).flatten() {
                        made.push_position(&input, done.position_of(chunk, record), None);
                    }
                    sink.write_lines(made, b"")?;
                }
                Gets::Verdicts => {
                    for (_, tag) in Tag::all(chunk) {
                        made.push(tag.name().as_bytes());
                    }
                    sink.write_lines(made, b"")?;
                }
                Gets::Rejected if !rejected.is_empty() => {
                    sink.write_each(chunk, chunk.unkeyed.rejected_records())?;
                }
                Gets::RejectedPositions if !rejected.is_empty() => {
                    let input = input();
                    for fault in rejected {
                        let position = done.position_of(chunk, fault.record);
                        let reason =
                            reporter.map(|reporter| reporter.reason(fault.problem, position));
                        made.push_position(&input, position, reason.as_deref());
                    }
                    sink.write_lines(made, b"")?;
                }
                Gets::Rejected | Gets::RejectedPositions | Gets::TopKeys | Gets::Drawing => {}
            }
        }
        Ok(())
    }

    /// Writes the keys with the most duplicates.
    pub(in crate::dedup) fn write_top_keys(&mut self, lines: &Lines) -> Result<(), Failure> {
        let mut all = self.all.iter_mut();
        match all.find(|output| output.gets == Gets::TopKeys) {
            Some(output) => output.sink.write_lines(lines, b""),
            None => Ok(()),
        }
    }

    /// Writes a diagnosis: its text to the main output, and its drawing where that is requested.
    pub(crate) fn write_diagnosis(&mut self, text: &str, svg: &str) -> Result<(), Failure> {
        for Output { gets, sink } in self.all.iter_mut().rev() {
            match gets {
                Gets::Passed => sink.write_bytes(text.as_bytes())?,
                Gets::Drawing => sink.write_bytes(svg.as_bytes())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether [`pass_time`](Self::pass_time) has something to do.
    pub(in crate::dedup) fn follows_time(&self) -> bool {
        self.rotation.as_ref().is_some_and(Rotation::is_by_time)
    }

    /// Completes files that are over, also if nothing comes.
    pub(in crate::dedup) fn pass_time(&mut self) -> Result<(), Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos() as u64;
        let rotation = self.rotation.as_mut();
        rotation.map_or(Ok(()), |it| it.pass_time(&mut self.all[0].sink, now))
    }

    /// Completes and closes all outputs but the statistics, even if one fails.
    pub(in crate::dedup) fn close(&mut self) -> Result<(), Failure> {
        let mut closed = match &mut self.rotation {
            Some(rotation) => rotation.end(&mut self.all[0].sink),
            None => Ok(()),
        };
        for output in &mut self.all {
            closed = graver(closed, output.sink.close());
        }
        closed
    }

    /// Replaces the input of `--in-place` by the main output, which is closed.
    pub(in crate::dedup) fn commit(&mut self) -> Result<(), Failure> {
        self.main().commit()
    }

    /// The name of the input of `--in-place`, if it is not replaced.
    pub(in crate::dedup) fn uncommitted(&self) -> Option<&str> {
        self.all[0].sink.uncommitted()
    }

    /// Rewrites the file headers for the records that were written.
    pub(in crate::dedup) fn fix_headers(&mut self, counts: &RunCounts) -> Result<(), Failure> {
        for Output { gets, sink } in &mut self.all {
            match gets {
                Gets::Passed => sink.fix_header(self.passed.count(counts))?,
                Gets::Dropped => sink.fix_header(counts.duplicates)?,
                Gets::Rejected => sink.fix_header(counts.rejected)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the count, if it replaces the records.
    pub(in crate::dedup) fn finish(&mut self, counts: &RunCounts) -> Result<(), Failure> {
        if !self.count_only {
            return Ok(());
        }
        let count = self.passed.count(counts);
        self.main().write_bytes(format!("{count}\n").as_bytes())
    }
}
