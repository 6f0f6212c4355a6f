//! Reads the current input until a record is complete.

use std::io::{self, ErrorKind};
use std::ops::ControlFlow;

use super::cut::Cutter;
use super::sources::{InputSources, OpenInput};
use crate::chunk::{Chunk, UnreadBytes};
use crate::compression::codec::Detection;
use crate::compression::reader::{PlainBytes, loss_of_data};
use crate::failure::{self, Failure};
use crate::files::Source;
use crate::partial::{Loss, PartialInputs};
use crate::reading::{Filled, Read, SEARCHED_BYTES};
use crate::signals::Patience;
use crate::text_start::{Foreign, TextStart};

/// The bytes from which on it is worth its system calls to read the last ones alone.
const LEAST_DEFERRED: usize = 16 * SEARCHED_BYTES;

/// What was read into the buffer of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathered {
    /// The end of the bytes.
    pub(super) len: usize,
    /// Whether the input ends there.
    pub(super) at_end: bool,
    /// Whether the data behind is damaged.
    pub(super) is_cut: bool,
}

/// What a read brings.
enum Step {
    /// So many bytes more; 0 at the end.
    Bytes(usize),
    /// Nothing, since the data is damaged.
    Damage(io::Error),
    /// Nothing yet, in an input that is followed.
    Nothing,
    /// Nothing for this chunk.
    Left(Filled),
}

impl OpenInput {
    /// Reads what follows the tail until a whole record is there, whose end becomes that of the
    /// chunk, or the input ends, or a record is malformed or too long. Returns what becomes of a
    /// chunk that cannot be filled.
    pub(super) fn gather(
        &mut self,
        sources: &mut InputSources,
        cutter: &mut Cutter,
        partial: &mut PartialInputs,
        chunk: &mut Chunk,
        patience: Patience,
    ) -> Result<ControlFlow<Filled, Gathered>, Failure> {
        chunk.input.is_first = self.begins;
        let mut len = self.tail.len();
        // A tail was searched, unless it may be the start of a byte order mark.
        let may_be_mark = self.begins && cutter.format.facts().is_text;
        let extension = sources.current().extension();
        let is_open = TextStart::of(&self.tail, false, extension) == TextStart::Undecided;
        let mut searched = if may_be_mark && is_open { 0 } else { len };
        let sizes = cutter.sizes;
        sizes.make_room(&mut chunk.bytes.buffer, len, sources.current())?;
        chunk.bytes.buffer[..len].copy_from_slice(&self.tail);
        self.tail.clear();
        if let Some(end) = self.defer_read(sources, cutter, chunk, len) {
            chunk.bytes.filled = end;
            return Ok(ControlFlow::Continue(Gathered {
                len: end,
                at_end: false,
                is_cut: false,
            }));
        }
        let mut is_cut = false;
        let at_end = loop {
            let mut room = sizes.next_room(&mut chunk.bytes.buffer, len);
            if cutter.last_end.is_malformed_inside() {
                // Up to the longest record, then a byte more: whether a record is malformed or too
                // long does not depend on how much a read brings.
                let most = sizes.longest.saturating_sub(len).max(1).min(room.len());
                room = &mut room[..most];
            }
            let read = match self.read(sources, patience, room)? {
                Step::Bytes(read) => read,
                // Inside of an element, the next input would be part of it.
                Step::Damage(error) if cutter.last_end.may_be_set_aside() => {
                    // Records behind the damage are lost, also if it is a cut.
                    let failure = damaged(sources.current(), error, len - chunk.bytes.mark);
                    partial.leave(failure, Loss::Records)?;
                    is_cut = true;
                    break true;
                }
                Step::Damage(error) => {
                    return Err(Failure::file(sources.current().name())(error));
                }
                Step::Nothing => continue,
                Step::Left(filled) => {
                    self.tail.extend_from_slice(&chunk.bytes.buffer[..len]);
                    return Ok(ControlFlow::Break(filled));
                }
            };
            len += read;
            if may_be_mark {
                let extension = sources.current().extension();
                match TextStart::of(&chunk.bytes.buffer[..len], read == 0, extension) {
                    TextStart::Undecided => continue,
                    TextStart::Mark(end) => chunk.bytes.mark = end,
                    TextStart::Foreign(_) if sources.detection == Detection::Off => {}
                    TextStart::Foreign(foreign) => {
                        return Err(unread(sources.current(), &self.file, foreign));
                    }
                }
            }
            if read == 0 {
                self.check_end(sources, partial)?;
                break true;
            }
            let bytes = &chunk.bytes.buffer[chunk.bytes.mark..len];
            let from = searched.saturating_sub(chunk.bytes.mark);
            searched = len;
            if let Some(end) = cutter.last_end.find(bytes, from) {
                chunk.bytes.filled = chunk.bytes.mark + end;
                break false;
            }
            if cutter.last_end.is_malformed() {
                break true;
            }
            if len > sizes.longest {
                break false;
            }
            sizes.make_room(&mut chunk.bytes.buffer, len, sources.current())?;
        };
        if may_be_mark
            && sources.detection != Detection::Off
            && let Some(foreign) = TextStart::of_many(&chunk.bytes.buffer[..len])
        {
            return Err(unread(sources.current(), &self.file, foreign));
        }
        Ok(ControlFlow::Continue(Gathered {
            len,
            at_end,
            is_cut,
        }))
    }

