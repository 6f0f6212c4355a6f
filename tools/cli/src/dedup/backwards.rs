//! `--keep last` and `--keep none`: a pass that judges the records of regular files backwards.
//!
//! A record is the last of its key if and only if it is fresh in the stream of the same records
//! from the last one to the first. So the files are read three times:
//!
//! ```text
//! index   chunk 0 -> chunk 1 -> chunk 2      notes where chunks of whole records are
//! judge   chunk 2 -> chunk 1 -> chunk 0      reads each again, with its keys reversed
//! write   chunk 0 -> chunk 1 -> chunk 2      as without the option, with the verdicts above
//! ```
//!
//! The index is necessary because the records of most formats are found only from their start on: a
//! newline may be inside quotes, and a length is in front of its bytes. It has no keys.
//!
//! The records of known inputs count as seen before all others in either direction, so they are
//! judged first. A verdict takes one bit from the judging pass to the writing one; nothing else
//! grows with the input but the index, less than 1 KiB for each chunk of 128 KiB or more, and 8
//! bytes for each record whose end only the search for chunks finds (in elements, or JSON values in
//! a row).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::mem;
use std::time::SystemTime;

use echoless::{Batch, Filter, KeyHash, Report, Tally, Verdict, Verdicts};
use echoless_audit::{ErrorEstimates, Estimate};
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::feed::RecordFeed;
use echoless_records::files::Source;
use echoless_records::keys::KeyReader;
use echoless_records::reading::Filled;
use echoless_records::restart::InputPosition;
use echoless_records::signals::{Patience, Signals};

use super::delivery::fault_reporter;
use super::feed::{Direction, Feed, StreamEnd};
use crate::config::{DedupConfig, Keep};

/// Fills chunks from the last one of the inputs to the first, after those of known inputs.
#[derive(Debug)]
pub(crate) struct BackwardFeed {
    sources: Vec<Source>,
    /// Finds the chunks; `None` once they are found.
    index: Option<Box<RecordFeed>>,
    /// The chunks that are left; the next one is the last.
    places: Vec<ChunkPlace>,
    /// A reader of the keys, from which [`reverse`] makes those of this stream.
    pub(super) reader: Option<KeyReader>,
    /// The input that was read last.
    file: Option<(usize, File)>,
    /// Set once the chunks are found.
    signals: Option<Signals>,
    pub(super) bytes_read: u64,
}

/// Where the records of a chunk are, and what reading the chunks before it found out about them.
#[derive(Debug)]
struct ChunkPlace {
    /// The bytes of the input before the chunk.
    offset: u64,
    /// The chunk without its bytes.
    chunk: Chunk,
}

impl BackwardFeed {
    /// The chunks of this feed, which has given none yet.
    pub(super) fn new(sources: Vec<Source>, index: RecordFeed) -> Self {
        Self {
            sources,
            index: Some(Box::new(index)),
            places: Vec::new(),
            reader: None,
            file: None,
            signals: None,
            bytes_read: 0,
        }
    }

