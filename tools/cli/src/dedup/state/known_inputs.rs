//! Which inputs of a run the state knows, and where they go on.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use echoless_records::compression::codec::Detection;
use echoless_records::compression::reader::PlainBytes;
use echoless_records::failure::{self, Failure, without_controls, write_stderr};
use echoless_records::files::rotated::{
    Between, LEFT_COMPRESSED, LOOKS, Sibling, UNORDERED, unreadable,
};
use echoless_records::files::{ContentDigest, FileId, RotatedBefore, Source};
use echoless_records::restart::{EarlierFile, InputPosition, InputRestart, StreamRestart};

use super::inputs::{
    AwaitedInput, Likeness, MOST_READ_AGAIN, OpenedInput, Recognised, SavedInput, SavedInputs,
    absolute,
};
use crate::config::{Content, DedupConfig, StateConfig};

/// Where each input goes on, and the files that are read before the one that is followed. Removes
/// inputs that were read to their end from the configuration, and notes the others: whether one of
/// them is new is the second result. `committed` is when the state was written, in seconds since
/// 1970. Fails if an input is given twice, or is followed and rotated without end.
pub(super) fn known_inputs(
    config: &mut DedupConfig,
    state: &StateConfig,
    inputs: &mut SavedInputs,
    committed: Option<u64>,
) -> Result<(StreamRestart, bool), Failure> {
    check_given_once(&config.sources)?;
    let followed = match config.sources.last() {
        Some(Source::File(path)) if config.follow => Some(path.clone()),
        _ => None,
    };
    // A file that is rotated meanwhile is not found by its old name, and the rest of it would be
    // lost.
    for _ in 0..LOOKS {
        let known = find_inputs(config, state, inputs, committed, followed.as_deref())?;
        if let Some(known) = known {
            return Ok(known);
        }
    }
    let name = followed.unwrap_or_default().display().to_string();
    let why = "files with its name are renamed all the time";
    Err(Failure::file(name)(io::Error::other(why)))
}

/// The folder of an input that is followed, at one moment.
struct Folder {
    /// The other files in it.
    siblings: Vec<Sibling>,
    /// The file that has the name.
    present: Option<FileId>,
}

impl Folder {
    fn read(followed: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = followed else {
            return Ok(Self {
                siblings: Vec::new(),
                present: None,
            });
        };
        Ok(Self {
            siblings: Sibling::all(path).map_err(Failure::file(path.display().to_string()))?,
            present: fs::metadata(path).ok().as_ref().and_then(FileId::of),
        })
    }

    /// Whether the files that may be rotated ones are still there, with their names. Others in the
    /// folder may come and go.
    fn is_unchanged(
        &self,
        followed: Option<&Path>,
        may_be_rotated: impl Fn(&&Sibling) -> bool,
    ) -> Result<bool, Failure> {
        let now = Self::read(followed)?;
        let [then, now_there] = [self, &now].map(|folder| {
            let files = folder.siblings.iter().filter(&may_be_rotated);
            Sibling::by_path(files)
        });
        Ok(self.present == now.present && then == now_there)
    }
}

