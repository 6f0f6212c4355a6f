//! Parts of a plain file that are cut anywhere, in turns, and whose records are found by the
//! threads that read them.
//!
//! ```text
//!            part k             |           part k + 1            |
//! ... | record | record | rec   |   ord | record | record | rec   |  ord ...
//!     ^ chunk k begins  ^ chunk k + 1 begins              ^ chunk k + 2 begins
//! ```
//!
//! A record belongs to the part that it ends in. A newline ends one unless it is inside of quotes,
//! so what a cut divides is known once the part in front of it is searched, from what the cut
//! before divides. A part does not wait for that: it is searched in [every state](LastEnd::states)
//! that a search may have at its start. These are few, and soon the same, since a quote opens a
//! field only at its start: where they are the same at the end of the part, and a record ends in
//! it, the cut behind is known from the part alone. The last bytes are often enough, and are
//! searched in the turn; in a format without quotes there is one state, so a newline among them is
//! all it takes. Else the threads pass the state from cut to cut. A thread waits only for parts
//! before its own, whose threads wait for nothing behind; so does the one with the turn to fill
//! behind the last part.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::chunk::Chunk;
use crate::fault::{Fault, Problem};
use crate::format::{Format, LastEnd, first_end};
use crate::quoting::Quoting;
use crate::reading::read_at;

/// The bytes after which searches that have the same state become one.
const STEP: usize = if cfg!(test) { 64 } else { 4 << 10 };

/// What a cut divides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Where in the file the record begins that the cut divides, or that begins at the cut.
    pub(crate) record: u64,
    /// The state of a search at the cut; `None` if the file has become shorter or cannot be read.
    state: Option<Quoting>,
    /// The terminator of the record in front of it.
    pub(crate) terminator: &'static [u8],
}

/// The receiver of what a cut divides. Nothing comes if the thread that is to find it is gone.
pub(crate) type CutBefore = Receiver<Cut>;

/// A cut at the start of a record.
pub(crate) fn cut_at_record(record: u64, terminator: &'static [u8]) -> CutBefore {
    let (sender, receiver) = sync_channel(1);
    let state = Some(Quoting::Outside);
    // The receiver is there.
    let _ = sender.send(Cut {
        record,
        state,
        terminator,
    });
    receiver
}

/// A part of a file that is to be read into a chunk by the thread that gets the chunk, and not in
/// its turn to fill. Until then, the bytes of the chunk are of no record.
#[derive(Debug)]
pub(crate) struct UnreadPart {
    file: Arc<File>,
    range: PartRange,
    /// The length of the longest record allowed.
    longest: usize,
    before: CutBefore,
    behind: CutBehind,
}

/// Where a part is in the buffer of its chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartRange {
    /// Where the first byte of the buffer is in the file.
    pub(crate) offset: u64,
    /// The cut in front of the part. At least a byte is before it, which a field may begin behind.
    pub(crate) cut: usize,
    /// From here on, the bytes are read.
    pub(crate) read_from: usize,
    /// The cut behind the part.
    pub(crate) until: usize,
}

/// The cut behind a part.
#[derive(Debug)]
enum CutBehind {
    Unknown(SyncSender<Cut>),
    /// It is sent. The last record of the part ends here.
    Known(usize),
}

/// What a search finds that has the state `before` in front of a part.
#[derive(Debug, Clone, Copy)]
struct Found {
    before: Quoting,
    last_end: Option<usize>,
    behind: Quoting,
}

impl UnreadPart {
    /// A part whose last bytes are in `buffer`, and the cut behind it.
    pub(crate) fn new(
        file: Arc<File>,
        range: PartRange,
        buffer: &[u8],
        format: &dyn Format,
        longest: usize,
        before: CutBefore,
    ) -> (Self, CutBefore) {
        let (sender, receiver) = sync_channel(1);
        let mut part = Self {
            file,
            range,
            longest,
            before,
            behind: CutBehind::Unknown(sender),
        };
        let PartRange {
            read_from, until, ..
        } = range;
        // Not from the first of these bytes on: the one before a newline may be part of a
        // terminator.
        let found = search(format, &buffer[..until], read_from + 1, None);
        part.send_if_independent(format, &buffer[..until], read_from, &found);
        (part, receiver)
    }

