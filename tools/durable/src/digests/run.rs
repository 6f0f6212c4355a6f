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
//!
//! A digest with the time when it was last seen is three numbers, and only the last time of a
//! digest is in a run, unless it is too old. So the number of entries is another one than `count`:
//!
//! ```text
//! header: magic | store | first | count | checksum
//! block:  170 digests with their times, the last one fewer | checksum
//! index:  the first word of each block | number of entries | checksum
//! ```

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use echoless::hash::KeyDigest;
use echoless::state::checksum;

use crate::error::{At, JournalError};
use crate::storage::{ReadFile, Storage};
use crate::whole::create_whole;

const HEADER_BYTES: u64 = 40;

const SUM_BYTES: usize = 8;

/// The bytes of the entries of a block: with its checksum, it is nearly a page of most systems.
const BLOCK_BYTES: usize = 4080;

/// A digest, and when it was last seen; 0 in a set that keeps no times.
pub(super) type Entry = (KeyDigest, u64);

/// What a [set](super::DigestStore) keeps of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Its digest.
    Digest,
    /// Its digest, and the tick at which it was last seen.
    LastSeen,
}

impl Kept {
    const fn magic(self) -> u64 {
        u64::from_le_bytes(match self {
            Self::Digest => *b"ECHOKEYS",
            Self::LastSeen => *b"ECHOSEEN",
        })
    }

    const fn entry_bytes(self) -> usize {
        match self {
            Self::Digest => 16,
            Self::LastSeen => 24,
        }
    }

    /// The entries of a block.
    const fn block_entries(self) -> u64 {
        (BLOCK_BYTES / self.entry_bytes()) as u64
    }
}

/// The most blocks that are read at once, where most of those in a row are wanted.
const MOST_AHEAD: u64 = 64;

/// A block that begins so many behind those that were read last follows them.
const NEAR: u64 = 8;

/// The number of the index in its checksum: no block has it.
const INDEX: u64 = u64::MAX;

/// Which digests a run has, of which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunHeader {
    pub(super) kept: Kept,
    pub(super) store: u64,
    /// The number of digests that the store got before.
    pub(super) first: u64,
    /// How many it has from there on, those among them that it needs no more.
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
    pub(super) fn of_name(kept: Kept, store: u64, name: &str) -> Option<Self> {
        let (first, end) = name.strip_suffix(".run")?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (first, end) = (number(first)?, number(end)?);
        let header = Self {
            kept,
            store,
            first,
            // No disk holds more, and their bytes would be no number.
            count: end.checked_sub(first).filter(|count| *count < 1 << 56)?,
        };
        (header.name() == name && header.count > 0).then_some(header)
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [self.kept.magic(), self.store, self.first, self.count] {
            bytes.extend(number.to_le_bytes());
        }
        seal(0, &mut bytes);
        bytes
    }

    /// Reads the header of a file; `None` if there is none.
    pub(super) fn read(storage: &dyn Storage, path: &Path) -> Result<Option<Self>, JournalError> {
        let mut bytes = Vec::new();
        let file = storage.read(path).at(path)?;
        file.take(HEADER_BYTES).read_to_end(&mut bytes).at(path)?;
        let Some([magic, store, first, count]) = opened(0, &bytes)
            .filter(|_| bytes.len() as u64 == HEADER_BYTES)
            .map(|payload| [0, 8, 16, 24].map(|at| number_at(payload, at)))
        else {
            return Ok(None);
        };
        let kept = [Kept::Digest, Kept::LastSeen].into_iter();
        Ok(kept
            .filter(|kept| kept.magic() == magic)
            .map(|kept| Self {
                kept,
                store,
                first,
                count,
            })
            .next())
    }
}

/// Where the entries of a run are in its file.
#[derive(Debug, Clone, Copy)]
struct Layout {
    kept: Kept,
    entries: u64,
}

impl Layout {
    const fn blocks(self) -> u64 {
        self.entries.div_ceil(self.kept.block_entries())
    }

    /// The bytes of the file before this block, or before the index.
    fn block_begin(self, block: u64) -> u64 {
        let entries = (self.kept.block_entries() * block).min(self.entries);
        let sums = SUM_BYTES as u64 * block;
        HEADER_BYTES + entries * self.kept.entry_bytes() as u64 + sums
    }