    /// Leaves the read that fills a chunk, behind a tail of `len` bytes, to the reader of the chunk:
    /// only the last bytes of it are read, in which the last record ends. Returns that end; `None` if
    /// the chunk is to be read here.
    ///
    /// A turn to fill then takes the same time however long the chunks are. The chunk is what a read
    /// here would have made of it, without the start of the record behind it. That is read again.
    fn defer_read(
        &mut self,
        sources: &InputSources,
        cutter: &mut Cutter,
        chunk: &mut Chunk,
        len: usize,
    ) -> Option<usize> {
        let is_plain_part = !self.begins && self.length.is_some() && !sources.is_followed();
        if !cutter.defers_reads || !is_plain_part || !cutter.last_end.finds_in_part() {
            return None;
        }
        let sizes = cutter.sizes;
        let until = len + sizes.next_room(&mut chunk.bytes.buffer, len).len();
        if until - len < LEAST_DEFERRED || until > sizes.longest {
            return None;
        }
        let last = until - SEARCHED_BYTES;
        let bytes = &mut chunk.bytes.buffer[..until];
        let (file, offset) = self.file.read_last(until - len, &mut bytes[last..])?;
        // Not in the first of them: the byte before a newline is part of a terminator, maybe.
        let end = cutter.last_end.find(bytes, last + 1)?;
        self.file.advance(end - len).ok()?;
        chunk.bytes.unread = Some(UnreadBytes {
            file,
            offset,
            range: len..last,
        });
        Some(end)
    }

    /// Reads once. At the end of an input that is followed, waits for more.
    fn read(
        &mut self,
        sources: &mut InputSources,
        patience: Patience,
        room: &mut [u8],
    ) -> Result<Step, Failure> {
        let read = match self.file.read(patience, room) {
            Ok(Read::Bytes(read)) => read,
            Ok(Read::NotYet) => return Ok(Step::Left(Filled::NotYet)),
            Ok(Read::Signal) => return Ok(Step::Left(Filled::End)),
            Err(error) if loss_of_data(&error).is_some() => return Ok(Step::Damage(error)),
            Err(error) => return Err(Failure::file(sources.current().name())(error)),
        };
        if sources.is_complete(self, read)? || read > 0 {
            return Ok(Step::Bytes(read));
        }
        Ok(sources.wait(patience)?.map_or(Step::Nothing, Step::Left))
    }

    /// Notes what is wrong with an input at its end.
    fn check_end(
        &self,
        sources: &InputSources,
        partial: &mut PartialInputs,
    ) -> Result<(), Failure> {
        let source = sources.current();
        if let Some(length) = self.length.filter(|_| !sources.is_followed()) {
            warn_if_shrunk(source, &self.file, length)?;
        }
        if let Some(problem) = self.file.bytes_behind() {
            let failure = Failure::file(source.name())(io::Error::other(problem));
            partial.leave(failure, Loss::Nothing)?;
        }
        Ok(())
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
            "{}: was truncated while it was read: it had {} bytes and has {now} now",
            source.name(),
            length.max(read)
        ));
    }
    Ok(())
}
