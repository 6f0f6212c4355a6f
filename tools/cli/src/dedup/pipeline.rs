//! The loop that takes chunks through the stages.

use std::process::ExitCode;
use std::time::Instant;

use echoless::KeyHasher;
use memchr::memchr_iter;

use super::chunk::{Chunk, Fault, Problem};
use super::detector::Detector;
use super::header::Header;
use super::input::Input;
use super::keys::KeyReader;
use super::output::Sink;
use super::progress::Progress;
use super::records::Framing;
use super::runs::Runs;
use super::summary::{Counts, Stats};
use crate::config::Dedup;
use crate::failure::{FOUND_DUPLICATES, Failure};
use crate::files::{Source, Target, Targets};

/// Runs `echoless dedup`.
pub(crate) fn run(config: &Dedup) -> Result<ExitCode, Failure> {
    let began = Instant::now();
    for source in &config.sources {
        source.check()?;
    }
    let mut detector = Detector::build(&config.filter)?;
    let mut outputs = Outputs::open(config)?;
    let mut counts = Counts::default();
    pass(config, &mut detector, &mut outputs, &mut counts)?;

    counts.bytes_out = outputs.records.bytes();
    if config.count {
        let passed = if config.invert {
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
    if !config.quiet {
        eprint!("{}", stats.summary());
    }
    if config.fail_on_duplicates && counts.duplicates > 0 {
        return Ok(ExitCode::from(FOUND_DUPLICATES));
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the whole stream from the inputs to the outputs.
fn pass(
    config: &Dedup,
    detector: &mut Detector,
    outputs: &mut Outputs,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let total: Option<u64> = config.sources.iter().map(Source::len).sum();
    let records_on_stdout = matches!(config.output, Target::Stdout) && !config.count;
    let progress = Progress::new(total, !config.quiet, records_on_stdout);
    let mut input = Input::new(config.sources.clone(), config.framing);
    let mut header = config.header.then(|| Header::new(config.framing));
    let mut place = Place::new(config.framing);
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
            none => none.insert(key_reader(config, header.as_ref())?),
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
fn key_reader(config: &Dedup, header: Option<&Header>) -> Result<KeyReader, Failure> {
    let names = header.map(|header| header.names(config.delimiter));
    let fields = match &config.key {
        Some(key) => Some(key.resolve(&names.unwrap_or_default())?),
        None => None,
    };
    Ok(KeyReader::new(
        KeyHasher::seeded(config.filter.seed),
        config.framing,
        config.delimiter,
        fields,
        config.missing,
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
    fn open(config: &Dedup) -> Result<Self, Failure> {
        let mut targets = Targets::new(&config.sources);
        let mut open = |target: &Target| {
            let file = targets.open(target)?;
            Ok::<_, Failure>(Sink::new(target.name(), file, config.framing))
        };
        Ok(Self {
            records: open(&config.output)?,
            dropped: config.duplicates.as_ref().map(&mut open).transpose()?,
            stats: config.stats.as_ref().map(&mut open).transpose()?,
            count: config.count,
            invert: config.invert,
        })
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

/// How far the stream was passed on, for messages about records.
#[derive(Debug)]
struct Place {
    framing: Framing,
    /// Terminators passed in this input.
    passed: u64,
}

impl Place {
    fn new(framing: Framing) -> Self {
        Self { framing, passed: 0 }
    }

    /// Counts a chunk that is done with.
    fn pass(&mut self, chunk: &Chunk) {
        if chunk.opens_source {
            self.passed = 0;
        }
        self.passed += if self.framing.is_plain() {
            chunk.ends.len() as u64 + u64::from(chunk.start > 0)
        } else {
            self.terminators(&chunk.bytes[..chunk.filled])
        };
    }

    /// Says where in the input `name` the fault is.
    fn failure(&self, chunk: &Chunk, fault: Fault, name: String) -> Failure {
        let passed = if chunk.opens_source { 0 } else { self.passed };
        let before = self.terminators(&chunk.bytes[..chunk.record_start(fault.record)]);
        let problem = match fault.problem {
            Problem::OpenQuote => "a quoted field that begins in this record does not end".into(),
            Problem::Lacks(lacking) => format!(
                "field {} of the key is missing: the record has {} (--missing skip or empty allows that)",
                lacking.field + 1,
                lacking.fields
            ),
        };
        Failure::Data {
            name,
            unit: self.framing.unit(),
            number: passed + before + 1,
            problem,
        }
    }

    fn terminators(&self, bytes: &[u8]) -> u64 {
        memchr_iter(self.framing.terminator(), bytes).count() as u64
    }
}