    fn file_bytes(self) -> u64 {
        let count = match self.kept {
            Kept::Digest => 0,
            Kept::LastSeen => 8,
        };
        self.block_begin(self.blocks()) + 8 * self.blocks() + count + SUM_BYTES as u64
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

/// Writes a run beside the others. It has its name once it is durable. Returns the number of its
/// entries. The entries of the parts are in ascending order. After an error nothing is left.
pub(super) fn write_run(
    storage: &dyn Storage,
    folder: &Path,
    header: RunHeader,
    parts: impl IntoIterator<Item = Result<Vec<Entry>, JournalError>>,
) -> Result<u64, JournalError> {
    let kept = header.kept;
    create_whole(storage, folder, &header.name(), |mut output, aside| {
        output.write_all(&header.to_bytes()).at(aside)?;
        let (mut block, mut index) = (Vec::new(), Vec::new());
        let mut entries = 0;
        let mut write = |number: u64, block: &mut Vec<u8>| {
            seal(number, block);
            output.write_all(block).at(aside)?;
            block.clear();
            Ok::<(), JournalError>(())
        };
        for part in parts {
            for (digest, tick) in part? {
                let [first, second] = digest.words();
                if block.is_empty() {
                    index.extend(first.to_le_bytes());
                }
                for number in [first, second, tick] {
                    block.extend(number.to_le_bytes());
                }
                block.truncate(block.len() - (24 - kept.entry_bytes()));
                entries += 1;
                if entries % kept.block_entries() == 0 {
                    write(entries / kept.block_entries() - 1, &mut block)?;
                }
            }
        }
        if !block.is_empty() {
            write(entries / kept.block_entries(), &mut block)?;
        }
        match kept {
            Kept::Digest => debug_assert_eq!(entries, header.count, "as many as in the header"),
            Kept::LastSeen => index.extend(entries.to_le_bytes()),
        }
        seal(INDEX, &mut index);
        output.write_all(&index).at(aside)?;
        output.sync().at(aside)?;
        Ok(entries)
    })
}

/// A run. Its file is opened with the first digest that is looked for, and then its index is in
/// memory: 8 bytes for 255 digests.
pub(super) struct Run {
    pub(super) header: RunHeader,
    pub(super) path: PathBuf,
    /// The number of its entries. Before it is opened, they are as many as the digests in its name.
    pub(super) entries: u64,
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
            entries: header.count,
            file: None,
            index: Vec::new(),
            read: (0, 0),
            bytes: Vec::new(),
        }
    }

    /// Opens the file, unless it is open, and reads its index.
    pub(super) fn open(&mut self, storage: &dyn Storage) -> Result<(), JournalError> {
        if self.file.is_some() {
            return Ok(());
        }
        let path = &self.path;
        let other_length = || damaged(path, "has another length than its header says");
        let size = storage.size(path).at(path)?;
        let mut file = storage.read(path).at(path)?;
        if self.header.kept == Kept::LastSeen {
            let mut last = [0; 8 + SUM_BYTES];
            let at = size.checked_sub(last.len() as u64);
            let at = at.ok_or_else(other_length)?;
            file.seek(SeekFrom::Start(at)).at(path)?;
            file.read_exact(&mut last).at(path)?;
            self.entries = number_at(&last, 0);
        }
        let layout = self.layout();
        // What is beyond it would be no length.
        if self.entries > self.header.count || size != layout.file_bytes() {
            return Err(other_length());
        }
        let mut bytes = Vec::new();
        let begin = layout.block_begin(layout.blocks());
        file.seek(SeekFrom::Start(begin)).at(path)?;
        file.read_to_end(&mut bytes).at(path)?;
        let index = opened(INDEX, &bytes).ok_or_else(|| damaged(path, "its index is damaged"))?;
        let numbers = index.chunks_exact(8).map(|bytes| number_at(bytes, 0));
        self.index = numbers.take(layout.blocks() as usize).collect();
        self.file = Some(file);
        Ok(())
    }

    const fn layout(&self) -> Layout {
        Layout {
            kept: self.header.kept,
            entries: self.entries,
        }
    }