/// As [`known_inputs`]. `None` if a file of the input that is followed was renamed meanwhile: then
/// the configuration is as before.
fn find_inputs(
    config: &mut DedupConfig,
    state: &StateConfig,
    inputs: &mut SavedInputs,
    committed: Option<u64>,
    followed: Option<&Path>,
) -> Result<Option<(StreamRestart, bool)>, Failure> {
    let count = config.sources.len();
    let folder_then = Folder::read(followed)?;
    let siblings = &folder_then.siblings;
    let rotated_before = RotatedBefore::of(siblings);
    let given = config.sources.iter().map(|source| match source {
        // Opening a pipe could end its writer.
        Source::File(path) if source.length().is_some() => Some(path.as_path()),
        Source::File(_) | Source::Stdin | Source::Spooled(_) | Source::Interfaces(_) => None,
    });
    // Not each file of a large folder is opened.
    let numbers = inputs.numbers();
    let has_number = |file: &Sibling| numbers.contains(&file.id.number());
    let may_be_read = |file: &Sibling| {
        let has_name = followed.is_some_and(|path| file.has_name_of(path));
        has_name || has_number(file)
    };
    let may_be_rotated = |file: &&Sibling| file.is_labelled() || has_number(file);
    let folder = siblings
        .iter()
        .map(|file| may_be_read(file).then_some(file.path.as_path()));
    let paths: Vec<Option<&Path>> = given.chain(folder).collect();
    let (detection, terminator) = match &config.content {
        Content::Records(records) => {
            let reading = &records.reading;
            (reading.detection(), reading.format.facts().terminator)
        }
        Content::Packets(_) => (Detection::Off, &b""[..]),
    };
    let found = inputs.recognise(&paths, count, detection);
    if !folder_then.is_unchanged(followed, may_be_rotated)? {
        return Ok(None);
    }
    let mut found = found?;
    for (path, file) in paths.iter().zip(&found) {
        if let (Some(path), Some(file)) = (path, file) {
            complete_last_record(inputs, path, file, detection, terminator)?;
            inputs.note_file(file);
        }
    }
    let in_folder = found.split_off(count);

    let mut restarts = Vec::new();
    let (mut sources, mut skipped, mut known) = (Vec::new(), Vec::new(), config.known);
    let mut opened = Vec::new();
    let mut skipped_bytes = 0;
    let mut earlier = Vec::new();
    let mut awaited = None;
    let is_quiet = config.run.quiet;
    for (index, (source, file)) in config.sources.iter().zip(&found).enumerate() {
        if let Some(path) = followed
            && index + 1 == count
        {
            let following = Following {
                path,
                source: sources.len(),
                again: state.again,
                detection,
                since: committed,
                is_quiet,
                inputs,
                given: &found[..index],
                present: file.as_ref(),
                siblings,
                in_folder: &in_folder,
            };
            let files = following.find()?;
            if !folder_then.is_unchanged(followed, may_be_rotated)? {
                return Ok(None);
            }
            for lost in &files.lost {
                following.warn_of_loss(*lost, files.oldest_between);
            }
            // What comes to the folder from now on is read, also if no run reads it until then.
            if following.awaits_first(&files) {
                awaited = Some(AwaitedInput {
                    path: absolute(path),
                    before: rotated_before.clone(),
                });
            }
            earlier = files.earlier;
            opened.extend(files.opened);
            inputs.forget(&files.lost, &mut opened);
            restarts.push(None);
            sources.push(source.clone());
            continue;
        }
        let known_input = (file.as_ref())
            .and_then(|file| Some((file, file.known?.0)))
            .map(|(file, index)| (index, &inputs.all[index], file));
        let mut restart = None;
        let mut goes_on = None;
        if let Some((number, saved, file)) = known_input {
            if !saved.is_whole(file.file.length) {
                goes_on = Some(number);
                restart = saved.restart();
            } else if saved.in_run || !state.again {
                let why = "skipped, read before (--again reads it again)";
                note(is_quiet, &source.name(), why);
                skipped_bytes += source.length().unwrap_or(0);
                known -= usize::from(index < config.known);
                skipped.push(source.clone());
                continue;
            }
        }
        if let Some(restart) = restart {
            let bytes = restart.position.bytes;
            note(
                is_quiet,
                &source.name(),
                &format!("goes on behind byte {bytes}"),
            );
        }
        if let Some(file) = file {
            opened.push(file.opened(sources.len(), source.name(), goes_on));
        }
        restarts.push(restart);
        sources.push(source.clone());
    }
    let left_at = match &found[config.known..] {
        [Some(file)] => file.known.and_then(|(index, _)| inputs.all[index].left_at),
        _ => None,
    };
    // No run reads a pipe again, of which there may be a copy.
    let may_grow = !matches!(config.sources.last(), Some(Source::Spooled(_)));
    let leaves_unfinished = may_grow && !config.follow && count - config.known == 1;
    config.skipped = Some(skipped);
    config.sources = sources;
    config.known = known;
    for length in [&mut config.input_bytes, &mut config.plain_bytes] {
        *length = length.map(|bytes| bytes.saturating_sub(skipped_bytes));
    }
    let is_new = inputs.begin(opened, awaited);
    let stream = StreamRestart {
        inputs: restarts,
        earlier,
        rotated_before,
        leaves_unfinished,
        left_at,
        ..StreamRestart::default()
    };
    Ok(Some((stream, is_new)))
}

