//! Where the records of a run go: passed, dropped and rejected ones, their verdicts and positions,
//! and the statistics.

use std::fs::File;
use std::sync::Arc;

use echoless_durable::storage::{RealStorage, Storage};
use echoless_records::chunk::Chunk;
use echoless_records::failure::{Failure, graver};
use echoless_records::files::{Opened, Target, Targets};
use echoless_records::position::{FaultReporter, InputPosition};
use echoless_records::tag::{Tag, Tagger};

use super::compressed::CompressedOutput;
use super::record_positions::RecordPositionsFile;
use super::runs::Runs;
use super::saved_output::SavedOutput;
use super::sink::Sink;
use super::stats_file::StatsFile;
use crate::config::{Content, DedupConfig};
use crate::dedup::reports::stats::RunCounts;
use crate::dedup::top_keys::TopKeys;
use crate::packets::tag::append_blocks;

/// The outputs of a run.
#[derive(Debug)]
pub(in crate::dedup) struct Outputs {
    records: Sink,
    dropped: Option<Sink>,
    /// The positions of the dropped records.
    explained: Option<RecordPositionsFile>,
    rejects: Option<Rejects>,
    /// The verdict on each record.
    tags: Option<Sink>,
    /// The keys with the most duplicates.
    top_keys: Option<Sink>,
    pub(in crate::dedup) stats: Option<StatsFile>,
    passed: Passed,
    /// The bytes of the tags, or of the tagged records, of the current chunk.
    assembled: Vec<u8>,
    /// The lengths of the tagged records.
    lengths: Vec<u64>,
    /// A bit for each record of the current chunk, set for the rejected ones.
    withheld: Vec<u64>,
}

/// How the outputs go on behind earlier runs.
#[derive(Debug)]
pub(in crate::dedup) struct GoneOn {
    /// Whether one of them cannot be taken back: a pipe, or standard output.
    pub(in crate::dedup) is_final: bool,
    /// The outputs of earlier runs that are not written now, and that are still there.
    pub(in crate::dedup) others: Vec<SavedOutput>,
}

/// What the main output gets: records, or their number.
#[derive(Debug)]
struct Passed {
    records: PassedRecords,
    /// Whether the number of the records replaces them.
    count_only: bool,
}

#[derive(Debug)]
enum PassedRecords {
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
}

impl Passed {
    fn new(config: &DedupConfig) -> Self {
        let selected = if config.run.invert {
            PassedRecords::Duplicates
        } else {
            PassedRecords::Fresh
        };
        let records = match &config.content {
            Content::Records(records) => match (&records.tagger, &records.outputs) {
                (_, outputs) if outputs.repeated => PassedRecords::Repeated,
                (Some(tagger), _) => PassedRecords::Tagged(Arc::clone(tagger)),
                (None, outputs) if outputs.tag_file.is_some() => PassedRecords::All,
                (None, _) => selected,
            },
            Content::Packets(packets) if packets.reading.tag => PassedRecords::TaggedPackets,
            Content::Packets(_) => selected,
        };
        Self {
            records,
            // Not with all records, tagged or not: these options exclude each other.
            count_only: config.run.count,
        }
    }

    /// The number of records of the main output.
    const fn count(&self, counts: &RunCounts) -> u64 {
        match self.records {
            PassedRecords::Fresh => counts.records - counts.duplicates - counts.rejected,
            PassedRecords::Duplicates => counts.duplicates,
            PassedRecords::Repeated => counts.repeated,
            PassedRecords::All | PassedRecords::Tagged(_) | PassedRecords::TaggedPackets => {
                counts.records - counts.rejected
            }
        }
    }
}

/// Where faulty records go.
#[derive(Debug)]
struct Rejects {
    records: Sink,
    record_positions: RecordPositionsFile,
}

impl Rejects {
    fn write(
        &mut self,
        chunk: &Chunk,
        input: &str,
        done: InputPosition,
        reporter: &FaultReporter,
    ) -> Result<(), Failure> {
        for fault in &chunk.unkeyed.rejected {
            let position = done.position_of(chunk, fault.record);
            let reason = reporter.reason(fault.problem, position);
            self.record_positions.add(input, position, Some(&reason));
        }
        self.record_positions.write()?;
        self.records
            .write_each(chunk, chunk.unkeyed.rejected_records())
    }
}