    /// The entries of a block. It is one of those that were read last, or is read, and more behind
    /// it if it follows them.
    fn block(&mut self, block: u64) -> Result<&[u8], JournalError> {
        let (first, end) = self.read;
        if !(first..end).contains(&block) {
            let follows = (end..end + NEAR).contains(&block);
            let ahead = if follows { 2 * (end - first) } else { 1 };
            let last = self
                .layout()
                .blocks()
                .min(block + ahead.clamp(1, MOST_AHEAD));
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
        let layout = self.layout();
        let (begin, end) = (layout.block_begin(first), layout.block_begin(end));
        self.bytes.resize((end - begin) as usize, 0);
        let file = self.file.as_mut().ok_or(ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(begin))?;
        match file.read_exact(&mut self.bytes) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(io::Error::other("has become shorter"))
            }
            read => read,
        }
    }

    /// A block with its checksum, of those from `first` on that were read.
    fn sealed(&self, first: u64, block: u64) -> &[u8] {
        let length = BLOCK_BYTES + SUM_BYTES;
        let begin = (block - first) as usize * length;
        &self.bytes[begin..self.bytes.len().min(begin + length)]
    }

    /// Finds which of these digests are in the run, which is open, and their times. They are in
    /// ascending order.
    pub(super) fn find(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize, u64),
    ) -> Result<(), JournalError> {
        let kept = self.header.kept;
        // Where the last one may have been: the next one is there, or behind.
        let (mut from, mut last) = (0, (0, 0));
        for (number, digest) in sorted.iter().enumerate() {
            let [word, _] = digest.words();
            let rest = &self.index[from..];
            from += count_below(rest.len(), |block| rest[block] < word);
            // It may be in the block before that, too, and in all that begin with the word.
            from = from.saturating_sub(1);
            let mut block = from;
            while self.index.get(block).is_some_and(|first| *first <= word) {
                let entries = self.block(block as u64)?;
                let count = entries.len() / kept.entry_bytes();
                let mut at = if last.0 == block { last.1 } else { 0 };
                at += count_below(count - at, |next| {
                    entry_at(kept, entries, at + next).0 < *digest
                });
                last = (block, at);
                if at < count {
                    let (other, tick) = entry_at(kept, entries, at);
                    if other == *digest {
                        found(number, tick);
                    }
                    break;
                }
                block += 1;
            }
        }
        Ok(())
    }

    /// Appends the entries of this run, which is open, from number `from` on whose first word is at
    /// most `last`. Returns the number of the next one.
    pub(super) fn read_up_to(
        &mut self,
        last: u64,
        from: u64,
        entries: &mut Vec<Entry>,
    ) -> Result<u64, JournalError> {
        let (kept, mut next) = (self.header.kept, from);
        while next < self.entries {
            let block = self.block(next / kept.block_entries())?;
            let begin = (next % kept.block_entries()) as usize;
            let end = block.len() / kept.entry_bytes();
            let wanted = (begin..end).map(|at| entry_at(kept, block, at));
            let before = entries.len();
            entries.extend(wanted.take_while(|(digest, _)| digest.words()[0] <= last));
            let count = entries.len() - before;
            next += count as u64;
            if begin + count < end {
                break;
            }
        }
        Ok(next)
    }
}

/// How many of so many items are below another one, if they are in ascending order. Few take few
/// steps: of many digests in a row, each is near the one before.
fn count_below(items: usize, is_below: impl Fn(usize) -> bool) -> usize {
    let mut end = 1;
    while end <= items && is_below(end - 1) {
        end *= 2;
    }
    // The one before `begin` is below, and the one at `end` is not, if they are there.
    let (mut begin, mut end) = (end / 2, items.min(end - 1));
    while begin < end {
        let middle = usize::midpoint(begin, end);
        if is_below(middle) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    begin
}

/// What is wrong with a run.
pub(super) fn damaged(path: &Path, reason: &str) -> JournalError {
    JournalError::segments(path, reason)
}

fn entry_at(kept: Kept, entries: &[u8], number: usize) -> Entry {
    let at = kept.entry_bytes() * number;
    let digest = KeyDigest::from_words([number_at(entries, at), number_at(entries, at + 8)]);
    let tick = match kept {
        Kept::Digest => 0,
        Kept::LastSeen => number_at(entries, at + 16),
    };
    (digest, tick)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::count_below;

    proptest! {
        #[test]
        fn items_below_another_one_are_counted(
            mut items in vec(0_u8..40, 0..100),
            other in 0_u8..42,
        ) {
            items.sort_unstable();
            let count = count_below(items.len(), |index| items[index] < other);
            prop_assert_eq!(count, items.partition_point(|item| *item < other));
        }
    }
}
