//! The bytes of a commit as a segment has them: whole, or as a patch of the commit before.
//!
//! ```text
//!  7 number | 1 form | bytes of the caller               form 0
//!                    | the same as a zstd frame           form 1
//!                    | a zstd frame whose prefix is the   form 2
//!                    | bytes of the commit before
//! ```
//!
//! A commit of a running program differs little from the one before, so a patch is short. The
//! patches behind a whole commit are a chain, which the last commit is read from. The length of a
//! chain is bounded, so that the whole commits between chains take a fraction of the patches.

use std::io::{self, Read, Write};

use echoless::state::MOST_COMMIT_BYTES;

/// The number of a commit, before the bytes of the caller.
pub(crate) const NUMBER_BYTES: usize = 8;

/// The most bytes that a caller adds to a commit.
pub const MOST_CALLER_BYTES: usize = MOST_COMMIT_BYTES - NUMBER_BYTES;

/// The most patches of a chain.
const MOST_PATCHES: usize = 256;

/// The most bytes of the patches of a chain for each byte of its whole commit.
const PATCH_RATIO: usize = 4;

/// The numbers of commits are below this one; the byte above them is the form.
const NUMBERS: u64 = 1 << NUMBER_BITS;
const NUMBER_BITS: u32 = 56;

/// Patches are mostly long copies, which every level finds.
const LEVEL: i32 = 1;

/// How the bytes of the caller are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Compressed,
    Patch,
}

/// A commit as it is stored, without the counts of the filter.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    form: Form,
    bytes: Vec<u8>,
}

impl Stored {
    /// The number of a stored commit; `None` if these bytes are none.
    pub(crate) fn number_in(bytes: &[u8]) -> Option<u64> {
        Some(Self::parse(bytes)?.0)
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (number, form, bytes) = Self::parse(bytes)?;
        Some(Self {
            number,
            form,
            bytes: bytes.to_vec(),
        })
    }

    fn parse(bytes: &[u8]) -> Option<(u64, Form, &[u8])> {
        let (head, bytes) = bytes.split_first_chunk()?;
        let head = u64::from_le_bytes(*head);
        let form = match head >> NUMBER_BITS {
            0 => Form::Whole,
            1 => Form::Compressed,
            2 => Form::Patch,
            _ => return None,
        };
        Some((head % NUMBERS, form, bytes))
    }

    /// The bytes in a file.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        if self.number >= NUMBERS {
            return Err(io::Error::other("its numbers of commits are used up"));
        }
        let form = match self.form {
            Form::Whole => 0,
            Form::Compressed => 1,
            Form::Patch => 2,
        };
        let mut bytes = Vec::with_capacity(NUMBER_BYTES + self.bytes.len());
        bytes.extend((self.number | form << NUMBER_BITS).to_le_bytes());
        bytes.extend(&self.bytes);
        Ok(bytes)
    }
}

/// The stored lengths of the last whole commit and of the patches behind it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChainLength {
    whole_bytes: usize,
    patch_bytes: usize,
    patches: usize,
}

impl ChainLength {
    fn push(&mut self, stored: &Stored) {
        if stored.form == Form::Patch {
            self.patch_bytes += stored.bytes.len();
            self.patches += 1;
        } else {
            *self = Self {
                whole_bytes: stored.bytes.len(),
                ..Self::default()
            };
        }
    }

    /// The form in which the next commit is stored, which takes its place in the chain. `before` is
    /// the commit before it in the segment.
    pub(crate) fn store(
        &mut self,
        number: u64,
        bytes: &[u8],
        before: Option<&[u8]>,
    ) -> io::Result<Stored> {
        let stored = |form, bytes| Stored {
            number,
            form,
            bytes,
        };
        let patch = match before {
            Some(before) if self.patches < MOST_PATCHES => {
                let patch = compress(bytes, before)?;
                let fits = self.patch_bytes + patch.len() <= PATCH_RATIO * self.whole_bytes;
                (fits && patch.len() < bytes.len()).then(|| stored(Form::Patch, patch))
            }
            _ => None,
        };
        let next = match patch {
            Some(patch) => patch,
            None => {
                let compressed = compress(bytes, &[])?;
                if compressed.len() < bytes.len() {
                    stored(Form::Compressed, compressed)
                } else {
                    stored(Form::Whole, bytes.to_vec())
                }
            }
        };
        self.push(&next);
        Ok(next)
    }
}

/// The commits that the last one is read from.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// The bytes of a commit, if some are known.
    read: Option<Vec<u8>>,
    /// What follows it.
    rest: Vec<Stored>,
    length: ChainLength,
}

impl Chain {
    /// Appends a commit. Fails if the chain is longer than one that was written.
    pub(crate) fn push(&mut self, stored: Stored) -> io::Result<()> {
        self.length.push(&stored);
        if stored.form != Form::Patch {
            self.read = None;
            self.rest.clear();
        } else if self.length.patches > MOST_PATCHES {
            return Err(io::Error::other("too many patches follow each other"));
        }
        self.rest.push(stored);
        Ok(())
    }

