//! Bit filters in a line: Bloom, RSBF, BSBF, BSBFSD and RLBSBF as one rule with a policy.

use super::ageing::{Arrival, LineAgeing};
use super::filter::Rule;
use super::layout::{BitLayout, ones};
use super::random::Salt;
use crate::hash::KeyHash;
use crate::kernels::{BitOps, SlotOps, scalar::Scalar};
use crate::memory::Line;

/// A key is a duplicate if and only if its bit is set in each of the k filters of its line (paper 000, section 3; Bloom 1970).
#[derive(Debug, Clone, Copy)]
pub(super) struct BitRule<P, A> {
    pub(super) layout: P,
    pub(super) ageing: A,
    pub(super) salt: Salt,
}

impl<P: BitLayout, A: LineAgeing> Rule for BitRule<P, A> {
    #[inline(always)]
    fn visit<O: BitOps + SlotOps>(self, ops: O, line: &mut Line, key: KeyHash) -> bool {
        let bits = ops.load(line);
        let own = self.layout.of_key(ops, key);
        let seen = ops.covers(bits, own);
        let draw = self.salt.draw(key, ops.fold(bits));
        let arrival = Arrival {
            key,
            own,
            seen,
            draw,
        };
        self.ageing.age(ops, self.layout, line, arrival);
        seen
    }

    fn holds(self, line: &Line, key: KeyHash) -> bool {
        Scalar.covers(*line, self.layout.of_key(Scalar, key))
    }

    fn fpr(self, line: &Line, _: u64) -> f64 {
        self.layout.chance_of_all(line, 1)
    }

    fn load(self, line: &Line) -> f64 {
        let bits = self.layout.start(self.layout.filters());
        f64::from(ones(line, 0, bits)) / f64::from(bits)
    }
}
