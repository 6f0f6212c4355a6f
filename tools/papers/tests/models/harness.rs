//! Shared by the models: draws, positions, streams and the comparison.

use echoless::{FilterSpec, KeyHash, KeyHasher, Verdicts};
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A filter as its paper describes it; true means duplicate.
pub(crate) trait Model {
    fn observe(&mut self, key: KeyHash) -> bool;
    fn contains(&self, key: KeyHash) -> bool;
}

/// The random numbers that a filter with the same seed draws.
#[derive(Clone)]
pub(crate) struct Draws(Xoshiro256PlusPlus);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / 2_f64.powi(53)
    }
}

/// Position `index` of a key, below `len`.
pub(crate) fn position(key: KeyHash, index: usize, len: usize) -> usize {
    KeyHash::from_uniform(key.remix(index as u64)).line(len as u64) as usize
}

/// Short streams with many repeats, near and far.
pub(crate) fn streams() -> impl Strategy<Value = Vec<u64>> {
    (1_u64..400).prop_flat_map(|universe| prop::collection::vec(0..universe, 0..1500))
}

/// The number of a key's positions: mostly few, sometimes any that is allowed.
pub(crate) fn hash_counts() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1_usize..6, 1 => 6_usize..65]
}

/// Feeds the stream to the filter that `spec` names and to the model: both return the same verdicts
/// and then hold the same keys, and the filter returns the same verdicts again once cleared.
pub(crate) fn agree(
    spec: &str,
    model: &mut dyn Model,
    stream: &[u64],
) -> Result<(), TestCaseError> {
    let parsed: FilterSpec = echoless_papers::parse(spec).expect("a valid text");
    let mut filter = parsed.build().expect("a valid specification");
    let hasher = KeyHasher::seeded(9);
    let keys: Vec<KeyHash> = stream.iter().map(|key| hasher.hash_u64(*key)).collect();
    let mut verdicts = Verdicts::new();
    filter.observe(&keys, &mut verdicts);
    for (index, key) in keys.iter().enumerate() {
        let expected = model.observe(*key);
        prop_assert_eq!(
            verdicts.is_duplicate(index),
            expected,
            "{} at {}",
            spec,
            index
        );
    }
    for key in (0..500).map(|key| hasher.hash_u64(key)) {
        prop_assert_eq!(
            filter.contains(key),
            model.contains(key),
            "{} holds {:?}",
            spec,
            key
        );
    }
    filter.clear();
    // Key by key: the batch size must not matter.
    for (index, key) in keys.iter().enumerate() {
        let same = filter.observe_one(*key) == verdicts.get(index);
        prop_assert!(same, "{} at {} once cleared", spec, index);
    }
    Ok(())
}
