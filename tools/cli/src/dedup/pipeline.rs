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
use crate::failure::{self, ENDED_BY_SIGNAL, FOUND_DUPLICATES, Failure};
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
    let mut input = Input::new(job.sources.clone(), job.framing, job.max_record);
    let passed = pass(job, &mut input, &mut detector, &mut outputs, &mut counts);
    match passed.and_then(|()| outputs.finish(&counts)) {
        // A reader that has seen enough ends the stream where it is; the account of the run is not meant for that reader.
        Ok(()) | Err(Failure::ReaderGone) => {}
        Err(failure) => return Err(failure),
    }
    counts.bytes_out = outputs.records.bytes();
    let stats = Stats::new(
        counts,
        &detector.report(),
        job.filter.replacement,
        detector.estimated_missed_duplicates(),
        began.elapsed(),
    );
    if let Some(sink) = &mut outputs.stats {
        sink.empty()?;
        sink.write_text(&stats.json())?;
    }
    if !job.quiet {
        failure::tell(&stats.summary());
    }
    if let Some(signal) = input.ended_by() {
        return Ok(ExitCode::from(ENDED_BY_SIGNAL + signal));
    }
    if job.fail_on_duplicates && counts.duplicates > 0 {
        return Ok(ExitCode::from(FOUND_DUPLICATES));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the whole stream from the inputs to the outputs.
fn pass(
    job: &Job,
    input: &mut Input,
    detector: &mut Detector,
    outputs: &mut Outputs,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let total: Option<u64> = job.sources.iter().map(Source::len).sum();
    let records_on_stdout = matches!(job.output, Target::Stdout) && !job.count;
    let progress = Progress::new(total, !job.quiet, records_on_stdout);
    let mut header = job.header.then(|| Header::new(job.framing));
    let mut place = Place::new(job.framing);
    let mut reader = None;
    let mut chunk = Chunk::default();

    while input.fill(&mut chunk)? {
        if let Some(header) = &mut header
            && chunk.opens_source
        {
            if let Some(fault) = chunk.fault {
                return Err(place.failure(&chunk, fault, input.name(chunk.source)));
            }
            header.take_off(&mut chunk, |source| input.name(source))?;
        }
        let reader = match &mut reader {
            Some(reader) => reader,
            none => {
                let first = none.insert(key_reader(job, header.as_ref())?);
                outputs.begin(header.as_ref().and_then(Header::record), chunk.terminator)?;
                first
            }
        };
        reader.read(&mut chunk);
        detector.judge(&chunk.hashes, &mut chunk.verdicts);
        chunk.spread_verdicts();
        counts.records += chunk.records() as u64;
        counts.unkeyed += chunk.unkeyed.len() as u64;
        counts.duplicates += chunk.verdicts.duplicates();
        counts.bytes_in = input.bytes();
        outputs.write(&chunk)?;
        if let Some(fault) = chunk.fault {
            return Err(place.failure(&chunk, fault, input.name(chunk.source)));
        }
        place.pass(&chunk);
        progress.set(input.bytes());
    }
    if reader.is_none() {
        outputs.begin(None, chunk.terminator)?;
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
        let records = targets.open(&job.output)?;
        let mut side = |target: &Target| {
            let target = targets.open(target)?;
            Ok::<_, Failure>(Sink::side(target, job.framing))
        };
        Ok(Self {
            records: Sink::main(records, job.framing),
            dropped: job.duplicates.as_ref().map(&mut side).transpose()?,
            stats: job.stats.as_ref().map(&mut side).transpose()?,
            count: job.count,
            invert: job.invert,
        })
    }

    /// Empties the files that take records, and writes the header wherever records are written, so that each can be read by its names.
    fn begin(&mut self, header: Option<&[u8]>, terminator: &'static [u8]) -> Result<(), Failure> {
        self.records.empty()?;
        if let Some(dropped) = &mut self.dropped {
            dropped.empty()?;
            dropped.write_records(header, terminator)?;
        }
        if !self.count {
            self.records.write_records(header, terminator)?;
        }
        Ok(())
    }

    /// Writes the records of a judged chunk. The side output comes first: it is whole even if the reader of the records goes away.
    fn write(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let runs = |of_duplicates| Runs::new(chunk.duplicates(), chunk.records(), of_duplicates);
        if let Some(dropped) = &mut self.dropped {
            dropped.write_runs(chunk, runs(true))?;
        }
        if !self.count {
            self.records.write_runs(chunk, runs(self.invert))?;
        }
        Ok(())
    }

    /// Writes what is only known at the end of the stream.
    fn finish(&mut self, counts: &Counts) -> Result<(), Failure> {
        if !self.count {
            return Ok(());
        }
        let passed = if self.invert {
            counts.duplicates
        } else {
            counts.records - counts.duplicates
        };
        self.records.write_text(&format!("{passed}\n"))
    }
}