    /// Where the part is in the buffer.
    pub(crate) const fn range(&self) -> PartRange {
        self.range
    }

    /// Sends the cut behind if it does not depend on the one before. Bytes in front of `from` are
    /// not read.
    fn send_if_independent(
        &mut self,
        format: &dyn Format,
        bytes: &[u8],
        from: usize,
        found: &[Found],
    ) {
        let CutBehind::Unknown(sender) = &self.behind else {
            return;
        };
        let first = found[0];
        let is_same = (found.iter())
            .all(|other| (other.last_end, other.behind) == (first.last_end, first.behind));
        if let Some(end) = first.last_end.filter(|_| is_same)
            && let Some(terminator) = format.terminator_of(&bytes[from..end])
        {
            // Without a receiver, the run has ended.
            let _ = sender.send(Cut {
                record: self.range.offset + end as u64,
                state: Some(first.behind),
                terminator,
            });
            self.behind = CutBehind::Known(end);
        }
    }

    /// Reads the part into its chunk and finds where its records begin and end. If the file has
    /// become shorter or cannot be read, the chunk has the records in front of that.
    pub(crate) fn read(mut self, chunk: &mut Chunk, format: &dyn Format) {
        let PartRange {
            offset,
            cut,
            read_from,
            until,
        } = self.range;
        chunk.bytes.filled = 0;
        let buffer = &mut chunk.bytes.buffer;
        let (read, outcome) = read_at(&self.file, &mut buffer[..read_from], offset);
        let is_whole = read == read_from;
        let until = if is_whole { until } else { read.max(cut) };
        let mut before = self.before.try_recv().ok();
        let mut found = Vec::new();
        if !is_whole || matches!(self.behind, CutBehind::Unknown(_)) {
            let state = before.and_then(|before| before.state);
            found = search(format, &buffer[..until], cut, state);
            if is_whole && before.is_none() {
                self.send_if_independent(format, &buffer[..until], 0, &found);
            }
        }
        before = before.or_else(|| self.before.recv().ok());
        let Some(before) = before else {
            // A thread of a part before has ended, and the run with it.
            return;
        };
        let found = (found.into_iter()).find(|found| Some(found.before) == before.state);
        let end = match self.behind {
            // The file ends here now, and so does its last record, in this part or before.
            _ if !is_whole && outcome.is_ok() => {
                let has_more = |end: &usize| *end > 0 && offset + *end as u64 > before.record;
                Some(read).filter(has_more)
            }
            CutBehind::Unknown(_) => found.and_then(|found| found.last_end),
            _ if before.state.is_none() => None,
            CutBehind::Known(end) if is_whole => Some(end),
            CutBehind::Known(_) => found.and_then(|found| found.last_end),
        };
        let terminator = end.and_then(|end| format.terminator_of(&buffer[..end]));
        let terminator = terminator.unwrap_or(before.terminator);
        chunk.layout.terminator = terminator;
        if let CutBehind::Unknown(sender) = &self.behind {
            let _ = sender.send(Cut {
                record: end.map_or(before.record, |end| offset + end as u64),
                state: found.map(|found| found.behind).filter(|_| is_whole),
                terminator,
            });
        }
        let taken = match end {
            Some(end) => self.take_records(chunk, format, before.record, end),
            None => {
                // The record is longer than what is read of it.
                if is_whole && offset + until as u64 - before.record > self.longest as u64 {
                    chunk.fault = Some(self.too_long());
                }
                Ok(())
            }
        };
        chunk.failure = outcome.and(taken).err();
    }

