//! The random choices of ageing in scattered filters, drawn from one generator per filter. The
//! specification seeds it, so that equal specifications and streams give equal verdicts.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A generator that keeps its seed, to start over when its filter is cleared.
#[derive(Debug, Clone)]
pub(crate) struct SeededRng {
    generator: Xoshiro256PlusPlus,
    seed: u64,
}

impl SeededRng {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            seed,
        }
    }

    /// Returns to the start of the sequence.
    pub(crate) fn restart(&mut self) {
        *self = Self::seeded(self.seed);
    }

    /// A number below `bound`, by multiply and shift. Its bias is below `bound / 2^64`.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.generator.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `numerator / denominator`.
    #[inline(always)]
    pub(crate) fn ratio(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// True with the given probability.
    #[inline(always)]
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        falls_below(self.generator.next_u64(), probability)
    }
}

/// Whether a random word, as a fraction of 2^64, is below `probability`.
#[inline(always)]
pub(crate) fn falls_below(word: u64, probability: f64) -> bool {
    // The upper 53 bits: as many as an f64 represents exactly, so that 1 is never reached.
    const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
    ((word >> 11) as f64) * UNIT < probability
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_and_restart_repeats_them() {
        let mut first = SeededRng::seeded(7);
        let mut second = SeededRng::seeded(7);
        let drawn: Vec<u64> = (0..100).map(|_| first.below(1000)).collect();
        assert_eq!(
            drawn,
            (0..100).map(|_| second.below(1000)).collect::<Vec<_>>()
        );
        first.restart();
        assert_eq!(
            drawn,
            (0..100).map(|_| first.below(1000)).collect::<Vec<_>>()
        );
        assert!(drawn.iter().all(|number| *number < 1000));
        let mut other = SeededRng::seeded(8);
        assert_ne!(
            drawn,
            (0..100).map(|_| other.below(1000)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn events_occur_with_their_probability() {
        let mut rng = SeededRng::seeded(1);
        let draws = 200_000;
        let ratio = (0..draws).filter(|_| rng.ratio(3, 10)).count() as f64 / f64::from(draws);
        let chance = (0..draws).filter(|_| rng.chance(0.3)).count() as f64 / f64::from(draws);
        assert!((ratio - 0.3).abs() < 0.005, "{ratio}");
        assert!((chance - 0.3).abs() < 0.005, "{chance}");
        assert!(!rng.chance(0.0));
        assert!(rng.chance(1.0));
        assert!(!rng.ratio(0, 5));
        assert!(rng.ratio(5, 5));
    }

    #[test]
    fn words_are_fractions_below_1() {
        assert!(!falls_below(0, 0.0));
        assert!(falls_below(u64::MAX, 1.0));
        assert!(falls_below((1 << 63) - 1, 0.5));
        assert!(!falls_below(1 << 63, 0.5));
    }
}
