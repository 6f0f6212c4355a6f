//! Reads the inputs as one stream and cuts it into chunks of whole records.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use super::chunk::Chunk;
use super::fault::{Fault, Problem};
use super::format::{Format, LastEnd};
use super::restart::{EarlierFile, InputRestart, StreamRestart};
use super::terminators::known_terminator;
use super::text_start::{Foreign, TextStart};
use crate::compression::codec::{Codec, Detection};
use crate::compression::reader::{PlainBytes, loss_of_data};
use crate::failure::{self, Failure};
use crate::files::follow::{AtEnd, Between, PAUSE};
use crate::files::{OpenedFile, Source};
use crate::keys::{RecordReading, SharedFormat, format_of_chunk};
use crate::partial::{Loss, PartialInput, PartialInputs};
use crate::reading::{BufferSizes, CHUNK_BYTES, Filled, Read};
use crate::signals::{Patience, Signals};

/// The inputs, read one after the other.
#[derive(Debug)]
pub(crate) struct Input {
    sources: Vec<Source>,
    /// The number of the first of them that are known: their records are not written.
    known: usize,
    /// The index of the current source.
    at: usize,
    file: Option<PlainBytes>,
    detection: Detection,
    /// The start of a record whose end is not read yet.
    tail: Vec<u8>,
    format: SharedFormat,
    sizes: BufferSizes,
    /// The inputs that are cut or damaged.
    partial: PartialInputs,
    /// Whether an incomplete record at the end of an input is set aside.
    rejects: bool,
    /// Whether each input begins with a header. A byte order mark alone counts as an empty input.
    has_header: bool,
    /// Whether the next record is longer than that.
    overlong: bool,
    last_end: Box<dyn LastEnd>,
    /// The terminator of the last record that had one.
    terminator: &'static [u8],
    opens_source: bool,
    /// Where the inputs go on that an earlier run has read in part, in a run with a state.
    restarts: Option<Vec<Option<InputRestart>>>,
    /// That of the current input, and which file it is, for its next chunk.
    restart: Option<InputRestart>,
    opened: Option<Box<OpenedFile>>,
    /// The bytes of the inputs before the current one, and of the known ones among them.
    bytes_before: u64,
    known_bytes: u64,
    /// If the last input is followed, whether nothing is said about that.
    follows_quietly: Option<bool>,
    /// The files of its name that are read before the present one.
    earlier: VecDeque<EarlierFile>,
    /// Whether the current one may be compressed, although it is followed.
    is_rotated: bool,
    /// The length of the current file when it was opened, if it is a regular one with a name.
    length: Option<u64>,
    /// Whether it was said that no file has its name.
    awaits_file: bool,
    /// Whether an unfinished last record of the one input is left to the next run, and the length
    /// at which an earlier run has left it.
    leaves_unfinished: bool,
    left_at: Option<u64>,
    /// Whether a signal ends the stream.
    catches_signals: bool,
    /// Set once the first input is opened, if signals are caught.
    signals: Option<Signals>,
}

impl Input {
    /// A stream of these inputs. If faulty records are set aside, an incomplete record at the end
    /// of an input does not end the stream. A read has at most `most` bytes.
    pub(crate) fn new(sources: Vec<Source>, reading: &RecordReading, most: NonZeroUsize) -> Self {
        let format = reading.format.clone();
        Self {
            sources,
            known: 0,
            at: 0,
            file: None,
            detection: reading.detection(),
            tail: Vec::new(),
            sizes: BufferSizes {
                usual: CHUNK_BYTES,
                longest: reading.max_record,
                most,
            },
            partial: PartialInputs::new(false),
            rejects: reading.faults.rejects,
            has_header: reading.header,
            overlong: false,
            last_end: format.last_end(),
            terminator: format.facts().terminator,
            format,
            opens_source: true,
            restarts: None,
            restart: None,
            opened: None,
            bytes_before: 0,
            known_bytes: 0,
            follows_quietly: None,
            earlier: VecDeque::new(),
            is_rotated: false,
            length: None,
            awaits_file: false,
            leaves_unfinished: false,
            left_at: None,
            catches_signals: true,
            signals: None,
        }
    }

