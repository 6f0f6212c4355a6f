//! Writes runs of records straight from a chunk, many per system call.

use std::io::{self, ErrorKind, IoSlice, Seek, SeekFrom, Write};
use std::mem;

use echoless::SpecError;
use echoless_ber::ts32297;
use echoless_records::chunk::Chunk;
use echoless_records::compression::compressor::FrameStart;
use echoless_records::failure::Failure;
use echoless_records::files::{ContentSample, Opened};
use echoless_records::keys::SharedFormat;
use echoless_records::terminators::known_terminator;
use serde::{Deserialize, Serialize};

use super::compressed::CompressedOutput;
use super::lines::Lines;
use super::open_elements::{OpenElements, Rewrite};
use super::runs::Runs;

/// The number of runs per system call. No system accepts more than 1024.
const RUNS_AT_ONCE: usize = 512;

/// A file that records are written to. It does not buffer: every call writes all of its records.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(super) target: Opened,
    /// Whether a reader that closes the pipe is no error.
    main_stream: bool,
    /// The format that determines whether a record has its terminator; `None` if records need none.
    format: Option<SharedFormat>,
    /// The terminator to write before the next record, because the last one lacks its own.
    owed: Option<&'static [u8]>,
    bytes: u64,
    compressed: Option<CompressedOutput>,
    elements: Box<OpenElements>,
    /// Whether the output has its begin, with the header, from an earlier run or from this one.
    goes_on: bool,
    /// Whether a later run can go on with the output.
    has_state: bool,
    /// Whether the file was truncated to where it begins or goes on.
    is_begun: bool,
    /// Plain bytes for a compressed file, which follow the header.
    carried: Vec<u8>,
    /// The terminator that the last of them lacks.
    owed_behind: Option<&'static [u8]>,
    /// Whether what was found under its name is not what was written, or may be cut: nothing is
    /// written to it, and the next run does not take it for the output of a killed one.
    pub(super) is_refused: bool,
    /// The length of the file when it was opened to append.
    found: u64,
    /// The length of the file when this run began to write it, or to go on behind others.
    pub(super) from: u64,
    /// The bytes that the run has written before that, to this file or another one.
    bytes_before: u64,
    /// The bytes that the run has written up to the position that was last asked for.
    pub(super) committed: u64,
    /// The file as it was closed, in a run with a state.
    pub(super) closed: Option<ContentSample>,
}

/// Where an output can go on after a restart.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::dedup) struct SinkPosition {
    /// The length of the file.
    pub(in crate::dedup) bytes: u64,
    /// The terminator that the last record lacks.
    owed: Option<String>,
    /// The plain bytes of the frame that is not complete in a compressed file of `bytes` bytes.
    #[serde(skip)]
    pub(in crate::dedup) plain: Vec<u8>,
    /// Whether a header must come in front of these, in a file that begins anew.
    #[serde(default)]
    behind_header: bool,
}

impl SinkPosition {
    /// The position in an empty file that takes the place of a lost one: of that, only the records
    /// of the frame that was not complete are known.
    pub(super) fn unfinished(&self) -> Self {
        Self {
            bytes: 0,
            owed: self.owed.clone().filter(|_| !self.plain.is_empty()),
            plain: self.plain.clone(),
            behind_header: self.behind_header || self.bytes > 0,
        }
    }
}

impl Sink {
    /// A sink for the main output of records.
    pub(crate) fn main(target: Opened, format: Option<SharedFormat>) -> Self {
        Self {
            main_stream: target.is_stdout,
            ..Self::side(target, format)
        }
    }

    /// A sink for another output. It must be complete, so a reader that closes the pipe is an
    /// error.
    pub(crate) fn side(target: Opened, format: Option<SharedFormat>) -> Self {
        Self {
            target,
            main_stream: false,
            format,
            owed: None,
            bytes: 0,
            compressed: None,
            elements: Box::default(),
            goes_on: false,
            has_state: false,
            is_begun: false,
            carried: Vec::new(),
            owed_behind: None,
            is_refused: false,
            found: 0,
            from: 0,
            bytes_before: 0,
            committed: 0,
            closed: None,
        }
    }

    /// This sink with compressed records, if `compressed` is given.
    pub(super) fn compressed(self, compressed: Option<CompressedOutput>) -> Self {
        Self { compressed, ..self }
    }

