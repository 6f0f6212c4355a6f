//! Journals and states as files: what they hold, and one as the other.

use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use echoless::filters::lines::Progress;
use echoless::memory::{LINE_BYTES, Line};
use echoless::state::{
    Header, MOST_BLOCK_LINES, Section, StateError, StateReader, StateSpec, StateWriter,
};
use echoless::{LineFilter, report_of};
use serde::{Serialize, Serializer};

use crate::chain::ChainLength;
use crate::error::{At, JournalError};
use crate::journal::{lock_and_load, note_begun};
use crate::segment::{Commit, Numbered, Scan, create};
use crate::segments::Segments;
use crate::storage::Storage;

/// What a journal or a state holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Contents {
    /// The specification of the filter.
    pub spec: StateSpec,
    /// The number of its lines.
    pub lines: u64,
    /// The memory of the filter, in bytes.
    pub memory_bytes: u64,
    /// The first line, and the one behind the last: other than all in a part of a filter.
    pub part: (u64, u64),
    /// The algorithm that hashed the keys.
    pub algorithm: String,
    /// The id of their hasher, as hexadecimal digits.
    pub hasher: String,
    /// The keys that were observed; `None` for a shared filter, which does not count duplicates.
    pub observed: Option<u64>,
    /// The fresh ones.
    pub fresh: u64,
    /// The keys that were evicted; 0 if the filter does not count them.
    pub evictions: u64,
    /// The clock of the filter; 0 without a window.
    pub clock: u64,
    /// The fraction of its cells that is occupied; `None` if it was not read.
    pub fill: Option<f64>,
    /// The expected false positive rate of a key that is new; `None` if it was not read, or is not
    /// known.
    pub expected_fpr: Option<f64>,
    /// What the caller added to the last commit. Serialised as text, or as hexadecimal digits if it
    /// is none.
    #[serde(serialize_with = "text_or_digits")]
    pub caller: Vec<u8>,
    /// The file of the state, or the segments of the journal from the oldest one on.
    pub files: Vec<FileContents>,
}

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileContents {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The number of the segment; 0 for a state.
    pub segment: u64,
    /// Whether the filter was empty at its beginning.
    pub starts_empty: bool,
    /// The keys in it.
    pub keys: u64,
    /// The bytes of its blocks.
    pub block_bytes: u64,
    /// The lines in its blocks.
    pub block_lines: u64,
    /// The commits in it.
    pub commits: u64,
    /// The bytes behind its last commit, which the next start cuts off.
    pub tail_bytes: u64,
}

fn text_or_digits<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serializer.serialize_str(text),
        Err(_) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            serializer.serialize_str(&digits.collect::<String>())
        }
    }
}

impl Contents {
    fn new(header: &Header, commit: Commit, files: Vec<FileContents>) -> Self {
        let Progress {
            observed,
            fresh,
            evictions,
            tick,
        } = commit.progress;
        Self {
            spec: header.spec,
            lines: header.lines,
            memory_bytes: header.lines * LINE_BYTES,
            part: (header.part.start, header.part.end),
            algorithm: header.algorithm.clone(),
            hasher: format!("{:016x}", header.hasher),
            observed: header.spec.lines().is_ok().then_some(observed),
            fresh,
            evictions,
            clock: tick,
            fill: None,
            expected_fpr: None,
            caller: commit.bytes,
            files,
        }
    }
}

impl FileContents {
    fn of(scan: &Scan) -> Self {
        Self {
            path: scan.path.clone(),
            bytes: scan.end.position + scan.tail,
            segment: scan.header.segment,
            starts_empty: scan.header.starts_empty,
            keys: scan.content.keys,
            block_bytes: scan.content.block_bytes,
            block_lines: scan.content.covered,
            commits: scan.content.commits,
            tail_bytes: scan.tail,
        }
    }
}

/// Reads every section of a journal (a folder) or a state (a file), and checks it. Builds no
/// filter.
///
/// # Errors
/// [`JournalError::State`] with the section that is damaged, before the last commit if it is a
/// journal; [`JournalError::Segments`] if files are missing, or do not belong together;
/// [`JournalError::Io`] if the storage fails.
pub fn verify(storage: &dyn Storage, path: &Path) -> Result<Contents, JournalError> {
    match storage.list(path) {
        Ok(_) => {
            // Every commit is read, to accept it.
            let segments = Segments::load(storage, path, Some(&|_| true))?;
            contents_of_journal(storage, path, &segments)
        }
        Err(_) => verify_state(storage, path),
    }
}

/// As [`verify`], and builds the filter to see how full it is.
///
/// Neither locks a journal. If a program appends to it meanwhile, a segment may be removed after it
/// was found: a [`JournalError::Io`] with [`NotFound`](std::io::ErrorKind::NotFound), after which a
/// second call succeeds.
///
/// # Errors
/// As [`verify`]; [`JournalError::State`] also if the filter cannot be built.
pub fn show(storage: &dyn Storage, path: &Path) -> Result<Contents, JournalError> {
    let mut contents;
    let report = if storage.list(path).is_ok() {
        let segments = Segments::load(storage, path, None)?;
        contents = contents_of_journal(storage, path, &segments)?;
        report_of(segments.replay(storage, 1)?.filters())
    } else {
        contents = verify_state(storage, path)?;
        let saved = open_state(storage, path)?;
        if saved.spec().shared().is_ok() {
            saved.restore_shared().at(path)?.filter.report()
        } else {
            report_of(&[saved.restore().at(path)?.filter])
        }
    };
    contents.fill = report.fill();
    contents.expected_fpr = report.expected_fpr;
    Ok(contents)
}

