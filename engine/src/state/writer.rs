//! Writing sections one after the other.

use std::io::Write;

use super::error::StateError;
use super::header::Header;
use super::section::{
    BLOCK_HEAD, COMMIT_HEAD, KEYS_HEAD, Kind, MOST_BLOCK_LINES, MOST_COMMIT_BYTES, MOST_KEYS, Mark,
    RUN_BYTES, SectionBuffer, VERSION, is_empty,
};
use crate::error::SpecError;
use crate::filters::lines::Progress;
use crate::filters::{Batch, Ticks};
use crate::hash::KeyHash;
use crate::memory::{LINE_BYTES, Line};

/// Writes a state, or a segment of a journal, section by section.
///
/// Each section is one call of [`Write::write_all`]: a file needs no buffer, unless the sections
/// are small. After an error the end of the output is unknown, and the writer is of no use.
///
/// # Examples
/// A filter that was empty at the beginning, and the keys that it observed.
/// ```
/// use echoless::state::{Header, Replay, StateReader, StateWriter};
/// use echoless::{Batch, Filter, FilterSpec, KeyHasher, LineFilter};
/// let hasher = KeyHasher::seeded(0);
/// let spec: FilterSpec = "rowlru:form=line,memory=1KiB".parse()?;
/// let header = Header::new(&spec, &hasher)?.starts_empty(true);
/// let mut filter = spec.build_lines()?;
///
/// let mut writer = StateWriter::new(Vec::new(), &header)?;
/// let keys = ["a", "b", "a"].map(|key| hasher.hash(key));
/// let duplicates = keys.map(|key| filter.observe_one(key).is_duplicate());
/// assert_eq!(duplicates, [false, false, true]);
/// writer.append_keys(Batch::new(&keys), 0)?;
/// writer.append_commit(filter.progress(), b"3 lines are read")?;
/// let file = writer.into_output();
///
/// let mut reader = StateReader::open(&file[..])?;
/// let mut replay = Replay::new(reader.header(), 1)?;
/// while let Some(section) = reader.read_section()? {
///     replay.apply(&section)?;
/// }
/// assert_eq!(replay.filters()[0].lines(), filter.lines());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StateWriter<W> {
    output: W,
    mark: Mark,
    buffer: SectionBuffer,
    /// Of keys of one tick: the tick, and how many there are.
    runs: Vec<(u64, u32)>,
}

impl<W: Write> StateWriter<W> {
    /// Writes the beginning of a file and its header.
    ///
    /// # Errors
    /// [`StateError::Io`] if `output` fails; [`StateError::Build`] if a text of the header is too
    /// long.
    pub fn new(output: W, header: &Header) -> Result<Self, StateError> {
        let payload = header.encode()?;
        let (prelude, mark) = Mark::prelude(VERSION);
        let mut writer = Self::resume(output, mark);
        writer.output.write_all(&prelude)?;
        let section = writer.buffer.begin(Kind::Header, payload.len());
        section.copy_from_slice(&payload);
        writer.write()?;
        Ok(writer)
    }

    /// Goes on behind a section that was read or written before. `output` must be at
    /// [`Mark::position`] of its file, and nothing behind it.
    pub const fn resume(output: W, mark: Mark) -> Self {
        Self {
            output,
            mark,
            buffer: SectionBuffer::new(),
            runs: Vec::new(),
        }
    }

    /// Appends the content of up to [`MOST_BLOCK_LINES`] lines, from number `first` of the whole
    /// filter on, which were [copied](crate::LineFilter::copy_lines) at the clock `tick`, as in
    /// [`Progress::tick`]. Empty ones take no bytes.
    ///
    /// A block is whole [buckets](crate::LineFilter::bucket_lines), so that the keys after it find
    /// all that they read; a reader rejects others.
    ///
    /// # Errors
    /// [`StateError::Io`] if the output fails.
    ///
    /// # Panics
    /// If there are no lines, or more.
    pub fn append_block(
        &mut self,
        first: u64,
        tick: u64,
        lines: &[Line],
    ) -> Result<(), StateError> {
        self.append_block_with(first, tick, lines.len(), |buffer| {
            buffer.copy_from_slice(lines);
        })
    }

    /// As [`append_block`](Self::append_block), of `count` lines that `copy` writes into the buffer
    /// of the section.
    pub(super) fn append_block_with(
        &mut self,
        first: u64,
        tick: u64,
        count: usize,
        copy: impl FnOnce(&mut [Line]),
    ) -> Result<(), StateError> {
        assert!(
            (1..=MOST_BLOCK_LINES).contains(&count),
            "a block of {count} lines"
        );
        let length = BLOCK_HEAD + count * LINE_BYTES as usize;
        self.buffer.begin(Kind::Block, length);
        copy(self.buffer.block_lines_mut());
        if is_empty(self.buffer.block_lines()) {
            self.buffer.begin(Kind::Block, BLOCK_HEAD);
        }
        self.buffer.convert_lines();
        let payload = self.buffer.payload_mut();
        payload[..8].copy_from_slice(&first.to_le_bytes());
        payload[8..12].copy_from_slice(&(count as u32).to_le_bytes());
        payload[12..BLOCK_HEAD].copy_from_slice(&tick.to_le_bytes());
        self.write()
    }

