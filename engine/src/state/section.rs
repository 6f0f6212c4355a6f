//! A section as bytes: the buffer that it is written and read in, its checksum, its limits, and
//! what each kind of section holds.
//!
//! ```text
//! byte  0        36     40       44                   64                         64 + 64 n
//!       | unused | kind | length | first  count  tick | line | line | ...        | checksum
//!                                | payload of a block                            |
//! ```
//!
//! The buffer is an array of lines, and a section begins in the middle of the first one, so that
//! the lines of a block are aligned: they are copied as a whole, and not line by line.

use std::fmt;

use twox_hash::XxHash3_64;

use super::error::StateError;
use crate::filters::lines::Progress;
use crate::hash::KeyHash;
use crate::memory::{LINE_BYTES, Line, line_bytes, line_bytes_mut};

/// The first bytes of a state. A high bit and line ends show what has damaged a file that was
/// copied as text, as in PNG.
pub(super) const MAGIC: [u8; 8] = *b"\x8fECH\r\n\x1a\n";

/// The version of the format. It must rise with every change of the sections, of what a line form
/// keeps in its lines, and of the line and the fingerprint that a hash selects: the states in
/// `engine/tests/specs/states` must be read forever.
pub(super) const VERSION: u32 = 1;

/// The bytes before the first section.
pub(super) const PRELUDE: usize = 12;

/// The longest specification, in bytes: several times that of the longest one in use.
pub(super) const LONGEST_SPEC: usize = 4096;

/// The longest name of an algorithm.
pub(super) const LONGEST_NAME: usize = 64;

/// The most lines of a block: 1 MiB.
pub const MOST_BLOCK_LINES: usize = 16_384;

/// The most bytes that a caller adds to a [commit](Commit): 64 MiB.
pub const MOST_COMMIT_BYTES: usize = 64 << 20;

/// The most keys of a section: 640 KiB at most, with their ticks.
pub(super) const MOST_KEYS: usize = 1 << 15;

/// The greatest count of a commit: what a filter adds to it later never exceeds a number.
const MOST_COUNT: u64 = u64::MAX >> 2;

/// The bytes of a payload before its part of variable length.
pub(super) const HEADER_HEAD: usize = 52;
pub(super) const BLOCK_HEAD: usize = 20;
pub(super) const KEYS_HEAD: usize = 16;
pub(super) const RUN_BYTES: usize = 12;
pub(super) const COMMIT_HEAD: usize = 32;

const LINE: usize = LINE_BYTES as usize;

/// Where a section begins in its buffer: its head of 8 bytes and that of a block end at a line.
const START: usize = LINE - HEAD - BLOCK_HEAD;

/// Kind and length.
pub(super) const HEAD: usize = 8;

/// The checksum behind a payload.
pub(super) const CHECKSUM: usize = 8;

/// A point between two sections: how many bytes are before it, and their checksum, which the next
/// section continues.
///
/// A program that appends to a file keeps the one behind the last whole section, and
/// [goes on](super::StateWriter::resume) there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The bytes from the beginning of the file.
    pub position: u64,
    /// The checksum of the last section, or of magic and version.
    pub checksum: u64,
}

impl Mark {
    /// The bytes before the first section, and the point behind them.
    pub(super) fn prelude(version: u32) -> ([u8; PRELUDE], Self) {
        let mut bytes = [0; PRELUDE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..].copy_from_slice(&version.to_le_bytes());
        let mark = Self {
            position: PRELUDE as u64,
            checksum: checksum(0, &bytes),
        };
        (bytes, mark)
    }
}

/// The checksum of bytes that follow others with the checksum `before`. It finds damage, not
/// forgery.
///
/// # Examples
/// ```
/// use echoless::state::checksum;
/// let whole = checksum(checksum(0, b"head"), b"tail");
/// assert_ne!(whole, checksum(checksum(0, b"head"), b"tall"));
/// assert_ne!(whole, checksum(checksum(0, b"herd"), b"tail"));
/// ```
#[must_use]
pub fn checksum(before: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(before, bytes)
}

