//! The inputs that a state knows: which files they were, and how far they were read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{self, Path};

use echoless_records::chunk::Chunk;
use echoless_records::compression::codec::Detection;
use echoless_records::compression::reader::loss_of_data;
use echoless_records::failure::Failure;
use echoless_records::files::rotated::are_related;
use echoless_records::files::{
    ContentDigest, ContentSample, FileId, FoundFile, InputIdentity, OpenedFile, RotatedBefore,
    SAMPLE_BYTES, Sample,
};
use echoless_records::restart::{InputPosition, InputRestart};
use serde::{Deserialize, Serialize};

/// The most inputs that a state knows beside those of a run that goes on: some 500 bytes each.
const MOST_INPUTS: usize = 10_000;

/// The most of them that are known although another file has their number.
const MOST_LOST: usize = 1000;

/// The most inputs that a file is compared with behind its first bytes.
const MOST_COMPARED: usize = 1000;

/// The longest content that is read again to see whether a file has it, if all that is known to
/// have happened is that it has grown: that takes less than a second. The start and the end of
/// longer content are compared.
pub(super) const MOST_READ_AGAIN: u64 = 1 << 30;

/// A regular file that was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedInput {
    /// Its name when it was read last.
    pub(crate) name: String,
    /// Which file it is, as it was when it was opened.
    #[serde(flatten)]
    found: FoundFile,
    is_compressed: bool,
    /// The bytes in front of the position, decompressed.
    before: Sample,
    /// All bytes up to the position, decompressed; `None` if a state has it from a version that did
    /// not make digests.
    #[serde(default)]
    pub(super) digest: Option<ContentDigest>,
    #[serde(flatten)]
    pub(crate) restart: InputRestart,
    /// The length of the file, compressed as it is, when it was read to its end.
    pub(crate) end: Option<u64>,
    /// The length of its last record, if that had no terminator at this end; 0 if it had one.
    #[serde(default)]
    unended: u64,
    /// Whether more than a terminator was missing, so that it was set aside.
    #[serde(default)]
    pub(super) is_broken: bool,
    /// The length of the file when an unfinished last record was left to the next run.
    #[serde(default)]
    pub(super) left_at: Option<u64>,
    /// Whether the run that has committed this has read it.
    pub(super) in_run: bool,
}

/// A name that is followed, and that no file had yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AwaitedInput {
    /// Its absolute path.
    pub(super) path: String,
    /// The rotated files that were in its folder before.
    pub(super) before: RotatedBefore,
}

/// The absolute path of a file, as it is shown.
pub(super) fn absolute(path: &Path) -> String {
    let absolute = path::absolute(path);
    absolute.as_deref().unwrap_or(path).display().to_string()
}

/// Inputs that a file may be: the index of each, and how likely it is.
type Candidates = Vec<(usize, Likeness)>;

/// How far a file is known to be an input whose content it has, from the weakest reason on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// Nothing contradicts it.
    Content,
    /// The name is the same.
    Name,
    /// The number of the file is the same, on another device: the system was started again.
    Number,
    /// The number and the device are the same.
    File,
}

impl SavedInput {
    /// One of which nothing is read.
    fn new(name: &str, file: &FoundFile) -> Self {
        Self {
            name: name.into(),
            found: file.clone(),
            is_compressed: false,
            before: Sample::default(),
            digest: Some(ContentDigest::default()),
            restart: InputRestart::default(),
            end: None,
            unended: 0,
            is_broken: false,
            left_at: None,
            in_run: true,
        }
    }

    /// Where it goes on; `None` if nothing of it is done.
    pub(super) fn restart(&self) -> Option<InputRestart> {
        (self.restart.position != InputPosition::default()).then_some(self.restart)
    }

    /// The length of its last record, if that had no terminator.
    pub(super) fn unended(&self) -> Option<u64> {
        (self.end.is_some() && self.unended > 0).then_some(self.unended)
    }

    /// Whether it was read to its end, and a file of this length is no longer.
    pub(super) fn is_whole(&self, length: u64) -> bool {
        self.end == Some(length)
    }

    /// Whether another file has its number.
    pub(super) fn is_lost(&self) -> bool {
        self.found.identity.file == FileId::NONE
    }

    /// Which file it was.
    pub(super) const fn file(&self) -> FileId {
        self.found.identity.file
    }

    /// Whether it was this file, which may have changed since.
    fn was(&self, found: &FoundFile) -> bool {
        found.identity.file == self.found.identity.file
            && !self.found.identity.is_of_another_time(&found.identity)
    }

