//! The streams of these tests: 110 of them, of every shape on which estimates could go wrong.

use echoless::KeyHasher;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The number of different streams.
pub(crate) const STREAMS: u64 = 110;

/// A source of keys.
pub(crate) struct Stream {
    random: Xoshiro256PlusPlus,
    shape: Shape,
    /// The number of keys so far.
    number: u64,
}

pub(crate) enum Shape {
    /// Each of so many keys with the same probability.
    Uniform(u64),
    /// Keys by rank, with these sums of their weights.
    Zipf(Vec<f64>),
    /// New keys, of which every n-th comes again once, after a gap.
    Gap { every: u64, gap: u64 },
    /// New keys, and every n-th time the next of a few hot ones.
    Hot { every: u64, keys: u64 },
    /// Sessions that begin one after the other, each with keys of its own that follow Zipf's law.
    Sessions(Vec<f64>),
    /// New keys, and in each hundred keys an earlier one up to so many times in a row.
    Bursts(u64),
}

/// The sums of the weights of so many keys under Zipf's law with this exponent.
fn zipf_sums(keys: u64, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let weights = (1..=keys).map(|rank| (rank as f64).powf(-exponent));
    weights
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect()
}

impl Shape {
    pub(crate) fn zipf(keys: u64, exponent: f64) -> Self {
        Self::Zipf(zipf_sums(keys, exponent))
    }

    /// Sessions of so many keys each.
    pub(crate) fn sessions(keys: u64) -> Self {
        Self::Sessions(zipf_sums(keys, 0.9))
    }
}

impl Stream {
    pub(crate) fn new(seed: u64, shape: Shape) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            shape,
            number: 0,
        }
    }

    /// Stream `number` of [`STREAMS`].
    pub(crate) fn nth(number: u64) -> Self {
        let size = number / 11;
        let shape = match number % 11 {
            0 => Shape::Uniform(3000 << (size % 8)),
            1 => Shape::zipf(1000 << size, 0.6),
            2 => Shape::zipf(1000 << size, 0.8),
            3 => Shape::zipf(1000 << size, 1.0),
            4 => Shape::zipf(1000 << size, 1.2),
            5 => Shape::Gap {
                every: 1 + size * size,
                gap: 500 << size,
            },
            6 => Shape::Hot {
                every: 3,
                keys: 500 << size,
            },
            7 => Shape::Hot {
                every: 20 + 50 * size,
                keys: 1 + 40 * size,
            },
            8 => Shape::Hot {
                every: 1000 << (size % 5),
                keys: 1 + size % 3,
            },
            9 => Shape::sessions(100 << size),
            _ => Shape::Bursts(10 + 9 * size),
        };
        Self::new(number, shape)
    }

    fn uniform(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }

    fn rank(random: &mut Xoshiro256PlusPlus, sums: &[f64]) -> u64 {
        let unit = (random.next_u64() >> 11) as f64 / 2_f64.powi(53);
        let sought = unit * sums.last().copied().unwrap_or(0.0);
        sums.partition_point(|sum| *sum < sought) as u64
    }
}

impl Iterator for Stream {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.number += 1;
        let number = self.number;
        // New keys are beyond all others.
        let new = number + (1 << 40);
        Some(match &self.shape {
            Shape::Uniform(keys) => {
                let keys = *keys;
                self.uniform(keys)
            }
            Shape::Zipf(sums) => Self::rank(&mut self.random, sums),
            Shape::Gap { every, gap } => match new.checked_sub(*gap) {
                Some(old) if number.is_multiple_of(*every + 1) && number > *gap => {
                    old - u64::from((number - gap).is_multiple_of(*every + 1))
                }
                Some(_) | None => new,
            },
            Shape::Hot { every, keys } if number.is_multiple_of(*every) => number / every % keys,
            Shape::Hot { .. } => new,
            Shape::Sessions(sums) => {
                let session = number / 5000;
                // Most keys are of the current session, some of one of the eight before it.
                let back = if self.random.next_u64().is_multiple_of(8) {
                    self.random.next_u64() % 8
                } else {
                    0
                };
                session.saturating_sub(back) << 20 | Self::rank(&mut self.random, sums)
            }
            Shape::Bursts(longest) => {
                let hundred = number / 100;
                let bits = KeyHasher::seeded(7).hash_u64(hundred).get();
                if number % 100 < bits % (longest + 1) {
                    (1 << 40) + (bits >> 8) % (100 * hundred + 1)
                } else {
                    new
                }
            }
        })
    }
}
