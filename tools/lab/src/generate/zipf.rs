//! Zipf's law over a number of ranks that may differ from draw to draw.
//!
//! Source: "Rejection-inversion to generate variates from monotone discrete distributions", ACM
//! TOMACS 6 (1996). It needs no tables and about one random word per rank. Powers and logarithms
//! are computed in software: those of the platforms differ in the last bit, and would change the
//! streams.

use libm::{exp, log, pow};
use rand_xoshiro::rand_core::Rng;

/// The distance between neighbouring uniform numbers.
const RESOLUTION: f64 = 1.0 / (1_u64 << 53) as f64;

/// Ranks from 1, rank `k` with a weight of `k^-exponent`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zipf {
    exponent: f64,
    /// A draw at most this far below its rank is accepted without computing the integral.
    squeeze: f64,
}

impl Zipf {
    /// The law with this exponent, above 0.
    pub(crate) fn new(exponent: f64) -> Self {
        let mut law = Self {
            exponent,
            squeeze: 0.0,
        };
        law.squeeze = 2.0 - law.integral_inverse(law.integral(2.5) - law.weight(2.0));
        law
    }

    /// Draws a rank from 1 to `ranks`.
    pub(crate) fn rank(&self, ranks: u64, random: &mut impl Rng) -> u64 {
        let lowest = self.integral(1.5) - 1.0;
        let highest = self.integral(ranks as f64 + 0.5);
        loop {
            let uniform = (random.next_u64() >> 11) as f64 * RESOLUTION;
            let area = highest + uniform * (lowest - highest);
            let at = self.integral_inverse(area);
            let rank = (at + 0.5).floor().clamp(1.0, ranks as f64);
            if rank - at <= self.squeeze || area >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }

    fn weight(&self, at: f64) -> f64 {
        pow(at, -self.exponent)
    }

    /// The integral of the weight from 1 to `at`.
    fn integral(&self, at: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power == 0.0 {
            log(at)
        } else {
            (pow(at, power) - 1.0) / power
        }
    }

    fn integral_inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power == 0.0 {
            exp(area)
        } else {
            pow((area * power + 1.0).max(0.0), 1.0 / power)
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn ranks_follow_the_law() {
        const DRAWS: u32 = 200_000;
        for exponent in [0.5, 1.0, 1.5, 3.0] {
            for ranks in [1, 2, 10, 1000] {
                let law = Zipf::new(exponent);
                let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
                let mut counts = vec![0u32; ranks as usize + 1];
                for _ in 0..DRAWS {
                    counts[law.rank(ranks, &mut random) as usize] += 1;
                }
                let weight = |rank: u64| (rank as f64).powf(-exponent);
                let weights: f64 = (1..=ranks).map(weight).sum();
                for rank in [1, 2, 5, 10].into_iter().filter(|rank| *rank <= ranks) {
                    let share = weight(rank) / weights;
                    let expected = share * f64::from(DRAWS);
                    let error = f64::from(counts[rank as usize]) - expected;
                    let deviation = (expected * (1.0 - share)).sqrt() + 1.0;
                    assert!(
                        error.abs() < 5.0 * deviation,
                        "exponent {exponent}, rank {rank} of {ranks}: off by {error} from {expected}"
                    );
                }
            }
        }
    }
}
