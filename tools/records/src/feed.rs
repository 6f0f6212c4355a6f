//! Fills chunks with records, removes headers, and makes the reader of keys once the header is
//! read.

use std::collections::VecDeque;
use std::mem;
use std::num::NonZeroUsize;
use std::sync::Arc;

use echoless::KeyHasher;

use super::chunk::{Chunk, ChunkBytes};
use super::comments::CommentLines;
use super::fault::Fault;
use super::field_list::FieldList;
use super::header::Header;
pub use super::input::FeedOptions;
use super::input::Input;
use super::keys::{KeyChoice, KeyReader};
use super::position::FaultReporter;
use super::tag::Tagger;
use crate::failure::Failure;
use crate::files::Source;
use crate::keys::RecordReading;
use crate::number::exact_bytes;
use crate::partial::PartialInput;
use crate::reading::{Filled, SEARCHED_BYTES};
use crate::restart::{Announced, InputPosition};
use crate::signals::Patience;
use crate::time::format::TimeReader;

/// Fills chunks, one after the other.
#[derive(Debug)]
pub struct RecordFeed {
    reading: Arc<RecordReading>,
    hasher: KeyHasher,
    /// The fields with the time of a record, in their order, and its reader.
    time: Option<(FieldList, TimeReader)>,
    tagger: Option<Arc<Tagger>>,
    /// Whether the records of each chunk are estimated, so that the chunks under way are bounded.
    estimates_records: bool,
    /// Whether chunks may come with bytes that are not read yet.
    defers_reads: bool,
    input: Input,
    /// The number of known inputs.
    known: usize,
    header: Option<Header>,
    /// Whether that of the current input is not found yet.
    header_due: bool,
    /// The number of the comment lines in front of it.
    lines_before: u64,
    /// Whether a chunk took the header of the outputs along.
    header_sent: bool,
    /// Whether a chunk that is written was filled.
    begun: bool,
    /// What the first line of the current input announces about comment lines.
    announced: Option<Announced>,
    /// Chunks that are filled already: comment lines in front of the first header, without which
    /// there is no reader, and the rest of a chunk that begins with such lines.
    waiting: VecDeque<Chunk>,
    reader: Option<KeyReader>,
}

impl RecordFeed {
    /// The stream of these inputs. A read has at most `most` bytes.
    pub fn new(
        reading: Arc<RecordReading>,
        sources: Vec<Source>,
        hasher: KeyHasher,
        most: NonZeroUsize,
        options: FeedOptions<'_>,
    ) -> Self {
        let format = &reading.format;
        let has_header = reading.header || format.facts().file_header_end.is_some();
        let mut header = has_header.then(|| Header::new(format.clone()));
        let mut header_sent = false;
        let saved = options.restart.and_then(|stream| stream.header.as_ref());
        if let (Some(header), Some(saved)) = (&mut header, saved) {
            header.restart(saved.clone());
            header_sent = saved.record.is_some();
        }
        Self {
            input: Input::new(sources, &reading, most, &options),
            known: options.known,
            header,
            header_due: false,
            lines_before: 0,
            header_sent,
            begun: options.restart.is_some_and(|stream| stream.has_begun),
            announced: None,
            waiting: VecDeque::new(),
            reader: None,
            reading,
            hasher,
            time: options.time,
            tagger: options.tagger,
            estimates_records: options.threads.is_some(),
            defers_reads: options.defers_reads,
        }
    }

    /// The number of known inputs.
    pub const fn known(&self) -> usize {
        self.known
    }

    /// Fills the chunk with the next records. After the first chunk, [`reader`](Self::reader)
    /// returns a reader.
    ///
    /// # Errors
    /// [`Failure`] if an input cannot be read, or its header differs from the first.
    pub fn next(&mut self, chunk: &mut Chunk, patience: Patience) -> Result<Filled, Failure> {
        loop {
            if self.reader.is_some()
                && let Some(next) = self.waiting.pop_front()
            {
                *chunk = next;
                return Ok(Filled::Chunk);
            }
            // The header, and comment lines that may hold names, are found here.
            let is_looked_at = self.reader.is_none() || self.header_due || self.announced.is_some();
            self.input.defer_reads(self.defers_reads && !is_looked_at);
            let filled = self.input.fill(chunk, patience)?;
            match filled {
                Filled::Chunk => {}
                // Comment lines alone.
                Filled::End if !self.waiting.is_empty() => {
                    self.reader = Some(self.key_reader()?);
                    continue;
                }
                Filled::NotYet | Filled::End => return Ok(filled),
            }
            let rest = self.prepare(chunk)?;
            if self.reader.is_none() && !self.header_due {
                self.reader = Some(self.key_reader()?);
            }
            if rest.is_empty() && self.reader.is_some() && self.waiting.is_empty() {
                return Ok(Filled::Chunk);
            }
            self.wait(mem::take(chunk), rest)?;
        }
    }