    /// If `strict`, an input that is cut or damaged ends the stream.
    pub(crate) fn with_strict(mut self, strict: bool) -> Self {
        self.partial = PartialInputs::new(strict);
        self
    }

    /// Counts the first `known` inputs as known.
    pub(crate) fn with_known(mut self, known: usize) -> Self {
        self.known = known;
        self
    }

    /// Goes on behind what an earlier run has read, and tells which files the inputs are.
    pub(crate) fn restart(mut self, stream: &StreamRestart) -> Self {
        self.restarts = Some(stream.inputs.clone());
        self.earlier = stream.earlier.iter().cloned().collect();
        self.leaves_unfinished = stream.leaves_unfinished;
        self.left_at = stream.left_at;
        // Without a record before, it is that of the format.
        let terminator = known_terminator(&stream.terminator);
        if let Some(terminator) = terminator.filter(|terminator| !terminator.is_empty()) {
            self.terminator = terminator;
        }
        self
    }

    /// Waits at the end of the last input for more, and goes on with the next file of its name when
    /// it is rotated. A signal ends the stream.
    pub(crate) fn following(mut self, is_quiet: bool) -> Self {
        self.follows_quietly = Some(is_quiet);
        self
    }

    /// Fills chunks of this length, if reads and records allow it.
    pub(crate) fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.sizes.usual = bytes;
        self
    }

    /// Leaves signals to the system, so that they end the process and not the stream.
    pub(crate) fn leaving_signals(mut self) -> Self {
        self.catches_signals = false;
        self
    }

    /// The inputs that were left before their end since the last call.
    pub(crate) fn take_partial_inputs(&mut self) -> Vec<PartialInput> {
        self.partial.take()
    }

    /// The signal that ended the stream, if one did.
    pub(crate) fn ended_by(&self) -> Option<u8> {
        self.signals.as_ref()?.caught()
    }

    /// The name of an input, for messages.
    pub(crate) fn name(&self, source: usize) -> String {
        self.sources[source].name()
    }

    /// The bytes of the inputs that were read so far, compressed as they are.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_before + self.file.as_ref().map_or(0, PlainBytes::file_bytes)
    }

    /// [`bytes_read`](Self::bytes_read) without those of the known inputs.
    pub(crate) fn input_bytes_read(&self) -> u64 {
        if self.at < self.known {
            return 0;
        }
        self.bytes_read() - self.known_bytes
    }

    /// Fills the chunk with the next whole records of one input. The stream ends with the last
    /// input, or by a signal; an incomplete last record is then dropped.
    ///
    /// It returns as soon as a read contains the end of a record, so the records of a slow producer
    /// do not wait for a full buffer. An input that ends inside a quoted field or a record with
    /// a length, or a record that is too long, yields a chunk without records and with a fault.
    /// If faulty records are set aside, the former is a chunk of that record alone. An input that
    /// is cut or damaged ends behind its last whole record.
    pub(crate) fn fill(
        &mut self,
        chunk: &mut Chunk,
        patience: Patience,
    ) -> Result<Filled, Failure> {
        chunk.clear();
        while let Some(source) = self.sources.get(self.at) {
            chunk.input.source = self.at;
            chunk.bytes.mark = 0;
            chunk.input.is_last = false;
            let followed = match source {
                Source::File(path) if self.at + 1 == self.sources.len() => self
                    .follows_quietly
                    .map(|is_quiet| Followed { path, is_quiet }),
                Source::File(_) | Source::Stdin => None,
            };
            if self.overlong {
                chunk.fault = Some(Fault {
                    record: 0,
                    problem: Problem::TooLong(self.sizes.longest),
                });
                return Ok(Filled::Chunk);
            }
            let file = match &mut self.file {
                Some(file) => file,
                closed => {
                    let earlier = followed.and_then(|_| self.earlier.pop_front());
                    self.is_rotated = earlier.as_ref().is_some_and(|earlier| earlier.is_rotated);
                    let mut restart = None;
                    let file = if let Some(earlier) = earlier {
                        restart = earlier.restart;
                        let file = earlier.file.try_clone();
                        file.map_err(Failure::file(source.name()))?
                    } else if self.catches_signals {
                        match source.open_at_once() {
                            // It is still to come, or was rotated once more.
                            Err(_) if followed.is_some_and(Followed::is_gone) => {
                                if !std::mem::replace(&mut self.awaits_file, true)
                                    && let Some(followed) = followed
                                {
                                    followed.note("does not exist, and is waited for");
                                }
                                if self.signals.is_none() {
                                    let signals = Signals::catch();
                                    self.signals = Some(signals.map_err(Failure::file("signals"))?);
                                }
                                match pause(self.signals, patience)? {
                                    None => continue,
                                    Some(filled) => return Ok(filled),
                                }
                            }
                            opened => opened?,
                        }
                    } else {
                        source.open()?
                    };
                    self.awaits_file = followed.is_some();
                    self.length = length_of(source, &file);
                    if let Some(followed) = followed.filter(|_| self.length.is_none()) {
                        return Err(followed.is_no_file());
                    }
                    if self.catches_signals {
                        self.signals = Some(Signals::catch().map_err(Failure::file("signals"))?);
                    }
                    if let Some(restarts) = &mut self.restarts {
                        let opened = OpenedFile::of(&file);
                        let opened = opened.map_err(Failure::file(source.name()))?;
                        self.opened = opened.map(Box::new);
                        // The next file of a name that is followed has none.
                        self.restart = restarts[self.at].take().or(restart);
                    }
                    let mut bytes = PlainBytes::new(file, self.detection, self.signals);
                    if let Some(restart) = &self.restart {
                        bytes = bytes.from(restart.position.bytes);
                        self.opens_source = false;
                        self.last_end.restart(restart.joined_values);
                    }
                    closed.insert(bytes.named(source.extension()).or_as_it_is())
                }
            };
            chunk.input.is_first = self.opens_source;

            let mut len = self.tail.len();
            // A tail was searched, unless it may be the start of a byte order mark.
            let may_be_mark = self.opens_source && self.format.facts().is_text;
            let extension = source.extension();
            let is_open = TextStart::of(&self.tail, false, extension) == TextStart::Undecided;
            let mut searched = if may_be_mark && is_open { 0 } else { len };
            self.sizes.make_room(&mut chunk.bytes.buffer, len, source)?;
            chunk.bytes.buffer[..len].copy_from_slice(&self.tail);
            self.tail.clear();
            let mut is_cut = false;
            let at_end = loop {
                let room = self.sizes.next_room(&mut chunk.bytes.buffer, len);
                let read = match file.read(patience, room) {
                    Ok(read) => read,
                    // Inside of an element, the next input would be part of it.
                    Err(error)
                        if loss_of_data(&error).is_some() && self.last_end.may_be_set_aside() =>
                    {
                        // Records behind the damage are lost, also if it is a cut.
                        let failure = damaged(source, error, len - chunk.bytes.mark);
                        self.partial.leave(failure, Loss::Records)?;
                        is_cut = true;
                        break true;
                    }
                    Err(error) => return Err(Failure::file(source.name())(error)),
                };
                let read = match read {
                    Read::Bytes(read) => read,
                    Read::NotYet => {
                        self.tail.extend_from_slice(&chunk.bytes.buffer[..len]);
                        return Ok(Filled::NotYet);
                    }
                    Read::Signal => return Ok(Filled::End),
                };
                if let Some(followed) = followed
                    && !followed.has_ended(file, read, self.is_rotated, &mut self.earlier)?
                    && read == 0
                {
                    match pause(self.signals, patience)? {
                        None => continue,
                        Some(filled) => {
                            self.tail.extend_from_slice(&chunk.bytes.buffer[..len]);
                            return Ok(filled);
                        }
                    }
                }
                len += read;
                if may_be_mark {
                    match TextStart::of(&chunk.bytes.buffer[..len], read == 0, extension) {
                        TextStart::Undecided => continue,
                        TextStart::Mark(end) => chunk.bytes.mark = end,
                        TextStart::Foreign(_) if self.detection == Detection::Off => {}
                        TextStart::Foreign(foreign) => return Err(unread(source, file, foreign)),
                    }
                }
                if read == 0 {
                    if let Some(length) = self.length.filter(|_| followed.is_none()) {
                        warn_if_shrunk(source, file, length)?;
                    }
                    if let Some(problem) = file.bytes_behind() {
                        let failure = Failure::file(source.name())(io::Error::other(problem));
                        self.partial.leave(failure, Loss::Nothing)?;
                    }
                    break true;
                }
                let bytes = &chunk.bytes.buffer[chunk.bytes.mark..len];
                let end = (self.last_end).find(bytes, searched.saturating_sub(chunk.bytes.mark));
                searched = len;
                if let Some(end) = end {
                    chunk.bytes.filled = chunk.bytes.mark + end;
                    break false;
                }
                if self.last_end.is_malformed() {
                    break true;
                }
                if len > self.sizes.longest {
                    break false;
                }
                self.sizes.make_room(&mut chunk.bytes.buffer, len, source)?;
            };
            if may_be_mark
                && self.detection != Detection::Off
                && let Some(foreign) = TextStart::of_many(&chunk.bytes.buffer[..len])
            {
                return Err(unread(source, file, foreign));
            }

            chunk.input.file.is_compressed = file.codec().is_some();
            let belied = file.belied_codec().filter(|_| chunk.input.is_first);
            chunk.input.belied_codec = belied.map(Codec::name);
            chunk.input.file.read = file.file_position();
            chunk.input.has_joined_values = self.last_end.has_joined_values();
            let format = format_of_chunk(&*self.format, chunk);
            let unfinished = &chunk.bytes.buffer[chunk.bytes.mark..len];
            let leaves = at_end
                && self.leaves_unfinished
                && !unfinished.is_empty()
                // A header is needed for what follows.
                && !(self.has_header && self.opens_source)
                && self.length.is_some()
                && file.codec().is_none()
                && format.facts().is_text
                && format.terminator_of(unfinished).is_none()
                && self.left_at != Some(file.file_position());
            if leaves {
                warn_of_unfinished(source, unfinished.len());
                chunk.input.file.left_at = Some(file.file_position());
            }
            // The end of a cut input is none of its last record.
            let ends_whole = at_end && !is_cut && !leaves;
            let problem = (self.last_end.problem_at_end()).filter(|_| ends_whole);
            // Where a malformed record ends is unknown, so it cannot be set aside.
            let sets_aside = self.rejects && self.last_end.may_be_set_aside();
            if ends_whole && (problem.is_none() || sets_aside) {
                chunk.bytes.filled = len;
            }
            if let Some(pieces) = self.last_end.pieces() {
                chunk.take_pieces(pieces);
            }
            if let Some(start) = first_overlong(chunk, len, format, self.sizes.longest) {
                chunk.bytes.filled = start;
                chunk.cut_pieces(start);
                self.overlong = true;
            } else if at_end {
                if sets_aside {
                    chunk.input.incomplete = problem;
                } else {
                    chunk.fault = problem.map(|problem| Fault { record: 0, problem });
                }
                chunk.input.is_last = true;
                let ends = self.restarts.is_some() && !leaves;
                chunk.input.file.end = ends.then(|| file.file_position());
                chunk.input.lacks_records =
                    ends_whole && problem.is_none() && self.last_end.lacks_records();
                self.bytes_before += file.file_bytes();
                self.file = None;
                if followed.is_none() {
                    self.at += 1;
                    if self.at == self.known {
                        self.known_bytes = self.bytes_before;
                    }
                }
                self.opens_source = true;
                self.last_end.reset();
            } else {
                self.tail
                    .extend_from_slice(&chunk.bytes.buffer[chunk.bytes.filled..len]);
            }
            // A chunk without records has no mark, unless it is all of the input.
            let is_mark_alone = ends_whole && len == chunk.bytes.mark && !self.has_header;
            if chunk.bytes.filled <= chunk.bytes.mark && !is_mark_alone {
                chunk.bytes.filled = 0;
                chunk.bytes.mark = 0;
            }
            chunk.bytes.start = chunk.bytes.mark;
            // A state has to know that an input has ended.
            let tells_end = self.restarts.is_some() && at_end && (!chunk.input.is_first || leaves);
            let has_something =
                chunk.bytes.filled > 0 || chunk.fault.is_some() || chunk.input.lacks_records;
            if has_something || tells_end {
                self.opens_source = at_end && !self.overlong;
                chunk.input.restart = self.restart.take();
                chunk.input.file.opened = self.opened.take();
                let records = chunk.bytes.behind_mark();
                let lacks_end = chunk.input.file.end.is_some() && !records.is_empty();
                if lacks_end && format.terminator_of(records).is_none() {
                    chunk.input.file.unended = unended_bytes(format, records);
                }
                chunk.layout.terminator = match format.terminator_of(records) {
                    // Between such records nothing is missing, wherever the chunk ends.
                    Some(_) if chunk.input.has_joined_values => b"",
                    Some(terminator) => {
                        self.terminator = terminator;
                        terminator
                    }
                    None => self.terminator,
                };
                return Ok(Filled::Chunk);
            }
        }
        Ok(Filled::End)
    }
}

