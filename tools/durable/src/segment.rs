//! The files of a journal: their names, how one is written before it gets its name, and what one
//! holds up to its last commit.

use std::ffi::OsStr;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use echoless::filters::lines::Progress;
use echoless::state::{
    Header, MOST_COMMIT_BYTES, Mark, Section, StateError, StateReader, StateWriter,
};
use memchr::memmem;

use crate::chain::{Chain, ChainLength, NUMBER_BYTES, Stored};
use crate::digests::KEYS_FOLDER;
use crate::error::{At, JournalError};
use crate::storage::{LOCK, Storage};
use crate::whole::{ASIDE, Output, aside_of, create_whole};

/// No journal comes to more segments: there is no end of numbers to care about.
const MOST_NUMBER: u64 = u64::MAX >> 2;

/// The name of a segment.
pub(crate) fn name_of(number: u64) -> String {
    format!("segment-{number:010}")
}

/// The number in the name of a segment, and whether it is complete.
pub(crate) fn number_of(name: &OsStr) -> Option<(u64, bool)> {
    let name = name.to_str()?;
    let digits = name.strip_prefix("segment-")?;
    let number = digits.strip_suffix(ASIDE).unwrap_or(digits).parse().ok()?;
    let complete = name_of(number);
    if name == complete {
        Some((number, true))
    } else {
        (name == aside_of(&complete)).then_some((number, false))
    }
}

/// Whether what has this name in the folder of a journal is the journal's, or may become that.
#[must_use]
pub fn is_of_journal(name: &OsStr) -> bool {
    name == LOCK || name == KEYS_FOLDER || number_of(name).is_some()
}

/// A commit of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The counts of the filter, and its clock.
    pub progress: Progress,
    /// What the caller added, such as its position in an input.
    pub bytes: Vec<u8>,
}

/// A commit with its number: how many were before it since the journal began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) commit: Commit,
}

impl Numbered {
    /// Appends the commit, as a patch of the one before it in the segment, or whole.
    pub(crate) fn append_to(
        &self,
        writer: &mut StateWriter<Output>,
        chain: &mut ChainLength,
        before: Option<&[u8]>,
    ) -> Result<(), StateError> {
        let stored = chain.store(self.number, &self.commit.bytes, before)?;
        writer.append_commit(self.commit.progress, &stored.to_bytes()?)
    }
}

/// Writes a segment beside the others, and gives it its name once it is durable: a segment with a
/// name holds a whole commit. `fill` appends what follows the header, a commit at the end.
pub(crate) fn create(
    storage: &dyn Storage,
    folder: &Path,
    header: &Header,
    fill: impl FnOnce(&mut StateWriter<Output>) -> Result<(), StateError>,
) -> Result<StateWriter<Output>, JournalError> {
    create_whole(
        storage,
        folder,
        &name_of(header.segment),
        |output, aside| {
            let mut writer = StateWriter::new(output, header).at(aside)?;
            fill(&mut writer).at(aside)?;
            writer.output_mut().sync().at(aside)?;
            Ok(writer)
        },
    )
}

/// Which commits a journal may end with, of which `None` is its beginning. Without a function, any:
/// only the bytes of the last one are read then.
pub(crate) type Wanted<'a> = Option<&'a (dyn Fn(Option<&Commit>) -> bool + 'a)>;

/// What a segment holds up to its last commit that is wanted.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    /// The commit that the segment begins with, if it begins with one.
    pub(crate) first: Option<Numbered>,
    pub(crate) last: Numbered,
    /// Behind the last commit.
    pub(crate) end: Mark,
    pub(crate) content: Content,
    /// What the last commit is read from.
    pub(crate) chain: ChainLength,
    /// The bytes behind the last commit.
    pub(crate) tail: u64,
    /// The commits in these, which are not wanted.
    pub(crate) unwanted: u64,
    /// Why these are no sections, if they are none.
    pub(crate) damage: Option<StateError>,
}

/// A commit that is wanted, and the segment up to it.
struct Found {
    number: u64,
    progress: Progress,
    /// The commit, if it was read: else it is the last one of the chain.
    read: Option<Numbered>,
    end: Mark,
    content: Content,
    chain: ChainLength,
}

/// Numbers of sections and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Content {
    pub(crate) sections: u64,
    pub(crate) commits: u64,
    pub(crate) keys: u64,
    pub(crate) block_bytes: u64,
    /// Blocks have the lines before this one.
    pub(crate) covered: u64,
}

