//! A stream for the lab from the lines of a file: whole lines, or fields of them.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use echoless::{KeyHash, KeyHasher, SpecError};
use echoless_lab::stream::Stream;

use crate::args::FieldArgs;
use crate::failure::Failure;
use crate::files::Source;
use crate::records::chunk::Chunk;
use crate::records::fields::{FieldList, parse_delimiter};
use crate::records::format::SharedFormat;
use crate::records::formats::lines;
use crate::records::keys::{KeyExtractor, KeyReader, Missing};
use crate::records::position::RecordPosition;

/// How much is read at once, but for the rest of a line.
const PIECE_BYTES: u64 = 1 << 20;

/// A file and what of its lines is compared.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) source: Source,
    /// The fields to compare; `None` compares whole lines.
    pub(crate) key: Option<FieldList>,
    pub(crate) format: SharedFormat,
}

impl Recorded {
    /// The file that is the stream, if there is one; `option` is what names it.
    pub(crate) fn from_args(
        path: Option<PathBuf>,
        fields: FieldArgs,
        option: &str,
    ) -> Result<Option<Self>, SpecError> {
        let Some(path) = path else {
            if fields.key.is_some() {
                let allowed = format!("with --{option}, whose lines have fields");
                return Err(SpecError::new("key", "fields of made-up keys", allowed));
            }
            return Ok(None);
        };
        let delimiter = match &fields.delimiter {
            Some(text) => parse_delimiter(text)?,
            None => b',',
        };
        let key = fields.key.map(|text| FieldList::parse(&text, false));
        Ok(Some(Self {
            source: Source::from_path(path),
            key: key.transpose()?,
            format: lines(delimiter)?,
        }))
    }

    /// Reads the file. The keys take 4 bytes a line, and while they are read more for each distinct one.
    pub(crate) fn read(&self) -> Result<Stream, Failure> {
        self.source.check()?;
        let mut file = BufReader::new(self.source.open()?);
        let failed = || Failure::file(self.source.name());
        let fields = self.key.as_ref().map(|key| key.resolve(&[])).transpose()?;
        let hasher = KeyHasher::seeded(0);
        let extractor = KeyExtractor::new(hasher, fields, Missing::Error);
        let mut reader = KeyReader::new(self.format.clone(), extractor);
        let mut place = RecordPosition::new(self.format.clone());
        let mut chunk = Chunk::default();
        let mut hashes: Vec<KeyHash> = Vec::new();
        loop {
            chunk.clear();
            chunk.bytes.clear();
            let mut piece = file.by_ref().take(PIECE_BYTES);
            piece.read_to_end(&mut chunk.bytes).map_err(failed())?;
            file.read_until(b'\n', &mut chunk.bytes).map_err(failed())?;
            chunk.filled = chunk.bytes.len();
            if chunk.filled == 0 {
                return Ok(Stream::recorded(hashes)?);
            }
            reader.read(&mut chunk);
            if let Some(fault) = chunk.fault {
                return Err(place.failure(&chunk, fault, self.source.name()));
            }
            place.pass(&chunk);
            hashes.extend_from_slice(&chunk.hashes);
        }
    }
}