    /// Prepares a chunk that is filled for its reader. Returns what follows the comment lines at
    /// its start, if that begins with the header, and what follows later comment lines with other
    /// names of fields.
    fn prepare(&mut self, chunk: &mut Chunk) -> Result<Vec<Chunk>, Failure> {
        chunk.input.read_until = self.input.bytes_read();
        chunk.input.input_until = self.input.input_bytes_read();
        chunk.input.left = self.input.take_partial_inputs();
        if chunk.input.is_first {
            self.header_due = self.header.is_some();
            self.lines_before = 0;
            if self.reading.announced_comments {
                self.announced = CommentLines::announced(chunk.bytes.behind_mark());
            }
        }
        if let Some(restart) = &chunk.input.restart {
            self.header_due = false;
            self.announced = restart.announced;
            if let Some(header) = &mut self.header {
                header.restart_input(restart.names);
            }
        }
        chunk.input.announced = self.announced;
        let mut rest = Vec::new();
        if self.header_due {
            rest.extend(self.find_header(chunk)?);
        }
        if self.header.is_some() && !self.header_due {
            self.split_at_names(chunk, &mut rest)?;
        }
        if chunk.input.source >= self.known && !self.begun {
            self.begun = true;
            chunk.header.copies_mark = chunk.bytes.mark > 0 && chunk.header.of_stream.is_none();
        }
        if self.estimates_records {
            for chunk in std::iter::once(chunk).chain(&mut rest) {
                chunk.layout.expected = self.expected_records(&chunk.bytes);
            }
        }
        Ok(rest)
    }

    /// Cuts a chunk, and the rest of it behind the header, at each comment line with other names of
    /// fields than those before. Tells each part the names of its fields.
    fn split_at_names(&mut self, chunk: &mut Chunk, rest: &mut Vec<Chunk>) -> Result<(), Failure> {
        let Some(header) = &mut self.header else {
            return Ok(());
        };
        // Those in front of the header have its names.
        for waiting in &mut self.waiting {
            let names = || header.names();
            waiting.header.field_names.get_or_insert_with(names);
        }
        let source = chunk.input.source;
        let mut parts = vec![mem::take(chunk)];
        parts.append(rest);
        for mut part in parts {
            let is_whole = part.fault.is_none() && part.input.incomplete.is_none();
            let named = self.announced.filter(|_| is_whole);
            let format = &*self.reading.format;
            let named = named.map(|announced| announced.all_names(&part, format));
            part.header.field_names = Some(header.names());
            let mut cuts = Vec::new();
            for (at, names) in named.into_iter().flatten() {
                if !header.differs(&names) {
                    continue;
                }
                if let Some(tagger) = &self.tagger {
                    tagger.check_header(&names)?;
                }
                let found = header.found_names(names, source);
                found.map_err(|problem| Failure::Capture {
                    name: self.input.name(source),
                    problem,
                })?;
                if at > part.bytes.start {
                    cuts.push((at, header.names()));
                } else {
                    part.header.field_names = Some(header.names());
                }
            }
            // From the end, so that each byte is moved once.
            let first = rest.len();
            for (at, names) in cuts.into_iter().rev() {
                let mut behind = part.split_off(at);
                behind.header.field_names = Some(names);
                rest.push(behind);
            }
            rest.push(part);
            rest[first..].reverse();
        }
        *chunk = rest.remove(0);
        Ok(())
    }

    /// Takes the header off a chunk, in front of which there may be comment lines. They may hold
    /// the names of the fields, and are the header then. Returns what follows them, if it begins
    /// with the header.
    fn find_header(&mut self, chunk: &mut Chunk) -> Result<Option<Chunk>, Failure> {
        let Some(header) = &mut self.header else {
            return Ok(None);
        };
        let name = |source| self.input.name(source);
        let incomplete = chunk
            .input
            .incomplete
            .map(|problem| Fault { record: 0, problem });
        if let Some(fault) = chunk.fault.or(incomplete) {
            let reporter = FaultReporter::new(self.reading.format.clone());
            let done = InputPosition::after(self.lines_before);
            return Err(reporter.failure(chunk, fault, name(chunk.input.source), done));
        }
        let comments = leading_comments(&self.reading, chunk);
        self.lines_before += comments.lines;
        let is_written = chunk.input.source >= self.known;
        if let Some(names) = comments.names {
            if let Some(tagger) = &self.tagger {
                tagger.check_header(&names)?;
            }
            let found = header.found_names(names, chunk.input.source);
            found.map_err(|problem| Failure::Capture {
                name: name(chunk.input.source),
                problem,
            })?;
            self.header_due = false;
            self.header_sent |= is_written;
            return Ok(None);
        }
        chunk.input.awaits_header = comments.lines > 0;
        if comments.lines > 0 && comments.end == chunk.bytes.filled {
            return Ok(None);
        }
        let mut rest = (comments.lines > 0).then(|| chunk.split_off(comments.end));
        let with_header = rest.as_mut().unwrap_or(chunk);
        header.remove_from(with_header, self.lines_before + 1, name)?;
        self.header_due = false;
        // The outputs get the header of the first input that is written, in its own spelling.
        if is_written && !self.header_sent {
            self.header_sent = true;
            with_header.header.of_stream = Some(with_header.bytes.head().to_vec());
        }
        Ok(rest)
    }

