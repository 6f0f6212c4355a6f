//! Dense clocked lines: [clocked lines](super::clocked) of which a key has two.
//!
//! The counts of a line include that of its live keys, so no load needs a place in it: a fresh key
//! goes where fewer are alive. If both lines have as many, it goes where fewer are younger than the
//! window by a unit, then by two, and so on: of two full lines that one evicts the older key. Of
//! equal lines it goes into its home.
//!
//! A window with far more keys than the memory holds is the exception: all keys of a line are of
//! one unit then, no line differs from another, and a key is remembered as long as with one line.

use super::clocked::{ClockedRule, Probed};
use super::shape::if_zero;
use crate::error::BuildError;
use crate::filters::lines::Clock;
use crate::filters::lines::rule::Rule;
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::ReplacementPolicy;
use crate::filters::units::Units;
use crate::hash::KeyHash;
use crate::kernels::{LineOps, Outcome, PAGE_LINES, Page, PageKey, Slot, scalar::Scalar};
use crate::memory::{LINE_BYTES, Line};
use crate::report::{AgeOrigin, Cells, MissAge, Report, Tally};
use crate::theory::dense::ClockedGeometry;

/// FIFO or LRU clocked lines, of which a key has two in a page. A key is a duplicate if and only if
/// its fingerprint is alive in one of them.
#[derive(Debug, Clone, Copy)]
struct DenseClockedRule<S, P> {
    /// The number of lines of the whole filter.
    lines: u64,
    /// What happens in one line.
    line: ClockedRule<S, P>,
}

impl<S: Slot, P: ReplacementPolicy> DenseClockedRule<S, P> {
    /// Whether a duplicate renews its key.
    const RENEWS: bool = matches!(P::AGE_ORIGIN, Some(AgeOrigin::LastSeen));

    const fn geometry(lines: u64) -> ClockedGeometry {
        ClockedGeometry::new(lines, 8 * S::BYTES as u32)
    }
}

impl<S: Slot, P: ReplacementPolicy> Rule for DenseClockedRule<S, P> {
    type Bucket = Page;

    const HAS_PORTABLE_LOOP: bool = true;

    const COUNTS_EVICTIONS: bool = true;
    const HAS_CLOCK: bool = true;

    #[inline(always)]
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        self.line.clock_mut()
    }

    fn expire(self, line: &mut Line, units: u64) {
        self.line.expire(line, units);
    }

    // One branch, and masks from numbers, for the reasons that dense lines without a clock have.
    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, page: &mut Page, key: KeyHash) -> Outcome {
        let [home, partner] = PageKey::new(key).pair(key.line(self.lines));
        let fingerprint = S::from_key(key);
        let in_home = self.line.probe(ops, &page[home], fingerprint);
        let in_partner = self.line.probe(ops, &page[partner], fingerprint);
        let duplicate = in_home.found | in_partner.found != 0;
        let at_partner = if duplicate {
            if !Self::RENEWS {
                // `evictions` does not count what a duplicate displaces.
                return Outcome::of(true);
            }
            // The line that holds the key.
            if_zero(in_home.found)
        } else {
            // The line with the lower load: loads have 36 bits, so the difference has a sign.
            let lead = self
                .line
                .load(in_partner)
                .wrapping_sub(self.line.load(in_home));
            (lead.cast_signed() >> 63).cast_unsigned()
        };
        let probed = Probed::select(at_partner, in_partner, in_home);
        let at = (home ^ (home ^ partner) & at_partner as usize) % PAGE_LINES;
        Outcome {
            duplicate,
            displaced: self.line.record(ops, &mut page[at], fingerprint, probed),
        }
    }

    fn duplicates_change_lines(self) -> bool {
        Self::RENEWS
    }

    fn holds(self, page: &Page, key: KeyHash) -> bool {
        let pair = PageKey::new(key).pair(key.line(self.lines));
        let fingerprint = S::from_key(key);
        let found = |line: &usize| self.line.probe(Scalar, &page[*line], fingerprint).found;
        pair.iter().any(|line| found(line) != 0)
    }

    fn cells(self, page: &Page) -> Cells {
        let cells = page.iter().map(|line| self.line.cells(line));
        cells.fold(Cells::new(0, 0), |sum, line| {
            Cells::new(sum.occupied + line.occupied, sum.total + line.total)
        })
    }

    fn fpr(self, page: &Page, lines: u64) -> f64 {
        let live = self.cells(page).occupied as f64 / PAGE_LINES as f64;
        Self::geometry(lines).fpr_with(live)
    }

    fn estimates(self, tally: Tally) -> Report {
        let report = self.line.estimates(tally);
        let geometry = Self::geometry(tally.memory_bytes / LINE_BYTES);
        let age = geometry.miss_age_keys();
        Report {
            most_fpr: Some(geometry.fpr_with(ClockedRule::<S, P>::SLOTS as f64)),
            miss_age: report
                .miss_age
                .map(|one_line| MissAge::new(age, one_line.since).least(one_line.age)),
            ..report
        }
    }
}

/// Builds dense clocked lines of slots of this width.
pub(super) fn build<S: Slot, P: ReplacementPolicy>(
    units: Units,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let lines = allocation.total_lines();
    let line = ClockedRule::<S, P>::new(units);
    allocation.build(DenseClockedRule { lines, line })
}
