//! What is known of regular files before they are read: the length of their plain bytes, and the
//! first of them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::codec::{Codec, Detected, Detection, LONGEST_SIGNATURE};
use super::decoder::decoder;
use super::reader::not_decoded;
use crate::failure::Failure;
use crate::files::Source;

/// The most frames that are skipped in search of the first other one.
const MOST_SKIPPED: usize = 1000;

/// The plain bytes of all inputs together; `None` if it does not follow from the lengths of their
/// files: some are compressed, or no regular files.
pub fn plain_len(sources: &[Source], detection: Detection) -> Option<u64> {
    let total = Source::total_len(sources)?;
    let is_compressed = |source| codec_of(source, detection).is_some();
    (!sources.iter().any(is_compressed)).then_some(total)
}

/// The codec that a regular file begins like, if it does. A file that cannot be read has none:
/// opening it reports the error.
pub fn codec_of(source: &Source, detection: Detection) -> Option<Codec> {
    if detection == Detection::Off {
        return None;
    }
    let mut file = source.open().ok()?;
    // Standard input shares its position with the run.
    let position = file.stream_position().ok()?;
    let codec = find_codec(&mut file, detection);
    file.seek(SeekFrom::Start(position)).ok()?;
    codec.ok()?
}

/// The codec of the first frame of a file that is not skipped.
fn find_codec(file: &mut File, detection: Detection) -> io::Result<Option<Codec>> {
    for _ in 0..MOST_SKIPPED {
        let first = first_bytes(file)?;
        let length = match (Codec::detect(&first, detection), first.get(4..8)) {
            (Detected::Compressed(codec), _) => return Ok(Some(codec)),
            (Detected::Plain | Detected::Foreign(_) | Detected::Undecided, _) => return Ok(None),
            // A frame that is cut.
            (Detected::Skippable, None) => break,
            (Detected::Skippable, Some(length)) => length
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | i64::from(*byte)),
        };
        file.seek(SeekFrom::Current(8 + length - first.len() as i64))?;
    }
    // Either of those that skip frames.
    Ok(Some(Codec::Zstd))
}

/// The command that writes the plain bytes of a regular file to standard output, if it begins like
/// a compressed one. `name` is that of the file, quoted for a shell.
pub fn decompress_command(source: &Source, name: &str) -> Option<String> {
    if let Some(codec) = codec_of(source, Detection::Text) {
        // By its position, a name that begins with a dash is no option.
        return Some(format!("{} -dc < {name}", codec.program()));
    }
    let first = first_bytes(&mut source.open().ok()?).ok()?;
    let Detected::Foreign(command) = Codec::detect(&first, Detection::Text) else {
        return None;
    };
    let (program, _) = command.rsplit_once(' ')?;
    Some(format!("{program} {name}"))
}

/// The next bytes of a file, as many as decide how it is compressed.
fn first_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    Read::take(file, LONGEST_SIGNATURE as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// The first plain bytes of a regular file: `most` of them, or fewer if the file has fewer or is
/// damaged behind them. The position of the file stays as it is.
///
/// # Errors
/// [`Failure`] if the file cannot be read, or is compressed in a format that is not decoded.
pub fn first_plain_bytes(source: &Source, most: usize) -> Result<Vec<u8>, Failure> {
    let first = first_of_file(&mut source.open()?, most);
    first.map_err(Failure::file(source.name()))
}

fn first_of_file(file: &mut File, most: usize) -> io::Result<Vec<u8>> {
    let position = file.stream_position()?;
    let detected = Codec::detect(&first_bytes(file)?, Detection::Binary);
    file.seek(SeekFrom::Start(position))?;
    // The clone has the same position.
    let clone = file.try_clone()?;
    let mut plain: Box<dyn Read> = match detected {
        Detected::Compressed(codec) => decoder(Some(codec), clone),
        Detected::Skippable => decoder(None, clone),
        Detected::Foreign(command) => return Err(not_decoded(command, "")),
        Detected::Plain | Detected::Undecided => Box::new(clone),
    };
    let mut first = Vec::new();
    let read = Read::take(&mut plain, most as u64).read_to_end(&mut first);
    file.seek(SeekFrom::Start(position))?;
    match read {
        Err(error) if error.raw_os_error().is_some() => Err(error),
        Ok(_) | Err(_) => Ok(first),
    }
}