    /// Opens the file for a run with a state: to append to it, and to read what it holds.
    pub(super) fn open_to_append(&mut self) -> Result<(), Failure> {
        self.target.open_to_append()?;
        self.found = self.length()?;
        Ok(())
    }

    /// Goes on with what earlier runs wrote, or begins an output that later ones can go on with.
    pub(super) fn go_on(&mut self, position: SinkPosition) {
        let SinkPosition {
            bytes,
            owed,
            plain,
            behind_header,
        } = position;
        self.has_state = true;
        self.goes_on = bytes > 0 || !plain.is_empty() && !behind_header;
        (self.bytes, self.from) = (bytes, bytes);
        let owed = owed.as_deref().and_then(known_terminator);
        (self.owed, self.owed_behind) = match behind_header {
            true => (None, owed),
            false => (owed, None),
        };
        if let Some(compressed) = &mut self.compressed {
            let (plain, carried) = match behind_header {
                true => (Vec::new(), plain),
                false => (plain, Vec::new()),
            };
            self.carried = carried;
            compressed.in_frames(FrameStart {
                file_bytes: bytes,
                plain,
            });
        }
    }

    /// The bytes of the run that were written before it was started again.
    pub(super) fn count_from(&mut self, bytes: u64) {
        self.bytes_before = bytes;
    }

    /// Follows what other programs have done to the file since it was written. One that was
    /// truncated or appended to is appended to, one that was removed or renamed is begun anew under
    /// its name. Returns whether there was any of this, so that a commit must come before the next
    /// record. Fails if a frame was cut, or another file has its name: the output cannot go on.
    pub(super) fn follow(&mut self) -> Result<bool, Failure> {
        if self.is_refused {
            return Err(self.refused("is another file than the one that was written"));
        }
        if !self.is_followed() {
            return Ok(false);
        }
        if !self.target.has_moved()? {
            return self.follow_length();
        }
        // The file that it was gets all that was written.
        let finished = (self.compressed.as_mut()).map_or(Ok(()), CompressedOutput::finish);
        let written = finished.and_then(|()| match self.target.file.durable()? {
            Some(file) => file.sync_data(),
            None => Ok(()),
        });
        written.map_err(Failure::file(self.target.name.as_str()))?;
        self.check_followed()?;
        let end = self.idle_end().unwrap_or_default();
        self.target.open_to_append()?;
        let length = self.length()?;
        if length != 0 && length != end {
            // It is open now, and must not look as if it had been written.
            self.is_refused = true;
            return Err(self.refused(&format!(
                "is another file, of {length} bytes, than the one that was written"
            )));
        }
        self.go_on_behind(length);
        let Some(compressed) = &mut self.compressed else {
            return Ok(true);
        };
        compressed.in_frames(FrameStart {
            file_bytes: length,
            plain: Vec::new(),
        });
        let begun = compressed.begin(&self.target.file, true);
        begun.map_err(Failure::file(self.target.name.as_str()))?;
        Ok(true)
    }

    /// Whether other programs may change the file while it is written: a regular one that is begun
    /// and not closed.
    fn is_followed(&self) -> bool {
        self.has_state
            && self.is_begun
            && self.target.id.is_some()
            && self.closed.is_none()
            && !self.is_refused
    }

    /// As [`follow`](Self::follow), of the file under any name.
    fn follow_length(&mut self) -> Result<bool, Failure> {
        // The thread that compresses compares them itself while it writes.
        if let Some(end) = self.idle_end() {
            let length = self.length()?;
            match &self.compressed {
                _ if length == end => {}
                None => {
                    self.go_on_behind(length);
                    return Ok(true);
                }
                Some(_) if length < end => {
                    return Err(self.refused("was cut while it was written"));
                }
                Some(compressed) => compressed.note_appended(),
            }
        }
        let appended_at = (self.compressed.as_ref()).and_then(CompressedOutput::appended_at);
        match appended_at {
            None => Ok(false),
            // The next run finds a file that is longer, and leaves it as it is.
            Some(at) => self.sample(at).map(|()| true),
        }
    }

    /// Checks that the output has what was written, without the bytes of another program in between.
    pub(super) fn check_followed(&self) -> Result<(), Failure> {
        match (self.compressed.as_ref()).and_then(CompressedOutput::appended_at) {
            Some(_) => Err(self.refused("was appended to while it was written")),
            None => Ok(()),
        }
    }