    /// Appends keys in the order in which they were observed, with their ticks if the filter has a
    /// clock, and the clock after them; 0 without one. Many keys become several sections.
    ///
    /// The keys of a filter whose lines [duplicates do not
    /// change](crate::LineFilter::duplicates_change_lines) can be the fresh ones alone. The tick of
    /// a key is then the clock at it: a duplicate that is left out has moved the clock for late
    /// keys behind it.
    ///
    /// # Errors
    /// [`StateError::Io`] if the output fails.
    pub fn append_keys(&mut self, batch: Batch<'_>, clock: u64) -> Result<(), StateError> {
        let (keys, ticks) = (batch.keys(), batch.ticks());
        let mut from = 0;
        loop {
            let end = keys.len().min(from + MOST_KEYS);
            let count = (end - from) as u32;
            self.runs.clear();
            match ticks {
                Ticks::Unmoved => {}
                Ticks::One(_) if count == 0 => {}
                Ticks::One(tick) => self.runs.push((tick, count)),
                Ticks::Each(ticks) => {
                    let runs = ticks[from..end].chunk_by(|one, next| one == next);
                    self.runs.extend(runs.map(|run| (run[0], run.len() as u32)));
                }
            }
            // The clock moves with the last of the sections.
            let clock = if end < keys.len() { 0 } else { clock };
            self.append_some_keys(&keys[from..end], clock)?;
            from = end;
            if from == keys.len() {
                return Ok(());
            }
        }
    }

    fn append_some_keys(&mut self, keys: &[KeyHash], clock: u64) -> Result<(), StateError> {
        let count = self.runs.len();
        let length = KEYS_HEAD + count * RUN_BYTES + keys.len() * 8;
        let payload = self.buffer.begin(Kind::Keys, length);
        let (head, rest) = payload.split_at_mut(KEYS_HEAD);
        head[..4].copy_from_slice(&(keys.len() as u32).to_le_bytes());
        head[4..8].copy_from_slice(&(count as u32).to_le_bytes());
        head[8..].copy_from_slice(&clock.to_le_bytes());
        let (run_bytes, key_bytes) = rest.split_at_mut(count * RUN_BYTES);
        for (bytes, (tick, keys)) in run_bytes.chunks_exact_mut(RUN_BYTES).zip(&self.runs) {
            bytes[..8].copy_from_slice(&tick.to_le_bytes());
            bytes[8..].copy_from_slice(&keys.to_le_bytes());
        }
        for (bytes, key) in key_bytes.as_chunks_mut().0.iter_mut().zip(keys) {
            *bytes = key.get().to_le_bytes();
        }
        self.write()
    }

    /// Appends a point at which everything before belongs together: the counts and the clock, and
    /// up to [`MOST_COMMIT_BYTES`] bytes of the caller.
    ///
    /// # Errors
    /// [`StateError::Build`] if there are more bytes; [`StateError::Io`] if the output fails.
    pub fn append_commit(&mut self, progress: Progress, bytes: &[u8]) -> Result<(), StateError> {
        if bytes.len() > MOST_COMMIT_BYTES {
            let asked = format!("{} bytes", bytes.len());
            let allowed = format!("at most {MOST_COMMIT_BYTES} bytes of the caller");
            return Err(SpecError::new("commit", asked, allowed).into());
        }
        let payload = (self.buffer).begin(Kind::Commit, COMMIT_HEAD + bytes.len());
        let numbers = [
            progress.observed,
            progress.fresh,
            progress.evictions,
            progress.tick,
        ];
        for (bytes, number) in payload.as_chunks_mut().0.iter_mut().zip(numbers) {
            *bytes = number.to_le_bytes();
        }
        payload[COMMIT_HEAD..].copy_from_slice(bytes);
        self.write()
    }

    /// Appends the end of a state, and flushes the output, which is returned.
    ///
    /// # Errors
    /// [`StateError::Io`] if the output fails.
    pub fn end(mut self) -> Result<W, StateError> {
        self.buffer.begin(Kind::End, 0);
        self.write()?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn write(&mut self) -> Result<(), StateError> {
        let (checksum, bytes) = self.buffer.seal(self.mark.checksum);
        self.output.write_all(bytes)?;
        self.mark = Mark {
            position: self.mark.position + bytes.len() as u64,
            checksum,
        };
        Ok(())
    }

    /// The point behind the last section.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        self.mark
    }

    /// Goes on behind an earlier section, where the output was cut.
    pub const fn go_back(&mut self, mark: Mark) {
        self.mark = mark;
    }

    /// The output, to flush or synchronise it.
    pub const fn output_mut(&mut self) -> &mut W {
        &mut self.output
    }

    /// The output, without an [end](Self::end).
    pub fn into_output(self) -> W {
        self.output
    }
}
