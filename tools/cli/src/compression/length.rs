//! What is known of regular files before they are read: the length of their plain bytes, and the
//! first of them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::codec::{Codec, Detected, LONGEST_SIGNATURE};
use super::decoder::decoder;
use super::reader::not_decoded;
use crate::failure::Failure;
use crate::files::Source;

/// The plain bytes of all inputs together; `None` if it does not follow from the lengths of their
/// files: some are compressed, or no regular files. With `as_they_are`, the inputs are not
/// decompressed.
pub(crate) fn plain_len(sources: &[Source], as_they_are: bool) -> Option<u64> {
    let total = Source::total_len(sources)?;
    let all_plain = as_they_are || !sources.iter().any(|source| codec_of(source).is_some());
    all_plain.then_some(total)
}

/// The codec that a regular file begins like, if it does. A file that cannot be read has none:
/// opening it reports the error.
pub(crate) fn codec_of(source: &Source) -> Option<Codec> {
    let first = first_bytes(&mut source.open().ok()?).ok()?;
    match Codec::detect(&first) {
        Detected::Compressed(codec) => Some(codec),
        Detected::Plain | Detected::Foreign(_) | Detected::Undecided => None,
    }
}

/// The first bytes of a regular file. Its position stays as it is: standard input shares it with
/// the run.
fn first_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let position = file.stream_position()?;
    let mut first = Vec::new();
    let part = Read::take(&mut *file, LONGEST_SIGNATURE as u64).read_to_end(&mut first);
    file.seek(SeekFrom::Start(position))?;
    part.map(|_| first)
}

/// The first plain bytes of a regular file: `most` of them, or fewer if the file has fewer or is
/// damaged behind them. Like [`first_bytes`], this leaves the position of the file as it is.
///
/// # Errors
/// [`Failure`] if the file cannot be read, or is compressed in a format that is not decoded.
pub(crate) fn first_plain_bytes(source: &Source, most: usize) -> Result<Vec<u8>, Failure> {
    let first = first_of_file(&mut source.open()?, most);
    first.map_err(Failure::file(source.name()))
}

fn first_of_file(file: &mut File, most: usize) -> io::Result<Vec<u8>> {
    let position = file.stream_position()?;
    let mut plain: Box<dyn Read> = match Codec::detect(&first_bytes(file)?) {
        // The clone has the same position.
        Detected::Compressed(codec) => decoder(codec, file.try_clone()?)?,
        Detected::Foreign(command) => return Err(not_decoded(command, "")),
        Detected::Plain | Detected::Undecided => Box::new(file.try_clone()?),
    };
    let mut first = Vec::new();
    let read = Read::take(&mut plain, most as u64).read_to_end(&mut first);
    file.seek(SeekFrom::Start(position))?;
    match read {
        Err(error) if error.raw_os_error().is_some() => Err(error),
        Ok(_) | Err(_) => Ok(first),
    }
}