fn note(is_quiet: bool, name: &str, note: &str) {
    if !is_quiet {
        let (name, note) = (without_controls(name), without_controls(note));
        write_stderr(&format!("echoless: {name}: {note}\n"));
    }
}

/// Moves the position of an input that has grown, and whose last record had no terminator: behind
/// the terminator if that follows, else in front of the record, of which more follows.
fn complete_last_record(
    inputs: &mut SavedInputs,
    path: &Path,
    found: &Recognised,
    detection: Detection,
    terminator: &[u8],
) -> Result<(), Failure> {
    let Some((index, _)) = found.known else {
        return Ok(());
    };
    let saved = &inputs.all[index];
    let Some(bytes) = saved
        .unended()
        .filter(|_| !saved.is_whole(found.file.length))
    else {
        return Ok(());
    };
    let name = path.display().to_string();
    let file = File::open(path).map_err(Failure::file(name.as_str()))?;
    let own = file.try_clone().map_err(Failure::file(name.as_str()))?;
    let InputPosition {
        records,
        bytes: position,
    } = saved.restart.position;
    let mut plain = PlainBytes::new(own, detection, None).from(position.saturating_sub(1));
    let mut around = [0; 3];
    let filled = (plain.fill(&mut around)).map_err(Failure::file(name.as_str()))?;
    // The last byte of the record, and what follows.
    let ended = match (terminator, &around[..filled]) {
        _ if saved.is_broken => None,
        (b"\0", [_, 0, ..]) | (b"\n" | b"\r\n", [_, b'\n', ..]) | (b"\n\n", [b'\n', b'\n', ..]) => {
            Some(1)
        }
        (b"\r\n", [_, b'\r', b'\n']) | (b"\n\n", [_, b'\n', b'\n']) => Some(2),
        _ => None,
    };
    let mut digest = saved.digest.clone();
    let position = match ended {
        Some(terminator) => {
            if let Some(digest) = &mut digest {
                digest.add(&ContentDigest::of(&around[1..=terminator]));
            }
            InputPosition {
                records,
                bytes: position + terminator as u64,
            }
        }
        None => {
            let start = position.saturating_sub(bytes);
            failure::warn(&format!(
                "{name}: its last record had no end when it was read up to byte {position}, and \
                 has grown: it is read again, from byte {start} on"
            ));
            digest = match start <= MOST_READ_AGAIN {
                true => ContentDigest::of_file(path, found.file.identity.file, start, detection)
                    .ok()
                    .flatten(),
                false => None,
            };
            InputPosition {
                records: records.saturating_sub(1),
                bytes: start,
            }
        }
    };
    let moved = inputs.set_position(index, position, digest, &file);
    moved.map_err(Failure::file(name))
}

fn check_given_once(sources: &[Source]) -> Result<(), Failure> {
    let mut files = HashSet::new();
    for source in sources {
        if let Source::File(path) = source
            && let Some(file) = fs::metadata(path).ok().as_ref().and_then(FileId::of)
            && !files.insert(file)
        {
            return Err(Failure::SameFile {
                name: source.name(),
                other: "an input before it, and a state reads each once".into(),
            });
        }
    }
    Ok(())
}

/// What is known of an input that is followed.
struct Following<'a> {
    path: &'a Path,
    /// Its index among the inputs.
    source: usize,
    again: bool,
    detection: Detection,
    since: Option<u64>,
    is_quiet: bool,
    inputs: &'a SavedInputs,
    /// The other inputs.
    given: &'a [Option<Recognised>],
    /// The file that has the name now.
    present: Option<&'a Recognised>,
    siblings: &'a [Sibling],
    in_folder: &'a [Option<Recognised>],
}

/// What is read of an input that is followed.
#[derive(Default)]
struct FollowedFiles<'a> {
    earlier: Vec<EarlierFile>,
    /// The path of the first of those of which nothing was read.
    oldest_between: Option<&'a Path>,
    opened: Vec<OpenedInput>,
    /// The inputs that cannot go on.
    lost: BTreeSet<usize>,
}

impl FollowedFiles<'_> {
    fn push(&mut self, file: File, restart: Option<InputRestart>, is_rotated: bool) {
        self.earlier.push(EarlierFile {
            file: Arc::new(file),
            restart,
            is_rotated,
        });
    }
}

