//! The stream of `eval` and `plan`: generated, or the records of a file.

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args as ClapArgs;
use echoless::{KeyHasher, SpecError};
use echoless_records::chunk::Chunk;
use echoless_records::failure::{Failure, warn, without_controls, write_stderr};
use echoless_records::feed::{FeedOptions, RecordFeed};
use echoless_records::files::Source;
use echoless_records::keys::RecordReading;
use echoless_records::number::{grouped, parse_if_given};
use echoless_records::options::{CheckedRecords, RecordArgs, RecordUse};
use echoless_records::partial::{Loss, PartialInput};
use echoless_records::position::FaultReporter;
use echoless_records::reading::Filled;
use echoless_records::restart::InputPosition;
use echoless_records::signals::Patience;

use crate::stream::{RecordedKeys, Stream, parse_count};

/// The options of the file whose records are a stream.
#[derive(Debug, ClapArgs)]
pub(crate) struct RecordFileArgs {
    #[command(flatten)]
    pub(crate) records: RecordArgs,

    /// The most records to read: the stream takes 4 bytes of memory for each, and while it is read
    /// up to 40 more for each distinct one [default: 10M]
    #[arg(long, value_name = "N", help_heading = "Records")]
    pub(crate) max_records: Option<String>,
}

/// Where the stream comes from.
#[derive(Debug)]
pub(crate) enum Input {
    Generated(Stream),
    File(RecordFile),
}

impl Input {
    /// Reads the file, if the stream is not generated. Reports if it has more records than are
    /// read, unless `quiet`.
    pub(crate) fn stream(&self, quiet: bool) -> Result<Stream, Failure> {
        match self {
            Self::Generated(stream) => Ok(stream.clone()),
            Self::File(file) => file.read(quiet),
        }
    }

    /// The files that the stream and its options are read from.
    pub(crate) fn files(&self) -> &[Source] {
        match self {
            Self::Generated(_) => &[],
            Self::File(file) => &file.files,
        }
    }
}

/// A file whose records, or fields of them, are the keys of a stream.
#[derive(Debug)]
pub(crate) struct RecordFile {
    /// The file, and after it those that its options are read from.
    files: Vec<Source>,
    reading: Arc<RecordReading>,
    /// The most records that are read.
    most: u64,
}

impl RecordFile {
    /// The file with this path, and those that its options were read from.
    pub(crate) fn new(
        path: PathBuf,
        reading: RecordReading,
        settings: Vec<PathBuf>,
        most: u64,
    ) -> Self {
        let settings = settings.into_iter().map(Source::File);
        Self {
            files: [Source::from_path(path)]
                .into_iter()
                .chain(settings)
                .collect(),
            reading: Arc::new(reading),
            most,
        }
    }

    /// Reads the file up to its end, or the most records allowed: it may have no end. The stream
    /// takes 4 bytes a record, and while it is read more for each distinct
    /// key.
    fn read(&self, quiet: bool) -> Result<Stream, Failure> {
        let source = &self.files[0];
        source.check()?;
        let reading = Arc::clone(&self.reading);
        let hasher = KeyHasher::seeded(0);
        let options = FeedOptions {
            leaves_signals: true,
            ..FeedOptions::default()
        };
        let sources = vec![source.clone()];
        let mut feed = RecordFeed::new(reading, sources, hasher, NonZeroUsize::MAX, options);
        let mut reporter = FaultReporter::new(self.reading.format.clone());
        let mut done = InputPosition::default();
        let (mut chunk, mut reader) = (Chunk::default(), None);
        let mut keys = RecordedKeys::default();
        while feed.next(&mut chunk, Patience::Wait)? == Filled::Chunk {
            if reader.is_none() {
                reader = feed.reader().cloned();
            }
            if let Some(reader) = &mut reader {
                reader.read(&mut chunk);
            }
            if let Some(fault) = chunk.fault {
                return Err(reporter.failure(&chunk, fault, source.name(), done));
            }
            take_partial(&mut chunk.input.left, quiet)?;
            // A warning is for those who pass records on.
            let _ = reporter.pass(&chunk, || source.name());
            done.pass(&chunk);
            for hash in &chunk.keys.hashes {
                if keys.records() == self.most {
                    if !quiet {
                        write_stderr(&format!(
                            "echoless: {}: only the first {} records are used (--max-records)\n",
                            without_controls(&source.name()),
                            grouped(self.most)
                        ));
                    }
                    return Ok(keys.into_stream()?);
                }
                keys.push(*hash)?;
            }
        }
        take_partial(&mut feed.take_partial_inputs(), quiet)?;
        if keys.records() == 0 {
            let problem = io::Error::other("no record, or none with a key: expected 1 or more");
            return Err(Failure::file(source.name())(problem));
        }
        Ok(keys.into_stream()?)
    }
}

/// Warns of files with other bytes behind their data.
///
/// # Errors
/// The failure of one that is cut or damaged: numbers of a part would be taken for those of the
/// whole.
fn take_partial(inputs: &mut Vec<PartialInput>, quiet: bool) -> Result<(), Failure> {
    for input in inputs.drain(..) {
        match input.loss {
            Loss::Nothing if quiet => {}
            Loss::Nothing => warn(&input.warning()),
            Loss::UnfinishedEnd | Loss::Records => return Err(input.failure),
        }
    }
    Ok(())
}

/// The most records of a file for `eval` and `plan`, unless the options set another number.
const MAX_RECORDS: u64 = 10_000_000;

/// The file of records that `option` names, as `echoless dedup` would read it; `None` without a
/// path.
///
/// # Errors
/// [`Failure`] as for [`CheckedRecords::new`], or if options of records are given without a path.
pub(super) fn record_file(
    option: &'static str,
    path: Option<PathBuf>,
    args: &RecordFileArgs,
) -> Result<Option<RecordFile>, Failure> {
    let Some(path) = path else {
        let of_file = args.max_records.as_ref();
        let of_file = of_file.map(|_| "--max-records".to_owned());
        let given = args.records.given().into_iter().map(|(given, _)| given);
        return match given.chain(of_file).next() {
            Some(given) => {
                let allowed = format!("{option} FILE beside {given}");
                Err(SpecError::missing(option, allowed).into())
            }
            None => Ok(None),
        };
    };
    let most = parse_if_given("--max-records", args.max_records.as_deref(), parse_count)?;
    let records = CheckedRecords::new(&args.records, RecordUse::default())?;
    Ok(Some(RecordFile::new(
        path,
        records.reading,
        records.files,
        most.unwrap_or(MAX_RECORDS),
    )))
}