    /// Fills the chunk with the next records. The first call reads all inputs.
    pub(super) fn next(&mut self, chunk: &mut Chunk) -> Result<Filled, Failure> {
        if let Some(feed) = self.index.take() {
            self.find_chunks(*feed, chunk)?;
            self.signals = Some(Signals::catch().map_err(Failure::file("signals"))?);
        }
        if self.ended_by().is_some() {
            return Ok(Filled::End);
        }
        let Some(place) = self.places.pop() else {
            return Ok(Filled::End);
        };
        let source = place.chunk.input.source;
        let read = self.read(place, chunk);
        let source = &self.sources[source];
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => changed(source),
            _ => Failure::file(source.name())(error),
        })?;
        Ok(Filled::Chunk)
    }

    /// Finds the chunks of all inputs, up to a fault between records.
    fn find_chunks(&mut self, mut feed: RecordFeed, chunk: &mut Chunk) -> Result<(), Failure> {
        let known = feed.known();
        let (mut of_known, mut offset) = (Vec::new(), 0);
        while feed.next(chunk, Patience::Wait)? == Filled::Chunk {
            if chunk.input.is_first {
                offset = 0;
            }
            let bytes = mem::take(&mut chunk.bytes.buffer);
            let mut found = mem::take(chunk);
            chunk.bytes.buffer = bytes;
            // The pass that writes has them again.
            found.header.of_stream = None;
            found.input.left.clear();
            let (filled, has_fault) = (found.bytes.filled as u64, found.fault.is_some());
            let places = if found.input.source < known {
                &mut of_known
            } else {
                &mut self.places
            };
            places.push(ChunkPlace {
                offset,
                chunk: found,
            });
            offset += filled;
            if has_fault {
                break;
            }
        }
        self.places.append(&mut of_known);
        self.reader = feed.reader().cloned();
        Ok(())
    }

    /// Reads the bytes of a chunk again.
    fn read(&mut self, place: ChunkPlace, chunk: &mut Chunk) -> io::Result<()> {
        let mut bytes = mem::take(&mut chunk.bytes.buffer);
        *chunk = place.chunk;
        if let Some(more @ 1..) = chunk.bytes.filled.checked_sub(bytes.len()) {
            bytes.try_reserve_exact(more)?;
            bytes.resize(chunk.bytes.filled, 0);
        }
        chunk.bytes.buffer = bytes;
        let file = match &mut self.file {
            Some((source, file)) if *source == chunk.input.source => file,
            other => {
                let opened = self.sources[chunk.input.source].open_file()?;
                &mut other.insert((chunk.input.source, opened)).1
            }
        };
        file.seek(SeekFrom::Start(place.offset))?;
        file.read_exact(&mut chunk.bytes.buffer[..chunk.bytes.filled])?;
        self.bytes_read += chunk.bytes.filled as u64;
        chunk.input.read_until = self.bytes_read;
        Ok(())
    }

    /// The signal that ended the stream, if one did.
    pub(super) fn ended_by(&self) -> Option<u8> {
        self.signals.as_ref()?.caught()
    }
}

/// Reverses the keys of a chunk. What else was read of its records stays in their order.
pub(super) fn reverse(chunk: &mut Chunk) {
    debug_assert!(chunk.keys.times.is_empty(), "no window is read backwards");
    chunk.keys.hashes.reverse();
    chunk.keys.names.reverse();
}

/// The failure of a run whose input is not what it was when it was read before.
pub(super) fn changed(source: &Source) -> Failure {
    let problem = "changed during the run, which reads it several times";
    Failure::file(source.name())(io::Error::other(problem))
}

/// Finds the first faulty record of the stream and returns its failure: the judging pass meets the
/// last one first, and does not count lines. Without one, a signal ended the search.
pub(super) fn find_first_fault(config: &DedupConfig) -> Result<StreamEnd, Failure> {
    let mut feed = Feed::new(config, Direction::Forwards, 1);
    let mut reporter = fault_reporter(config);
    let (mut chunk, mut reader) = (Chunk::default(), None);
    let mut done = InputPosition::default();
    while feed.next(&mut chunk, Patience::Wait)? == Filled::Chunk {
        if reader.is_none() {
            reader = feed.reader();
        }
        if let Some(reader) = &mut reader {
            reader.read(&mut chunk, None)?;
        }
        let input = || config.sources[chunk.input.source].name();
        if let Some(reporter) = &mut reporter {
            if let Some(fault) = chunk.fault {
                return Err(reporter.failure(&chunk, fault, input(), done));
            }
            // A run that writes nothing warns of nothing.
            let _ = reporter.pass(&chunk, input);
        }
        done.pass(&chunk);
    }
    let end = feed.end();
    match (end.signal, config.sources.last()) {
        (None, Some(source)) => Err(changed(source)),
        (_, _) => Ok(end),
    }
}

/// The length of each input and when it was last written to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Versions(Vec<Option<(u64, SystemTime)>>);

