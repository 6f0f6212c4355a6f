//! An input as plain bytes: gzip and zstd are recognised by content and decompressed.

use std::fs::{self, File};
use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::reading::read;
use crate::signals::Signals;

/// The first bytes of a gzip member.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether a regular file begins like a compressed one. A file that cannot be read is none: opening
/// it reports the error.
pub(crate) fn is_compressed(path: &Path) -> bool {
    // Opening a named pipe would block.
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| {
        let mut file = file.take(ZSTD.len() as u64);
        file.read_to_end(&mut first)
    });
    read.is_ok() && (first.starts_with(&GZIP) || first.starts_with(&ZSTD))
}

/// The bytes that decide how an input is compressed, and the rest of it.
type Whole = Chain<Cursor<Vec<u8>>, Watched>;

/// A decompressed input, read until a signal arrives.
pub(crate) struct PlainBytes {
    reader: Reader,
    progress: Arc<Progress>,
    /// The number of bytes returned so far.
    offset: u64,
}

enum Reader {
    Plain(Whole),
    Gzip(Box<MultiGzDecoder<Whole>>),
    Zstd(Box<ZstdDecoder<'static, BufReader<Whole>>>),
}

/// What a decoder hides from its caller. One thread reads and asks, so no order is needed between
/// the accesses.
#[derive(Debug, Default)]
struct Progress {
    /// The number of bytes of the file that were read.
    bytes: AtomicU64,
    /// Whether a signal ended the reading.
    ended_by_signal: AtomicBool,
}

/// A file that ends where a signal arrives.
#[derive(Debug)]
struct Watched {
    file: File,
    signals: Arc<Signals>,
    progress: Arc<Progress>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read(&mut self.file, &self.signals, buffer)?;
        let progress = &self.progress;
        progress
            .ended_by_signal
            .store(read.is_none(), Ordering::Relaxed);
        let read = read.unwrap_or(0);
        progress.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl PlainBytes {
    /// Reads the first bytes of a file, as many as decide how it is compressed.
    pub(crate) fn open(file: File, signals: Arc<Signals>) -> io::Result<Self> {
        let progress = Arc::new(Progress::default());
        let mut watched = Watched {
            file,
            signals,
            progress: Arc::clone(&progress),
        };
        let mut first = Vec::new();
        // Bytes are not requested beyond those that decide: a slow producer may have sent no more.
        (&mut watched)
            .take(ZSTD.len() as u64)
            .read_to_end(&mut first)?;
        let (gzip, zstd) = (first.starts_with(&GZIP), first.starts_with(&ZSTD));
        let whole = Cursor::new(first).chain(watched);
        let reader = if gzip {
            Reader::Gzip(Box::new(MultiGzDecoder::new(whole)))
        } else if zstd {
            Reader::Zstd(Box::new(ZstdDecoder::new(whole)?))
        } else {
            Reader::Plain(whole)
        };
        Ok(Self {
            reader,
            progress,
            offset: 0,
        })
    }

    /// The number of bytes of the file that were read so far, compressed or not.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.progress.bytes.load(Ordering::Relaxed)
    }

    /// Blocks until there is data and reads it, 0 bytes at the end; `None` if a signal arrives
    /// first.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let read = match &mut self.reader {
                Reader::Plain(bytes) => bytes.read(buffer),
                Reader::Gzip(bytes) => bytes.read(buffer),
                Reader::Zstd(bytes) => bytes.read(buffer),
            };
            // A decoder takes the end of its input by a signal for a cut file.
            let ended_by_signal = self.progress.ended_by_signal.load(Ordering::Relaxed);
            if ended_by_signal && !matches!(read, Ok(1..)) {
                return Ok(None);
            }
            match read {
                Ok(read) => {
                    self.offset += read as u64;
                    return Ok(Some(read));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explained(error)),
            }
        }
    }

    /// The error of a decoder, with the position up to which its output is good.
    fn explained(&self, error: io::Error) -> io::Error {
        let name = match &self.reader {
            Reader::Plain(_) => return error,
            Reader::Gzip(_) => "gzip",
            Reader::Zstd(_) => "zstd",
        };
        let problem = format!(
            "the {name} data is cut or damaged after byte {} of the decompressed file: {error}",
            self.offset
        );
        io::Error::new(error.kind(), problem)
    }
}

impl std::fmt::Debug for PlainBytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = formatter.debug_struct("PlainBytes");
        fields.field("offset", &self.offset);
        fields
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