/// The name of an input that is followed.
#[derive(Debug, Clone, Copy)]
struct Followed<'a> {
    path: &'a Path,
    is_quiet: bool,
}

impl Followed<'_> {
    fn is_gone(self) -> bool {
        !self.path.exists()
    }

    fn note(self, note: &str) {
        if !self.is_quiet {
            failure::warn(&format!("{}: {note}", self.path.display()));
        }
    }

    /// The error of what has the name and cannot be followed.
    fn is_no_file(self) -> Failure {
        let problem = "is no regular file, and --follow reads regular files alone";
        let error = io::Error::new(ErrorKind::Unsupported, problem);
        Failure::file(self.path.display().to_string())(error)
    }

    /// Whether a file is complete of which a read has returned so many bytes, so that the next one
    /// of its name follows: the first of `earlier`, which gets those that were rotated meanwhile.
    /// One that was `rotated` may be compressed.
    ///
    /// # Errors
    /// [`Failure`] if it is compressed, or cannot be read.
    fn has_ended(
        self,
        file: &PlainBytes,
        read: usize,
        is_rotated: bool,
        earlier: &mut VecDeque<EarlierFile>,
    ) -> Result<bool, Failure> {
        let name = self.path.display().to_string();
        let Some(plain) = file.plain_file().filter(|_| file.codec().is_none()) else {
            if is_rotated {
                return Ok(read == 0);
            }
            let problem = "is compressed, and --follow reads plain files alone";
            let error = io::Error::new(ErrorKind::Unsupported, problem);
            return Err(Failure::file(name)(error));
        };
        if read > 0 {
            return Ok(false);
        }
        if !earlier.is_empty() {
            return Ok(true);
        }
        let found = AtEnd::of(self.path, plain, file.file_position());
        match found.map_err(Failure::file(name.as_str()))? {
            AtEnd::Open => return Ok(false),
            AtEnd::Truncated => self.note("was truncated, and is read from its start"),
            AtEnd::Replaced => {
                let next = Between::open_next(self.path, plain);
                let (files, between) = next.map_err(Failure::file(name))?;
                between.warn(self.path);
                let present = files.len().saturating_sub(1);
                let files = files.into_iter().enumerate();
                earlier.extend(files.map(|(index, file)| EarlierFile {
                    file: Arc::new(file),
                    restart: None,
                    is_rotated: index < present,
                }));
                self.note("was replaced, and goes on in the new file");
            }
        }
        Ok(true)
    }
}

