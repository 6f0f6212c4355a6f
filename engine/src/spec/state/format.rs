//! The bytes of a state: constants, the header, lines and numbers.

use crate::filters::lines::Progress;
use crate::memory::Line;
use crate::spec::FilterSpec;

/// The first bytes of a state.
pub(super) const MAGIC: [u8; 8] = *b"echoless";

/// The version of the format. It must rise with every change of what a line form keeps in its
/// lines, or of the line and the fingerprint that a hash selects: `engine/tests/specs/state.rs` has
/// the hashes of states of every line form.
pub(super) const VERSION: u32 = 1;

/// The bytes before the specification.
pub(super) const FIXED_BYTES: usize = 56;

/// The longest specification, in bytes: several times that of the longest one in use.
pub(super) const LONGEST_TEXT: usize = 4096;

/// The bytes of a line.
pub(super) const LINE: usize = size_of::<Line>();

/// The lines that are written and read at once: 64 KiB.
pub(super) const CHUNK: usize = 1024;

/// The bytes before the first checksum.
pub(super) fn header(spec: &FilterSpec, hasher: u64, progress: Progress) -> Vec<u8> {
    let text = spec.to_string();
    // Never so long: it has no adapters, few options, and at most two of these are decimals, of up
    // to 350 characters. A longer text would be saved and never be read again.
    assert!(
        text.len() <= LONGEST_TEXT,
        "the text of a specification exceeds {LONGEST_TEXT} bytes"
    );
    let mut header = Vec::with_capacity(FIXED_BYTES + text.len());
    header.extend(MAGIC);
    header.extend(VERSION.to_ne_bytes());
    header.extend((text.len() as u32).to_ne_bytes());
    for number in [
        hasher,
        progress.observed,
        progress.fresh,
        progress.evictions,
        progress.tick,
    ] {
        header.extend(number.to_ne_bytes());
    }
    header.extend(text.as_bytes());
    header
}

/// The bytes of a line as they are in memory.
pub(super) fn bytes_of(line: Line) -> [u8; LINE] {
    bytemuck::must_cast(line.0)
}

/// The line of [`LINE`] bytes.
pub(super) fn line_of(bytes: &[u8]) -> Line {
    let (words, _) = bytes.as_chunks();
    let mut line = Line::EMPTY;
    for (word, bytes) in line.0.iter_mut().zip(words) {
        *word = u64::from_ne_bytes(*bytes);
    }
    line
}

/// The number that begins at byte `at` of a header.
pub(super) fn u64_at(header: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&header[at..at + 8]);
    u64::from_ne_bytes(bytes)
}

/// As [`u64_at`], for 4 bytes.
pub(super) fn u32_at(header: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[at..at + 4]);
    u32::from_ne_bytes(bytes)
}
