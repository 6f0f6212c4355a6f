//! Streams of keys in which order matters, and their verdicts by the undivided filter.

use echoless::{Filter, FingerprintSpec, KeyHash, KeyHasher, SlotWidth, Verdicts};
use proptest::prelude::*;

/// A filter so small that lines overflow, so the order of keys matters for the verdicts.
pub(crate) fn spec() -> FingerprintSpec {
    FingerprintSpec::new(64 * 100).slot_width(SlotWidth::Bits64)
}

/// Numbers of partitions: up to `most`, and some that are more than ports compare keys with.
pub(crate) fn partitions(most: usize) -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1..=most, 1 => 9usize..=12]
}

/// Keys, about a third of which repeat one of the last few hundred.
pub(crate) fn stream(count: u64, seed: u64) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(seed);
    (0..count)
        .map(|index| {
            let random = KeyHash::from_uniform(index ^ seed << 32).remix(1);
            let repeats = random % 3 == 1;
            hasher.hash_u64(if repeats {
                index.saturating_sub(random % 900)
            } else {
                index
            })
        })
        .collect()
}

/// Streams of fewer keys than this, with numbers of partitions and of threads, and the size of
/// batches.
pub(crate) fn cases(keys: u64) -> impl Strategy<Value = (Vec<KeyHash>, usize, usize, usize)> {
    let keys = (1..keys, any::<u64>()).prop_map(|(count, seed)| stream(count, seed));
    (keys, 1usize..7, 1usize..4, 1usize..300)
}

/// The verdicts and the evictions of the undivided filter.
pub(crate) fn oracle(keys: &[KeyHash]) -> (Vec<bool>, u64) {
    let mut filter = spec().build().unwrap();
    let mut verdicts = Verdicts::new();
    filter.observe(keys, &mut verdicts);
    (
        verdicts.to_bools(),
        filter.report().tally.evictions.unwrap(),
    )
}

/// The stream cut into batches of varying size, the first of them empty.
pub(crate) fn batches(keys: &[KeyHash], size: usize) -> Vec<&[KeyHash]> {
    let mut rest = keys;
    let mut parts = vec![&keys[..0]];
    for index in 0.. {
        if rest.is_empty() {
            break;
        }
        let (part, more) = rest.split_at((1 + (index * 37) % (2 * size)).min(rest.len()));
        parts.push(part);
        rest = more;
    }
    parts
}
