//! The length of inputs whose plain bytes are those of their files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::codec::{Codec, Detected, LONGEST_SIGNATURE};
use crate::files::Source;

/// The plain bytes of all inputs together; `None` if the lengths of their files do not tell: some
/// are compressed, or no regular files. With `as_they_are`, the inputs are not decompressed.
pub(crate) fn plain_len(sources: &[Source], as_they_are: bool) -> Option<u64> {
    let total = Source::total_len(sources)?;
    let all_plain = as_they_are || !sources.iter().any(is_compressed);
    all_plain.then_some(total)
}

/// Whether a regular file begins like a compressed one. A file that cannot be read does not:
/// opening it reports the error.
fn is_compressed(source: &Source) -> bool {
    let Ok(mut file) = source.open() else {
        return false;
    };
    let first = first_bytes(&mut file);
    first.is_ok_and(|first| matches!(Codec::detect(&first), Detected::Compressed(_)))
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
