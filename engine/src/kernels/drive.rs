//! The batch loop that every line filter runs in: fetch lines ahead, then visit them in order and pack the verdicts.

use crate::cpu::HotLoop;
use crate::hash::KeyHash;
use crate::memory::{Line, prefetch};

/// How many keys ahead a line is fetched, in an array of so many lines. Far enough to cover a memory access, near enough that the line is still
/// cached: arrays that are partly in the third-level cache are read faster, and the distance is worth more misses in flight.
#[inline(always)]
const fn look_ahead(lines: usize) -> usize {
    if lines < 1 << 21 { 192 } else { 128 }
}

/// What a filter does to the one line of a key.
pub(crate) trait LineStep {
    /// Tests and records the key in its line. Must be `#[inline(always)]`.
    fn visit(&self, line: &mut Line, key: KeyHash) -> Visit;

    /// Of up to 64 visits, one bit each, those that made the line forget another key.
    fn evictions(duplicates: u64, displaced: u64) -> u64;
}

/// What came of a visit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    /// The key is a duplicate.
    pub(crate) duplicate: bool,
    /// What the key would take, if it takes anything, was taken.
    pub(crate) displaced: bool,
}

/// The counts of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visits {
    pub(crate) duplicates: u64,
    pub(crate) evictions: u64,
}

/// Where a contiguous range of the lines of a filter begins: at its first line, or at that of a partition.
///
/// # Examples
/// ```
/// use echoless::KeyHash;
/// use echoless::filters::lines::LineRange;
/// let upper_half = LineRange { total: 1000, first: 500 };
/// assert_eq!(upper_half.position(KeyHash(3 << 62)), 250);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// How many lines the whole filter has.
    pub total: u64,
    /// The first line of the range.
    pub first: u64,
}

impl LineRange {
    /// Where the line of a key lies in an array that holds this range; past its end if the key is not of this range.
    #[must_use]
    #[inline(always)]
    pub const fn position(self, key: KeyHash) -> usize {
        key.line(self.total).wrapping_sub(self.first) as usize
    }
}

/// One batch on its way through the lines.
pub(crate) struct Drive<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) range: LineRange,
    pub(crate) keys: &'a [KeyHash],
    pub(crate) duplicates: &'a mut [u64],
    pub(crate) step: S,
}

impl<S: LineStep> HotLoop for Drive<'_, S> {
    type Output = Visits;

    #[inline(always)]
    fn run(self) -> Visits {
        let Self {
            lines,
            range,
            keys,
            duplicates,
            step,
        } = self;
        assert_eq!(
            duplicates.len(),
            keys.len().div_ceil(64),
            "one verdict word for each 64 keys"
        );
        let ahead = look_ahead(lines.len());
        for key in keys.iter().take(ahead) {
            prefetch(lines, range.position(*key));
        }
        let mut visits = Visits::default();
        for ((keys, ahead), word) in keys
            .chunks(64)
            .zip(blocks_ahead(keys, ahead))
            .zip(duplicates)
        {
            let mut bits = Bits::default();
            let whole: (Result<&[_; 64], _>, Result<&[_; 64], _>) =
                (keys.try_into(), ahead.try_into());
            if let (Ok(keys), Ok(ahead)) = whole {
                // The common case: a known count and nothing to check saves a tenth of the instructions.
                for (key, next) in keys.iter().zip(ahead) {
                    prefetch(lines, range.position(*next));
                    bits.push(step.visit(&mut lines[range.position(*key)], *key));
                }
            } else {
                for key in ahead {
                    prefetch(lines, range.position(*key));
                }
                for key in keys {
                    bits.push(step.visit(&mut lines[range.position(*key)], *key));
                }
            }
            *word = bits.duplicate.reverse_bits() >> (64 - keys.len());
            visits.duplicates += u64::from(bits.duplicate.count_ones());
            let evictions = S::evictions(bits.duplicate, bits.displaced);
            visits.evictions += u64::from(evictions.count_ones());
        }
        visits
    }
}

/// What came of up to 64 visits, in registers, counted once for all of them. The latest is in the lowest bit: to shift in from below costs
/// an add with carry.
#[derive(Default)]
struct Bits {
    duplicate: u64,
    displaced: u64,
}

impl Bits {
    #[inline(always)]
    fn push(&mut self, visit: Visit) {
        self.duplicate = self.duplicate << 1 | u64::from(visit.duplicate);
        self.displaced = self.displaced << 1 | u64::from(visit.displaced);
    }
}

/// For each 64 keys, those that are so many ahead of them: fewer than 64, or none, towards the end.
#[inline(always)]
fn blocks_ahead(keys: &[KeyHash], ahead: usize) -> impl Iterator<Item = &[KeyHash]> {
    let ahead = keys.get(ahead..).unwrap_or_default();
    ahead.chunks(64).chain(std::iter::repeat(&[][..]))
}
