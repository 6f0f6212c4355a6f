//! Bit filters in a line: Bloom, RSBF, BSBF, BSBFSD and RLBSBF as one rule, generic over the layout
//! of the filters in a line ([`BitLayout`]) and the ageing policy ([`LineAgeing`]).

use super::ageing::{
    ByFill, ByReservoir, COUNTED_LINE_BITS, EachFilter, LineAgeing, MOST_ARRIVALS, Never, OneFilter,
};
use super::layout::{Arrival, BitLayout, ConstCount, Ranges, WholeWords, ones};
use super::random::Salt;
use crate::kernels::{BitOps, LINE_BITS, with_bits};
use crate::scattered::bits::{Ageing, BitsSpec, Reservoir};
use echoless::extend::{LineAllocation, LineOps, MOST_HASHES, Outcome, Rule, Scalar, within};
use echoless::memory::Line;
use echoless::{BuildError, Cells, KeyHash, LineFilter, SpecError};

/// A key is a duplicate if and only if its bit is set in each of the k filters of its line (paper
/// 000, section 3; Bloom 1970).
#[derive(Debug, Clone, Copy)]
pub(super) struct BitRule<P, A> {
    pub(super) layout: P,
    pub(super) ageing: A,
    pub(super) salt: Salt,
}

impl<P: BitLayout, A: LineAgeing> BitRule<P, A> {
    /// Probes the line for the key and inserts the key; true means duplicate.
    #[inline(always)]
    fn observe<O: BitOps>(self, ops: O, line: &mut Line, key: KeyHash) -> bool {
        // The draw first: everything else waits for it. And the compiler would take the pieces that
        // `fold` loads from the register of the whole line, which takes longer.
        let draw = self.salt.draw(key, ops.fold(line));
        let bits = ops.load(line);
        let own = self.layout.of_key(ops, key);
        let seen = ops.covers(bits, own);
        let arrival = Arrival {
            ops,
            key,
            own,
            seen,
            draw,
        };
        self.ageing.age(self.layout, line, arrival);
        seen
    }
}

impl<P: BitLayout, A: LineAgeing> Rule for BitRule<P, A> {
    type Bucket = Line;

    const HAS_PORTABLE_LOOP: bool = false;

    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        Outcome::of(with_bits!(ops, |bits| self.observe(bits, line, key)))
    }

    fn duplicates_change_lines(self) -> bool {
        A::COUNTS_ARRIVALS
    }

    fn holds(self, line: &Line, key: KeyHash) -> bool {
        Scalar.covers(*line, self.layout.of_key(Scalar, key))
    }

    fn fpr(self, line: &Line, _: u64) -> f64 {
        self.layout.chance_of_all(line, 1)
    }

    fn cells(self, line: &Line) -> Cells {
        let bits = self.layout.start(self.layout.filters());
        Cells::new(ones(line, 0, bits).into(), bits.into())
    }
}

/// Builds the line form of Bloom, RSBF, BSBF, BSBFSD or RLBSBF.
///
/// RSBF counts the arrivals of a line in 16 of its bits, which leaves 496 for filters. The i of its
/// s/i stops at 65,280. From there on `as=tabled` inserts one arrival in 65,280/s, while the
/// insertions of the paper get ever rarer.
pub(crate) fn build(
    spec: &BitsSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let hashes = within("k", spec.hashes, 1..=MOST_HASHES)?;
    match spec.ageing {
        Ageing::Never => build_ageing(hashes, Never, allocation),
        Ageing::EachFilter => build_ageing(hashes, EachFilter, allocation),
        Ageing::OneFilter => build_ageing(hashes, OneFilter, allocation),
        Ageing::ByFill => build_ageing(hashes, ByFill, allocation),
        Ageing::Reservoir(process) => build_reservoir(hashes, process, allocation),
    }
}

/// Selects the layout of `hashes` filters in a whole line. Common numbers have a layout of their
/// own: whole words where 512 bits divide into them, an unrolled loop for 3 and 6.
fn build_ageing(
    hashes: u32,
    ageing: impl LineAgeing,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    match hashes {
        1 => build_rule(WholeWords::<1>, ageing, allocation),
        2 => build_rule(WholeWords::<2>, ageing, allocation),
        3 => build_rule(
            Ranges::in_bits(ConstCount::<3>, LINE_BITS),
            ageing,
            allocation,
        ),
        4 => build_rule(WholeWords::<4>, ageing, allocation),
        6 => build_rule(
            Ranges::in_bits(ConstCount::<6>, LINE_BITS),
            ageing,
            allocation,
        ),
        8 => build_rule(WholeWords::<8>, ageing, allocation),
        _ => build_rule(Ranges::in_bits(hashes, LINE_BITS), ageing, allocation),
    }
}

/// Selects the layout of `hashes` filters in the 496 bits that the count leaves.
fn build_reservoir(
    hashes: u32,
    process: Reservoir,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let layout = Ranges::in_bits(hashes, COUNTED_LINE_BITS);
    if let Reservoir::Described { threshold } = process {
        // Below this the third phase would never begin, because i stops at its highest value first.
        let least = f64::from(COUNTED_LINE_BITS / hashes) / MOST_ARRIVALS as f64;
        if !(threshold == 0.0 || (least..=1.0).contains(&threshold)) {
            let allowed = format!("0, or {least:.2e} to 1 in the line form");
            return Err(SpecError::new("pstar", threshold.to_string(), allowed).into());
        }
    }
    match hashes {
        2 => {
            let layout = Ranges::in_bits(ConstCount::<2>, COUNTED_LINE_BITS);
            build_rule(layout, ByReservoir(process), allocation)
        }
        _ => build_rule(layout, ByReservoir(process), allocation),
    }
}

fn build_rule(
    layout: impl BitLayout,
    ageing: impl LineAgeing,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    allocation.build(BitRule {
        layout,
        ageing,
        salt: Salt::from_seed(allocation.seed),
    })
}
