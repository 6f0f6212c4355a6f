//! The length of inputs whose plain bytes are those of their files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::codec::{Codec, Detected, LONGEST_SIGNATURE};
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