    /// Keeps a chunk, and the rest of it, until the reader exists and the chunks before it are
    /// passed. Fails if chunks of comment lines are longer than a record may be: they are in memory
    /// until the header follows.
    fn wait(&mut self, chunk: Chunk, rest: Vec<Chunk>) -> Result<(), Failure> {
        let source = chunk.input.source;
        self.waiting.push_back(chunk);
        self.waiting.extend(rest);
        let bytes: usize = self.waiting.iter().map(|chunk| chunk.bytes.filled).sum();
        let longest = self.reading.max_record;
        if self.reader.is_none() && bytes > longest {
            return Err(Failure::Data {
                name: self.input.name(source),
                unit: self.reading.format.facts().unit,
                number: self.lines_before,
                problem: format!(
                    "comment lines of more than {} in front of the header (--max-record)",
                    exact_bytes(longest as u64)
                ),
            });
        }
        Ok(())
    }

    /// The reader of keys. It exists once the header with the names of fields is read.
    pub const fn reader(&self) -> Option<&KeyReader> {
        self.reader.as_ref()
    }

    /// The bytes of the inputs that were read so far, compressed as they are, without the known
    /// inputs.
    pub fn bytes_read(&self) -> u64 {
        self.input.input_bytes_read()
    }

    /// The inputs that were left before their end since the last chunk.
    pub fn take_partial_inputs(&mut self) -> Vec<PartialInput> {
        self.input.take_partial_inputs()
    }

    /// The signal that ended the stream, if one did.
    pub fn ended_by(&self) -> Option<u8> {
        self.input.ended_by()
    }

    /// About how many records these bytes have, from the first of them, or from the last if the first
    /// are not read yet: one thread at a time fills chunks, and all of them search their own.
    fn expected_records(&self, bytes: &ChunkBytes) -> usize {
        let records = bytes.of_records();
        let sample = match &bytes.unread {
            None => &records[..records.len().min(SEARCHED_BYTES)],
            Some(unread) => &bytes.all()[unread.range().read_from..],
        };
        let found = self.reading.format.most_records(sample);
        found.saturating_mul(records.len()) / sample.len().max(1)
    }

    fn key_reader(&self) -> Result<KeyReader, Failure> {
        let first = self.header.as_ref().map(|header| header.names().first);
        let first = first.unwrap_or_else(|| Arc::from([]));
        if let Some(tagger) = &self.tagger {
            tagger.check_header(&first)?;
        }
        let reader = KeyReader::of_choice(KeyChoice {
            reading: Arc::clone(&self.reading),
            hasher: self.hasher.clone(),
            time: self.time.clone(),
            first,
            may_change: self.header.as_ref().is_some_and(Header::may_change),
        })?;
        Ok(reader.with_tagger(self.tagger.clone()))
    }
}

/// The comment lines that a chunk begins with.
#[derive(Debug, Default)]
struct LeadingComments {
    lines: u64,
    /// The end of the last one.
    end: usize,
    /// The names of the fields, if one of them holds any.
    names: Option<Vec<Vec<u8>>>,
}

fn leading_comments(reading: &RecordReading, chunk: &Chunk) -> LeadingComments {
    let mut found = LeadingComments {
        end: chunk.bytes.mark,
        ..LeadingComments::default()
    };
    let comments = reading.comments.as_ref();
    let Some(prefix) = comments.and_then(|comments| comments.prefix(chunk.input.announced)) else {
        return found;
    };
    let (format, bytes) = (&*reading.format, chunk.bytes.all());
    let mut ends = Vec::new();
    format.record_ends(bytes, chunk.bytes.mark, &mut ends);
    for end in ends {
        let content = format.content(&bytes[found.end..end]);
        if !content.starts_with(prefix) {
            break;
        }
        if let Some(announced) = chunk.input.announced
            && let Some(names) = announced.names(content, format)
        {
            found.names = Some(names);
        }
        found.lines += 1;
        found.end = end;
    }
    found
}
