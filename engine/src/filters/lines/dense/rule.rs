//! The rule of dense lines: probe both lines of a key, push it in front of one of them.

use std::marker::PhantomData;

use super::slot::DenseSlot;
use crate::filters::lines::rule::{Counts, Rule};
use crate::filters::replacement::Policy;
use crate::hash::KeyHash;
use crate::kernels::{LineOps, Outcome, PAGE_LINES, Page, PageKey, scalar::Scalar};
use crate::memory::Line;
use crate::report::{AgeOrigin, Cells, MissAge, RateSum, Report, Tally};
use crate::theory::dense::DenseGeometry;

/// The factor of the load in the coin: odd, so that one more turns it.
const COIN_STEP: u64 = 37;

/// A mask of the low `count` bits.
const fn low_bits(count: u32) -> u64 {
    (1 << count) - 1
}

/// All ones if the mask of at most 32 slots is 0, else 0.
#[inline(always)]
const fn if_zero(found: u64) -> u64 {
    ((found.cast_signed() - 1) >> 63).cast_unsigned()
}

/// `then` if the mask is all ones, `otherwise` if it is 0.
#[inline(always)]
const fn select(mask: u64, then: u64, otherwise: u64) -> u64 {
    otherwise ^ ((otherwise ^ then) & mask)
}

/// FIFO or LRU dense lines. A key is a duplicate if and only if its fingerprint is in one of its
/// two lines.
///
/// A false positive is a key that was never seen but matches a fingerprint of its lines. A false
/// negative is a key that younger keys evicted. The tally counts evictions; without any there are
/// no false negatives.
#[derive(Debug, Clone, Copy)]
pub(super) struct DenseRule<S, P> {
    /// The number of lines of the whole filter.
    lines: u64,
    types: PhantomData<(S, P)>,
}

impl<S: DenseSlot, P: Policy> DenseRule<S, P> {
    /// The rule of a filter of so many lines, all partitions together.
    pub(super) const fn new(lines: u64) -> Self {
        const { assert!(!P::RECORDS_DUPLICATES) };
        Self {
            lines,
            types: PhantomData,
        }
    }

    const fn geometry(self) -> DenseGeometry {
        DenseGeometry::of_width(self.lines, S::WIDTH)
    }

    /// Whether a duplicate moves to the front.
    const RENEWS: bool = matches!(P::AGE_ORIGIN, Some(AgeOrigin::LastSeen));

    /// The home and the partner of a key in its page.
    #[inline(always)]
    fn pair(self, key: KeyHash, page_key: PageKey) -> (usize, usize) {
        // The remainder proves the index to the compiler, which then omits the bounds checks.
        let home = key.line(self.lines) as usize % PAGE_LINES;
        (home, (home ^ page_key.step) % PAGE_LINES)
    }

    /// By how much the second load exceeds the first, both modulo 2^bits.
    #[inline(always)]
    const fn lead(first: u64, second: u64) -> i64 {
        let unused = 64 - S::LOAD_BITS;
        (second.wrapping_sub(first) << unused).cast_signed() >> unused
    }
}

impl<S: DenseSlot, P: Policy> Rule for DenseRule<S, P> {
    type Bucket = Page;

    const HAS_PORTABLE_LOOP: bool = true;

    const COUNTS_EVICTIONS: bool = true;

    // Without branches on what was found or on which line has the lower load: neither could be
    // predicted. The choices are masks computed from numbers: from comparisons, also as
    // `select_unpredictable`, the compiler makes one branch.
    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, page: &mut Page, key: KeyHash) -> Outcome {
        let page_key = PageKey::new(key);
        let (home, partner) = self.pair(key, page_key);
        let fingerprint = S::fingerprint(key);
        let in_home = fingerprint.find(ops, &page[home]);
        let in_partner = fingerprint.find(ops, &page[partner]);
        let loads = (S::load(ops, &page[home]), S::load(ops, &page[partner]));
        let lead = Self::lead(loads.0, loads.1);
        // Fresh: the line with the lower load. Else: the line that holds the key.
        let (not_home, not_partner) = (if_zero(in_home), if_zero(in_partner));
        let fresh = not_home & not_partner;
        let at_partner = not_home & (!not_partner | (lead >> 63).cast_unsigned());
        let line = select(at_partner, partner as u64, home as u64) as usize % PAGE_LINES;
        let found = select(at_partner, in_partner, in_home);
        let load = select(at_partner, loads.1, loads.0);
        // Rounded up or down by the coin, so that small differences count too. The load is part of
        // it, so that a recurring key is not rounded the same way each time.
        let coin = page_key.coin.wrapping_add(load.wrapping_mul(COIN_STEP));
        let inserted =
            S::INSERTION + ((lead.unsigned_abs() + (coin & low_bits(S::CATCH_UP))) >> S::CATCH_UP);
        let slots = S::COUNT.ilog2();
        let position = u64::from(found.trailing_zeros());
        let renewed = (S::INSERTION * position + (coin & low_bits(slots))) >> slots;
        let renewed = if Self::RENEWS { renewed } else { 0 };
        let load = load + select(fresh, inserted, renewed);

        let line = &mut page[line];
        let displaced = S::slots(line)[S::KEYS - 1].is_occupied();
        let moved = P::moved(found, S::KEYS as u32) & (u64::MAX >> (64 - S::KEYS));
        ops.push_front(line, fingerprint, moved);
        S::set_load(ops, line, load);
        Outcome {
            duplicate: fresh == 0,
            displaced,
        }
    }

    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        displaced & !duplicates
    }

    fn holds(self, page: &Page, key: KeyHash) -> bool {
        let fingerprint = S::fingerprint(key);
        let (home, partner) = self.pair(key, PageKey::new(key));
        let lines = [&page[home], &page[partner]];
        lines.iter().any(|line| fingerprint.find(Scalar, line) != 0)
    }

    /// Computed without reading the lines: every fresh key fills an empty slot or evicts a key.
    fn count(self, lines: &[Line], _total: u64, counts: Counts) -> (Cells, Option<RateSum>) {
        let slots = (lines.len() * S::KEYS) as u64;
        (Cells::new(counts.fresh - counts.evictions, slots), None)
    }

    fn cells(self, page: &Page) -> Cells {
        let slots = page.iter().flat_map(|line| &S::slots(line)[..S::KEYS]);
        let occupied = slots.filter(|slot| slot.is_occupied()).count();
        Cells::new(occupied as u64, (PAGE_LINES * S::KEYS) as u64)
    }

    fn fpr(self, page: &Page, _lines: u64) -> f64 {
        let occupied = self.cells(page).occupied as f64 / PAGE_LINES as f64;
        self.geometry().fpr_with(occupied)
    }

    fn estimates(self, tally: Tally) -> Report {
        let cells = tally.cells.unwrap_or(Cells::new(0, 0));
        let geometry = self.geometry();
        let lines = cells.total as f64 / S::KEYS as f64;
        let false_duplicates = geometry.false_duplicates(tally.fresh.unwrap_or(0));
        let age = match P::AGE_ORIGIN {
            Some(AgeOrigin::LastSeen) => geometry.lru_miss_age_keys(),
            Some(AgeOrigin::Recorded) | None => geometry.miss_age_keys(),
        };
        Report {
            slot_bits: Some(S::WIDTH.bits()),
            expected_fpr: Some(geometry.fpr_with(cells.occupied as f64 / lines)),
            expected_false_duplicates: Some(false_duplicates),
            miss_age: P::AGE_ORIGIN.map(|since| MissAge::new(age, since)),
            ..Report::new(tally)
        }
    }
}
