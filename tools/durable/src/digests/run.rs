//! A run: digests in ascending order in a file, which is written once.
//!
//! ```text
//! header: magic | store | first | count | checksum
//! block:  255 digests, the last one fewer | checksum
//! index:  the first word of each block | checksum
//! ```
//!
//! All numbers have 64 bits, the lowest byte first; a digest is two of them. A run has the digests
//! that its store got from number `first` on. Each checksum continues the number of its block, so
//! that no block can be in the place of another one.

use std::cmp::Ordering;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use echoless::hash::KeyDigest;
use echoless::state::checksum;

use crate::error::{At, JournalError};
use crate::segment::create_whole;
use crate::storage::{ReadFile, Storage};

const MAGIC: u64 = u64::from_le_bytes(*b"ECHOKEYS");

const HEADER_BYTES: u64 = 40;

const DIGEST_BYTES: usize = 16;

/// The digests of a block: with its checksum, it is nearly a page of most systems.
const BLOCK_DIGESTS: u64 = 255;

const SUM_BYTES: usize = 8;

const BLOCK_BYTES: u64 = BLOCK_DIGESTS * DIGEST_BYTES as u64 + SUM_BYTES as u64;

/// The most blocks that are read at once, where most of those in a row are wanted.
const MOST_AHEAD: u64 = 64;

/// A block that begins so many behind those that were read last follows them.
const NEAR: u64 = 8;

/// The number of the index in its checksum: no block has it.
const INDEX: u64 = u64::MAX;

/// Which digests a run has, of which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunHeader {
    pub(super) store: u64,
    /// The number of digests that the store got before.
    pub(super) first: u64,
    pub(super) count: u64,
}

impl RunHeader {
    /// The number behind the last digest.
    pub(super) const fn end(&self) -> u64 {
        self.first + self.count
    }

    /// The name of its file.
    pub(super) fn name(&self) -> String {
        format!("{:016x}-{:016x}.run", self.first, self.end())
    }

    /// The header of the run of a store that has this name.
    pub(super) fn of_name(store: u64, name: &str) -> Option<Self> {
        let (first, end) = name.strip_suffix(".run")?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (first, end) = (number(first)?, number(end)?);
        let header = Self {
            store,
            first,
            // No disk holds more, and their bytes would be no number.
            count: end.checked_sub(first).filter(|count| *count < 1 << 56)?,
        };
        (header.name() == name && header.count > 0).then_some(header)
    }

    fn blocks(&self) -> u64 {
        self.count.div_ceil(BLOCK_DIGESTS)
    }

    /// The bytes of blocks before this one.
    fn block_begin(&self, block: u64) -> u64 {
        let sums = SUM_BYTES as u64 * block;
        (BLOCK_DIGESTS * block).min(self.count) * DIGEST_BYTES as u64 + sums
    }

    pub(super) fn file_bytes(&self) -> u64 {
        let index = 8 * self.blocks() + SUM_BYTES as u64;
        HEADER_BYTES + self.block_begin(self.blocks()) + index
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [MAGIC, self.store, self.first, self.count] {
            bytes.extend(number.to_le_bytes());
        }
        seal(0, &mut bytes);
        bytes
    }

    /// Reads the header of a file; `None` if there is none.
    ///
    /// # Errors
    /// Those of the storage.
    pub(super) fn read(storage: &dyn Storage, path: &Path) -> Result<Option<Self>, JournalError> {
        let mut bytes = Vec::new();
        let file = storage.read(path).at(path)?;
        file.take(HEADER_BYTES).read_to_end(&mut bytes).at(path)?;
        let Some([MAGIC, store, first, count]) = opened(0, &bytes)
            .filter(|_| bytes.len() as u64 == HEADER_BYTES)
            .map(|payload| [0, 8, 16, 24].map(|at| number_at(payload, at)))
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            store,
            first,
            count,
        }))
    }
}

