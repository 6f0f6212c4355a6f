//! What the features of a run do beside its outputs: they observe the chunks that are written, in
//! the order of the stream, and add to the statistics and the summary what they have counted.

use std::fmt;

use echoless::Filter;
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;

use super::exact;
use super::outputs::Outputs;
use super::repeated::Repeated;
use super::reports::fields::Fields;
use super::reports::stats::RunCounts;
use super::seen_files::{SeenFiles, SkippedFiles};
use super::top_keys::TopKeys;
use crate::config::{Content, DedupConfig};
use crate::packets::counts::PacketCounts;
use crate::packets::diagnosis::Diagnosis;
use crate::packets::report::CopyReport;

/// A feature of a run.
pub(crate) trait Observer: fmt::Debug + Send {
    /// Sees the next chunk with its verdicts, which is not written yet, and may mark its records. A
    /// failure ends the run.
    fn on_chunk(&mut self, _chunk: &mut Chunk, _counts: &mut RunCounts) -> Result<(), Failure> {
        Ok(())
    }

    /// Writes what depends on the whole stream, behind the last chunk.
    fn finish(&mut self, _outputs: &mut Outputs) -> Result<(), Failure> {
        Ok(())
    }

    /// Notes that all inputs were read, and all outputs and statistics written.
    fn end_well(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Adds its fields to the statistics.
    fn stats(&self, counts: &RunCounts, fields: &mut Fields);

    /// Adds what it tells people.
    fn words(&self, _counts: &RunCounts, _words: &mut Words) {}
}

/// What features add to the summary.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Behind the counts of records.
    pub(crate) records: String,
    /// Files that were not read.
    pub(crate) skipped: Option<String>,
    /// Lines in front of that of the filter.
    pub(crate) lines: Vec<String>,
    /// Lines behind all others.
    pub(crate) report: Vec<String>,
}

/// The features of a run, in the order of their fields.
#[derive(Debug, Default)]
pub(crate) struct Observers<'a> {
    /// Those whose fields are among the counts of records.
    of_records: Vec<Box<dyn Observer + 'a>>,
    /// Those whose fields are the last ones.
    of_run: Vec<Box<dyn Observer + 'a>>,
}

impl<'a> Observers<'a> {
    /// The features of a run that begins.
    pub(super) fn open(config: &'a DedupConfig, seen: Option<SeenFiles>) -> Result<Self, Failure> {
        Self::new(config, seen, true)
    }

    /// Those of a run that has failed before it began.
    pub(super) fn unbegun(config: &'a DedupConfig) -> Self {
        Self::new(config, None, false).unwrap_or_default()
    }

    fn new(
        config: &'a DedupConfig,
        seen: Option<SeenFiles>,
        begins: bool,
    ) -> Result<Self, Failure> {
        let mut all = Self::default();
        if config.known_states.are_given() {
            all.of_records.push(Box::new(&config.known_states));
        }
        match &config.content {
            Content::Records(records) => {
                let outputs = &records.outputs;
                if outputs.repeated {
                    let build = || match config.exact {
                        Some(_) => Ok(Box::new(exact::set(config)) as Box<dyn Filter>),
                        None => config.filter.build(),
                    };
                    let filter = begins.then(build).transpose()?;
                    all.of_records.push(Box::new(Repeated::new(filter)));
                }
                if let Some((_, listed)) = outputs.top_keys.as_ref().filter(|_| begins) {
                    all.of_records
                        .push(Box::new(TopKeys::new(records, *listed)));
                }
            }
            Content::Packets(packets) => {
                all.of_run
                    .push(Box::new(PacketCounts::new(config, packets)));
                if let Some(live) = &packets.live {
                    all.of_run.push(Box::new(live.observer(config, packets)));
                    // A diagnosis has its own.
                    let skew = live.skew().filter(|_| packets.diagnosis.is_none());
                    all.of_run.extend(skew.map(|skew| Box::new(skew) as _));
                }
            }
        }
        if let Some(skipped) = config.skipped.as_ref().filter(|_| config.state.is_none()) {
            let (skipped, read) = (skipped.len(), config.inputs().len());
            all.of_run.push(Box::new(SkippedFiles {
                seen,
                skipped,
                read,
            }));
        }
        if let Content::Packets(packets) = &config.content
            && begins
        {
            if let Some(diagnosis) = &packets.diagnosis {
                let diagnosis = Diagnosis::new(config, packets, diagnosis);
                all.of_run.push(Box::new(diagnosis));
            } else if packets.reading.report {
                all.of_run.push(Box::new(CopyReport::new()));
            }
        }
        Ok(all)
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Box<dyn Observer + 'a>> {
        self.of_records.iter_mut().chain(&mut self.of_run)
    }

    pub(super) fn on_chunk(
        &mut self,
        chunk: &mut Chunk,
        counts: &mut RunCounts,
    ) -> Result<(), Failure> {
        self.all()
            .try_for_each(|observer| observer.on_chunk(chunk, counts))
    }

    pub(super) fn finish(&mut self, outputs: &mut Outputs) -> Result<(), Failure> {
        self.all().try_for_each(|observer| observer.finish(outputs))
    }

    pub(super) fn end_well(&mut self) -> Result<(), Failure> {
        self.all().try_for_each(|observer| observer.end_well())
    }

    /// Adds the fields among the counts of records.
    pub(super) fn stats_of_records(&self, counts: &RunCounts, fields: &mut Fields) {
        for observer in &self.of_records {
            observer.stats(counts, fields);
        }
    }

    /// Adds the last fields.
    pub(super) fn stats_of_run(&self, counts: &RunCounts, fields: &mut Fields) {
        for observer in &self.of_run {
            observer.stats(counts, fields);
        }
    }

    /// What all of them tell people.
    pub(super) fn words(&self, counts: &RunCounts) -> Words {
        let mut words = Words::default();
        // What was found in the records of the run comes before what others have found.
        for observer in self.of_records.iter().rev().chain(&self.of_run) {
            observer.words(counts, &mut words);
        }
        words
    }
}