    /// Goes on behind what another program has left of the file, or put there.
    fn go_on_behind(&mut self, length: u64) {
        self.bytes_before = self.bytes_out();
        (self.bytes, self.from) = (length, length);
        if length == 0 {
            self.owed = None;
            self.goes_on = false;
        }
    }

    fn length(&self) -> Result<u64, Failure> {
        let metadata = self.target.file.metadata();
        let metadata = metadata.map_err(Failure::file(self.target.name.as_str()))?;
        Ok(metadata.len())
    }

    fn refused(&self, problem: &str) -> Failure {
        let problem = format!("{problem}: move it away to begin another one");
        Failure::file(self.target.name.as_str())(io::Error::other(problem))
    }

    /// The length that the file should have; `None` while a thread writes to it.
    fn idle_end(&self) -> Option<u64> {
        match &self.compressed {
            None => Some(self.bytes),
            Some(compressed) => compressed.idle_end(),
        }
    }

    /// Where the output could go on after a restart. Fails if an earlier write to a compressed file
    /// has.
    pub(super) fn position(&mut self) -> Result<SinkPosition, Failure> {
        let behind_header = !self.carried.is_empty();
        let owed = match behind_header {
            true => self.owed_behind,
            false => self.owed,
        };
        let owed = owed.map(|owed| String::from_utf8_lossy(owed).into());
        let start = match &mut self.compressed {
            None => FrameStart {
                file_bytes: self.bytes,
                plain: Vec::new(),
            },
            Some(compressed) => compressed
                .frame_start()
                .map_err(Failure::writing(&self.target.name, self.main_stream))?,
        };
        self.committed = self.bytes_out();
        Ok(SinkPosition {
            bytes: start.file_bytes,
            owed,
            plain: match behind_header {
                true => self.carried.clone(),
                false => start.plain,
            },
            behind_header,
        })
    }

    /// Truncates the file, to nothing or to where it goes on. Call it only once nothing can reject
    /// the run any more.
    pub(crate) fn truncate(&mut self) -> Result<(), Failure> {
        if self.is_begun {
            return Ok(());
        }
        if self.has_state && self.target.id.is_some() {
            // What others have appended since it was checked stays.
            if self.found > self.bytes {
                if self.length()? != self.found {
                    self.is_refused = true;
                    return Err(self.refused("was changed before it was cut"));
                }
                self.target.cut_to(self.bytes)?;
            }
        } else {
            self.target.truncate()?;
        }
        self.is_begun = true;
        match &mut self.compressed {
            Some(compressed) => compressed
                .begin(
                    &self.target.file,
                    self.has_state && self.target.id.is_some(),
                )
                .map_err(Failure::file(self.target.name.as_str())),
            None => Ok(()),
        }
    }

    /// Completes elements around the last record that was written, and a compressed file, and
    /// closes the file.
    pub(crate) fn close(&mut self) -> Result<(), Failure> {
        let ended = self.end_elements();
        let compressed = self.compressed.as_mut().map(CompressedOutput::finish);
        let completed = compressed.unwrap_or(Ok(()));
        let found = self.sample_closed();
        let closed = self.target.file.close();
        let closed = completed
            .and(closed)
            .map_err(Failure::writing(&self.target.name, self.main_stream));
        let closed = ended.and(closed).and(found);
        if closed.is_err() {
            // What a later run may find is not known.
            self.closed = None;
        }
        closed
    }

    /// Notes what a later run finds of a file that is about to be closed.
    fn sample_closed(&mut self) -> Result<(), Failure> {
        if !self.is_followed() {
            return Ok(());
        }
        self.follow_length()?;
        if !self.is_followed() {
            return Ok(());
        }
        let length = self.length()?;
        if self.idle_end() != Some(length) {
            self.is_refused = true;
            return Err(self.refused("was appended to while it was written"));
        }
        self.sample(length)
    }

    /// Notes what the file holds up to this length as all of it.
    fn sample(&mut self, length: u64) -> Result<(), Failure> {
        let sampled = self.target.file.durable().and_then(|file| {
            let sample = |file| ContentSample::of(&file, length);
            file.map(sample).transpose()
        });
        self.closed = sampled.map_err(Failure::file(self.target.name.as_str()))?;
        Ok(())
    }

