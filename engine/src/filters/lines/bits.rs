//! Bit filters in a line: Bloom, RSBF, BSBF, BSBFSD and RLBSBF as one rule with a policy.

use super::ageing::{Arrival, LineAgeing};
use super::draw::Salt;
use super::filter::Rule;
use super::mask::{below, covers};
use super::places::Places;
use crate::hash::KeyHash;
use crate::memory::Line;

/// A key is a duplicate if and only if its bit is set in each of the k filters of its line (paper 000, section 3; Bloom 1970).
#[derive(Debug, Clone, Copy)]
pub(super) struct BitRule<P, A> {
    pub(super) places: P,
    pub(super) ageing: A,
    pub(super) salt: Salt,
}

impl<P: Places, A: LineAgeing> Rule for BitRule<P, A> {
    #[inline(always)]
    fn visit(self, line: &mut Line, key: KeyHash) -> bool {
        let own = self.places.of_key(key);
        let seen = covers(line, &own);
        let draw = self.salt.draw(line, key);
        *line = self.ageing.age(
            self.places,
            line,
            Arrival {
                key,
                own,
                seen,
                draw,
            },
        );
        seen
    }

    #[inline(always)]
    fn holds(self, line: &Line, key: KeyHash) -> bool {
        covers(line, &self.places.of_key(key))
    }

    fn load(self, line: &Line) -> f64 {
        let bits = self.places.start(self.places.filters());
        let own = below(bits);
        let ones: u32 = (0..8)
            .map(|index| (line.0[index] & own.0[index]).count_ones())
            .sum();
        f64::from(ones) / f64::from(bits)
    }
}