/// Where a file that was followed is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It still has its name.
    Present,
    /// It is another input.
    Given(usize),
    /// It was renamed or copied.
    Sibling(usize),
    /// The same, and compressed.
    Compressed(usize),
    /// It is not in the folder.
    Lost,
}

impl<'a> Following<'a> {
    /// The files that had the name, oldest first: those that were read in part, and those after
    /// the one that was followed last.
    fn find(&self) -> Result<FollowedFiles<'a>, Failure> {
        let mut files = FollowedFiles::default();
        let read_before = self.read_before();
        let last = read_before.last().copied();
        let mut place_of_last = None;
        for index in read_before {
            let saved = &self.inputs.all[index];
            let place = self.place_of(index)?;
            if Some(index) == last {
                place_of_last = Some(place);
            }
            let restart = saved.restart();
            match place {
                Place::Sibling(at) => {
                    let Some(found) = &self.in_folder[at] else {
                        continue;
                    };
                    let is_whole = saved.is_whole(found.file.length);
                    if is_whole && Some(index) != last {
                        continue;
                    }
                    if let Some(file) = self.siblings[at].open().map_err(self.failed())? {
                        if !is_whole {
                            self.note_rest(saved.restart.position.bytes, &self.siblings[at].path);
                        }
                        files.push(file, restart, true);
                        files.opened.push(self.opened(found, Some(index), false));
                    }
                }
                Place::Compressed(at) => {
                    let (sibling, found) = (&self.siblings[at], &self.in_folder[at]);
                    if let (Some(file), Some(found)) =
                        (sibling.open().map_err(self.failed())?, found)
                    {
                        self.note_rest(saved.restart.position.bytes, &sibling.path);
                        files.push(file, restart, true);
                        files.opened.push(self.opened(found, Some(index), true));
                    }
                }
                Place::Lost if Some(index) == last || saved.end.is_none() => {
                    files.lost.insert(index);
                }
                Place::Present | Place::Given(_) | Place::Lost => {}
            }
        }
        if let Some((place, index)) = place_of_last.zip(last) {
            let between = self.between(place, index);
            self.add_files_between(&between, &mut files)?;
        } else if let Some(awaited) = &self.inputs.awaited
            && awaited.path == absolute(self.path)
        {
            let before = &awaited.before;
            let between = Between::not_before(before, self.siblings, self.detection);
            self.add_files_between(&between, &mut files)?;
        }
        self.add_present(last, &mut files)?;
        Ok(files)
    }

    /// Whether no file has the name now, and none can be found that had it.
    fn awaits_first(&self, files: &FollowedFiles) -> bool {
        let last = self.inputs.last_of(&self.name());
        files.opened.is_empty() && last.is_none_or(|last| files.lost.contains(&last))
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn note(&self, text: &str) {
        note(self.is_quiet, &self.name(), text);
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Failure + use<> {
        Failure::file(self.name())
    }

    fn opened(&self, found: &Recognised, known: Option<usize>, is_compressed: bool) -> OpenedInput {
        let mut opened = found.opened(self.source, self.name(), known);
        opened.is_compressed = is_compressed;
        opened
    }

    /// The inputs that were read under this name, in this order; by another path to the same name
    /// if there are none. None if the last one is to be read again.
    fn read_before(&self) -> Vec<usize> {
        let name = self.name();
        let inputs = &self.inputs.all;
        let numbers = 0..inputs.len();
        let is_found = |index: &usize| !matches!(self.place_of(*index), Ok(Place::Lost) | Err(_));
        let mut read: Vec<usize> = numbers
            .clone()
            .filter(|index| inputs[*index].name == name)
            // What it lacked was told when another file got its number.
            .filter(|index| !inputs[*index].is_lost() || is_found(index))
            .collect();
        if read.is_empty() {
            let has_name = |index: &usize| {
                let other = Path::new(&inputs[*index].name);
                other.file_name() == self.path.file_name() && is_found(index)
            };
            read = numbers.filter(has_name).collect();
        }
        let is_again = |index: &usize| {
            let input = &inputs[*index];
            self.again && input.end.is_some() && !input.in_run
        };
        if read.last().is_some_and(is_again) {
            read.clear();
        }
        read
    }

    /// Where an input is now.
    fn place_of(&self, index: usize) -> Result<Place, Failure> {
        let is_it = |found: &Option<Recognised>| {
            let known = found.as_ref().and_then(|found| found.known);
            known.is_some_and(|(known, _)| known == index)
        };
        if self.present.is_some_and(|found| {
            let known = found.known;
            known.is_some_and(|(known, _)| known == index)
        }) {
            return Ok(Place::Present);
        }
        if let Some(at) = self.given.iter().position(is_it) {
            return Ok(Place::Given(at));
        }
        if let Some(at) = self.in_folder.iter().position(is_it) {
            return Ok(Place::Sibling(at));
        }
        let saved = &self.inputs.all[index];
        if saved.end.is_some() && Some(index) != self.inputs.last_of(&saved.name) {
            return Ok(Place::Lost);
        }
        for (at, sibling) in self.siblings.iter().enumerate() {
            let is_new = (self.in_folder[at].as_ref()).is_some_and(|found| found.known.is_none());
            if !is_new || !sibling.is_compressed || !sibling.is_labelled() {
                continue;
            }
            // One that cannot be decompressed is none that can go on.
            let begins = |content| {
                sibling
                    .begins_with(&content, self.detection)
                    .unwrap_or(false)
            };
            if saved.content().is_some_and(begins) {
                return Ok(Place::Compressed(at));
            }
        }
        Ok(Place::Lost)
    }

    fn note_rest(&self, bytes: u64, path: &Path) {
        let now = path.display();
        self.note(&format!(
            "goes on behind byte {bytes} of {now}, as it is called now"
        ));
    }

    /// Warns that an input cannot go on, if it was read under this name. One that was empty may be
    /// the oldest of the files that are read in between.
    fn warn_of_loss(&self, index: usize, oldest: Option<&Path>) {
        let saved = &self.inputs.all[index];
        let (name, bytes) = (self.name(), saved.restart.position.bytes);
        if saved.name != name {
            return;
        }
        let is_same = (self.present).is_some_and(|file| file.file.identity.file == saved.file());
        failure::warn(&if is_same {
            format!(
                "{name}: was truncated or written anew since it was read up to byte {bytes}, and \
                 is read from its start"
            )
        } else if let Some(oldest) = oldest.filter(|_| bytes == 0) {
            let oldest = oldest.display();
            format!(
                "{name}: is another file than the one that was empty when it was read: if that is \
                 not {oldest} now, which is read from its start, its records are lost"
            )
        } else {
            format!(
                "{name}: is another file than the one that was read up to byte {bytes}, which is \
                 not in its folder: what followed there is not read"
            )
        });
    }

    /// The files that had the name between the one that was followed last and the present one.
    fn between(&self, place: Place, last: usize) -> Between {
        match place {
            Place::Present => {
                // A first line that all of them have does not tell which one it was.
                let last = &self.inputs.all[last];
                let between = self.since_commit();
                let is_it = |file| self.may_be(last, file);
                if !last.is_short() || !between.files.iter().any(is_it) {
                    return Between::default();
                }
                between
            }
            Place::Sibling(at) | Place::Compressed(at) => {
                Between::after(&self.siblings[at], self.siblings)
            }
            Place::Given(at) => {
                let id = self.given[at]
                    .as_ref()
                    .map(|given| given.file.identity.file);
                let first = self.siblings.iter().find(|file| Some(file.id) == id);
                first.map_or_else(Between::default, |first| {
                    Between::after(first, self.siblings)
                })
            }
            Place::Lost => self.since_commit(),
        }
    }

    /// Adds those of these files of which nothing was read.
    fn add_files_between(
        &self,
        between: &Between,
        files: &mut FollowedFiles<'a>,
    ) -> Result<(), Failure> {
        for sibling in &between.files {
            let Some(at) = self.new_sibling(sibling)? else {
                continue;
            };
            let (Some(file), Some(found)) =
                (sibling.open().map_err(self.failed())?, &self.in_folder[at])
            else {
                continue;
            };
            files.oldest_between.get_or_insert(&self.siblings[at].path);
            let now = sibling.path.display();
            self.note(&format!("had {now} before, which is read first"));
            files.push(file, None, true);
            files.opened.push(self.opened(found, None, false));
        }
        for sibling in &between.unordered {
            if self.new_sibling(sibling)?.is_some() {
                sibling.warn_of_omission(self.path, UNORDERED);
            }
        }
        Ok(())
    }

    /// The rotated files that were changed since the state was written.
    fn since_commit(&self) -> Between {
        let since = self.since.map(Duration::from_secs);
        let since = since.and_then(|since| UNIX_EPOCH.checked_add(since));
        Between::since(since.unwrap_or(SystemTime::now()), self.siblings)
    }

    /// Whether a file that is no known input may be this short one, which has grown. One that
    /// cannot be read may be.
    fn may_be(&self, saved: &SavedInput, sibling: &Sibling) -> bool {
        let is_new = |(other, found): (&Sibling, &Option<Recognised>)| {
            other.id == sibling.id && found.as_ref().is_some_and(|found| found.known.is_none())
        };
        if !self.siblings.iter().zip(self.in_folder).any(is_new) {
            return false;
        }
        if sibling.is_compressed && self.detection == Detection::Off {
            return true;
        }
        match sibling.plain_start(self.detection) {
            Ok(start) => start.is_some_and(|start| saved.is_continued_by(&start)),
            Err(_) => true,
        }
    }

    /// The index of a file in the folder that is no other input, and of which nothing was read.
    fn new_sibling(&self, sibling: &Sibling) -> Result<Option<usize>, Failure> {
        let is_given = |given: &Option<Recognised>| {
            let given = given.as_ref();
            given.is_some_and(|given| given.file.identity.file == sibling.id)
        };
        if self.given.iter().any(is_given) {
            return Ok(None);
        }
        let at = self
            .siblings
            .iter()
            .position(|other| other.id == sibling.id);
        if let Err(error) = sibling.open() {
            sibling.warn_of_omission(self.path, &unreadable(&error));
            return Ok(None);
        }
        let is_new = |at: &usize| {
            let found = self.in_folder[*at].as_ref();
            found.is_some_and(|found| found.known.is_none())
        };
        let Some(at) = at.filter(is_new) else {
            return Ok(None);
        };
        if sibling.is_compressed && self.detection == Detection::Off {
            sibling.warn_of_omission(self.path, LEFT_COMPRESSED);
            return Ok(None);
        }
        if sibling.is_compressed {
            match self.was_read(sibling) {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(error) => {
                    sibling.warn_of_omission(self.path, &unreadable(&error));
                    return Ok(None);
                }
            }
        }
        Ok(Some(at))
    }

    /// Whether a compressed file is an input that was read.
    fn was_read(&self, sibling: &Sibling) -> io::Result<bool> {
        let start = sibling.plain_start(self.detection)?.unwrap_or_default();
        // Of files with the same long header, each is read on.
        for content in self
            .inputs
            .with_start(&start)
            .filter_map(SavedInput::content)
        {
            if sibling.begins_with(&content, self.detection)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the file that has the name now, if nothing is read before it.
    fn add_present(&self, last: Option<usize>, files: &mut FollowedFiles) -> Result<(), Failure> {
        let Some(found) = self.present else {
            return Ok(());
        };
        let is_last = |(index, likeness): &(usize, Likeness)| {
            Some(*index) == last || *likeness >= Likeness::Number
        };
        let known = found.known.filter(is_last).map(|(index, _)| index);
        let known = known.filter(|index| {
            let saved = &self.inputs.all[*index];
            !(self.again && saved.is_whole(found.file.length) && !saved.in_run)
        });
        let restart = known.and_then(|index| self.inputs.all[index].restart());
        if let Some(restart) = &restart {
            self.note(&format!("goes on behind byte {}", restart.position.bytes));
        }
        // Else it follows once it has bytes: until then, the file before may grow.
        if restart.is_some() || files.earlier.is_empty() {
            match File::open(self.path) {
                Ok(file)
                    if FileId::of(&file.metadata().map_err(self.failed())?)
                        == Some(found.file.identity.file) =>
                {
                    files.push(file, restart, false);
                }
                // Rotated meanwhile: it is opened by its name.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(self.failed()(error)),
            }
        }
        files.opened.push(self.opened(found, known, false));
        Ok(())
    }
}