impl Versions {
    pub(super) fn of(sources: &[Source]) -> Self {
        let version = |source: &Source| {
            let Source::File(path) = source else {
                return None;
            };
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.len(), metadata.modified().ok()?))
        };
        Self(sources.iter().map(version).collect())
    }

    /// Checks that no input was changed since.
    pub(super) fn check(&self, sources: &[Source]) -> Result<(), Failure> {
        let now = Self::of(sources);
        let mut all = sources.iter().zip(self.0.iter().zip(&now.0));
        match all.find(|(_, (before, now))| before != now) {
            Some((source, _)) => Err(changed(source)),
            None => Ok(()),
        }
    }
}

/// The verdicts of the judging pass and what they are for.
#[derive(Debug)]
pub(super) struct BackwardVerdicts {
    keep: Keep,
    pub(super) is_judging: bool,
    /// Whether the judging pass met a faulty record.
    pub(super) has_fault: bool,
    later_copies: BitStack,
    errors: Option<PassErrors>,
}

/// The errors of a pass beside whose verdicts others count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassErrors {
    estimates: ErrorEstimates,
    evictions: Option<u64>,
}

impl BackwardVerdicts {
    /// Those of a run that begins with the judging pass; `None` if it has none.
    pub(super) fn new(keep: Keep) -> Option<Self> {
        (keep != Keep::First).then(|| Self {
            keep,
            is_judging: true,
            has_fault: false,
            later_copies: BitStack::default(),
            errors: None,
        })
    }

    /// The errors of the judging pass, if those of the writing pass are others.
    pub(super) const fn errors(&self) -> Option<&PassErrors> {
        self.errors.as_ref()
    }

    /// Whether the verdicts of a filter in the writing pass count.
    pub(super) fn judges_twice(&self) -> bool {
        self.keep == Keep::None
    }

    /// Takes the verdicts on the next chunk of the judging pass. Those of known inputs are not
    /// needed.
    pub(super) fn push(&mut self, chunk: &Chunk, is_known: bool) -> Result<(), Failure> {
        self.has_fault |= chunk.fault.is_some();
        if is_known {
            return Ok(());
        }
        let pushed = self.later_copies.push(&chunk.verdicts.of_keys);
        pushed.map_err(Failure::file("the verdicts"))
    }

    /// Begins the writing pass. `errors` are those of the judging pass with this report.
    pub(super) fn begin_writing(&mut self, estimates: ErrorEstimates, report: &Report) {
        self.is_judging = false;
        self.errors = self.judges_twice().then_some(PassErrors {
            estimates,
            evictions: report.tally.evictions,
        });
    }

    /// Completes the verdicts on the next chunk of the writing pass, which is from this input.
    pub(super) fn complete(&mut self, chunk: &mut Chunk, source: &Source) -> Result<(), Failure> {
        for key in 0..chunk.keys.hashes.len() {
            match self.later_copies.pop() {
                Some(true) => chunk.verdicts.of_keys.set(key, Verdict::Duplicate),
                Some(false) => {}
                None => return Err(changed(source)),
            }
        }
        Ok(())
    }
}

impl PassErrors {
    /// The estimates for records that are dropped if either pass finds a copy. `other` are those of
    /// the other pass, and `fresh` and `duplicates` the numbers of records in the end.
    ///
    /// A wrong verdict of one pass may be right in the end, because the other pass found a copy. So
    /// the sums are upper bounds, and there is no lower one.
    pub(crate) fn joined(
        &self,
        other: &ErrorEstimates,
        fresh: u64,
        duplicates: u64,
    ) -> ErrorEstimates {
        let either = |one: Estimate, other: Estimate, most: u64| {
            let high = one.high.saturating_add(other.high).min(most);
            Estimate {
                value: one.value.saturating_add(other.value).min(high),
                low: 0,
                high,
            }
        };
        let own = &self.estimates;
        let mut joined = *own;
        joined.fresh = fresh;
        joined.duplicates = duplicates;
        joined.missed_duplicates = either(own.missed_duplicates, other.missed_duplicates, fresh);
        joined.false_duplicates = either(own.false_duplicates, other.false_duplicates, duplicates);
        joined.most_false_duplicates = (own.most_false_duplicates)
            .zip(other.most_false_duplicates)
            .map(|(own, other)| own + other);
        joined
    }