/// What a section is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Header = 1,
    Block = 2,
    Keys = 3,
    Commit = 4,
    End = 5,
}

impl Kind {
    /// The kind with this number, and the most bytes of its payload.
    pub(super) const fn of(number: u32) -> Option<(Self, usize)> {
        Some(match number {
            1 => (Self::Header, HEADER_HEAD + LONGEST_NAME + LONGEST_SPEC),
            2 => (Self::Block, BLOCK_HEAD + MOST_BLOCK_LINES * LINE),
            3 => (Self::Keys, KEYS_HEAD + MOST_KEYS * (RUN_BYTES + 8)),
            4 => (Self::Commit, COMMIT_HEAD + MOST_COMMIT_BYTES),
            5 => (Self::End, 0),
            _ => return None,
        })
    }

    /// The section in an error: its kind and where it begins. A block says its lines.
    pub(super) fn describe(self, position: u64, payload: &[u8]) -> String {
        let name = match self {
            Self::Header => return "the header".into(),
            Self::Block if payload.len() >= BLOCK_HEAD => {
                let first = u64_at(payload, 0);
                let last = first
                    .wrapping_add(u32_at(payload, 8).into())
                    .wrapping_sub(1);
                return format!("block of lines {first} to {last}");
            }
            Self::Block => "block",
            Self::Keys => "keys",
            Self::Commit => "commit",
            Self::End => "end",
        };
        format!("the {name} at byte {position}")
    }
}

/// The bytes of one section.
#[derive(Debug)]
pub(super) struct SectionBuffer {
    lines: Vec<Line>,
    /// The length of the payload.
    length: usize,
}

impl SectionBuffer {
    pub(super) const fn new() -> Self {
        Self {
            lines: Vec::new(),
            length: 0,
        }
    }

    /// Begins a section, and returns its payload, whose content is left to overwrite.
    pub(super) fn begin(&mut self, kind: Kind, length: usize) -> &mut [u8] {
        self.length = length;
        self.reserve(length + CHECKSUM);
        let head = &mut line_bytes_mut(&mut self.lines)[START..];
        head[..4].copy_from_slice(&(kind as u32).to_le_bytes());
        head[4..HEAD].copy_from_slice(&(length as u32).to_le_bytes());
        self.payload_mut()
    }

    /// Makes room for so many bytes behind the head.
    pub(super) fn reserve(&mut self, bytes: usize) {
        let lines = (START + HEAD + bytes).div_ceil(LINE);
        if self.lines.len() < lines {
            self.lines.resize(lines, Line::EMPTY);
        }
    }

    /// The bytes behind the head.
    pub(super) fn rest_mut(&mut self) -> &mut [u8] {
        &mut line_bytes_mut(&mut self.lines)[START + HEAD..]
    }

    pub(super) fn payload_mut(&mut self) -> &mut [u8] {
        let length = self.length;
        &mut self.rest_mut()[..length]
    }

    pub(super) fn payload(&self) -> &[u8] {
        &line_bytes(&self.lines)[START + HEAD..][..self.length]
    }

    /// The lines of a block, in the byte order of this machine once it was
    /// [converted](Self::convert_lines).
    pub(super) fn block_lines(&self) -> &[Line] {
        &self.lines[1..][..(self.length - BLOCK_HEAD) / LINE]
    }

    pub(super) fn block_lines_mut(&mut self) -> &mut [Line] {
        let count = (self.length - BLOCK_HEAD) / LINE;
        &mut self.lines[1..][..count]
    }

    /// Converts the lines of a block between the byte order of this machine and that of states.
    pub(super) fn convert_lines(&mut self) {
        if cfg!(target_endian = "big") {
            swap_bytes(self.block_lines_mut());
        }
    }

    /// The checksum that the section must have behind `before`.
    pub(super) fn checksum(&self, before: u64) -> u64 {
        let bytes = &line_bytes(&self.lines)[START..][..HEAD + self.length];
        checksum(before, bytes)
    }