    /// Whether a file that begins like this one may have the rest of what was read of it: by the
    /// length, and by the bytes in front of the position.
    fn may_be_in(&self, file: &File, found: &FoundFile) -> io::Result<bool> {
        if self.is_compressed {
            let length_then = self.end.unwrap_or(self.found.length);
            return Ok(match (self.was(found), &self.digest) {
                (true, _) => self.end <= Some(found.length),
                (false, Some(_)) => length_then <= found.length,
                (false, None) => length_then == found.length,
            });
        }
        let position = self.restart.position.bytes;
        let start = position.saturating_sub(self.before.bytes as u64);
        let has_end = self.before.bytes == 0 || self.before.is_at(start, file)?;
        Ok(position <= found.length && has_end)
    }

    /// Whether a file that [may have it](Self::may_be_in) has all of what was read of it.
    fn is_in(&self, path: &Path, found: &FoundFile, detection: Detection) -> io::Result<bool> {
        let is_file = self.was(found);
        let is_unchanged = self.found.modified.is_some() && self.found.modified == found.modified;
        if is_file && is_unchanged && self.found.length == found.length {
            return Ok(true);
        }
        let Some(digest) = &self.digest else {
            return Ok(true);
        };
        let has_grown = found.length > self.found.length.max(self.end.unwrap_or(0));
        if is_file && has_grown && !self.is_compressed && digest.bytes > MOST_READ_AGAIN {
            return Ok(true);
        }
        let detection = match self.is_compressed {
            true => detection,
            false => Detection::Off,
        };
        match ContentDigest::of_file(path, found.identity.file, digest.bytes, detection) {
            Ok(content) => Ok(content.as_ref() == Some(digest)),
            // What cannot be decompressed is not what was.
            Err(error) if loss_of_data(&error).is_some() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How far a file with this content is this one.
    fn likeness(&self, now: &InputIdentity, path: &Path) -> Option<Likeness> {
        let samples = [&self.found.identity.start, &self.before];
        let is_certain = samples.iter().any(|sample| sample.bytes == SAMPLE_BYTES);
        let is_empty = self.found.identity.start.bytes == 0;
        let has_name = path == Path::new(&self.name);
        let is_other = self.found.identity.is_of_another_time(now);
        let has_number = !is_other && now.file.number() == self.found.identity.file.number();
        if !is_other && now.file == self.found.identity.file {
            Some(Likeness::File)
        } else if has_number && (!is_empty || has_name) {
            Some(Likeness::Number)
        } else if is_empty {
            None
        } else if has_name {
            Some(Likeness::Name)
        } else if is_certain || are_related(path, Path::new(&self.name)) {
            Some(Likeness::Content)
        } else {
            // Some bytes are the same in many files.
            None
        }
    }

    /// Whether so little was read of it that another file may begin with the same bytes.
    pub(super) const fn is_short(&self) -> bool {
        let bytes = self.restart.position.bytes;
        !self.is_compressed && 0 < bytes && bytes < SAMPLE_BYTES as u64
    }

    /// Whether content that begins with these bytes has more than what was read of a
    /// [short](Self::is_short) one, and that in front.
    pub(super) fn is_continued_by(&self, plain: &[u8]) -> bool {
        let position = usize::try_from(self.restart.position.bytes).unwrap_or(usize::MAX);
        let start = position.saturating_sub(self.before.bytes);
        let read = plain.get(start..position);
        position < plain.len() && read.is_some_and(|read| Sample::of(read) == self.before)
    }

    /// What was read of it, as a compressed file may have it later; `None` if it is compressed.
    pub(super) fn content(&self) -> Option<ContentSample> {
        (!self.is_compressed).then(|| ContentSample {
            length: self.restart.position.bytes,
            start: self.found.identity.start.clone(),
            end: self.before.clone(),
            digest: self.digest.clone(),
        })
    }
}

/// A regular file, and which input of a state it is.
#[derive(Debug)]
pub(super) struct Recognised {
    pub(super) file: FoundFile,
    /// Its index among the inputs, and how far that is known.
    pub(super) known: Option<(usize, Likeness)>,
}

impl Recognised {
    /// This file as an input of the run, which goes on with one of the state if it is `known`.
    pub(super) fn opened(&self, source: usize, name: String, known: Option<usize>) -> OpenedInput {
        OpenedInput {
            source,
            name,
            file: self.file.clone(),
            is_compressed: false,
            known,
        }
    }
}

/// An input of a run that begins.
#[derive(Debug)]
pub(super) struct OpenedInput {
    /// Its index among the inputs of the run.
    source: usize,
    name: String,
    file: FoundFile,
    /// Whether it is compressed, although what was read of it was not.
    pub(super) is_compressed: bool,
    /// The one of the state that goes on.
    known: Option<usize>,
}

/// The regular files that were read, in this order.
#[derive(Debug, Clone, Default)]
pub(super) struct SavedInputs {
    pub(super) all: Vec<SavedInput>,
    /// The one that is followed, while it is waited for.
    pub(super) awaited: Option<AwaitedInput>,
    /// The index in `all` of each input of this run that was there at its start.
    of_sources: HashMap<usize, usize>,
    /// The current one: its index among the inputs of this run, and in `all`.
    current: Option<(usize, usize)>,
    /// The first bytes of the current one, as long as they are fewer than those of a sample.
    start: Vec<u8>,
}

impl SavedInputs {
    /// The inputs of a commit. If its run had ended, none is of this one.
    pub(super) fn new(
        mut all: Vec<SavedInput>,
        awaited: Option<AwaitedInput>,
        ended: bool,
    ) -> Self {
        for input in &mut all {
            input.in_run &= !ended;
        }
        // The oldest are read again if they come once more, which drops their records as
        // duplicates. Those of the run that goes on would be counted and written twice.
        let mut excess = all.len().saturating_sub(MOST_INPUTS);
        all.retain(|input| {
            let is_left_out = excess > 0 && !input.in_run;
            excess -= usize::from(is_left_out);
            !is_left_out
        });
        Self {
            all,
            awaited,
            ..Self::default()
        }
    }

    /// The input that is being read, or was read last.
    pub(super) fn last_read(all: &[SavedInput]) -> Option<&SavedInput> {
        all.iter().rfind(|input| input.restart().is_some())
    }

    /// The last input with this name whose file may be there.
    pub(super) fn last_of(&self, name: &str) -> Option<usize> {
        let is_it = |input: &SavedInput| input.name == name && !input.is_lost();
        self.all.iter().rposition(is_it)
    }

    /// The numbers of the files that were read.
    pub(super) fn numbers(&self) -> HashSet<u64> {
        let files = self.all.iter().map(|input| input.found.identity.file);
        let files = files.filter(|file| *file != FileId::NONE);
        files.map(FileId::number).collect()
    }

    /// Which of the inputs each of these regular files is. Each input is one of them at most. The
    /// first `needed` files must be there.
    pub(super) fn recognise(
        &self,
        paths: &[Option<&Path>],
        needed: usize,
        detection: Detection,
    ) -> Result<Vec<Option<Recognised>>, Failure> {
        let mut starts: HashMap<&Sample, Vec<usize>> = HashMap::new();
        for (index, input) in self.all.iter().enumerate() {
            starts
                .entry(&input.found.identity.start)
                .or_default()
                .push(index);
        }
        let lengths: BTreeSet<usize> = starts.keys().map(|sample| sample.bytes).collect();
        let (mut files, mut likely) = (Vec::new(), Vec::new());
        for (number, path) in paths.iter().enumerate() {
            let compared = (*path).map(|path| self.compare(path, &starts, &lengths, detection));
            let compared = match compared {
                None => None,
                Some(Err(error)) if number < needed => {
                    let name = path.unwrap_or(Path::new("")).display().to_string();
                    return Err(Failure::file(name)(error));
                }
                Some(compared) => compared.ok().flatten(),
            };
            files.push(compared.map(|(file, inputs)| {
                likely.extend((inputs.into_iter()).map(|(index, how)| (how, index, number)));
                file
            }));
        }
        // The likeliest first, and of equal ones the latest.
        likely.sort_unstable_by(|a, b| b.cmp(a));
        let mut taken = HashSet::new();
        for (likeness, index, number) in likely {
            if let Some(file) = &mut files[number]
                && file.known.is_none()
                && taken.insert(index)
            {
                file.known = Some((index, likeness));
            }
        }
        Ok(files)
    }

    /// The inputs that a file may be.
    fn compare(
        &self,
        path: &Path,
        starts: &HashMap<&Sample, Vec<usize>>,
        lengths: &BTreeSet<usize>,
        detection: Detection,
    ) -> io::Result<Option<(Recognised, Candidates)>> {
        let file = File::open(path)?;
        let Some(opened) = OpenedFile::of(&file)? else {
            return Ok(None);
        };
        let (found_file, start) = (opened.found, opened.start);
        // The likeliest first, and of equal ones the latest.
        let mut likely = Vec::new();
        for bytes in lengths.iter().filter(|bytes| **bytes <= start.len()) {
            let sample = Sample::of(&start[..*bytes]);
            for index in starts.get(&sample).into_iter().flatten() {
                let likeness = self.all[*index].likeness(&found_file.identity, path);
                likely.extend(likeness.map(|likeness| (likeness, *index)));
            }
        }
        likely.sort_unstable_by(|a, b| b.cmp(a));
        let mut found = Vec::new();
        for (likeness, index) in likely.into_iter().take(MOST_COMPARED) {
            let input = &self.all[index];
            if input.may_be_in(&file, &found_file)?
                && (likeness > Likeness::Content || !input.is_still_there()?)
                && input.is_in(path, &found_file, detection)?
            {
                found.push((index, likeness));
                // Thousands of files may begin alike.
                if likeness > Likeness::Content {
                    break;
                }
            }
        }
        let file = Recognised {
            file: found_file,
            known: None,
        };
        Ok(Some((file, found)))
    }

    /// The inputs that were read and begin with these bytes, of which more may follow if they fill
    /// a sample. Of few bytes only all of them: many files have the same first line.
    pub(super) fn with_start(&self, plain: &[u8]) -> impl Iterator<Item = &SavedInput> {
        let sample = Sample::of(plain);
        self.all.iter().filter(move |input| {
            let start = &input.found.identity.start;
            let is_text = !input.is_compressed && start.bytes > 0;
            is_text && start.bytes == sample.bytes && sample == *start
        })
    }

    /// Notes which file an input is now: its number then may be that of another file.
    pub(super) fn note_file(&mut self, found: &Recognised) {
        if let Some((index, _)) = found.known {
            self.all[index].found = found.file.clone();
        }
    }

    /// Goes on with an input at another position: behind the terminator of its last record, or in
    /// front of that record.
    pub(super) fn set_position(
        &mut self,
        index: usize,
        position: InputPosition,
        digest: Option<ContentDigest>,
        file: &File,
    ) -> io::Result<()> {
        let input = &mut self.all[index];
        if !input.is_compressed {
            input.before = Sample::in_front_of(position.bytes, file)?;
        }
        input.digest = digest;
        input.restart.position = position;
        input.end = None;
        (input.unended, input.is_broken) = (0, false);
        Ok(())
    }

    /// Forgets these inputs, which cannot go on.
    pub(super) fn forget(&mut self, inputs: &BTreeSet<usize>, opened: &mut [OpenedInput]) {
        let moved = self.remove(inputs);
        for input in opened {
            input.known = input.known.and_then(|known| moved.get(&known).copied());
        }
    }

    /// Notes the inputs of a run before the first record: a file that is renamed meanwhile is
    /// found again, and those that come while one is `awaited` are told from those before. Returns
    /// whether one of them is new.
    pub(super) fn begin(
        &mut self,
        opened: Vec<OpenedInput>,
        awaited: Option<AwaitedInput>,
    ) -> bool {
        let is_new = opened.iter().any(|input| input.known.is_none()) || awaited != self.awaited;
        self.awaited = awaited;
        let files: HashSet<FileId> = opened
            .iter()
            .map(|input| input.file.identity.file)
            .collect();
        let mut known: Vec<Option<SavedInput>> = std::mem::take(&mut self.all)
            .into_iter()
            .map(Some)
            .collect();
        let of_run: Vec<SavedInput> = opened
            .iter()
            .map(|input| {
                let before = input.known.and_then(|index| known[index].take());
                let fresh = SavedInput::new(&input.name, &input.file);
                let Some(before) = before else {
                    return SavedInput {
                        is_compressed: input.is_compressed,
                        ..fresh
                    };
                };
                SavedInput {
                    name: fresh.name,
                    found: fresh.found,
                    is_compressed: before.is_compressed || input.is_compressed,
                    in_run: true,
                    ..before
                }
            })
            .collect();
        // What had the number of one of these files before is gone, and may have been copied.
        self.all = known.into_iter().flatten().collect();
        self.lose(|file| files.contains(file));
        for (input, saved) in opened.into_iter().zip(of_run) {
            self.of_sources.insert(input.source, self.all.len());
            self.all.push(saved);
        }
        is_new
    }

    /// Notes which file the input `name` of a chunk is, before the chunk is written. Returns
    /// whether it is new: a file that has the name of one that was rotated.
    pub(super) fn open(&mut self, chunk: &Chunk, name: impl Fn() -> String) -> bool {
        let Some(opened) = &chunk.input.file.opened else {
            return false;
        };
        let identity = &opened.found.identity;
        let source = chunk.input.source;
        let position = chunk.input.restart.map(|restart| restart.position);
        let position = position.unwrap_or_default();
        let is_it = |input: &SavedInput| {
            let is_file = input.in_run && input.found.identity.file == identity.file;
            is_file && input.restart.position == position
        };
        let of_source = self.of_sources.get(&source).copied();
        let known = of_source
            .filter(|index| is_it(&self.all[*index]))
            .or_else(|| self.all.iter().rposition(is_it));
        self.start.clone_from(&opened.start);
        if let Some(known) = known {
            let input = &mut self.all[known];
            // It may have grown since the start of the run.
            input.found = opened.found.clone();
            self.current = Some((source, known));
            return false;
        }
        self.lose(|file| *file == identity.file);
        self.current = Some((source, self.all.len()));
        let name = name();
        let path = absolute(Path::new(&name));
        self.awaited.take_if(|awaited| awaited.path == path);
        self.all.push(SavedInput::new(&name, &opened.found));
        true
    }

    /// Notes that these files are others now. Copies of what they had are found by the content, of
    /// the latest ones: a log that is truncated in place makes one more each time.
    fn lose(&mut self, are_others: impl Fn(&FileId) -> bool) {
        let mut lost = Vec::new();
        for (index, input) in self.all.iter_mut().enumerate() {
            if are_others(&input.file()) {
                input.found.identity.lose_file();
            }
            lost.extend(input.is_lost().then_some(index));
        }
        lost.truncate(lost.len().saturating_sub(MOST_LOST));
        if lost.is_empty() {
            return;
        }
        let moved = self.remove(&lost.into_iter().collect());
        self.of_sources.retain(|_, index| match moved.get(index) {
            Some(new) => {
                *index = *new;
                true
            }
            None => false,
        });
    }

    /// Removes these inputs. Returns the indices of the others by those before.
    fn remove(&mut self, inputs: &BTreeSet<usize>) -> HashMap<usize, usize> {
        let mut moved = HashMap::new();
        for (index, input) in std::mem::take(&mut self.all).into_iter().enumerate() {
            if !inputs.contains(&index) {
                moved.insert(index, self.all.len());
                self.all.push(input);
            }
        }
        moved
    }

    /// Notes what is done of the input of a chunk that was delivered: records and bytes, and lines
    /// in a format that counts them.
    pub(super) fn pass(&mut self, chunk: &Chunk, position: InputPosition, lines: u64) {
        let Some((source, current)) = self.current else {
            return;
        };
        if source != chunk.input.source {
            return;
        }
        let input = &mut self.all[current];
        input.is_compressed = chunk.input.file.is_compressed;
        input.restart = InputRestart {
            position,
            lines,
            announced: chunk.input.announced,
            joined_values: chunk.input.has_joined_values,
            names: (chunk.header.field_names.as_ref()).map_or(0, |names| names.number),
        };
        input.end = chunk.input.file.end;
        input.unended = chunk.input.file.unended;
        input.is_broken = chunk.input.file.is_broken;
        input.left_at = chunk.input.file.left_at.map(|(length, _)| length);
        // A chunk that closes its input may have no bytes.
        if chunk.bytes.filled == 0 {
            return;
        }
        let bytes = chunk.bytes.all();
        input.digest = (input.digest.take().zip(chunk.input.file.digest.as_ref())).and_then(
            |(mut digest, next)| {
                digest.add(next);
                debug_assert_eq!(digest.bytes, position.bytes, "bytes without a digest");
                (digest.bytes == position.bytes).then_some(digest)
            },
        );
        input.before = Sample::of(&bytes[bytes.len() - bytes.len().min(SAMPLE_BYTES)..]);
        // A file that was short when it was opened is known by more once it has grown.
        let known = self.start.len();
        let offset = position.bytes - bytes.len() as u64;
        let has = usize::try_from(known as u64 - offset.min(known as u64)).unwrap_or(0);
        if known < SAMPLE_BYTES
            && !input.is_compressed
            && offset <= known as u64
            && has < bytes.len()
        {
            let more = &bytes[has..bytes.len().min(has + SAMPLE_BYTES - known)];
            self.start.extend_from_slice(more);
            input.found.identity.start = Sample::of(&self.start);
        }
    }
}

impl SavedInput {
    /// Whether a file of its name has its content, by its start and its end.
    fn is_still_there(&self) -> io::Result<bool> {
        // Opening a pipe could end its writer.
        if !fs::metadata(&self.name).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(false);
        }
        let Ok(file) = File::open(&self.name) else {
            return Ok(false);
        };
        let Some(opened) = OpenedFile::of(&file)? else {
            return Ok(false);
        };
        let has_start = self.found.identity.start.is_at(0, &file)?;
        Ok(has_start && self.may_be_in(&file, &opened.found)?)
    }
}
