//! The stream of `eval` and `plan`: generated, or the lines of a file.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use echoless::{KeyHash, KeyHasher, SpecError};
use echoless_lab::stream::Stream;

use crate::args::FieldArgs;
use crate::compression::reader::PlainBytes;
use crate::failure::Failure;
use crate::files::Source;
use crate::records::chunk::Chunk;
use crate::records::fault::FaultPolicy;
use crate::records::fields::{FieldList, parse_delimiter};
use crate::records::format::SharedFormat;
use crate::records::formats::lines;
use crate::records::keys::{KeyExtractor, KeyReader};
use crate::records::position::{FaultReporter, InputPosition};

/// The number of bytes per read, apart from the rest of a line.
const READ_BYTES: u64 = 1 << 20;

/// Where the stream comes from.
#[derive(Debug)]
pub(crate) enum Input {
    Generated(Stream),
    File(LineFile),
}

impl Input {
    /// Reads the file, if the stream is not generated.
    pub(crate) fn stream(&self) -> Result<Stream, Failure> {
        match self {
            Self::Generated(stream) => Ok(stream.clone()),
            Self::File(file) => file.read(),
        }
    }

    /// The file that the stream is read from.
    pub(crate) fn source(&self) -> Option<&Source> {
        match self {
            Self::Generated(_) => None,
            Self::File(file) => Some(&file.source),
        }
    }
}

/// A file whose lines, or fields of them, are the keys of a stream.
#[derive(Debug)]
pub(crate) struct LineFile {
    source: Source,
    /// The fields to compare; `None` compares whole lines.
    key: Option<FieldList>,
    format: SharedFormat,
}

impl LineFile {
    /// The file that the arguments name, if any. `option` is the option for its path.
    pub(crate) fn from_args(
        path: Option<PathBuf>,
        fields: FieldArgs,
        option: &str,
    ) -> Result<Option<Self>, SpecError> {
        let Some(path) = path else {
            return match fields.key {
                Some(key) => Err(SpecError::new(
                    "--key",
                    key,
                    format!("no key without {option}"),
                )),
                None => Ok(None),
            };
        };
        let key = fields.key.map(|text| FieldList::parse(&text, false));
        Ok(Some(Self {
            source: Source::from_path(path),
            key: key.transpose()?,
            format: lines(parse_delimiter(fields.delimiter.as_deref())?)?,
        }))
    }

    /// Reads the file. The stream takes 4 bytes a line, and while it is read more for each distinct
    /// key.
    fn read(&self) -> Result<Stream, Failure> {
        self.source.check()?;
        let file = PlainBytes::new(self.source.open()?, false, None);
        let mut file = BufReader::new(file);
        let failed = || Failure::file(self.source.name());
        let fields = self.key.as_ref().map(|key| key.resolve(&[])).transpose()?;
        let extractor = KeyExtractor::new(KeyHasher::seeded(0), fields, FaultPolicy::STRICT);
        let mut reader = KeyReader::new(self.format.clone(), extractor);
        let mut reporter = FaultReporter::new(self.format.clone());
        let mut done = InputPosition::default();
        let mut chunk = Chunk::default();
        let mut hashes: Vec<KeyHash> = Vec::new();
        loop {
            chunk.clear();
            chunk.bytes.clear();
            let mut piece = file.by_ref().take(READ_BYTES);
            piece.read_to_end(&mut chunk.bytes).map_err(failed())?;
            file.read_until(b'\n', &mut chunk.bytes).map_err(failed())?;
            chunk.filled = chunk.bytes.len();
            if chunk.filled == 0 {
                return Ok(Stream::recorded(hashes)?);
            }
            reader.read(&mut chunk);
            if let Some(fault) = chunk.fault {
                return Err(reporter.failure(&chunk, fault, self.source.name(), done));
            }
            // A warning is for those who pass records on.
            let _ = reporter.pass(&chunk, || self.source.name());
            done.pass(&chunk);
            hashes.extend_from_slice(&chunk.hashes);
        }
    }
}