    /// The checksum that was read behind the payload.
    pub(super) fn read_checksum(&self) -> u64 {
        u64_at(line_bytes(&self.lines), START + HEAD + self.length)
    }

    /// Writes the checksum behind the payload. Returns it, and the whole section.
    pub(super) fn seal(&mut self, before: u64) -> (u64, &[u8]) {
        let sum = self.checksum(before);
        let length = self.length;
        self.rest_mut()[length..][..CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        let bytes = &line_bytes(&self.lines)[START..][..HEAD + length + CHECKSUM];
        (sum, bytes)
    }

    /// The content of a section that is no header, whose checksum is right. `section` is its name
    /// in an error.
    pub(super) fn section(
        &mut self,
        kind: Kind,
        section: impl fmt::Display,
    ) -> Result<Section<'_>, StateError> {
        let invalid = |reason: &str| StateError::invalid(&section, reason);
        match kind {
            Kind::Header => Err(invalid("a second header")),
            Kind::Block => {
                let payload = self.payload();
                if payload.len() < BLOCK_HEAD {
                    return Err(invalid("it is too short"));
                }
                let count = u32_at(payload, 8) as usize;
                let (first, tick) = (u64_at(payload, 0), u64_at(payload, 12));
                if !(1..=MOST_BLOCK_LINES).contains(&count) {
                    return Err(invalid("its number of lines"));
                }
                let bytes = payload.len() - BLOCK_HEAD;
                if bytes != 0 && bytes != count * LINE {
                    return Err(invalid("its length"));
                }
                self.convert_lines();
                Ok(Section::Block(Block {
                    first,
                    count: count as u64,
                    tick,
                    lines: (bytes != 0).then(|| self.block_lines()),
                }))
            }
            Kind::Keys => Keys::of(self.payload())
                .map(Section::Keys)
                .ok_or_else(|| invalid("its length")),
            Kind::Commit => {
                let Some((head, bytes)) = self.payload().split_at_checked(COMMIT_HEAD) else {
                    return Err(invalid("it is too short"));
                };
                let [observed, fresh, evictions, tick] = [0, 8, 16, 24].map(|at| u64_at(head, at));
                if fresh > observed || evictions > observed {
                    return Err(invalid("its counts contradict each other"));
                }
                if observed > MOST_COUNT {
                    return Err(invalid("it counts more keys than any filter observes"));
                }
                Ok(Section::Commit(Commit {
                    progress: Progress {
                        observed,
                        fresh,
                        evictions,
                        tick,
                    },
                    bytes,
                }))
            }
            Kind::End => Ok(Section::End),
        }
    }
}

/// Whether all lines are empty. Most lines of a filter in use are not, so this ends soon.
pub(super) fn is_empty(lines: &[Line]) -> bool {
    lines.iter().all(|line| !line.differs_from(&Line::EMPTY))
}

/// Reverses the bytes of each word.
fn swap_bytes(lines: &mut [Line]) {
    for word in lines.iter_mut().flat_map(|line| &mut line.0) {
        *word = word.swap_bytes();
    }
}

/// The number that begins at byte `at`.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// As [`u64_at`], for 4 bytes.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// A section behind the header.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Section<'a> {
    /// The content of some lines.
    Block(Block<'a>),
    /// Keys that were observed.
    Keys(Keys<'a>),
    /// Counts, and bytes of the caller: everything before it belongs together.
    Commit(Commit<'a>),
    /// The end of a state.
    End,
}

/// The lines of a filter from one to another, as they were once all keys of the sections before
/// had been observed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Block<'a> {
    /// The number of the first line in the whole filter.
    pub first: u64,
    /// The number of lines, 1 to [`MOST_BLOCK_LINES`].
    pub count: u64,
    /// The clock of the filter, as in [`Progress::tick`].
    pub tick: u64,
    /// The lines, as if [`finish_expiry`](crate::LineFilter::finish_expiry) had been called. `None`
    /// if all of them are empty.
    pub lines: Option<&'a [Line]>,
}

/// Keys in the order in which they were observed, with their ticks.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    keys: &'a [u8],
    runs: &'a [u8],
    clock: u64,
}

