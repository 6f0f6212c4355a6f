//! The generator of the keys of a stream, in batches.

use rand_distr::{Distribution as _, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::definition::Distribution;

/// The draws of a [`Stream`](super::Stream).
#[derive(Debug, Clone)]
pub struct Draws {
    generator: Xoshiro256PlusPlus,
    distribution: Distribution,
    universe: u64,
    drawn: u64,
    records: u64,
}

impl Draws {
    pub(super) fn new(records: u64, universe: u64, distribution: Distribution, seed: u64) -> Self {
        Self {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            distribution,
            universe,
            drawn: 0,
            records,
        }
    }

    /// Fills the start of `batch` with the next keys and returns their number: the length of the
    /// batch, or less at the end of the stream.
    pub fn fill(&mut self, batch: &mut [u64]) -> usize {
        let len = (self.records - self.drawn).min(batch.len() as u64) as usize;
        let batch = &mut batch[..len];
        match &self.distribution {
            Distribution::Uniform => {
                for key in batch {
                    // The high half of the product maps 64 random bits to the universe without a
                    // division; the bias is at most universe / 2^64.
                    let product = u128::from(self.generator.next_u64()) * u128::from(self.universe);
                    *key = (product >> 64) as u64;
                }
            }
            Distribution::Zipf { exponent } => {
                let distribution =
                    Zipf::new(self.universe as f64, *exponent).expect("checked parameters");
                for key in batch {
                    let rank = distribution.sample(&mut self.generator) as u64;
                    *key = (rank - 1).min(self.universe - 1);
                }
            }
            Distribution::Recorded(records) => {
                let recorded = &records[self.drawn as usize..];
                for (key, recorded) in batch.iter_mut().zip(recorded) {
                    *key = u64::from(*recorded);
                }
            }
        }
        self.drawn += len as u64;
        len
    }
}

#[cfg(test)]
mod tests {
    use echoless::KeyHash;

    use crate::stream::Stream;

    #[test]
    fn equal_seeds_give_equal_draws_and_streams_end() {
        for stream in [
            Stream::uniform(150, 1000).unwrap(),
            Stream::zipf(150, 1000, 1.0).unwrap(),
            Stream::recorded((0..150).map(|key| KeyHash::from_uniform(key % 70))).unwrap(),
        ] {
            let (mut first, mut second) = (stream.draws(1), stream.draws(1));
            let (mut left, mut right) = ([0; 100], [0; 100]);
            for expected in [100, 50, 0] {
                assert_eq!(first.fill(&mut left), expected);
                assert_eq!(second.fill(&mut right), expected);
                assert_eq!(left, right);
            }
            assert!(left.iter().all(|key| *key < 1000));
        }
    }
}