    /// The evictions of both passes.
    pub(crate) fn evictions(&self, other: Option<u64>) -> Option<u64> {
        self.evictions.zip(other).map(|(own, other)| own + other)
    }
}

/// Bits of which the last one is taken first.
#[derive(Debug, Default)]
struct BitStack {
    words: Vec<u64>,
    len: usize,
}

impl BitStack {
    fn push(&mut self, verdicts: &Verdicts) -> io::Result<()> {
        self.words.try_reserve(verdicts.words().len() + 1)?;
        let mut left = verdicts.len();
        for word in verdicts.words() {
            let (shift, count) = (self.len % 64, left.min(64));
            if shift == 0 {
                self.words.push(*word);
            } else {
                let last = self.words.len() - 1;
                self.words[last] |= word << shift;
                if shift + count > 64 {
                    self.words.push(word >> (64 - shift));
                }
            }
            self.len += count;
            left -= count;
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<bool> {
        let last = self.len.checked_sub(1)?;
        let bit = self.words[last / 64] >> (last % 64) & 1 == 1;
        self.len = last;
        Some(bit)
    }
}

/// A filter that remembers nothing: the writing pass has its verdicts from the judging one.
#[derive(Debug)]
pub(super) struct NoFilter;

impl Filter for NoFilter {
    fn observe_batch(&mut self, _batch: Batch<'_>, duplicates: &mut [u64]) {
        duplicates.fill(0);
    }

    fn contains(&self, _key: KeyHash) -> bool {
        false
    }

    fn clear(&mut self) {}

    fn tally(&self) -> Tally {
        Tally::default()
    }
}

#[cfg(test)]
mod tests {
    use echoless_audit::Audit;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_taken_in_the_opposite_order(
            parts in vec(vec(any::<bool>(), 0..200), 0..10),
        ) {
            let mut bits = BitStack::default();
            for part in &parts {
                bits.push(&Verdicts::from(part.as_slice())).unwrap();
            }
            let mut expected: Vec<bool> = parts.concat();
            prop_assert_eq!(bits.words.len(), expected.len().div_ceil(64));
            expected.reverse();
            let taken: Vec<bool> = std::iter::from_fn(|| bits.pop()).collect();
            prop_assert_eq!(taken, expected);
        }
    }

    fn estimates(missed: Estimate, mistaken: Estimate, most: f64) -> ErrorEstimates {
        let mut estimates = Audit::new().estimates(None);
        estimates.missed_duplicates = missed;
        estimates.false_duplicates = mistaken;
        estimates.most_false_duplicates = Some(most);
        estimates
    }

    #[test]
    fn errors_of_both_passes_add_up_at_most() {
        let none = Estimate::exact(0);
        let some = Estimate {
            value: 3,
            low: 2,
            high: 9,
        };
        let own = PassErrors {
            estimates: estimates(some, none, 0.5),
            evictions: Some(4),
        };
        let joined = own.joined(&estimates(some, some, 0.25), 100, 12);
        assert_eq!(
            joined.missed_duplicates,
            Estimate {
                value: 6,
                low: 0,
                high: 18
            }
        );
        assert_eq!(
            joined.false_duplicates,
            Estimate {
                value: 3,
                low: 0,
                high: 9
            }
        );
        assert_eq!((joined.fresh, joined.duplicates), (100, 12));
        assert_eq!(joined.most_false_duplicates, Some(0.75));
        assert_eq!(own.evictions(Some(1)), Some(5));
        assert_eq!(own.evictions(None), None);
        // No more records are wrong than there are, and no error stays certain.
        let joined = own.joined(&estimates(some, none, 0.0), 5, 0);
        assert_eq!(
            joined.missed_duplicates,
            Estimate {
                value: 5,
                low: 0,
                high: 5
            }
        );
        assert!(joined.false_duplicates.is_exact());
    }
}