    /// Gives the chunk the records from `record` in the file up to `end` in the buffer.
    fn take_records(
        &self,
        chunk: &mut Chunk,
        format: &dyn Format,
        record: u64,
        end: usize,
    ) -> io::Result<()> {
        let bytes = &mut chunk.bytes;
        let start = record.saturating_sub(self.range.offset) as usize;
        // The bytes of the first record that are in front of the buffer.
        let length = self.range.offset.saturating_sub(record);
        if length > self.longest as u64 {
            chunk.fault = Some(self.too_long());
            return Ok(());
        }
        let length = length as usize;
        if length > 0 {
            let reserved = bytes.buffer.try_reserve_exact(length);
            reserved.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
            bytes.buffer.splice(..0, std::iter::repeat_n(0, length));
            let (read, outcome) = read_at(&self.file, &mut bytes.buffer[..length], record);
            outcome?;
            if read < length {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let records = &bytes.buffer[start..length + end];
        if records.len() > self.longest && first_end(format, records) > self.longest {
            chunk.fault = Some(self.too_long());
            return Ok(());
        }
        bytes.filled = length + end;
        bytes.mark = start;
        bytes.start = start;
        Ok(())
    }

    const fn too_long(&self) -> Fault {
        Fault {
            record: 0,
            problem: Problem::TooLong(self.longest),
        }
    }
}

/// A search that begins in a part.
fn part_search(format: &dyn Format) -> Box<dyn LastEnd> {
    let mut search = format.last_end();
    search.restart(false);
    search
}

/// Searches `bytes[from..]` from this state on, or from each that a search may have there. Those
/// that come to the same state go on as one.
fn search(format: &dyn Format, bytes: &[u8], from: usize, state: Option<Quoting>) -> Vec<Found> {
    let mut search = part_search(format);
    let states = state.as_ref().map_or(search.states(), std::slice::from_ref);
    let new = |state: &Quoting| Found {
        before: *state,
        last_end: None,
        behind: *state,
    };
    let mut found: Vec<Found> = states.iter().map(new).collect();
    // Which one goes on as which other, and where that begins.
    let mut joined: Vec<Option<(usize, usize)>> = vec![None; found.len()];
    let mut at = from;
    while at < bytes.len() {
        let until = bytes.len().min(at + STEP);
        for own in 0..found.len() {
            if joined[own].is_some() {
                continue;
            }
            let Found {
                behind, last_end, ..
            } = &mut found[own];
            search.set_state(*behind);
            *last_end = search.find(&bytes[..until], at).or(*last_end);
            *behind = search.state();
            let is_same = |other: &usize| {
                joined[*other].is_none() && found[*other].behind == found[own].behind
            };
            joined[own] = (0..own).find(is_same).map(|other| (other, until));
        }
        at = until;
    }
    // One that is joined with another may have been joined before that was with a third.
    for own in 0..found.len() {
        if let Some((other, since)) = joined[own] {
            let Found {
                behind, last_end, ..
            } = found[other];
            let last_end = last_end.filter(|end| *end > since);
            found[own].last_end = last_end.or(found[own].last_end);
            found[own].behind = behind;
        }
    }
    found
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::num::NonZeroUsize;
    use std::sync::{Mutex, mpsc};
    use std::thread;

    use echoless::KeyHasher;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::compared::Compared;
    use crate::fault::{BlankLines, FaultPolicy, Missing};
    use crate::feed::{FeedOptions, RecordFeed};
    use crate::files::Source;
    use crate::formats::tests::{CSV, CSV_BACKSLASH, delimited};
    use crate::keys::{KeyReader, RecordReading, SharedFormat};
    use crate::reading::Filled;
    use crate::restart::InputPosition;
    use crate::signals::Patience;

    /// A stream of files with records of this format, in chunks of so many bytes for three threads
    /// that read them, or for one that need not.
    fn feed(
        format: &SharedFormat,
        longest: usize,
        rejects: bool,
        files: &[&File],
        parts_of: Option<usize>,
    ) -> RecordFeed {
        use std::os::fd::AsRawFd;
        let reading = RecordReading {
            format: format.clone(),
            as_they_are: true,
            max_record: longest,
            header: false,
            comments: None,
            announced_comments: false,
            key: None,
            compared: Compared::default(),
            faults: FaultPolicy {
                missing: Missing::Error,
                blank_lines: BlankLines::Keep,
                rejects,
            },
        };
        let source = |file: &&File| Source::File(format!("/dev/fd/{}", file.as_raw_fd()).into());
        let sources = files.iter().map(source).collect();
        let hasher = KeyHasher::seeded(0);
        let options = FeedOptions {
            threads: parts_of.map(|chunk_bytes| (3, chunk_bytes)),
            defers_reads: parts_of.is_some(),
            leaves_signals: true,
            ..FeedOptions::default()
        };
        RecordFeed::new(
            Arc::new(reading),
            sources,
            hasher,
            NonZeroUsize::MAX,
            options,
        )
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// What chunks have in all, however the stream is cut.
    #[derive(Debug, Default, PartialEq)]
    struct Stream {
        records: Vec<Vec<u8>>,
        /// Where each of them is in its input.
        positions: Vec<(u64, u64, u64)>,
        position: InputPosition,
        hashes: usize,
        /// The last record has this terminator, or records before it have. Of no meaning behind a
        /// fault.
        terminator: &'static [u8],
        fault: Option<(usize, Problem)>,
        rejected: Vec<(usize, Problem)>,
    }

    impl Stream {
        fn add(&mut self, chunk: &Chunk) {
            // A fault ends the run.
            if self.fault.is_some() {
                return;
            }
            let done = self.records.len();
            let of_stream = |fault: Fault| (done + fault.record, fault.problem);
            let records = (0..chunk.records()).map(|at| chunk.bytes_of(at..at + 1).to_vec());
            self.records.extend(records);
            self.positions.extend((0..chunk.records()).map(|at| {
                let position = self.position.position_of(chunk, at);
                (position.number, position.offset, position.bytes)
            }));
            self.position.pass(chunk);
            self.hashes += chunk.keys.hashes.len();
            self.fault = chunk.fault.map(of_stream);
            if self.fault.is_none() {
                self.terminator = chunk.layout.terminator;
            }
            self.rejected
                .extend(chunk.unkeyed.rejected.iter().map(|fault| of_stream(*fault)));
            assert!(chunk.failure.is_none());
        }
    }

    /// Formats with records that end at a newline.
    fn of_lines() -> impl Iterator<Item = (&'static str, SharedFormat)> {
        let formats = delimited().into_iter();
        formats.filter(|(_, format)| format.facts().terminator.ends_with(b"\n"))
    }

    fn of_one_thread(mut feed: RecordFeed) -> Stream {
        let (mut stream, mut chunk) = (Stream::default(), Chunk::default());
        while feed.next(&mut chunk, Patience::Wait).unwrap() == Filled::Chunk {
            feed.reader().unwrap().clone().read(&mut chunk);
            stream.add(&chunk);
            if stream.fault.is_some() {
                break;
            }
        }
        stream
    }

    /// The stream in chunks that three threads read, and how many chunks are parts.
    fn of_parts(mut feed: RecordFeed) -> (Stream, usize) {
        let (sender, filled) = mpsc::channel::<(usize, Chunk, KeyReader)>();
        let (filled, read) = (Mutex::new(filled), Mutex::new(Vec::new()));
        let mut parts = 0;
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let next = filled.lock().unwrap().recv();
                        let Ok((number, mut chunk, mut reader)) = next else {
                            return;
                        };
                        reader.read(&mut chunk);
                        read.lock().unwrap().push((number, chunk));
                    }
                });
            }
            for number in 0.. {
                let mut chunk = Chunk::default();
                if feed.next(&mut chunk, Patience::Wait).unwrap() == Filled::End {
                    break;
                }
                parts += usize::from(chunk.bytes.unread.is_some());
                let is_faulty = chunk.fault.is_some();
                sender
                    .send((number, chunk, feed.reader().unwrap().clone()))
                    .unwrap();
                if is_faulty {
                    break;
                }
            }
            drop(sender);
        });
        let mut read = read.into_inner().unwrap();
        read.sort_by_key(|(number, _)| *number);
        let mut stream = Stream::default();
        for (_, chunk) in &read {
            stream.add(chunk);
        }
        (stream, parts)
    }

    /// Records of all kinds, damaged ones among them, and quotes wherever they have no meaning.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::sample::select(b"ab,\"\"\n\r\\".to_vec());
        let piece = |often: &'static [&'static str]| prop::sample::select(often);
        let clean = piece(&[
            "id,\"a\nb\"\r\n",
            "1,2\n",
            "\"x\"\"y\",\"\"\n",
            ",,\n",
            "\r\n",
            "\"\"\"\",\"\n\n\"\n",
        ]);
        let odd = piece(&[
            "\"",
            "a\"b",
            "\"\"",
            "\\\"",
            "\\\n",
            "long enough, ",
            "\"\r",
            "\n\"\n",
            "\"",
        ]);
        let lines = vec(prop_oneof![30 => clean, 1 => odd.clone()], 0..300);
        prop_oneof![
            vec(noise, 0..3000),
            lines.prop_map(|pieces| pieces.concat().into_bytes()),
            vec(odd, 0..300).prop_map(|pieces| pieces.concat().into_bytes()),
            ("[ab,\n]{0,600}", "\"[ab,\n]{0,600}\"\n", "[ab,\n]{0,900}").prop_map(|(a, b, c)| [
                a, b, c
            ]
            .concat()
            .into_bytes()),
        ]
    }

    proptest! {
        #[test]
        fn parts_have_the_records_of_one_thread(
            bytes in bytes(),
            more in bytes(),
            chunk_bytes in prop_oneof![64usize..200, 64usize..2000],
            longest in prop_oneof![Just(1 << 20), 64usize..3000],
            rejects: bool,
        ) {
            let files = [&file(&bytes), &file(&more)];
            for (name, format) in delimited() {
                let feed = |parts_of| feed(&format, longest, rejects, &files, parts_of);
                let (parts, _) = of_parts(feed(Some(chunk_bytes)));
                prop_assert_eq!(parts, of_one_thread(feed(None)), "{}", name);
            }
        }
    }

    #[test]
    fn quotes_at_a_cut_do_not_matter() {
        for (name, format) in of_lines() {
            for middle in [
                "\"a\"\"\nb\"\r\n",
                "x\"y\"\r\n",
                "\"\",\"\n\"\n",
                "\"\"\"\"\r\n",
                "\\\"\\\n,\"\\\"\n\"\n",
            ] {
                for shift in 0..70 {
                    let pad = "p".repeat(shift);
                    let text =
                        ["1,2\n".repeat(40), pad, middle.repeat(200), "no end".into()].concat();
                    let input = file(text.as_bytes());
                    let feed = |parts_of| feed(&format, 1 << 20, false, &[&input], parts_of);
                    let (stream, parts) = of_parts(feed(Some(128)));
                    assert!(parts > 3, "{name}: {parts}");
                    assert_eq!(
                        stream,
                        of_one_thread(feed(None)),
                        "{name}, {middle:?}, {shift}"
                    );
                }
            }
        }
    }

    #[test]
    fn most_cuts_are_known_without_those_before() {
        let quoted = "17,\"some text\",\"a \"\"b\"\"\nc\",4\n".repeat(20);
        let plain = "17,some text,4\n".repeat(20);
        for (name, format) in of_lines() {
            let known = |text: &str, from: usize| {
                let bytes = text.as_bytes();
                let found = search(&*format, bytes, from, None);
                let same = |other: &Found| {
                    (other.last_end, other.behind) == (found[0].last_end, found[0].behind)
                };
                found.iter().all(same)
            };
            assert!((1..70).all(|from| known(&quoted, from)), "{name}");
            let has_quotes = [CSV, CSV_BACKSLASH].contains(&name);
            assert_eq!(known(&plain, 1), !has_quotes, "{name}");
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_has_the_records_that_are_left() {
        // No cut is at the end of a record in all of them.
        let content = b"1,22\n".repeat(300);
        for (name, format) in of_lines() {
            for length in 300..content.len() {
                let input = file(&content);
                let mut feed = feed(&format, 1 << 20, false, &[&input], Some(256));
                let mut chunks = vec![];
                while chunks.len() < 4 {
                    let mut chunk = Chunk::default();
                    feed.next(&mut chunk, Patience::Wait).unwrap();
                    chunks.push(chunk);
                }
                assert!(chunks[1..].iter().all(|chunk| chunk.bytes.unread.is_some()));
                input.set_len(length as u64).unwrap();
                let mut records: Vec<u8> = Vec::new();
                for chunk in &mut chunks {
                    feed.reader().unwrap().clone().read(chunk);
                    assert!(chunk.failure.is_none() && chunk.fault.is_none());
                    records.extend(chunk.bytes.of_records());
                }
                let mut chunk = Chunk::default();
                while feed.next(&mut chunk, Patience::Wait).unwrap() == Filled::Chunk {
                    feed.reader().unwrap().clone().read(&mut chunk);
                    records.extend(chunk.bytes.of_records());
                }
                // Some of what is gone was read before.
                let is_right = content.starts_with(&records) && records.len() >= length;
                assert!(is_right, "{name}: {length}, {} read", records.len());
            }
        }
    }
}
