//! The streams of the tables: uniform draws from a universe that gives the printed share of distinct elements.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Uniform draws with replacement from `0..universe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) len: u64,
    pub(super) universe: u64,
}

impl Stream {
    /// `len` draws of which this share (0 to 1, exclusive) is expected to be distinct: U solves share = (1 - e^(-N/U)) / (N/U).
    pub(super) fn with_distinct_share(len: u64, share: f64) -> Self {
        assert!(
            share > 0.0 && share < 1.0,
            "a share of distinct elements: {share}"
        );
        // The right side falls as draws for each element of the universe grow.
        let distinct = |draws: f64| -(-draws).exp_m1() / draws;
        let (mut low, mut high) = (1e-9_f64, 1e9_f64);
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if distinct(middle) > share {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self {
            len,
            universe: (len as f64 / low).round().max(1.0) as u64,
        }
    }

    /// The draws, the same for equal seeds.
    pub(super) fn draws(self, seed: u64) -> Draws {
        Draws {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            stream: self,
        }
    }
}

/// The draws of a stream, handed out in batches.
#[derive(Debug)]
pub(super) struct Draws {
    generator: Xoshiro256PlusPlus,
    stream: Stream,
}

impl Draws {
    /// Fills the batch; gives how many draws were left for it.
    pub(super) fn fill(&mut self, batch: &mut [u64]) -> usize {
        let len = self.stream.len.min(batch.len() as u64);
        self.stream.len -= len;
        for key in &mut batch[..len as usize] {
            let product = u128::from(self.generator.next_u64()) * u128::from(self.stream.universe);
            *key = (product >> 64) as u64;
        }
        len as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle::Oracle;
    use super::*;

    #[test]
    fn the_share_of_distinct_elements_is_as_asked() {
        for share in [0.05, 0.15, 0.6, 0.9, 0.99] {
            let stream = Stream::with_distinct_share(400_000, share);
            let mut oracle = Oracle::new(stream.universe);
            let mut draws = stream.draws(5);
            let mut batch = [0; 1000];
            let mut distinct = 0;
            while draws.fill(&mut batch) > 0 {
                distinct += batch.iter().filter(|key| !oracle.observe(**key)).count();
            }
            let measured = distinct as f64 / 400_000.0;
            assert!((measured - share).abs() < 0.003, "{share}: {measured}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_draws_and_streams_end() {
        let stream = Stream {
            len: 150,
            universe: 1000,
        };
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