impl Outputs {
    /// Opens the outputs. Nothing is written or truncated yet. If one cannot be opened, or if its
    /// file header cannot be rewritten as requested, those that were created are removed again.
    pub(in crate::dedup) fn open(config: &DedupConfig) -> Result<Self, Failure> {
        let mut targets = Targets::new(config.all_inputs())
            .with_known(&config.sources[..config.known])
            .with_settings(&config.run.settings)
            .with_state(config.state_folder());
        let outputs = Self::open_all(config, &mut targets)?;
        if config.content.fixes_header() {
            outputs.check_rewritable()?;
        }
        targets.keep();
        Ok(outputs)
    }

    fn open_all(config: &DedupConfig, targets: &mut Targets) -> Result<Self, Failure> {
        let run = &config.run;
        let format = || config.content.format().cloned();
        let records = targets.open(&run.output)?;
        let mut open = |target: &Target| targets.open(target);
        let side = |opened: Opened| Sink::side(opened, format());
        let text = |opened: Opened| Sink::side(opened, None);
        let mut optional = |target: &Option<Target>| target.as_ref().map(&mut open).transpose();
        // Only regular files never pause.
        let prompt = config.input_bytes.is_none();
        let compressed = || Some(CompressedOutput::new(run.compress?, prompt));
        let dropped = optional(&run.duplicates)?.map(side);
        let explained = optional(&run.explain)?
            .map(text)
            .map(RecordPositionsFile::new);
        let stats = match &run.stats {
            Some(target) => Some(StatsFile::new(open(target)?, target)?),
            None => None,
        };
        let (rejects, tags, top_keys) = match &config.content {
            Content::Records(content) => {
                let outputs = &content.outputs;
                let rejects = match &outputs.rejects {
                    None => None,
                    Some(rejects) => Some(Rejects {
                        records: side(open(&rejects.records)?),
                        record_positions: RecordPositionsFile::new(text(open(
                            &rejects.record_positions,
                        )?)),
                    }),
                };
                let tags = outputs.tag_file.as_ref().map(&mut open).transpose()?;
                let top_keys = outputs.top_keys.as_ref().map(|(target, _)| open(target));
                (rejects, tags.map(text), top_keys.transpose()?.map(text))
            }
            Content::Packets(_) => (None, None, None),
        };
        let passed = Passed::new(config);
        // A count is no record.
        let compressed_records = if passed.count_only {
            None
        } else {
            compressed()
        };
        Ok(Self {
            records: Sink::main(records, format()).compressed(compressed_records),
            dropped: dropped.map(|sink| sink.compressed(compressed())),
            explained,
            rejects,
            tags,
            top_keys,
            stats,
            passed,
            assembled: Vec::new(),
            lengths: Vec::new(),
            withheld: Vec::new(),
        })
    }

    /// The outputs of records and of what is known of them, with the names of their options.
    fn named(&mut self) -> Vec<(&'static str, &mut Sink)> {
        let mut all = vec![("--output", &mut self.records)];
        let optional = [
            ("--duplicates", self.dropped.as_mut()),
            (
                "--explain",
                self.explained.as_mut().map(RecordPositionsFile::sink),
            ),
            ("--tag-file", self.tags.as_mut()),
        ];
        all.extend(
            optional
                .into_iter()
                .filter_map(|(name, sink)| Some((name, sink?))),
        );
        if let Some(rejects) = &mut self.rejects {
            all.push(("--rejects", &mut rejects.records));
            all.push(("--rejects (positions)", rejects.record_positions.sink()));
        }
        all
    }

