//! The number of records in short files, counted before a run: it tells how large a filter they
//! need far better than their length.
//!
//! Counting reads the files once more, mostly from the page cache. Clearing the memory of a filter
//! that the length alone calls for takes ten times as long.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::format::Format;
use crate::files::Source;
use crate::reading::CHUNK_BYTES;

/// The most bytes of files that are counted. Records that fill more need the memory that the filter
/// gets anyway, unless they are long.
const MOST_BYTES: u64 = 32 << 20;

/// An upper bound of the number of records in these regular files of so many bytes; `None` if they
/// are long, their format has no terminator to count, or one cannot be read: the run reports that.
pub(crate) fn most_records(sources: &[Source], bytes: u64, format: &dyn Format) -> Option<u64> {
    if bytes > MOST_BYTES || format.default_terminator().is_empty() {
        return None;
    }
    let mut block = vec![0; CHUNK_BYTES];
    let counts = sources.iter().map(|source| {
        let mut file = source.open().ok()?;
        // Standard input shares its position with the run.
        let position = file.stream_position().ok()?;
        let counted = count(&mut file, &mut block, format);
        file.seek(SeekFrom::Start(position)).ok()?;
        counted.ok().flatten()
    });
    counts.sum()
}

/// The records of a file from its position on; `None` if it has grown long meanwhile.
fn count(file: &mut File, block: &mut [u8], format: &dyn Format) -> io::Result<Option<u64>> {
    let mut file = file.take(MOST_BYTES + 1);
    let mut records = 0;
    loop {
        match file.read(block)? {
            0 => return Ok((file.limit() > 0).then_some(records)),
            read => records += format.most_records(&block[..read]) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::slice;

    use super::*;
    use crate::records::formats::tests::{all, delimited};

    fn source_of(bytes: &[u8]) -> (tempfile::NamedTempFile, Source) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let source = Source::from_path(file.path().into());
        (file, source)
    }

    #[test]
    fn records_of_text_are_counted_and_those_of_long_or_binary_files_are_not() {
        for (name, format) in delimited() {
            let end = format.default_terminator();
            let bytes = [&b"record"[..], end].concat().repeat(100_000);
            let (_file, source) = source_of(&bytes);
            let sources = [source.clone(), source];
            let most = most_records(&sources, 2 * bytes.len() as u64, &*format).unwrap();
            assert!((200_000..200_100).contains(&most), "{name}: {most}");
            assert_eq!(most_records(&sources, MOST_BYTES + 1, &*format), None);
        }
        let (_file, source) = source_of(b"record");
        for example in all() {
            let counted = most_records(slice::from_ref(&source), 6, &*example.format);
            assert_eq!(
                counted.is_some(),
                example.format.is_text(),
                "{}",
                example.name
            );
        }
        let missing = Source::from_path("/no/such/file".into());
        let (_, format) = delimited().swap_remove(0);
        assert_eq!(most_records(&[source, missing], 6, &*format), None);
    }
}