    /// The bytes of the last commit. Fails if a patch does not belong to the commit before it, or
    /// there is none.
    pub(crate) fn last(&mut self) -> io::Result<&[u8]> {
        for stored in self.rest.drain(..) {
            let bytes = match (stored.form, &self.read) {
                (Form::Whole, _) => stored.bytes,
                (Form::Compressed, _) => decompress(&stored.bytes, &[])?,
                (Form::Patch, Some(before)) => decompress(&stored.bytes, before)?,
                (Form::Patch, None) => {
                    return Err(io::Error::other("a patch has no commit before it"));
                }
            };
            self.read = Some(bytes);
        }
        let none = || io::Error::other("there is no commit");
        self.read.as_deref().ok_or_else(none)
    }

    pub(crate) fn length(&self) -> ChainLength {
        self.length
    }
}

/// A frame of these bytes, behind a prefix that its reader has, too.
fn compress(bytes: &[u8], prefix: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::write::Encoder::with_ref_prefix(Vec::new(), LEVEL, prefix)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.include_checksum(true)?;
    // The window has the whole prefix: both have at most 64 MiB.
    let covered = (bytes.len() + prefix.len()).next_power_of_two();
    encoder.window_log(covered.ilog2().clamp(10, WINDOW_LOG))?;
    encoder.long_distance_matching(!prefix.is_empty())?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The largest window: twice the bytes of the longest commit.
const WINDOW_LOG: u32 = 27;

fn decompress(frame: &[u8], prefix: &[u8]) -> io::Result<Vec<u8>> {
    let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(frame, prefix)?.single_frame();
    decoder.window_log_max(WINDOW_LOG)?;
    let mut bytes = Vec::new();
    let most = MOST_CALLER_BYTES as u64;
    (&mut decoder).take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_CALLER_BYTES || !decoder.finish().is_empty() {
        return Err(io::Error::other(
            "a commit is longer than one that was written",
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that do not compress, of which a few differ from those of another seed.
    fn bytes(length: usize, seed: u64) -> Vec<u8> {
        let word = |at: u64| {
            let word = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (word ^ word >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        let mut bytes: Vec<u8> = (0..length as u64)
            .map(|at| (word(at) >> 40) as u8)
            .collect();
        for at in 0..8 {
            let place = (word(seed * 8 + at) >> 20) as usize % length.max(1);
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= seed as u8;
            }
        }
        bytes
    }

    #[test]
    fn commits_of_any_length_are_read_as_they_were_stored() {
        for length in [0, 1, 16, 300, 70_000, 1_700_000] {
            let (mut written, mut read) = (ChainLength::default(), Chain::default());
            let mut before: Option<Vec<u8>> = None;
            let count = if length > 100_000 { 20 } else { 600 };
            let (mut patches, mut stored_bytes) = (0, 0);
            for number in 0..count {
                // Most change in place, and some grow.
                let commit = bytes(length + number as usize % 7, number);
                let stored = written.store(number, &commit, before.as_deref()).unwrap();
                patches += u64::from(stored.form == Form::Patch);
                stored_bytes += stored.bytes.len();
                let stored = Stored::read(&stored.to_bytes().unwrap()).unwrap();
                assert_eq!(stored.number, number);
                read.push(stored).unwrap();
                if number % 5 != 0 || number + 1 == count {
                    assert!(read.last().unwrap() == commit, "{length} {number}");
                }
                assert!(written.patch_bytes <= PATCH_RATIO * written.whole_bytes);
                before = Some(commit);
            }
            if length > 1000 {
                assert!(patches >= count - 5, "{length}: {patches} patches");
                assert!(stored_bytes < 6 * length, "{length}: {stored_bytes} bytes");
            }
        }
    }

    #[test]
    fn patches_of_other_commits_are_errors() {
        let mut written = ChainLength::default();
        let first = bytes(5000, 1);
        let whole = written.store(0, &first, None).unwrap();
        let patch = written.store(1, &bytes(5000, 2), Some(&first)).unwrap();
        assert_eq!((whole.form, patch.form), (Form::Whole, Form::Patch));
        let again = || Stored::read(&patch.to_bytes().unwrap()).unwrap();
        let mut alone = Chain::default();
        alone.push(again()).unwrap();
        assert!(alone.last().is_err());
        let other = ChainLength::default().store(0, &bytes(5000, 3), None);
        let mut chain = Chain::default();
        chain.push(other.unwrap()).unwrap();
        chain.push(again()).unwrap();
        assert!(chain.last().is_err());
        let mut long = Chain::default();
        long.push(whole).unwrap();
        for _ in 0..MOST_PATCHES {
            long.push(again()).unwrap();
        }
        assert!(long.push(again()).is_err());
    }

    #[test]
    fn numbers_have_room_for_their_form() {
        let last = ChainLength::default()
            .store(NUMBERS - 1, b"", None)
            .unwrap();
        let bytes = last.to_bytes().unwrap();
        assert_eq!(Stored::number_in(&bytes), Some(NUMBERS - 1));
        let behind = ChainLength::default().store(NUMBERS, b"", None).unwrap();
        assert!(behind.to_bytes().is_err());
        assert_eq!(Stored::number_in(&[0xff; 8]), None);
        assert_eq!(Stored::number_in(&[0; 7]), None);
    }
}