/// Appends the checksum of these bytes, as those of this number.
fn seal(number: u64, bytes: &mut Vec<u8>) {
    let sum = checksum(number, bytes);
    bytes.extend(sum.to_le_bytes());
}

/// The bytes in front of their checksum, if that is right.
fn opened(number: u64, sealed: &[u8]) -> Option<&[u8]> {
    let (bytes, sum) = sealed.split_last_chunk()?;
    (u64::from_le_bytes(*sum) == checksum(number, bytes)).then_some(bytes)
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Writes a run beside the others. It has its name once it is durable.
///
/// # Errors
/// Those of the storage and of the parts, whose digests are in ascending order, as many as in the
/// header; nothing is left then.
pub(super) fn write_run(
    storage: &dyn Storage,
    folder: &Path,
    header: RunHeader,
    parts: impl IntoIterator<Item = Result<Vec<KeyDigest>, JournalError>>,
) -> Result<(), JournalError> {
    create_whole(storage, folder, &header.name(), |mut output, aside| {
        output.write_all(&header.to_bytes()).at(aside)?;
        let (mut block, mut index) = (Vec::new(), Vec::new());
        let (mut number, mut count) = (0, 0);
        for part in parts {
            for digest in part? {
                let [first, second] = digest.words();
                if block.is_empty() {
                    index.extend(first.to_le_bytes());
                }
                block.extend(first.to_le_bytes());
                block.extend(second.to_le_bytes());
                count += 1;
                if count % BLOCK_DIGESTS == 0 || count == header.count {
                    seal(number, &mut block);
                    output.write_all(&block).at(aside)?;
                    block.clear();
                    number += 1;
                }
            }
        }
        debug_assert_eq!(count, header.count, "as many as in the header");
        seal(INDEX, &mut index);
        output.write_all(&index).at(aside)?;
        output.sync().at(aside)
    })
}

/// A run. Its file is opened with the first digest that is looked for, and then its index is in
/// memory: 8 bytes for 255 digests.
pub(super) struct Run {
    pub(super) header: RunHeader,
    pub(super) path: PathBuf,
    file: Option<Box<dyn ReadFile>>,
    index: Vec<u64>,
    /// The blocks that were read last: their numbers, and their bytes.
    read: (u64, u64),
    bytes: Vec<u8>,
}

impl Run {
    /// The run that has this header.
    pub(super) const fn new(path: PathBuf, header: RunHeader) -> Self {
        Self {
            header,
            path,
            file: None,
            index: Vec::new(),
            read: (0, 0),
            bytes: Vec::new(),
        }
    }

    /// Opens the file, unless it is open, and reads its index.
    ///
    /// # Errors
    /// [`JournalError`] if it is damaged, or of the storage.
    pub(super) fn open(&mut self, storage: &dyn Storage) -> Result<(), JournalError> {
        if self.file.is_some() {
            return Ok(());
        }
        let (path, header) = (&self.path, self.header);
        if storage.size(path).at(path)? != header.file_bytes() {
            return Err(damaged(path, "has another length than its header says"));
        }
        let mut file = storage.read(path).at(path)?;
        let begin = HEADER_BYTES + header.block_begin(header.blocks());
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(begin)).at(path)?;
        file.read_to_end(&mut bytes).at(path)?;
        let index = opened(INDEX, &bytes).ok_or_else(|| damaged(path, "its index is damaged"))?;
        let numbers = index.chunks_exact(8).map(|bytes| number_at(bytes, 0));
        self.index = numbers.collect();
        self.file = Some(file);
        Ok(())
    }

    /// The digests of a block. It is one of those that were read last, or is read, and more behind it
    /// if it follows them.
    fn block(&mut self, block: u64) -> Result<&[u8], JournalError> {
        let (first, end) = self.read;
        if !(first..end).contains(&block) {
            let follows = (end..end + NEAR).contains(&block);
            let ahead = if follows { 2 * (end - first) } else { 1 };
            let last = self.header.blocks().min(block + ahead.clamp(1, MOST_AHEAD));
            self.read = (block, block);
            self.read_blocks(block, last).at(&self.path)?;
            for number in block..last {
                if opened(number, self.sealed(block, number)).is_none() {
                    return Err(damaged(
                        &self.path,
                        &format!("its block {number} is damaged"),
                    ));
                }
            }
            self.read = (block, last);
        }
        let sealed = self.sealed(self.read.0, block);
        Ok(&sealed[..sealed.len() - SUM_BYTES])
    }

    fn read_blocks(&mut self, first: u64, end: u64) -> io::Result<()> {
        let (begin, end) = (self.header.block_begin(first), self.header.block_begin(end));
        self.bytes.resize((end - begin) as usize, 0);
        let file = self.file.as_mut().ok_or(ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(HEADER_BYTES + begin))?;
        match file.read_exact(&mut self.bytes) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(io::Error::other("has become shorter"))
            }
            read => read,
        }
    }

    /// A block with its checksum, of those from `first` on that were read.
    fn sealed(&self, first: u64, block: u64) -> &[u8] {
        let begin = ((block - first) * BLOCK_BYTES) as usize;
        &self.bytes[begin..self.bytes.len().min(begin + BLOCK_BYTES as usize)]
    }

    /// Finds which of these digests are in the run, which is open. They are in ascending order.
    ///
    /// # Errors
    /// [`JournalError`] if a block is damaged, or of the storage.
    pub(super) fn find(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize),
    ) -> Result<(), JournalError> {
        // Where the last one may have been: the next one is there, or behind.
        let mut from = 0;
        for (number, digest) in sorted.iter().enumerate() {
            let [word, _] = digest.words();
            from += self.index[from..].partition_point(|first| *first < word);
            // It may be in the block before that, too, and in all that begin with the word.
            from = from.saturating_sub(1);
            let mut block = from;
            while self.index.get(block).is_some_and(|first| *first <= word) {
                let digests = self.block(block as u64)?;
                if contains(digests, *digest) {
                    found(number);
                    break;
                }
                block += 1;
            }
        }
        Ok(())
    }

    /// Appends the digests of this run, which is open, from number `from` on whose first word is at most `last`. Returns the
    /// number of the next one.
    ///
    /// # Errors
    /// [`JournalError`] if a block is damaged, or of the storage.
    pub(super) fn read_up_to(
        &mut self,
        last: u64,
        from: u64,
        digests: &mut Vec<KeyDigest>,
    ) -> Result<u64, JournalError> {
        let mut next = from;
        while next < self.header.count {
            let block = self.block(next / BLOCK_DIGESTS)?;
            let begin = (next % BLOCK_DIGESTS) as usize;
            let wanted = (begin..block.len() / DIGEST_BYTES).map(|at| digest_at(block, at));
            let before = digests.len();
            digests.extend(wanted.take_while(|digest| digest.words()[0] <= last));
            let count = digests.len() - before;
            next += count as u64;
            if begin + count < block.len() / DIGEST_BYTES {
                break;
            }
        }
        Ok(next)
    }
}

/// What is wrong with a run.
pub(super) fn damaged(path: &Path, reason: &str) -> JournalError {
    JournalError::segments(path, reason)
}

fn digest_at(digests: &[u8], number: usize) -> KeyDigest {
    let at = DIGEST_BYTES * number;
    KeyDigest::from_words([number_at(digests, at), number_at(digests, at + 8)])
}

fn contains(digests: &[u8], wanted: KeyDigest) -> bool {
    let (mut begin, mut end) = (0, digests.len() / DIGEST_BYTES);
    while begin < end {
        let middle = usize::midpoint(begin, end);
        match digest_at(digests, middle).cmp(&wanted) {
            Ordering::Equal => return true,
            Ordering::Less => begin = middle + 1,
            Ordering::Greater => end = middle,
        }
    }
    false
}
