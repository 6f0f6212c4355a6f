//! Reads the current input until a record is complete.

use std::io::{self, ErrorKind, Seek};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::cut::Cutter;
use super::sources::{InputSources, NextPart, OpenInput};
use crate::chunk::Chunk;
use crate::chunk::unread_part::{PartRange, UnreadPart, cut_at_record};
use crate::compression::codec::Detection;
use crate::compression::reader::{PlainBytes, loss_of_data};
use crate::failure::{self, Failure};
use crate::files::Source;
use crate::partial::{Loss, PartialInputs};
use crate::reading::{Filled, Read, SEARCHED_BYTES, read_at};
use crate::signals::Patience;
use crate::text_start::{Foreign, TextStart};

/// A part has at least the bytes of a chunk divided by this: its system calls cost more than it
/// gains if a read is to bring few bytes.
const LEAST_PART_DIVISOR: usize = 16;

/// The bytes in front of a part are those of a chunk divided by this.
const FRONT_DIVISOR: usize = 64;

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

    /// Fills the chunk with a part of the input that its reader reads, if possible. Else, the
    /// input goes on behind the last record of such parts; the stream ends if the thread that
    /// finds it has ended.
    ///
    /// A turn to fill takes the same time however long the chunks are, but for the one behind the
    /// last part, which waits for the threads of the parts.
    pub(super) fn defer(
        &mut self,
        sources: &InputSources,
        cutter: &mut Cutter,
        chunk: &mut Chunk,
    ) -> Result<ControlFlow<Filled>, Failure> {
        if self.defer_part(sources, cutter, chunk)? {
            return Ok(ControlFlow::Break(Filled::Chunk));
        }
        if let Some(part) = self.part.take() {
            let Ok(cut) = part.cut.recv() else {
                return Ok(ControlFlow::Break(Filled::End));
            };
            let back = self.file.go_back(cut.record, part.offset - cut.record);
            back.map_err(Failure::file(sources.current().name()))?;
            cutter.last_end.restart(false);
            cutter.terminator = cut.terminator;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Fills the chunk with the next part of the input, unless it is to be read here. Only the last
    /// bytes of it are read, for an estimate of its records. Returns whether it is filled.
    fn defer_part(
        &mut self,
        sources: &InputSources,
        cutter: &Cutter,
        chunk: &mut Chunk,
    ) -> Result<bool, Failure> {
        let sizes = cutter.sizes;
        let is_deferred = cutter.defers_reads && !self.begins && !sources.is_followed();
        let states = cutter.last_end.states();
        let (Some(length), Some(file), false) =
            (self.length, self.file.divisible(), states.is_empty())
        else {
            return Ok(false);
        };
        if !is_deferred {
            return Ok(false);
        }
        let file = Arc::clone(file);
        let offset = match &self.part {
            Some(part) => part.offset,
            None => {
                let position = (&*file).stream_position();
                let position = position.map_err(Failure::file(sources.current().name()))?;
                position - self.tail.len() as u64
            }
        };
        // What the first record has in front of the cut is often no more than this.
        let cut = ((sizes.usual / FRONT_DIVISOR) as u64).min(offset) as usize;
        sizes.make_room(&mut chunk.bytes.buffer, cut, sources.current())?;
        let until = cut + sizes.next_room(&mut chunk.bytes.buffer, cut).len();
        let part_bytes = (until - cut) as u64;
        if cut == 0
            || until - cut < sizes.usual / LEAST_PART_DIVISOR
            || until > sizes.longest
            || offset + part_bytes > length
        {
            return Ok(false);
        }
        let searched = SEARCHED_BYTES.min((until - cut) / 2);
        let range = PartRange {
            offset: offset - cut as u64,
            cut,
            read_from: until - searched,
            until,
        };
        let buffer = &mut chunk.bytes.buffer[..until];
        let sample = &mut buffer[range.read_from..];
        let (read, _) = read_at(&file, sample, offset + part_bytes - searched as u64);
        if read < searched {
            return Ok(false);
        }
        let before = match self.part.take() {
            Some(part) => part.cut,
            None => cut_at_record(offset, cutter.terminator),
        };
        let (format, longest) = (&*cutter.format, sizes.longest);
        let (part, behind) = UnreadPart::new(file, range, buffer, format, longest, before);
        self.part = Some(NextPart {
            offset: offset + part_bytes,
            cut: behind,
        });
        self.file.count_part(until - cut, self.tail.len());
        self.tail.clear();
        chunk.bytes.filled = until;
        chunk.bytes.unread = Some(part);
        Ok(true)
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
