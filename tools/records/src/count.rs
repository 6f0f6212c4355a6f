//! The number of records in files, estimated before a run: it predicts the size of the filter that
//! they need far better than their length does.
//!
//! Short files are counted. Of a longer one, blocks at equal distances are:
//!
//! ```text
//! file    [####]...........[####]...........[####]...........    #: counted   .: a gap, unseen
//!         |<-- 1/128 of it -->|
//! ```
//!
//! So little of a file is read twice. Clearing the memory of a filter that the length alone calls
//! for takes longer than reading all of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::format::Format;
use crate::files::Source;

/// The most bytes of files whose records are estimated. Records that fill more need the memory that
/// the filter gets anyway, unless they are long.
const MOST_BYTES: u64 = 256 << 20;

/// The number of blocks of a file that are counted. A region of short records is seen if it is
/// longer than the file divided by this.
const BLOCKS: u64 = 128;

/// The length of a block in bytes. A file of up to 256 KiB is counted as a whole.
const BLOCK_BYTES: u64 = 2 << 10;

/// The most bytes that are read of all files together.
const MOST_READ: u64 = 32 << 20;

/// The records of some files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The number of records: an upper bound if every byte was seen, else an eighth more than that
    /// of the blocks in proportion.
    pub records: u64,
    /// The length of a gap between two blocks in bytes, one of each file together. Records that are
    /// much shorter than all others may hide in one.
    pub gap: u64,
}

/// Estimates the number of records in these regular files of so many bytes. `None` if they are
/// long, their format has no terminator to count, or one cannot be read: the run reports that.
pub fn estimate(sources: &[Source], bytes: u64, format: &dyn Format) -> Option<Estimate> {
    if !format.facts().counts_in_parts || bytes > MOST_BYTES {
        return None;
    }
    let mut block = Vec::new();
    let (mut sum, mut read) = (Estimate::default(), 0);
    for source in sources {
        let mut file = source.open().ok()?;
        // Standard input shares its position with the run.
        let position = file.stream_position().ok()?;
        let left = source.length()?.saturating_sub(position);
        read += left.min(BLOCKS * BLOCK_BYTES);
        // A file may have grown since its length was added to `bytes`.
        if left > MOST_BYTES || read > MOST_READ {
            return None;
        }
        let of_file = estimate_file(&mut file, position, left, format, &mut block);
        file.seek(SeekFrom::Start(position)).ok()?;
        let of_file = of_file.ok()?;
        sum.records += of_file.records;
        sum.gap += of_file.gap;
    }
    Some(sum)
}

/// The records in the `left` bytes of a file from a position on.
fn estimate_file(
    file: &mut File,
    position: u64,
    left: u64,
    format: &dyn Format,
    block: &mut Vec<u8>,
) -> io::Result<Estimate> {
    let (blocks, length) = if left <= BLOCKS * BLOCK_BYTES {
        (1, left)
    } else {
        (BLOCKS, BLOCK_BYTES)
    };
    let distance = left / blocks;
    let (mut seen, mut ends) = (0, 0);
    for number in 0..blocks {
        file.seek(SeekFrom::Start(position + number * distance))?;
        block.clear();
        seen += file.by_ref().take(length).read_to_end(block)? as u64;
        ends += format.most_records(block) as u64 - 1;
    }
    // Both factors are at most 2^28.
    let records = ends * left / seen.max(1);
    let margin = if blocks == 1 { 0 } else { records / 8 };
    Ok(Estimate {
        // The last record may lack its end.
        records: records + margin + 1,
        gap: distance - length,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::slice;

    use super::*;
    use crate::formats::tests::{all, delimited};

    fn source_of(bytes: &[u8]) -> (tempfile::NamedTempFile, Source) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let source = Source::from_path(file.path().into());
        (file, source)
    }

    fn estimate_of(bytes: &[u8]) -> Estimate {
        let (_file, source) = source_of(bytes);
        let (_, format) = delimited().swap_remove(0);
        estimate(&[source], bytes.len() as u64, &*format).unwrap()
    }

    #[test]
    fn records_of_text_are_estimated_and_those_of_long_or_binary_files_are_not() {
        for (name, format) in delimited() {
            let end = format.facts().terminator;
            let bytes = [&b"record"[..], end].concat().repeat(100_000);
            let (_file, source) = source_of(&bytes);
            let sources = [source.clone(), source];
            let both = estimate(&sources, 2 * bytes.len() as u64, &*format).unwrap();
            assert!(
                (200_000..230_000).contains(&both.records),
                "{name}: {both:?}"
            );
            assert_eq!(both.gap, 2 * (bytes.len() as u64 / BLOCKS - BLOCK_BYTES));
            assert_eq!(estimate(&sources, MOST_BYTES + 1, &*format), None);
        }
        let (_file, source) = source_of(b"record");
        for example in all() {
            let estimated = estimate(slice::from_ref(&source), 6, &*example.format);
            let expected = Estimate { records: 1, gap: 0 };
            let expected = (example.format.facts().counts_in_parts).then_some(expected);
            assert_eq!(estimated, expected, "{}", example.name);
        }
        let missing = Source::from_path("/no/such/file".into());
        let (_, format) = delimited().swap_remove(0);
        assert_eq!(estimate(&[source.clone(), missing], 6, &*format), None);
        // Many files are not read twice.
        let (_file, short) = source_of(&[b'x'; 200 << 10]);
        let many = |number| estimate(&vec![short.clone(); number], 6, &*format);
        assert!(many(150).is_some());
        assert_eq!(many(200), None);
    }

    #[test]
    fn short_files_are_counted() {
        let most = (BLOCKS * BLOCK_BYTES) as usize;
        for length in [0, 1, 2, 2047, 2048, 2049, 5000, most - 1, most] {
            let lines = b"x\n".repeat(length);
            let expected = Estimate {
                records: length as u64 / 2 + 1,
                gap: 0,
            };
            assert_eq!(estimate_of(&lines[..length]), expected, "{length}");
        }
    }

    #[test]
    fn what_the_blocks_miss_fits_into_a_gap() {
        // Long lines with a region of short ones, wherever it is and however long.
        let length = 2 << 20;
        for (start, end) in [
            (0, 1 << 16),
            (3000, 12_000),
            (1_000_000, 1_400_000),
            (length - 15_000, length),
            (5, length),
        ] {
            let mut bytes = b"a line of a hundred bytes".repeat(4);
            bytes[99] = b'\n';
            let mut bytes = bytes.repeat(length / 100 + 1);
            bytes.truncate(length);
            bytes[start..end].copy_from_slice(&b"x\n".repeat(length)[..end - start]);
            let records = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            let Estimate {
                records: estimated,
                gap,
            } = estimate_of(&bytes);
            // The shortest record has its end only.
            assert!(
                records <= estimated + gap,
                "{start}..{end}: {records}, {estimated}"
            );
            assert!(
                estimated <= records / 8 * 9 + gap,
                "{start}..{end}: {estimated}"
            );
        }
    }

    #[test]
    fn records_are_estimated_from_a_position_on() {
        let bytes = b"x\n".repeat(1 << 20);
        let (file, _) = source_of(&bytes);
        let mut file = file.reopen().unwrap();
        let mut block = Vec::new();
        let (_, lines) = delimited().swap_remove(0);
        let whole = estimate_file(&mut file, 0, 2 << 20, &*lines, &mut block).unwrap();
        let half = estimate_file(&mut file, 1 << 20, 1 << 20, &*lines, &mut block).unwrap();
        assert_eq!(whole.records / 2, half.records - 1);
    }
}
