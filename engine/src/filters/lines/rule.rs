//! What a line filter does with the bucket of a key: its line, or the page with its two lines. To
//! add a line form, implement [`Rule`].

use std::fmt;

use super::Progress;
use super::clock::Clock;
use crate::hash::KeyHash;
use crate::kernels::{Bucket, LineOps, Outcome};
use crate::memory::Line;
use crate::report::{Cells, RateSum, Report, Tally};

/// The algorithm of a line filter: when a key is a duplicate, and how it changes its bucket.
///
/// A rule must depend on nothing but itself, the key and the bucket. Verdicts are then the same for
/// any partitioning and on every kernel.
pub trait Rule: Copy + fmt::Debug + Send + Sync + 'static {
    /// What the hash of a key selects: a line, or a page of lines.
    type Bucket: Bucket;

    /// Whether evictions can be counted from outcomes. Most rules clear single bits
    /// or decrement counters and cannot attribute them to a key.
    const COUNTS_EVICTIONS: bool = false;

    /// Whether the portable kernel has a loop for the rule, and not only the scalar code. Its
    /// vectors gain something where all slots of a line are compared; rows, counters and bits are
    /// too short for them.
    const HAS_PORTABLE_LOOP: bool;

    /// Whether the rule has a clock: verdicts depend on the ticks of keys, and
    /// [`advance_to`](Self::advance_to) can begin an era. Such a rule has
    /// [`clock_mut`](Self::clock_mut) and [`expire`](Self::expire).
    const HAS_CLOCK: bool = false;

    /// The clock of the rule, if it has one. Must be `#[inline(always)]`, as [`visit`](Self::visit).
    #[inline(always)]
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        const { assert!(!Self::HAS_CLOCK, "a rule with a clock returns it") }
        None
    }

    /// Moves the clock. If an era begins, returns the units from the clock before to its first
    /// unit: every line must [`expire`](Self::expire) them before anything reads its times, which
    /// may wrap around.
    fn advance_to(&mut self, tick: u64) -> Option<u64> {
        self.clock_mut()?.advance_to(tick)
    }

    /// Moves the clock to a tick before [`next_era`](Self::next_era), so that no line expires.
    #[inline(always)]
    fn follow(&mut self, tick: u64) {
        if let Some(clock) = self.clock_mut() {
            clock.follow(tick);
        }
    }

    /// The first tick at which [`advance_to`](Self::advance_to) begins another era.
    fn next_era(mut self) -> u64 {
        (self.clock_mut()).map_or(u64::MAX, |clock| clock.next_era())
    }

    /// The first tick of the current unit of the clock; 0 without a clock.
    fn tick(mut self) -> u64 {
        self.clock_mut().map_or(0, |clock| clock.tick())
    }

    /// Moves the clock back to 0.
    fn restart(&mut self) {
        if let Some(clock) = self.clock_mut() {
            clock.restart();
        }
    }

    /// Ages a line by units of the clock. `self` has the clock from before they passed.
    fn expire(self, _line: &mut Line, _units: u64) {}

    /// Probes the bucket for the key and inserts the key. Must be `#[inline(always)]`, because the
    /// batch loop that it is inlined into is compiled with the features of the kernel.
    fn visit<O: LineOps>(self, ops: O, bucket: &mut Self::Bucket, key: KeyHash) -> Outcome;

    /// Which of up to 64 visits evicted another key, one bit each, from the bits of their outcomes:
    /// those of fresh keys, if the rule counts evictions and a duplicate inserts nothing.
    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        if Self::COUNTS_EVICTIONS {
            displaced & !duplicates
        } else {
            0
        }
    }

    /// Whether a visit of a duplicate can change its bucket. Where it cannot, the fresh keys alone
    /// lead to the same lines.
    fn duplicates_change_lines(self) -> bool {
        true
    }

    /// Whether the key would be reported as a duplicate.
    fn holds(self, bucket: &Self::Bucket, key: KeyHash) -> bool;

    /// The cells of one bucket, occupied and in total.
    fn cells(self, bucket: &Self::Bucket) -> Cells;

    /// The probability that a key of this bucket that was never seen would be reported as a
    /// duplicate. `lines` is the number of lines of the whole filter.
    fn fpr(self, bucket: &Self::Bucket, lines: u64) -> f64;

    /// The cells of so many lines that were observed such keys, without reading them; `None` if
    /// they do not follow from that.
    fn counted_cells(self, _lines: usize, _counts: Progress) -> Option<Cells> {
        None
    }

    /// Reads lines: their cells, and the sum of their false positive rates. `total` is the number
    /// of lines of the whole filter.
    fn count(self, lines: &[Line], total: u64) -> (Cells, RateSum) {
        let mut cells = Cells::new(0, 0);
        let mut rates = RateSum::default();
        for bucket in Self::Bucket::all(lines) {
            let here = self.cells(bucket);
            cells.occupied += here.occupied;
            cells.total += here.total;
            rates.push(self.fpr(bucket, total));
        }
        (cells, rates)
    }

    /// The estimates that follow from a tally.
    fn estimates(self, tally: Tally) -> Report {
        Report::new(tally)
    }
}