impl Scan {
    /// Whether no earlier segment is needed.
    pub(crate) fn is_base(&self) -> bool {
        self.header.starts_empty || self.content.covered == self.header.lines
    }

    /// The bytes that are not blocks.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.end.position - self.content.block_bytes
    }

    /// Reads a segment, and checks every section. `None` if no commit of it is wanted.
    pub(crate) fn of(
        storage: &dyn Storage,
        path: &Path,
        number: u64,
        is_wanted: Wanted<'_>,
    ) -> Result<Option<Self>, JournalError> {
        let input = storage.read(path).at(path)?;
        let mut reader = StateReader::open(BufReader::new(input)).at(path)?;
        let header = reader.header().clone();
        let wrong = |reason: &str| Err(JournalError::segments(path, reason));
        let unread = |number: u64| {
            move |error: io::Error| {
                let reason = format!("its commit {number} cannot be read: {error}");
                JournalError::segments(path, reason)
            }
        };
        if header.segment > MOST_NUMBER {
            return wrong("its number is greater than that of any journal");
        }
        if header.segment != number {
            let reason = format!("it is segment {}, and not {number}", header.segment);
            return Err(JournalError::segments(path, reason));
        }
        if !header.is_whole() {
            return wrong("it is a part of a filter");
        }
        let mut now = Content::default();
        let mut first = None;
        let mut newest: Option<u64> = None;
        let mut last: Option<Found> = None;
        let mut chain = Chain::default();
        let mut damage_of_tail = None;
        let damage = loop {
            let (before, is_first) = (reader.mark().position, now.sections == 0);
            let mut commit = None;
            let mut is_block = false;
            match reader.read_section() {
                Ok(None) => break None,
                Ok(Some(Section::Block(block))) => {
                    if block.first != now.covered {
                        return wrong("its blocks are not in the order of their lines");
                    }
                    now.covered += block.count;
                    is_block = true;
                }
                Ok(Some(Section::Keys(keys))) => now.keys += keys.len() as u64,
                Ok(Some(Section::Commit(found))) => {
                    commit = Stored::read(found.bytes).map(|stored| (found.progress, stored));
                    if commit.is_none() {
                        return wrong("it has a commit without a number");
                    }
                }
                Ok(Some(_)) => return wrong("it is a state and no segment of a journal"),
                Err(error @ (StateError::Damaged { .. } | StateError::Truncated { .. })) => {
                    break Some(error);
                }
                Err(error) => return Err(error).at(path),
            }
            let mark = reader.mark();
            now.sections += 1;
            if is_block {
                now.block_bytes += mark.position - before;
            }
            if let Some((progress, stored)) = commit {
                now.commits += 1;
                let number = stored.number;
                if newest.is_some_and(|before| before.checked_add(1) != Some(number)) {
                    return wrong("its commits are not numbered one after the other");
                }
                newest = Some(number);
                chain.push(stored).map_err(unread(number))?;
                let mut read = || {
                    let bytes = chain.last().map_err(unread(number))?.to_vec();
                    let commit = Commit { progress, bytes };
                    Ok(Numbered { number, commit })
                };
                if is_first {
                    first = Some(read()?);
                }
                // The first one of a new journal is none of a caller.
                let is_new = header.starts_empty && number == 0;
                let accepted = match is_wanted {
                    None => Some(None),
                    Some(is_wanted) => {
                        let found = read()?;
                        is_wanted((!is_new).then_some(&found.commit)).then_some(Some(found))
                    }
                };
                if let Some(read) = accepted {
                    last = Some(Found {
                        number,
                        progress,
                        read,
                        end: mark,
                        content: now,
                        chain: chain.length(),
                    });
                }
            }
        };
        let whole = reader.mark().position;
        let Some(newest) = newest else {
            return match damage {
                Some(error) => Err(error).at(path),
                None => wrong("it has no commit"),
            };
        };
        if let Some(error) = damage {
            let mut rest = storage.read(path).at(path)?;
            io::copy(
                &mut (&mut rest).take(whole - CHECKSUM_BYTES),
                &mut io::sink(),
            )
            .at(path)?;
            // A commit is written once all bytes up to the commit before are durable. So damage
            // before the last commit but one is no torn write.
            if has_commit(rest, &reader, newest.saturating_add(2)).at(path)? {
                return Err(error).at(path);
            }
            damage_of_tail = Some(error);
        }
        let Some(found) = last else {
            return Ok(None);
        };
        let end = found.end;
        let last = match found.read {
            Some(last) => last,
            None => Numbered {
                number: found.number,
                commit: Commit {
                    progress: found.progress,
                    bytes: chain.last().map_err(unread(found.number))?.to_vec(),
                },
            },
        };
        Ok(Some(Self {
            tail: storage.size(path).at(path)?.saturating_sub(end.position),
            unwanted: newest - last.number,
            path: path.to_owned(),
            header,
            first,
            last,
            end,
            content: found.content,
            chain: found.chain,
            damage: damage_of_tail,
        }))
    }
}