    /// Finds where the outputs go on behind what earlier runs wrote, and which begin. An output that
    /// begins takes the records over that no file has, because a killed run had not completed their
    /// frame. If the run itself goes on, a file that is another one gets a warning.
    ///
    /// # Errors
    /// [`Failure`] if a file is not empty, and is not what was written to it.
    pub(in crate::dedup) fn go_on(
        &mut self,
        saved: &[SavedOutput],
        run_goes_on: bool,
    ) -> Result<GoneOn, Failure> {
        let mut is_final = false;
        let mut others = saved.to_vec();
        let mut written = Vec::new();
        for (option, sink) in self.named() {
            sink.open_to_append()?;
            let target = sink.target();
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
    ///
    /// # Errors
    /// [`Failure`] of the system.
    pub(in crate::dedup) fn cut(&mut self) -> Result<(), Failure> {
        (self.named().into_iter()).try_for_each(|(_, sink)| sink.truncate())
    }

    /// Follows what other programs have done to the files since they were written. Returns whether
    /// there was any, so that a commit must come before the next record.
    ///
    /// # Errors
    /// [`Failure`] if an output cannot go on.
    pub(in crate::dedup) fn follow(&mut self) -> Result<bool, Failure> {
        let mut has_changed = false;
        for (_, sink) in self.named() {
            has_changed |= sink.follow()?;
        }
        Ok(has_changed)
    }

    /// Checks that the outputs have what was written.
    ///
    /// # Errors
    /// [`Failure`] if another program has appended to a compressed one meanwhile.
    pub(in crate::dedup) fn check_followed(&mut self) -> Result<(), Failure> {
        (self.named().into_iter()).try_for_each(|(_, sink)| sink.check_followed())
    }

    /// Notes which of these outputs were closed, and how.
    pub(in crate::dedup) fn note_closed(&mut self, saved: &mut [SavedOutput]) {
        for ((_, sink), saved) in self.named().into_iter().zip(saved) {
            saved.close(sink);
        }
    }

    /// Where the outputs could go on after a restart.
    ///
    /// # Errors
    /// [`Failure`] if an earlier write failed.
    pub(in crate::dedup) fn positions(&mut self) -> Result<Vec<SavedOutput>, Failure> {
        let named = self.named().into_iter();
        named
            .map(|(option, sink)| SavedOutput::new(option, sink))
            .collect()
    }

    /// The files that must be on the disk before a commit. Their names are there when this returns:
    /// a file that is on the disk without one is lost.
    ///
    /// # Errors
    /// [`Failure`] of the system.
    pub(in crate::dedup) fn durable_files(&mut self) -> Result<Vec<(String, File)>, Failure> {
        let mut files = Vec::new();
        for (_, sink) in self.named() {
            let target = sink.target();
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
        self.records.count_from(bytes);
    }

    /// The number of bytes that the run has written to the main output.
    pub(in crate::dedup) fn bytes_out(&self) -> u64 {
        self.records.bytes_out()
    }

    /// The same up to the [positions](Self::positions) that were last asked for.
    pub(in crate::dedup) const fn committed_bytes_out(&self) -> u64 {
        self.records.committed_bytes_out()
    }

    /// Writes the records that lost files have left, behind the header.
    pub(in crate::dedup) fn write_carried(&mut self) -> Result<(), Failure> {
        (self.named().into_iter()).try_for_each(|(_, sink)| sink.write_carried())
    }

    /// Truncates the files. The byte order mark of a stream without a header begins the main
    /// output.
    pub(in crate::dedup) fn begin(&mut self, mark: Option<&[u8]>) -> Result<(), Failure> {
        self.records.truncate()?;
        if let Some(positions) = &mut self.explained {
            positions.truncate()?;
        }
        let sinks = [&mut self.tags, &mut self.dropped, &mut self.top_keys];
        for sink in sinks.into_iter().flatten() {
            sink.truncate()?;
        }
        if let Some(rejects) = &mut self.rejects {
            rejects.record_positions.truncate()?;
            rejects.records.truncate()?;
        }
        match mark {
            Some(mark) if !self.passed.count_only => self.records.write_mark(mark),
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
        if let Some(dropped) = &mut self.dropped {
            dropped.write_header(header, terminator)?;
        }
        if let Some(rejects) = &mut self.rejects {
            rejects.records.write_header(header, terminator)?;
        }
        if self.passed.count_only {
            return Ok(());
        }
        match &self.passed.records {
            PassedRecords::Tagged(tagger) => {
                let header = tagger.header(header);
                self.records.write_header(&header, terminator)
            }
            PassedRecords::Fresh
            | PassedRecords::Duplicates
            | PassedRecords::Repeated
            | PassedRecords::All
            | PassedRecords::TaggedPackets => self.records.write_header(header, terminator),
        }
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
        let duplicates = || Runs::new(chunk.framed_duplicates(), chunk.records(), true);
        if let Some(dropped) = &mut self.dropped {
            dropped.write_runs(chunk, duplicates())?;
        }
        if let Some(positions) = &mut self.explained {
            let input = input();
            for record in Runs::new(chunk.duplicates(), chunk.records(), true).flatten() {
                positions.add(&input, done.position_of(chunk, record), None);
            }
            positions.write()?;
        }
        if let (Some(rejects), Some(reporter)) = (&mut self.rejects, reporter)
            && !chunk.unkeyed.rejected.is_empty()
        {
            rejects.write(chunk, &input(), done, reporter)?;
        }
        if let Some(tags) = &mut self.tags {
            self.assembled.clear();
            self.lengths.clear();
            for (_, tag) in Tag::all(chunk) {
                self.assembled.extend_from_slice(tag.name().as_bytes());
                self.assembled.push(b'\n');
                self.lengths.push(tag.name().len() as u64 + 1);
            }
            tags.write_assembled(&self.assembled, self.lengths.iter().copied(), b"")?;
        }
        if self.passed.count_only {
            return Ok(());
        }
        match &self.passed.records {
            PassedRecords::Repeated => {
                let repeated = Runs::new(&chunk.verdicts.repeated, chunk.records(), true);
                self.records.write_runs(chunk, repeated)
            }
            PassedRecords::Duplicates => self.records.write_runs(chunk, duplicates()),
            PassedRecords::Fresh => {
                let fresh = Runs::new(chunk.withheld(), chunk.records(), false);
                self.records.write_runs(chunk, fresh)
            }
            PassedRecords::All => {
                self.withheld.clear();
                self.withheld.resize(chunk.records().div_ceil(64), 0);
                for record in chunk.unkeyed.rejected_records() {
                    self.withheld[record / 64] |= 1 << (record % 64);
                }
                let all = Runs::new(&self.withheld, chunk.records(), false);
                self.records.write_runs(chunk, all)
            }
            PassedRecords::Tagged(tagger) => {
                let tagger = Arc::clone(tagger);
                self.write_tagged(chunk, |bytes, lengths| tagger.tag(chunk, bytes, lengths))
            }
            PassedRecords::TaggedPackets => {
                self.write_tagged(chunk, |bytes, lengths| append_blocks(chunk, bytes, lengths))
            }
        }
    }

    /// Writes the records that `append` makes of the chunk's, with the length of each.
    fn write_tagged(
        &mut self,
        chunk: &Chunk,
        append: impl FnOnce(&mut Vec<u8>, &mut Vec<u64>),
    ) -> Result<(), Failure> {
        self.assembled.clear();
        self.lengths.clear();
        append(&mut self.assembled, &mut self.lengths);
        let lengths = self.lengths.iter().copied();
        (self.records).write_assembled(&self.assembled, lengths, chunk.layout.terminator)
    }

    /// Writes the keys with the most duplicates.
    pub(in crate::dedup) fn write_top_keys(&mut self, top_keys: &TopKeys) -> Result<(), Failure> {
        let Some(sink) = &mut self.top_keys else {
            return Ok(());
        };
        let (lines, lengths) = top_keys.lines();
        sink.write_assembled(&lines, lengths.into_iter(), b"")
    }

    /// Completes and closes all outputs but the statistics, even if one fails.
    pub(in crate::dedup) fn close(&mut self) -> Result<(), Failure> {
        let mut closed = self.records.close();
        let sinks = [&mut self.dropped, &mut self.tags, &mut self.top_keys];
        for sink in sinks.into_iter().flatten() {
            closed = graver(closed, sink.close());
        }
        if let Some(rejects) = &mut self.rejects {
            closed = graver(closed, rejects.records.close());
            closed = graver(closed, rejects.record_positions.close());
        }
        if let Some(positions) = &mut self.explained {
            closed = graver(closed, positions.close());
        }
        closed
    }

    /// Replaces the input of `--in-place` by the main output, which is closed.
    pub(in crate::dedup) fn commit(&mut self) -> Result<(), Failure> {
        self.records.commit()
    }

    /// The name of the input of `--in-place`, if it is not replaced.
    pub(in crate::dedup) fn uncommitted(&self) -> Option<&str> {
        self.records.uncommitted()
    }

    /// Checks that file headers can be rewritten in all outputs of records.
    fn check_rewritable(&self) -> Result<(), Failure> {
        let rejects = self.rejects.as_ref().map(|rejects| &rejects.records);
        let sinks = [Some(&self.records), self.dropped.as_ref(), rejects];
        sinks
            .into_iter()
            .flatten()
            .try_for_each(Sink::check_rewritable)
    }

    /// Rewrites the file headers for the records that were written.
    pub(in crate::dedup) fn fix_headers(&mut self, counts: &RunCounts) -> Result<(), Failure> {
        self.records.fix_header(self.passed.count(counts))?;
        if let Some(dropped) = &mut self.dropped {
            dropped.fix_header(counts.duplicates)?;
        }
        if let Some(rejects) = &mut self.rejects {
            rejects.records.fix_header(counts.rejected)?;
        }
        Ok(())
    }

    /// Writes the count, if it replaces the records.
    pub(in crate::dedup) fn finish(&mut self, counts: &RunCounts) -> Result<(), Failure> {
        if !self.passed.count_only {
            return Ok(());
        }
        let count = self.passed.count(counts);
        self.records.write_bytes(format!("{count}\n").as_bytes())
    }
}