    /// Puts a closed file in the place of the one that it replaces, if it does.
    pub(crate) fn commit(&mut self) -> Result<(), Failure> {
        self.target.commit()
    }

    /// The name of the file that this one would replace, if it still does not.
    pub(crate) fn uncommitted(&self) -> Option<&str> {
        (self.target.is_uncommitted()).then_some(self.target.name.as_str())
    }

    /// The number of bytes of records that the run has written, headers included, compressed as
    /// they are in the file. A compressed file has all of them once it is closed.
    pub(crate) fn bytes_out(&self) -> u64 {
        let written = match &self.compressed {
            None => self.bytes.saturating_sub(self.from),
            Some(compressed) => compressed.written(),
        };
        self.bytes_before + written
    }

    /// Writes the records that a lost file has left, behind the header.
    pub(super) fn write_carried(&mut self) -> Result<(), Failure> {
        let carried = mem::take(&mut self.carried);
        match &mut self.compressed {
            Some(compressed) if !carried.is_empty() => {
                let header_end = IoSlice::new(self.owed.unwrap_or_default());
                self.owed = self.owed_behind.take();
                compressed
                    .write_slices(&[header_end, IoSlice::new(&carried)])
                    .map_err(Failure::writing(&self.target.name, self.main_stream))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Writes the runs of a chunk's records. If the last one lacks its terminator, that of the
    /// chunk is written before any later record.
    pub(crate) fn write_runs(&mut self, chunk: &Chunk, runs: Runs<'_>) -> Result<(), Failure> {
        let begins_list = self.elements.begins_list();
        if !chunk.layout.edges.is_empty() || self.elements.holds_back() || begins_list {
            let rewritable = self.rewritable();
            self.elements.append(chunk, runs, rewritable);
            return self.write_held(rewritable);
        }
        // Only the last record of such an input may need a terminator.
        let last = (chunk.input.has_joined_values).then(|| runs.clone().last());
        let runs_end = last.flatten().map_or(0, |run| run.end);
        let bytes = runs.clone().map(|records| chunk.bytes_of(records));
        let lengths = runs.flatten().map(|record| {
            let length = chunk.layout.ends[record] - chunk.record_start(record);
            length as u64
        });
        let ends_chunk = || runs_end == chunk.records();
        let terminator = if chunk.input.has_joined_values && !ends_chunk() {
            b""
        } else {
            chunk.layout.terminator
        };
        self.write_records(bytes, lengths, terminator)
    }

    /// Ends the elements that are open.
    fn end_elements(&mut self) -> Result<(), Failure> {
        if self.elements.is_outside() {
            return Ok(());
        }
        let rewritable = self.rewritable();
        self.elements.end(rewritable);
        self.write_held(rewritable)
    }

    /// Writes what need not be held back any more.
    fn write_held(&mut self, rewritable: Option<u64>) -> Result<(), Failure> {
        let (held, rewrites) = self.elements.release(rewritable);
        let runs = (!held.is_empty()).then_some(&held[..]);
        let written = self.write_records(runs, [held.len() as u64], b"");
        if written.is_err() && rewritable.is_none() {
            self.elements.give_up();
        }
        written?;
        self.rewrite(&rewrites)
            .map_err(Failure::writing(&self.target.name, self.main_stream))
    }

    fn rewrite(&mut self, rewrites: &[Rewrite]) -> io::Result<()> {
        let file = &mut self.target.file;
        for Rewrite { at, octets } in rewrites {
            file.seek(SeekFrom::Start(*at))?;
            file.write_all(octets)?;
        }
        if !rewrites.is_empty() {
            file.seek(SeekFrom::Start(self.bytes))?;
        }
        Ok(())
    }

    /// The position in the output, if what is written can be rewritten.
    fn rewritable(&self) -> Option<u64> {
        let metadata = self.target.file.metadata();
        let is_file = metadata.is_ok_and(|metadata| metadata.is_file());
        let is_own = !self.target.is_stdout && self.compressed.is_none();
        (is_file && is_own).then_some(self.bytes)
    }

    /// Writes the header of the stream.
    pub(crate) fn write_header(
        &mut self,
        header: &[u8],
        terminator: &'static [u8],
    ) -> Result<(), Failure> {
        if self.goes_on {
            return Ok(());
        }
        self.write_records([header], [header.len() as u64], terminator)?;
        // A file that another program empties gets it again.
        self.goes_on = self.has_state;
        Ok(())
    }

    /// Writes a byte order mark in front of the first record.
    pub(crate) fn write_mark(&mut self, mark: &[u8]) -> Result<(), Failure> {
        if self.goes_on {
            return Ok(());
        }
        let written = self.write_records([mark], [mark.len() as u64], b"");
        // It is no record that lacks its terminator.
        self.owed = None;
        written
    }

    /// Checks that [`fix_header`](Self::fix_header) can rewrite the output.
    pub(crate) fn check_rewritable(&self) -> Result<(), Failure> {
        if self.rewritable().is_some() {
            return Ok(());
        }
        let allowed = "regular files as outputs, such as -o FILE";
        Err(SpecError::new("--fix-header", &self.target.name, allowed).into())
    }

    /// Rewrites the length of the file and the number of records in the file header of TS 32.297,
    /// if anything was written.
    pub(crate) fn fix_header(&mut self, records: u64) -> Result<(), Failure> {
        if self.bytes == 0 {
            return Ok(());
        }
        let name = &self.target.name;
        let Some(counts) = ts32297::counts(self.bytes, records) else {
            return Err(Failure::Capture {
                name: name.clone(),
                problem: format!(
                    "the length of {} bytes does not fit in the 32 bits of the file header",
                    self.bytes
                ),
            });
        };
        let file = &mut self.target.file;
        let written = counts.iter().try_for_each(|(offset, octets)| {
            file.seek(SeekFrom::Start(*offset as u64))?;
            file.write_all(octets)
        });
        written.map_err(Failure::file(name.as_str()))
    }

    /// Writes some of a chunk's records, ascending.
    pub(crate) fn write_each(
        &mut self,
        chunk: &Chunk,
        records: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Failure> {
        let bytes = |record| chunk.bytes_of(record..record + 1);
        let format = self.format.as_deref();
        let alone = |record| format.and_then(|format| format.alone(bytes(record)));
        let mut lines = Lines::default();
        for content in records.clone().filter_map(alone) {
            lines.push(content);
        }
        if !lines.lengths.is_empty() {
            return self.write_lines(&lines, b"");
        }
        let lengths = records.clone().map(|record| bytes(record).len() as u64);
        self.write_records(records.clone().map(bytes), lengths, chunk.layout.terminator)
    }

    /// Writes lines, or records, that were made for the output.
    pub(crate) fn write_lines(
        &mut self,
        lines: &Lines,
        terminator: &'static [u8],
    ) -> Result<(), Failure> {
        let runs = (!lines.bytes.is_empty()).then_some(&lines.bytes[..]);
        self.write_records(runs, lines.lengths.iter().copied(), terminator)
    }

    /// Writes blocks of a capture with these lengths.
    pub(super) fn write_blocks(&mut self, blocks: &[u8], lengths: &[u64]) -> Result<(), Failure> {
        let runs = (!blocks.is_empty()).then_some(blocks);
        self.write_records(runs, lengths.iter().copied(), b"")
    }

    /// Goes on in another file, behind one that is closed.
    pub(super) fn replace(&mut self, target: Opened) {
        self.target = target;
    }

    /// Writes bytes that are no record.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.target
            .file
            .write_all(bytes)
            .map_err(Failure::writing(&self.target.name, self.main_stream))
    }

    /// Writes runs of adjacent records with these lengths.
    fn write_records<'a>(
        &mut self,
        runs: impl IntoIterator<Item = &'a [u8]>,
        lengths: impl IntoIterator<Item = u64>,
        terminator: &'static [u8],
    ) -> Result<(), Failure> {
        let (before, owed) = (self.bytes, self.owed);
        self.try_write(runs.into_iter(), terminator)
            .map_err(|error| {
                self.remove_partial(owed, lengths.into_iter(), self.bytes - before);
                Failure::writing(&self.target.name, self.main_stream)(error)
            })
    }

    fn try_write<'a>(
        &mut self,
        mut runs: impl Iterator<Item = &'a [u8]>,
        terminator: &'static [u8],
    ) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); RUNS_AT_ONCE];
        loop {
            // Records must not merge: supply a terminator that the input lacks once another record
            // follows.
            let terminators = usize::from(self.owed.is_some());
            slices[0] = IoSlice::new(self.owed.unwrap_or_default());
            let mut filled = terminators;
            let mut last = None;
            for (slice, run) in slices[terminators..].iter_mut().zip(&mut runs) {
                *slice = IoSlice::new(run);
                last = Some(run);
                filled += 1;
            }
            let Some(last) = last else {
                return Ok(());
            };
            let slices = &mut slices[..filled];
            match &mut self.compressed {
                Some(compressed) => compressed.write_slices(slices)?,
                None => write_slices(&mut self.target.file, slices, &mut self.bytes)?,
            }
            let format = self.format.as_ref();
            self.owed = format.and_then(|format| format.missing_end(last, terminator));
        }
    }

    /// Removes the part of a record that a failed call left at the end of a regular file, after
    /// `written` bytes of the terminator that was `owed` before the call and of its records. A
    /// compressed file cannot be repaired: it stays cut.
    ///
    /// An error here is ignored: the caller reports the failure of the write.
    fn remove_partial(
        &mut self,
        owed: Option<&[u8]>,
        lengths: impl Iterator<Item = u64>,
        written: u64,
    ) {
        if self.compressed.is_some() {
            return;
        }
        let partial = partial_bytes(owed, lengths, written);
        let Ok(metadata) = self.target.file.metadata() else {
            return;
        };
        let at_end = self.target.file.stream_position().ok() == Some(metadata.len());
        let is_removable = partial > 0 && metadata.is_file() && at_end;
        if is_removable && self.target.file.set_len(metadata.len() - partial).is_ok() {
            self.bytes -= partial;
        }
    }
}