/// The bytes of the checksum behind each section.
const CHECKSUM_BYTES: u64 = 8;

/// The kind and the length of a section.
const HEAD_BYTES: usize = 8;

/// The first bytes of a commit: its kind.
const COMMIT: [u8; 4] = 4_u32.to_le_bytes();

/// The bytes of a commit beside those of the caller.
const COMMIT_BYTES: usize = 32;

/// The bytes that are searched at once.
const STEP: usize = 4 << 20;

/// The bytes of the shortest commit.
const LEAST_COMMIT: u64 = (HEAD_BYTES + COMMIT_BYTES + NUMBER_BYTES) as u64 + CHECKSUM_BYTES;

/// How often a byte is hashed on average until the search for a commit is given up.
const MOST_HASHING: u64 = 8;

/// Whether a whole commit with this number, or a later one, follows damaged sections. A section is
/// checked with the checksum in front of it, so where the damage ends does not matter.
///
/// Bytes that no journal writes may look like the beginnings of many long commits, and to hash each
/// would take a time that grows as the square of their number. So few are hashed, and if these are
/// not enough, the answer is yes: nothing is cut then.
fn has_commit<R: Read>(
    mut input: impl Read,
    file: &StateReader<R>,
    least: u64,
) -> io::Result<bool> {
    let checksum_bytes = CHECKSUM_BYTES as usize;
    let kind = memmem::Finder::new(&COMMIT);
    // Those from `dropped` on.
    let mut bytes = Vec::new();
    let mut dropped = 0;
    // Whether there are so many bytes, once they are read.
    let mut read_to = |bytes: &mut Vec<u8>, end: usize| -> io::Result<bool> {
        let missing = end.saturating_sub(bytes.len());
        (&mut input).take(missing as u64).read_to_end(bytes)?;
        Ok(bytes.len() >= end)
    };
    let mut hashed = 0;
    let mut next = checksum_bytes;
    loop {
        // Not at each step, as that moves the bytes behind.
        if next > STEP {
            bytes.drain(..next - checksum_bytes);
            dropped += (next - checksum_bytes) as u64;
            next = checksum_bytes;
        }
        let Some(found) = kind.find(bytes.get(next..).unwrap_or(&[])) else {
            // The kind of a commit may be cut in two.
            next = next.max((bytes.len() + 1).saturating_sub(COMMIT.len()));
            let before = bytes.len();
            read_to(&mut bytes, before + STEP)?;
            if bytes.len() == before {
                return Ok(false);
            }
            continue;
        };
        let at = next + found;
        next = at + 1;
        let number_end = at + HEAD_BYTES + COMMIT_BYTES + NUMBER_BYTES;
        if !read_to(&mut bytes, number_end)? {
            continue;
        }
        let length = u32_at(&bytes, at + COMMIT.len()) as usize;
        let end = at + HEAD_BYTES + length + checksum_bytes;
        // As many commits as fit in between, and the one that is torn.
        let most = least.saturating_add((dropped + at as u64) / LEAST_COMMIT);
        let number = Stored::number_in(&bytes[number_end - NUMBER_BYTES..number_end]);
        if !(COMMIT_BYTES + NUMBER_BYTES..=COMMIT_BYTES + MOST_COMMIT_BYTES).contains(&length)
            || !number.is_some_and(|number| (least..=most).contains(&number))
            || !read_to(&mut bytes, end)?
        {
            continue;
        }
        hashed += (end - at) as u64;
        if hashed > MOST_HASHING * (dropped + bytes.len() as u64) {
            return Ok(true);
        }
        let mark = Mark {
            position: 0,
            checksum: u64_at(&bytes, at - checksum_bytes),
        };
        let mut reader = file.resume(&bytes[at..end], mark);
        if let Ok(Some(Section::Commit(_))) = reader.read_section() {
            return Ok(true);
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
