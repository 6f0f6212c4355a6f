//! The loop that takes chunks through the stages.

use std::process::ExitCode;
use std::time::Instant;

use echoless::KeyHasher;

use super::chunk::Chunk;
use super::detector::Detector;
use super::header::Header;
use super::input::Input;
use super::job::Job;
use super::keys::KeyReader;
use super::output::Sink;
use super::place::Place;
use super::progress::Progress;
use super::runs::Runs;
use super::summary::{Counts, Stats};
use crate::failure::{self, FOUND_DUPLICATES, Failure};
use crate::files::{Source, Target, Targets};

/// Runs `echoless dedup`.
pub(crate) fn run(job: &Job) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    for source in &job.sources {
        source.check()?;
    }
    let mut detector = Detector::build(&job.filter)?;
    let mut outputs = Outputs::open(job)?;
    let mut counts = Counts::default();
    pass(job, &mut detector, &mut outputs, &mut counts)?;

    counts.bytes_out = outputs.records.bytes();
    if job.count {
        let passed = if job.invert {
            counts.duplicates
        } else {
            counts.records - counts.duplicates
        };
        outputs.records.write_text(&format!("{passed}\n"))?;
    }
    let stats = Stats::new(
        counts,
        &detector.report(),
        detector.estimated_missed_duplicates(),
        began.elapsed(),
    );
    if let Some(sink) = &mut outputs.stats {
        sink.write_text(&stats.json())?;
    }
    if !job.quiet {
        failure::tell(&stats.summary());
    }
    if job.fail_on_duplicates && counts.duplicates > 0 {
        return Ok(ExitCode::from(FOUND_DUPLICATES));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the whole stream from the inputs to the outputs.
fn pass(
    job: &Job,
    detector: &mut Detector,
    outputs: &mut Outputs,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let total: Option<u64> = job.sources.iter().map(Source::len).sum();
    let records_on_stdout = matches!(job.output, Target::Stdout) && !job.count;
    let progress = Progress::new(total, !job.quiet, records_on_stdout);
    let mut input = Input::new(job.sources.clone(), job.framing);
    let mut header = job.header.then(|| Header::new(job.framing));
    let mut place = Place::new(job.framing);
    let mut reader = None;
    let mut chunk = Chunk::default();

    while input.fill(&mut chunk)? {
        if let Some(header) = &mut header
            && chunk.opens_source
            && chunk.fault.is_none()
            && let Some(record) = header.take_off(&mut chunk, |source| input.name(source))?
        {
            outputs.write_header(record)?;
        }
        let reader = match &mut reader {
            Some(reader) => reader,
            none => none.insert(key_reader(job, header.as_ref())?),
        };
        reader.read(&mut chunk);
        detector.judge(&chunk.hashes, &mut chunk.verdicts);
        chunk.spread_verdicts();
        outputs.write(&chunk)?;
        counts.records += chunk.records() as u64;
        counts.unkeyed += chunk.unkeyed.len() as u64;
        counts.duplicates += chunk.verdicts.duplicates();
        counts.bytes_in = input.bytes();
        if let Some(fault) = chunk.fault {
            return Err(place.failure(&chunk, fault, input.name(chunk.source)));
        }
        place.pass(&chunk);
        progress.set(input.bytes());
    }
    Ok(())
}

/// The reader of keys, once the header that has their names was seen.
fn key_reader(job: &Job, header: Option<&Header>) -> Result<KeyReader, Failure> {
    let names = header.map(|header| header.names(job.delimiter));
    let fields = match &job.key {
        Some(key) => Some(key.resolve(&names.unwrap_or_default())?),
        None => None,
    };
    Ok(KeyReader::new(
        KeyHasher::seeded(job.filter.seed),
        job.framing,
        job.delimiter,
        fields,
        job.missing,
    ))
}

/// Where records, dropped records and statistics go.
#[derive(Debug)]
struct Outputs {
    records: Sink,
    dropped: Option<Sink>,
    stats: Option<Sink>,
    count: bool,
    invert: bool,
}

impl Outputs {
    fn open(job: &Job) -> Result<Self, Failure> {
        let mut targets = Targets::new(&job.sources);
        let mut open = |target: &Target| {
            let file = targets.open(target)?;
            Ok::<_, Failure>(Sink::new(target.name(), file, job.framing))
        };
        let outputs = Self {
            records: open(&job.output)?,
            dropped: job.duplicates.as_ref().map(&mut open).transpose()?,
            stats: job.stats.as_ref().map(&mut open).transpose()?,
            count: job.count,
            invert: job.invert,
        };
        targets.empty()?;
        Ok(outputs)
    }

    /// Writes the header wherever records are written, so that each output can be read by its names.
    fn write_header(&mut self, header: &[u8]) -> Result<(), Failure> {
        if !self.count {
            self.records.write_record(header)?;
        }
        match &mut self.dropped {
            Some(dropped) => dropped.write_record(header),
            None => Ok(()),
        }
    }

    /// Writes the records of a judged chunk.
    fn write(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let runs = |of_duplicates| Runs::new(chunk.duplicates(), chunk.records(), of_duplicates);
        if !self.count {
            self.records.write_runs(chunk, runs(self.invert))?;
        }
        match &mut self.dropped {
            Some(dropped) => dropped.write_runs(chunk, runs(true)),
            None => Ok(()),
        }
    }
}
