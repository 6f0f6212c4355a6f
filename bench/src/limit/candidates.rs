//! The filters that are measured.

use echoless::filters::lines::LineFilter;
use echoless::memory::LINE_BYTES;
use echoless::{Batch, FingerprintSpec, Kernel, Replacement, SlotWidth};

use super::rate::rate;
use crate::failure::Failure;
use crate::streams::{BATCH, Stream};

/// Keys for each line before anything is measured: enough to fill the lines of most filters.
const WARM_UP: u64 = 40;

/// A filter, and how to build it.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) kernel: Kernel,
    /// Whether the filter has a window: its clock moves while it is measured.
    timed: bool,
    /// Builds it empty, in this many bytes.
    build: Build,
}

/// The keys for each tick of a filter with a window.
const TICK_KEYS: u64 = 10_000;

impl Candidate {
    /// Builds the filter in this many bytes, and fills it with keys of the stream.
    pub(super) fn filled(&self, bytes: u64, stream: &mut Stream) -> Result<InUse, Failure> {
        let mut filled = InUse {
            filter: (self.build)(bytes)?,
            timed: self.timed,
            words: vec![0; BATCH / 64],
            observed: 0,
            duplicates: 0,
        };
        filled.rate(stream, bytes / LINE_BYTES * WARM_UP);
        Ok(filled)
    }
}

/// A filter, the keys that it observed, and how many of them it reported as duplicates.
pub(super) struct InUse {
    pub(super) filter: Box<dyn LineFilter>,
    timed: bool,
    words: Vec<u64>,
    pub(super) observed: u64,
    pub(super) duplicates: u64,
}

impl InUse {
    /// Keys per second of CPU time while the filter observes at least `keys` of a stream, each at
    /// its tick if it has a window.
    pub(super) fn rate(&mut self, stream: &mut Stream, keys: u64) -> f64 {
        rate(stream, keys, |keys| {
            let batch = match self.timed {
                true => Batch::at(keys, self.observed / TICK_KEYS),
                false => Batch::new(keys),
            };
            self.filter.observe_batch(batch, &mut self.words);
            self.observed += keys.len() as u64;
            let ones = self.words.iter().map(|word| u64::from(word.count_ones()));
            self.duplicates += ones.sum::<u64>();
        })
    }
}

type Build = Box<dyn Fn(u64) -> Result<Box<dyn LineFilter>, Failure>>;

/// Lines of 32 slots with 16 bits.
fn fingerprint(bytes: u64, replacement: Replacement, kernel: Kernel) -> FingerprintSpec {
    FingerprintSpec::new(bytes)
        .slot_width(SlotWidth::Bits16)
        .replacement(replacement)
        .kernel(kernel)
}

fn fingerprint_lines(kernel: Kernel) -> impl Iterator<Item = Candidate> {
    Replacement::ALL.iter().map(move |replacement| Candidate {
        name: format!("fingerprint 32 x 16, {replacement}"),
        kernel,
        timed: false,
        build: Box::new(move |bytes| Ok(fingerprint(bytes, *replacement, kernel).build()?)),
    })
}

/// Published filters in one line each.
const BIT_LINES: [&str; 6] = [
    "bloom:k=4",
    "bloom:k=6",
    "bsbf:k=2",
    "rlbsbf:k=2",
    "rlbsbf:k=3",
    "sbf:k=2,d=1",
];

/// Lines with a window, in ticks of [`TICK_KEYS`] keys. None expires
/// before its line is full, so that the lines are as full as those of the other filters.
const TIMED_LINES: [&str; 6] = [
    "clocked:bits=16,refresh=false",
    "clocked:bits=16",
    "clocked:bits=32",
    "stamped:bits=32,refresh=false",
    "stamped:bits=32",
    "stamped:bits=64",
];

/// Dense lines: two lines of one page for a key.
const DENSE_LINES: [&str; 4] = [
    "dense:bits=16,replacement=fifo",
    "dense:bits=16",
    "dense:bits=32",
    "dense:bits=64",
];

/// Line filters by their specification.
fn lines(
    texts: &'static [&'static str],
    of_a_key: &'static str,
    timed: bool,
    kernel: Kernel,
) -> impl Iterator<Item = Candidate> {
    texts.iter().map(move |text| Candidate {
        name: format!("{text}, {of_a_key}"),
        kernel,
        timed,
        build: Box::new(move |bytes| {
            let spec = echoless_papers::parse(text)?.memory(bytes);
            Ok(spec.kernel(kernel).build_lines()?)
        }),
    })
}

/// Dense lines with a window.
const DENSE_TIMED_LINES: [&str; 3] = [
    "clocked:bits=16,refresh=false,dense=true",
    "clocked:bits=32,refresh=false,dense=true",
    "clocked:bits=32,dense=true",
];

/// All filters on one kernel.
pub(super) fn candidates(kernel: Kernel) -> impl Iterator<Item = Candidate> {
    fingerprint_lines(kernel)
        .chain(lines(&BIT_LINES, "one line", false, kernel))
        .chain(lines(&TIMED_LINES, "one line", true, kernel))
        .chain(lines(&DENSE_LINES, "two lines of a page", false, kernel))
        .chain(lines(
            &DENSE_TIMED_LINES,
            "two lines of a page",
            true,
            kernel,
        ))
}
