//! What the lines of fingerprints with a window report: rates from the live slots of each line, and
//! the estimates that follow from a tally. And choices without a branch, of lines in pages, too.

use crate::filters::replacement::ReplacementPolicy;
use crate::memory::{LINE_BYTES, Line};
use crate::report::{Cells, MissAge, RateSum, Report, Tally, Window};
use crate::theory::fingerprints;

/// A line has fewer slots than this.
const MOST_SLOTS: usize = 32;

/// What the estimates of a line of fingerprints depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedLineShape {
    pub(super) slots: u32,
    pub(super) slot_bits: u32,
    pub(super) fingerprint_bits: u32,
}

impl TimedLineShape {
    /// The probability that a new key matches one of the live slots of its line, of so many lines.
    pub(super) fn fpr(self, live: Cells, lines: u64) -> f64 {
        self.fpr_with(live.occupied, lines)
    }

    /// The slots of lines and their rates, from the live slots of each line. `total` is the number
    /// of lines of the whole filter.
    ///
    /// Lines with equally many live slots have equal rates, so a rate is computed for each number
    /// of them, and not for each line.
    #[inline(always)]
    pub(super) fn count(
        self,
        lines: &[Line],
        total: u64,
        live: impl Fn(&Line) -> u32,
    ) -> (Cells, RateSum) {
        let mut with_live = [0; MOST_SLOTS];
        for line in lines {
            with_live[live(line) as usize % MOST_SLOTS] += 1;
        }
        let mut cells = Cells::new(0, lines.len() as u64 * u64::from(self.slots));
        let mut rates = RateSum::default();
        for (live, lines) in (0..).zip(with_live) {
            cells.occupied += live * lines;
            rates.push_equal(self.fpr_with(live, total), lines);
        }
        (cells, rates)
    }

    pub(super) fn fpr_with(self, live: u64, lines: u64) -> f64 {
        live as f64 * fingerprints::match_probability(lines, self.fingerprint_bits)
    }
}

/// The report of lines of this shape.
///
/// The age at which misses begin is in distinct keys: how many arrive in a tick is not known here.
/// A key that is missed at that age and within the window was evicted. The number of false
/// duplicates so far is not known either, because the fill, and with it the rate, rises and falls
/// with the traffic.
pub(super) fn estimates<P: ReplacementPolicy>(
    tally: Tally,
    shape: TimedLineShape,
    window: Window,
) -> Report {
    let lines = tally.memory_bytes / LINE_BYTES;
    let age = fingerprints::miss_age_keys(lines, shape.slots, shape.fingerprint_bits);
    Report {
        slot_bits: Some(shape.slot_bits),
        most_fpr: Some(shape.fpr_with(shape.slots.into(), lines)),
        miss_age: P::AGE_ORIGIN.map(|since| MissAge::new(age, since)),
        window: Some(window),
        expired: expired(tally),
        ..Report::new(tally)
    }
}

/// Every fresh key takes a slot until it is evicted or expires.
fn expired(tally: Tally) -> Option<u64> {
    let live = tally.cells?.occupied;
    Some(
        tally
            .fresh?
            .saturating_sub(tally.evictions?)
            .saturating_sub(live),
    )
}

/// All ones if the mask of at most 32 slots is 0, else 0.
#[inline(always)]
pub(super) const fn if_zero(found: u64) -> u64 {
    ((found.cast_signed() - 1) >> 63).cast_unsigned()
}

/// `then` if the mask is all ones, `otherwise` if it is 0.
#[inline(always)]
pub(super) const fn select(mask: u64, then: u64, otherwise: u64) -> u64 {
    otherwise ^ ((otherwise ^ then) & mask)
}