impl<'a> Keys<'a> {
    fn of(payload: &'a [u8]) -> Option<Self> {
        let (head, rest) = payload.split_at_checked(KEYS_HEAD)?;
        let [keys, runs] = [0, 4].map(|at| u32_at(head, at) as usize);
        let (runs, keys_bytes) = rest.split_at_checked(runs.checked_mul(RUN_BYTES)?)?;
        let of_runs = |runs: &[u8]| -> u64 {
            let runs = runs.chunks_exact(RUN_BYTES);
            runs.map(|run| u64::from(u32_at(run, 8))).sum()
        };
        let fits = keys <= MOST_KEYS
            && keys_bytes.len() == keys.checked_mul(8)?
            && (runs.is_empty() || of_runs(runs) == keys as u64);
        fits.then_some(Self {
            keys: keys_bytes,
            runs,
            clock: u64_at(head, 8),
        })
    }

    /// The number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len() / 8
    }

    /// Whether there are no keys: the section moves the clock alone.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The tick to which the clock moves after the keys; 0 if to none.
    #[must_use]
    pub const fn clock(&self) -> u64 {
        self.clock
    }

    /// The keys in their order.
    pub fn keys(&self) -> impl Iterator<Item = KeyHash> + use<'a> {
        let (words, _) = self.keys.as_chunks();
        words
            .iter()
            .map(|word| KeyHash::from_uniform(u64::from_le_bytes(*word)))
    }

    /// The ticks of the keys, in runs: a tick and how many keys have it. None if the filter has no
    /// clock.
    pub fn ticks(&self) -> impl Iterator<Item = (u64, usize)> + use<'a> {
        let runs = self.runs.chunks_exact(RUN_BYTES);
        runs.map(|run| (u64_at(run, 0), u32_at(run, 8) as usize))
    }
}

/// A point at which everything before belongs together.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Commit<'a> {
    /// The counts and the clock.
    pub progress: Progress,
    /// What the caller added, such as its position in an input.
    pub bytes: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that a machine of the other byte order would write as the same bytes.
    #[test]
    fn lines_have_the_same_bytes_on_machines_of_both_byte_orders() {
        let line = Line([1, 2, 3, 0x0102_0304_0506_0708, u64::MAX, 0, 7, 1 << 63]);
        let mut lines = [line, Line::EMPTY, line];
        // In the memory of a big-endian machine.
        let big: Vec<u8> = (lines.iter().flat_map(|line| line.0))
            .flat_map(u64::to_be_bytes)
            .collect();
        let little: Vec<u8> = (lines.iter().flat_map(|line| line.0))
            .flat_map(u64::to_le_bytes)
            .collect();
        let mut other = [Line::EMPTY; 3];
        line_bytes_mut(&mut other).copy_from_slice(&big);
        swap_bytes(&mut other);
        // Read as on this machine, the other one has swapped them into the order of states.
        let expected = if cfg!(target_endian = "little") {
            &little
        } else {
            &big
        };
        assert_eq!(line_bytes(&lines), expected);
        if cfg!(target_endian = "little") {
            assert_eq!(other, lines);
        } else {
            swap_bytes(&mut lines);
            assert_eq!(line_bytes(&lines), little);
        }
    }

    #[test]
    fn lines_of_a_block_are_aligned_behind_its_head() {
        let mut buffer = SectionBuffer::new();
        let payload = buffer.begin(Kind::Block, BLOCK_HEAD + 2 * LINE);
        payload.fill(0);
        payload[BLOCK_HEAD] = 5;
        assert_eq!(buffer.block_lines().len(), 2);
        buffer.convert_lines();
        assert_eq!(buffer.block_lines()[0].0[0], 5);
    }
}