/// The number of the `written` bytes that belong to an incomplete record, or terminator.
fn partial_bytes(owed: Option<&[u8]>, lengths: impl Iterator<Item = u64>, written: u64) -> u64 {
    let owed = owed.map(|terminator| terminator.len() as u64);
    let mut left = written;
    for length in owed.into_iter().chain(lengths) {
        if left < length {
            return left;
        }
        left -= length;
    }
    0
}

/// Writes all slices. Adds the number of bytes written to `bytes`, also if writing fails halfway.
fn write_slices(
    file: &mut impl Write,
    mut slices: &mut [IoSlice<'_>],
    bytes: &mut u64,
) -> io::Result<()> {
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                *bytes += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_bytes_are_those_after_the_last_whole_record() {
        // The records of "ab\n\ncd\n" and "e\nf".
        let lengths = [3, 1, 3, 2, 1];
        let expected = [0, 1, 2, 0, 0, 1, 2, 0, 1, 0, 0];
        for (written, expected) in (0..).zip(expected) {
            let partial = |owed, written| partial_bytes(owed, lengths.into_iter(), written);
            let owed = Some(b"\r\n".as_slice());
            assert_eq!(partial(None, written), expected, "{written}");
            assert_eq!(partial(owed, written + 2), expected, "{written}");
            assert_eq!(partial(owed, 1), 1);
        }
    }

    /// Accepts two bytes per call, is interrupted at every second call, and is full after `room`
    /// bytes.
    struct Device {
        taken: Vec<u8>,
        room: usize,
        interrupt: bool,
    }

    impl Write for Device {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupt = !self.interrupt;
            if self.interrupt {
                return Err(ErrorKind::Interrupted.into());
            }
            let taken = bytes.len().min(2).min(self.room - self.taken.len());
            if taken == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.taken.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn short_writes_are_continued_and_counted() {
        for (room, expected) in [(100, Ok(())), (9, Ok(())), (8, Err(ErrorKind::StorageFull))] {
            let mut device = Device {
                taken: Vec::new(),
                room,
                interrupt: false,
            };
            let mut slices = [b"abc".as_slice(), b"d", b"efghi"].map(IoSlice::new);
            let mut bytes = 0;
            let outcome = write_slices(&mut device, &mut slices, &mut bytes);
            assert_eq!(outcome.map_err(|error| error.kind()), expected);
            assert_eq!(device.taken, b"abcdefghi"[..room.min(9)]);
            assert_eq!(bytes, device.taken.len() as u64);
        }
    }
}