/// The length of a regular file that has a name, and is read from its start.
fn length_of(source: &Source, file: &File) -> Option<u64> {
    let Source::File(_) = source else {
        return None;
    };
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// Warns of a last record that has no terminator yet.
fn warn_of_unfinished(source: &Source, bytes: usize) {
    let (last, are, them, they_are) = match bytes {
        1 => ("byte has", "is", "it", "it is"),
        _ => ("bytes have", "are", "them", "they are"),
    };
    failure::warn(&format!(
        "{}: its last {bytes} {last} no newline yet, and {are} left to the next run, which reads \
         {them} with what follows, or as {they_are} if nothing does",
        source.name()
    ));
}

/// The length of the last of these records.
fn unended_bytes(format: &dyn Format, records: &[u8]) -> u64 {
    let mut ends = Vec::new();
    format.record_ends(records, 0, &mut ends);
    let start = ends.len().checked_sub(2).map_or(0, |before| ends[before]);
    (records.len() - start) as u64
}

/// Warns of a plain file with this length at its start that is shorter at its end: records that
/// were not read are gone.
fn warn_if_shrunk(source: &Source, file: &PlainBytes, length: u64) -> Result<(), Failure> {
    let Some(plain) = file.plain_file() else {
        return Ok(());
    };
    let metadata = plain.metadata().map_err(Failure::file(source.name()))?;
    let (now, read) = (metadata.len(), file.file_position());
    // Files of the system that have no length have none now, either.
    if length > 0 && now < length.max(read) {
        failure::warn(&format!(
            "{}: was truncated while it was read: {read} bytes were read, it had {} and has {now} \
             now",
            source.name(),
            length.max(read)
        ));
    }
    Ok(())
}

/// Waits before the next look at a file that is followed. Returns what the chunk gets if that is
/// not to be.
fn pause(signals: Option<Signals>, patience: Patience) -> Result<Option<Filled>, Failure> {
    match (patience, signals) {
        (Patience::Try, _) => Ok(Some(Filled::NotYet)),
        (Patience::Wait, Some(signals)) => {
            let arrived = signals.arrives_within(PAUSE);
            let arrived = arrived.map_err(Failure::file("signals"))?;
            Ok(arrived.then_some(Filled::End))
        }
        (Patience::Wait, None) => {
            thread::sleep(PAUSE);
            Ok(None)
        }
    }
}

/// The error of an input that is not read as text, with the command that makes text of it.
fn unread(source: &Source, file: &PlainBytes, foreign: &Foreign) -> Failure {
    let Foreign { name, command, .. } = foreign;
    let command = match file.codec() {
        None => (*command).to_owned(),
        Some(codec) if foreign.is_filter => {
            let from_pipe = command.replace("FILE", "-");
            format!("{} -dc FILE | {from_pipe}", codec.program())
        }
        Some(codec) => {
            let of_plain = command.replace("FILE", "PLAIN");
            format!("{} -dc FILE > PLAIN; {of_plain}", codec.program())
        }
    };
    let problem = format!(
        "{name}, which is not read: expected UTF-8 text on standard input, as from {command}"
    );
    Failure::file(source.name())(io::Error::new(ErrorKind::Unsupported, problem))
}

/// The failure of an input whose data cannot be decoded further, in an incomplete record of so many
/// bytes.
fn damaged(source: &Source, error: io::Error, incomplete: usize) -> Failure {
    let error = match incomplete {
        0 => error,
        _ => io::Error::new(
            error.kind(),
            format!("{error}; its last {incomplete} bytes, an incomplete record, are left out"),
        ),
    };
    Failure::file(source.name())(error)
}

/// The start of the first record longer than `longest`, among the chunk's records and the
/// incomplete one after them, which ends at `len` so far.
fn first_overlong(chunk: &Chunk, len: usize, format: &dyn Format, longest: usize) -> Option<usize> {
    // A chunk is rarely longer than the longest record allowed; only then search its records.
    if chunk.bytes.filled > longest {
        let mut ends = chunk.layout.ends.clone();
        let bytes = chunk.bytes.all();
        let header = format
            .facts()
            .file_header_end
            .filter(|_| chunk.input.is_first);
        let mut start = header.map_or(chunk.bytes.mark, |end| end(bytes));
        if ends.is_empty() {
            format.record_ends(bytes, start, &mut ends);
        }
        for (index, end) in ends.into_iter().enumerate() {
            if end - start > longest && !chunk.unkeyed.is_frame(index) {
                return Some(start);
            }
            start = end;
        }
    }
    (len - chunk.bytes.filled > longest).then_some(chunk.bytes.filled)
}
