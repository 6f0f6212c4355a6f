//! Dense lines: a key has two lines of one page, and a fresh key goes where it displaces less.
//!
//! Lines fill unevenly, so with one line a key most slots hold keys that are older than the age at
//! which misses begin. With a choice of two lines they fill evenly, and nearly all slots hold keys
//! of the promised age.
//!
//! ```text
//! page (64 lines, 4 KiB)   | 0 | 1 | ... | home | ... | partner | ... | 63 |
//!
//! page, home     the high bits of the hash, as in all line filters: floor(hash * lines / 2^64)
//! partner        home ^ step, step 1 to 63 from a product of the whole hash (`PageKey`)
//! fingerprint    the low bits of the hash
//!
//! visit   found in either line:   a duplicate; LRU moves it to the front of the line that holds it
//!         found in none:          pushed in front of the line with the lower load; of equal ones,
//!                                 in front of its home
//! ```
//!
//! Both lines lie in one page of memory, so a key costs two cache lines but one entry of the TLB.
//! A partition is a range of pages. Nothing outside its page affects a key.
//!
//! Each line has a **load**: the number of its insertions, in fractions of one, modulo 2^bits. Two
//! loads are compared by their wrapped difference. An insertion adds 1 and a part of what the line
//! is behind the other one (`CATCH_UP`). With insertions alone, a line that was left out for a
//! while would be refilled in a burst, at the expense of the keys that it holds. Forgiving a
//! part of the difference remembers fewer insertions, as the age of the oldest key does, and keeps
//! more keys than choosing the line whose oldest key is older (`bench/record/TRIED.md`).
//!
//! With LRU, a duplicate found in slot i of n moves i keys down, and adds i / n. Without that,
//! lines whose keys are seen again would get as many new keys as lines whose keys are not, and lose
//! those that wait: on streams with many duplicates ten times as many were missed.
//!
//! The load of a line takes no slot where slots are few (`page_slot`):
//!
//! ```text
//! 16-bit slots   | 31 fingerprints of 16 bits                       | load, 16 bits |
//! 32-bit slots   | 11 fingerprints of 32 bits | 5 of 31 bits, and a bit of the load each |
//! 64-bit slots   | 8 fingerprints of 63 bits, and a bit of the load each |
//! ```
//!
//! The clock word of lines with a window counts their live keys, so they need no load (`clocked_pages`).

use std::marker::PhantomData;

use super::page_slot::DenseSlot;
use super::shape::{if_zero, select};
use crate::error::BuildError;
use crate::filters::lines::Progress;
use crate::filters::lines::rule::Rule;
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::ReplacementPolicy;
use crate::hash::KeyHash;
use crate::kernels::{LineOps, Outcome, PAGE_LINES, Page, PageKey, scalar::Scalar};
use crate::report::{AgeOrigin, Cells, MissAge, Report, Tally};
use crate::theory::dense::DenseGeometry;

/// The factor of the load in the coin: odd, so that one more turns it.
const COIN_STEP: u64 = 37;

/// A mask of the low `count` bits.
const fn low_bits(count: u32) -> u64 {
    (1 << count) - 1
}

/// Random bits that round what is added to a load up or down, so that small differences count too.
/// The load is part of them: a recurring key is then rounded in another way each time.
#[inline(always)]
const fn coin(key: PageKey, load: u64) -> u64 {
    key.coin.wrapping_add(load.wrapping_mul(COIN_STEP))
}

/// FIFO or LRU dense lines. A key is a duplicate if and only if its fingerprint is in one of its
/// two lines.
///
/// A false positive is a key that was never seen but matches a fingerprint of its lines. A false
/// negative is a key that younger keys evicted. The tally counts evictions; without any there are
/// no false negatives.
#[derive(Debug, Clone, Copy)]
struct DenseRule<S, P> {
    /// The number of lines of the whole filter.
    lines: u64,
    types: PhantomData<(S, P)>,
}

