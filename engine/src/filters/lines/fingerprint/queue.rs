//! A line as one row of fingerprints that is a queue: the newest enters at slot 0, and a
//! replacement policy decides which of the others move up.
//!
//! ```text
//!  line (64 bytes), 16-bit slots
//!  +-----+-----+-----+-----+- ... -+-----+
//!  |  0  |  1  |  2  |  3  |       | 31  |    newest first; 0 is an empty slot
//!  +-----+-----+-----+-----+- ... -+-----+
//!     ^ a new key enters here          ^ the oldest is evicted here
//!
//!  visit      find:       compare all slots with the fingerprint at once -> one bit per slot
//!             policy:     found bits -> the slots that move, a run from slot 0 on
//!             push_front: those slots move up by one, the fingerprint enters slot 0
//! ```
//!
//! On the vector kernels a hit and a miss run the same instructions: a branch on the verdict could
//! not be predicted.

use std::marker::PhantomData;

use crate::error::BuildError;
use crate::filters::lines::Progress;
use crate::filters::lines::rule::Rule;
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::{ForPolicy, Replacement, ReplacementPolicy};
use crate::hash::KeyHash;
use crate::kernels::{LineOps, Outcome, Slot, SlotOps, scalar::Scalar};
use crate::memory::Line;
use crate::report::{AgeOrigin, Cells, MissAge, Report, Tally};
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

/// QQHT, QQHTD and row-LRU in a line (paper 002, sections 3 and 5): a key is a duplicate if and
/// only if its fingerprint is in the row.
///
/// A false positive is a key that was never seen but matches a fingerprint of its line. The
/// probability is at most [`FingerprintGeometry::full_fpr`]. A false negative is a key that younger
/// keys of its line evicted. The tally counts evictions; without any there are no false negatives.
#[derive(Debug, Clone, Copy)]
struct QueueRule<S, P> {
    types: PhantomData<(S, P)>,
}

impl<S: Slot, P: ReplacementPolicy> QueueRule<S, P> {
    const WIDTH: SlotWidth = SlotWidth::from_bytes(S::BYTES);

    /// Of numbers or of bits: what was observed if every key takes a further slot, else what was
    /// fresh.
    #[inline(always)]
    fn pushed(observed: u64, fresh: u64) -> u64 {
        if P::RECORDS_DUPLICATES {
            observed
        } else {
            fresh
        }
    }
}

impl<S: Slot, P: ReplacementPolicy> Rule for QueueRule<S, P> {
    type Bucket = Line;

    const HAS_PORTABLE_LOOP: bool = true;

    const COUNTS_EVICTIONS: bool = true;

    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        let fingerprint = S::from_key(key);
        let found = ops.find(line, fingerprint);
        // Read before the push overwrites it. Whether the push evicts depends on the verdict too;
        // `evictions` combines both for 64 keys at a time.
        let displaced = ops.last_is_occupied::<S>(line);
        ops.push_front(line, fingerprint, P::moved(found, S::COUNT as u32));
        Outcome {
            duplicate: found != 0,
            displaced,
        }
    }

    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        // A duplicate that moves within its row needs no further slot, so it evicts no key. Only
        // QQHTD inserts duplicates again.
        displaced & Self::pushed(u64::MAX, !duplicates)
    }

    fn duplicates_change_lines(self) -> bool {
        P::CHANGED_BY_DUPLICATES
    }

    fn holds(self, line: &Line, key: KeyHash) -> bool {
        Scalar.find(line, S::from_key(key)) != 0
    }

    /// Every push fills an empty slot or evicts a key.
    fn counted_cells(self, lines: usize, counts: Progress) -> Option<Cells> {
        let pushed = Self::pushed(counts.observed, counts.fresh);
        let slots = (lines * S::COUNT) as u64;
        Some(Cells::new(pushed.saturating_sub(counts.evictions), slots))
    }

    fn cells(self, line: &Line) -> Cells {
        let empty = Scalar.find(line, S::zeroed()).count_ones();
        Cells::new(S::COUNT as u64 - u64::from(empty), S::COUNT as u64)
    }

    fn fpr(self, line: &Line, lines: u64) -> f64 {
        let geometry = FingerprintGeometry::new(lines, Self::WIDTH);
        let occupied = self.cells(line).occupied as f64;
        geometry.fpr_with(P::RECORDS_DUPLICATES, occupied)
    }

    fn estimates(self, tally: Tally) -> Report {
        let fresh = tally.fresh.unwrap_or(0);
        let pushed = Self::pushed(tally.observed.unwrap_or(0), fresh);
        estimates(
            tally,
            Self::WIDTH,
            pushed,
            P::RECORDS_DUPLICATES,
            P::AGE_ORIGIN,
        )
    }
}

/// The estimates of queues that `pushed` keys were pushed into. It is compiled once for all widths
/// and policies.
fn estimates(
    tally: Tally,
    width: SlotWidth,
    pushed: u64,
    records_duplicates: bool,
    since: Option<AgeOrigin>,
) -> Report {
    let cells = tally.cells.unwrap_or(Cells::new(0, 0));
    let lines = cells.total / u64::from(width.slots());
    let geometry = FingerprintGeometry::new(lines, width);
    // The expected number holds for keys that were all never seen before. Of the pushed keys, only
    // the fresh ones can be.
    let fresh_fraction = tally.fresh.unwrap_or(0) as f64 / pushed.max(1) as f64;
    let false_duplicates = geometry.false_duplicates(records_duplicates, pushed);
    let occupied_per_line = cells.occupied as f64 / lines as f64;
    Report {
        slot_bits: Some(width.bits()),
        expected_fpr: Some(geometry.fpr_with(records_duplicates, occupied_per_line)),
        expected_false_duplicates: Some(false_duplicates * fresh_fraction),
        miss_age: since.map(|since| MissAge::new(geometry.miss_age_keys(), since)),
        ..Report::new(tally)
    }
}

/// Builds a line filter with slots of this width and this policy.
pub(super) fn build(
    width: SlotWidth,
    replacement: Replacement,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    match width {
        SlotWidth::Bits8 => build_width::<u8>(replacement, allocation),
        SlotWidth::Bits16 => build_width::<u16>(replacement, allocation),
        SlotWidth::Bits32 => build_width::<u32>(replacement, allocation),
        SlotWidth::Bits64 => build_width::<u64>(replacement, allocation),
    }
}

fn build_width<S: Slot>(
    replacement: Replacement,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    replacement.dispatch(BuildQueue::<S> {
        allocation,
        slot: PhantomData,
    })
}

/// The parts of a queue filter before the policy becomes a type.
struct BuildQueue<S> {
    allocation: LineAllocation,
    slot: PhantomData<S>,
}

impl<S: Slot> ForPolicy for BuildQueue<S> {
    type Output = Result<Box<dyn LineFilter>, BuildError>;

    fn call<P: ReplacementPolicy>(self) -> Self::Output {
        self.allocation
            .build(QueueRule::<S, P> { types: PhantomData })
    }
}