fn contents_of_journal(
    storage: &dyn Storage,
    folder: &Path,
    segments: &Segments,
) -> Result<Contents, JournalError> {
    let Some(newest) = segments.needed.last() else {
        return Err(JournalError::segments(folder, "it has no journal"));
    };
    let mut files = Vec::new();
    for (path, number) in &segments.older {
        let scan = Scan::of(storage, path, *number, None)?;
        files.extend(scan.as_ref().map(FileContents::of));
    }
    files.extend(segments.needed.iter().map(FileContents::of));
    Ok(Contents::new(
        &newest.header,
        newest.last.commit.clone(),
        files,
    ))
}

fn open_state(
    storage: &dyn Storage,
    path: &Path,
) -> Result<StateReader<impl std::io::Read + use<>>, JournalError> {
    StateReader::open(BufReader::new(storage.read(path).at(path)?)).at(path)
}

fn verify_state(storage: &dyn Storage, path: &Path) -> Result<Contents, JournalError> {
    let input = BufReader::new(storage.read(path).at(path)?);
    let mut reader = StateReader::open(input).at(path)?;
    let header = reader.header().clone();
    let mut file = FileContents {
        path: path.to_owned(),
        bytes: storage.size(path).at(path)?,
        segment: header.segment,
        starts_empty: header.starts_empty,
        ..FileContents::default()
    };
    let mut last = None;
    loop {
        let before = reader.mark().position;
        let mut block_lines = 0;
        match reader.read_section().at(path)? {
            Some(Section::Block(_) | Section::Keys(_) | Section::Commit(_)) if last.is_some() => {
                return Err(JournalError::segments(path, "sections follow its commit"));
            }
            Some(Section::Block(block)) => block_lines = block.count,
            Some(Section::Keys(keys)) => file.keys += keys.len() as u64,
            Some(Section::Commit(commit)) => {
                file.commits += 1;
                last = Some(Commit {
                    progress: commit.progress,
                    bytes: commit.bytes.to_vec(),
                });
            }
            Some(Section::End) => break,
            _ => return Err(JournalError::segments(path, "it has no end")),
        }
        if block_lines > 0 {
            file.block_lines += block_lines;
            file.block_bytes += reader.mark().position - before;
        }
    }
    reader.check_end().at(path)?;
    let Some(last) = last else {
        return Err(JournalError::segments(path, "it has no commit"));
    };
    if !header.starts_empty && file.block_lines < header.part.end - header.part.start {
        return Err(JournalError::segments(
            path,
            "it has no blocks of some lines",
        ));
    }
    Ok(Contents::new(&header, last, vec![file]))
}

/// Writes the filter of a journal, and what the caller added to the last commit, as a state. The
/// journal must not be open. `name` is that of the output, for errors.
///
/// A crash in the middle leaves half a state, so pass a file of
/// [`replace_file`](crate::replace_file).
///
/// # Errors
/// As [`Journal::open`](crate::Journal::open); [`JournalError::Segments`] if the folder has no
/// journal; [`JournalError::Io`] if `output` fails.
pub fn export(
    storage: &dyn Storage,
    folder: &Path,
    name: &Path,
    output: impl Write,
) -> Result<(), JournalError> {
    storage.list(folder).at(folder)?;
    let (_lock, segments) = lock_and_load(storage, folder, None)?;
    let Some(newest) = segments.needed.last() else {
        return Err(JournalError::segments(folder, "it has no journal"));
    };
    let filters = segments.replay(storage, 1)?.into_filters();
    let header = newest.header.clone().segment(0).starts_empty(false);
    let commit = &newest.last.commit;
    let write = || {
        let mut writer = StateWriter::new(output, &header)?;
        append_lines(&mut writer, &filters)?;
        writer.append_commit(commit.progress, &commit.bytes)?;
        writer.end().map(drop)
    };
    write().at(name)
}

/// Begins a journal in a folder with the filter of a state, and what the caller added to it as the
/// first commit.
///
/// # Errors
/// [`JournalError::Occupied`] if the folder has a journal; [`JournalError::State`] if the state is
/// damaged, or a part of a filter; [`JournalError::Io`] if the storage fails.
pub fn import(storage: &dyn Storage, state: &Path, folder: &Path) -> Result<(), JournalError> {
    let saved = open_state(storage, state)?;
    let header = saved.header().clone();
    if !header.is_whole() {
        return Err(JournalError::segments(state, "it is a part of a filter"));
    }
    let restored = saved.restore().at(state)?;
    let (_lock, segments) = lock_and_load(storage, folder, None)?;
    if !segments.needed.is_empty() {
        return Err(JournalError::Occupied(folder.to_owned()));
    }
    let commit = Numbered {
        number: 0,
        commit: Commit {
            progress: restored.progress,
            bytes: restored.bytes,
        },
    };
    let header = header.segment(1).starts_empty(false);
    create(storage, folder, &header, |writer| {
        append_lines(writer, &[restored.filter])?;
        commit.append_to(writer, &mut ChainLength::default(), None)
    })?;
    note_begun(storage, folder)
}

/// Appends all lines of filters.
fn append_lines(
    writer: &mut StateWriter<impl Write>,
    filters: &[Box<dyn LineFilter>],
) -> Result<(), StateError> {
    let mut lines = Vec::new();
    for filter in filters {
        let (count, tick) = (filter.lines().len(), filter.progress().tick);
        for first in (0..count).step_by(MOST_BLOCK_LINES) {
            lines.resize(MOST_BLOCK_LINES.min(count - first), Line::EMPTY);
            filter.copy_lines(first, &mut lines);
            writer.append_block(filter.range().first + first as u64, tick, &lines)?;
        }
    }
    Ok(())
}