impl<S: DenseSlot, P: ReplacementPolicy> DenseRule<S, P> {
    /// The rule of a filter of so many lines, all partitions together.
    const fn new(lines: u64) -> Self {
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

    /// By how much the second load exceeds the first, both modulo 2^bits.
    #[inline(always)]
    const fn lead(first: u64, second: u64) -> i64 {
        let unused = 64 - S::LOAD_BITS;
        (second.wrapping_sub(first) << unused).cast_signed() >> unused
    }
}

impl<S: DenseSlot, P: ReplacementPolicy> Rule for DenseRule<S, P> {
    type Bucket = Page;

    const HAS_PORTABLE_LOOP: bool = true;

    const COUNTS_EVICTIONS: bool = true;

    // One branch, on whether the key was found: streams have mostly duplicates or mostly fresh
    // keys, and a fresh key then waits neither for the comparisons nor for what a duplicate needs.
    // Which of two lines it is could not be predicted. These choices are masks computed from
    // numbers: from comparisons, also as `select_unpredictable`, the compiler makes branches.
    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, page: &mut Page, key: KeyHash) -> Outcome {
        let page_key = PageKey::new(key);
        let [home, partner] = page_key.pair(key.line(self.lines));
        let fingerprint = S::fingerprint(key);
        let in_home = fingerprint.find(ops, &page[home]);
        let in_partner = fingerprint.find(ops, &page[partner]);
        let loads = (S::load(ops, &page[home]), S::load(ops, &page[partner]));
        let lead = Self::lead(loads.0, loads.1);
        let duplicate = in_home | in_partner != 0;
        let (at_partner, found, load) = if duplicate {
            if !Self::RENEWS {
                // `evictions` does not count what a duplicate displaces.
                return Outcome::of(true);
            }
            // The line that holds the key.
            let at_partner = if_zero(in_home);
            let found = in_home | in_partner & at_partner;
            let load = select(at_partner, loads.1, loads.0);
            let slots = S::COUNT.ilog2();
            let position = u64::from(found.trailing_zeros());
            let renewed =
                (S::INSERTION * position + (coin(page_key, load) & low_bits(slots))) >> slots;
            (at_partner, found, load + renewed)
        } else {
            // The line with the lower load.
            let at_partner = (lead >> 63).cast_unsigned();
            let load = select(at_partner, loads.1, loads.0);
            let behind = lead.unsigned_abs() + (coin(page_key, load) & low_bits(S::CATCH_UP));
            (at_partner, 0, load + S::INSERTION + (behind >> S::CATCH_UP))
        };
        let line = &mut page[(home ^ page_key.step & at_partner as usize) % PAGE_LINES];
        let displaced = S::slots(line)[S::KEYS - 1].is_occupied();
        let moved = P::moved(found, S::KEYS as u32) & (u64::MAX >> (64 - S::KEYS));
        ops.push_front(line, fingerprint, moved);
        S::set_load(ops, line, load);
        Outcome {
            duplicate,
            displaced,
        }
    }

    fn duplicates_change_lines(self) -> bool {
        Self::RENEWS
    }

    fn holds(self, page: &Page, key: KeyHash) -> bool {
        let fingerprint = S::fingerprint(key);
        let pair = PageKey::new(key).pair(key.line(self.lines));
        pair.iter()
            .any(|line| fingerprint.find(Scalar, &page[*line]) != 0)
    }

    /// Every fresh key fills an empty slot or evicts a key.
    fn counted_cells(self, lines: usize, counts: Progress) -> Option<Cells> {
        let slots = (lines * S::KEYS) as u64;
        let occupied = counts.fresh.saturating_sub(counts.evictions);
        Some(Cells::new(occupied, slots))
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

/// Builds lines of which a key has two: the form of [`FingerprintSpec`](crate::FingerprintSpec) that
/// remembers most keys in its memory.
///
/// The memory is rounded down to whole pages of 4 KiB, and partitions are ranges of pages. Cache
/// lines touched per key: 2, both in one page.
///
/// Source: lines are rows of quotient hash tables (paper 002, section 3); a choice of two for each
/// key is that of Azar, Broder, Karlin, Upfal: Balanced Allocations, 1994.
pub(super) fn build<S: DenseSlot, P: ReplacementPolicy>(
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let lines = allocation.total_lines();
    allocation.build(DenseRule::<S, P>::new(lines))
}
