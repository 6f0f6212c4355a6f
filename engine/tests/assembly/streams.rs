//! Streams of keys in which order matters, and what the undivided filter says of them.

use echoless::{Filter, FingerprintSpec, KeyHash, KeyHasher, SlotWidth, Verdicts};

/// Small enough that lines overflow, so that the order of keys matters for the verdicts.
pub(crate) fn spec() -> FingerprintSpec {
    FingerprintSpec::new(64 * 100).slot_width(SlotWidth::Bits64)
}

/// Keys of which about a third repeats one of the last few hundred.
pub(crate) fn stream(count: u64, seed: u64) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(seed);
    (0..count)
        .map(|index| {
            let random = KeyHash(index ^ seed << 32).remix(1);
            let repeats = random % 3 == 1;
            hasher.hash_u64(if repeats {
                index.saturating_sub(random % 900)
            } else {
                index
            })
        })
        .collect()
}

pub(crate) fn duplicates(verdicts: &Verdicts) -> Vec<bool> {
    (0..verdicts.len())
        .map(|index| verdicts.is_duplicate(index))
        .collect()
}

/// What the undivided filter says, and its evictions.
pub(crate) fn oracle(keys: &[KeyHash]) -> (Vec<bool>, u64) {
    let mut filter = spec().build().unwrap();
    let mut verdicts = Verdicts::new();
    filter.observe(keys, &mut verdicts);
    (
        duplicates(&verdicts),
        filter.report().tally.evictions.unwrap(),
    )
}

/// The stream cut in batches of changing size, an empty one among them.
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
