//! A filter under a load: so many distinct keys in each window. Its error rates are those of keys
//! that are looked up afterwards.

use echoless::{FilterSpec, KeyHash, KeyHasher, Verdicts};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::failure::Failure;

/// The ticks of a window, as many as the command gives the shortest windows.
pub(super) const TICKS: u64 = 2000;

/// The ticks of a run: what the first window recorded has expired everywhere.
const RUN: u64 = 7 * TICKS / 2;

/// The first of the keys that are never recorded.
const UNSEEN: u64 = 1 << 48;

/// The error rates of a filter at a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    /// The fraction of the keys never seen that it reports as duplicates.
    pub(super) fpr: f64,
    /// The fraction of the keys of the window, of all ages alike, that it has forgotten.
    pub(super) misses: f64,
    /// The same for keys whose age is the window, or up to 2 % less.
    pub(super) misses_at_end: f64,
}

/// Fills the filter with `keys_per_tick` distinct keys at each tick, and looks up `probes` keys for
/// each rate.
pub(super) fn rates(spec: &FilterSpec, keys_per_tick: u64, probes: u64) -> Result<Rates, Failure> {
    let mut filter = spec.build()?;
    let hasher = KeyHasher::seeded(1);
    let mut verdicts = Verdicts::new();
    let mut numbers = vec![0; keys_per_tick as usize];
    let mut keys = vec![KeyHash::from_uniform(0); keys_per_tick as usize];
    for tick in 1..=RUN {
        for (number, value) in numbers.iter_mut().zip(tick * keys_per_tick..) {
            *number = value;
        }
        hasher.hash_u64s(&numbers, &mut keys);
        filter.advance_to(tick);
        filter.observe(&keys, &mut verdicts);
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(keys_per_tick);
    let contains = |number: u64| filter.contains(hasher.hash_u64(number));
    let mut missed = |age: &dyn Fn(&mut Xoshiro256PlusPlus) -> u64| {
        let forgotten = (0..probes).filter(|_| {
            let tick = RUN - age(&mut random);
            !contains(tick * keys_per_tick + random.random_range(0..keys_per_tick))
        });
        forgotten.count() as f64 / probes as f64
    };
    let misses = missed(&|random| random.random_range(0..=TICKS));
    let misses_at_end = missed(&|random| random.random_range(TICKS - TICKS / 50..=TICKS));
    let unseen = (UNSEEN..UNSEEN + probes).filter(|number| contains(*number));
    Ok(Rates {
        fpr: unseen.count() as f64 / probes as f64,
        misses,
        misses_at_end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_with_room_makes_no_errors_and_a_full_one_misses_the_oldest_keys() {
        let spec: FilterSpec = format!("stamped:window={TICKS},memory=64KiB")
            .parse()
            .unwrap();
        // 8192 slots.
        let roomy = rates(&spec, 1, 2000).unwrap();
        assert_eq!((roomy.fpr, roomy.misses_at_end), (0.0, 0.0));
        let full = rates(&spec, 5, 2000).unwrap();
        assert!(full.misses_at_end > 0.5, "{full:?}");
        assert!((0.1..0.5).contains(&full.misses), "{full:?}");
    }
}
