//! The false positive rates that the mathematics of the peers predicts. A peer that exceeds its own
//! rate fails the benchmark.

/// A Bloom filter of `bits` that holds `keys`, with `hashes` bits for each.
pub(super) fn bloom(bits: f64, keys: f64, hashes: u32) -> f64 {
    (1.0 - (-f64::from(hashes) * keys / bits).exp()).powi(hashes as i32)
}

/// The most hashes, up to the best number, at which a plain Bloom filter is not more accurate than
/// `rate`.
pub(super) fn bloom_hashes_for(rate: f64, bits: f64, keys: f64) -> u32 {
    let best = bloom_best_hashes(bits, keys);
    let not_better = (1..=best).rev();
    let mut not_better = not_better.filter(|hashes| bloom(bits, keys, *hashes) >= rate);
    not_better.next().unwrap_or(1)
}

/// The number of hashes with the lowest rate.
pub(super) fn bloom_best_hashes(bits: f64, keys: f64) -> u32 {
    (std::f64::consts::LN_2 * bits / keys).round().max(1.0) as u32
}

/// The mean of `rate` over blocks that hold a Poisson number of keys.
pub(super) fn over_blocks(keys_per_block: f64, rate: impl Fn(f64) -> f64) -> f64 {
    let last = (keys_per_block * 3.0 + 30.0) as u32;
    let mut probability = (-keys_per_block).exp();
    let mut mean = 0.0;
    for count in 0..=last {
        mean += probability * rate(f64::from(count));
        probability *= keys_per_block / f64::from(count + 1);
    }
    mean
}

/// A Bloom filter in blocks of `block_bits`, each key in one block.
pub(super) fn blocked_bloom(block_bits: f64, bits: f64, keys: f64, hashes: u32) -> f64 {
    over_blocks(keys * block_bits / bits, |count| {
        bloom(block_bits, count, hashes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_literature() {
        // 16 bits a key and 11 hashes: 4.6e-4.
        assert!((bloom(16.0, 1.0, 11) / 4.59e-4 - 1.0).abs() < 0.01);
        assert_eq!(bloom_best_hashes(16.0, 1.0), 11);
        assert_eq!(bloom_hashes_for(4.5e-4, 16.0, 1.0), 11);
        assert_eq!(bloom_hashes_for(2e-3, 16.0, 1.0), 4);
        assert_eq!(bloom_hashes_for(1.0, 16.0, 1.0), 1);
        assert!((over_blocks(5.0, |count| count) - 5.0).abs() < 1e-9);
        // Blocks are worse than one array, the more so the smaller they are.
        let plain = bloom(16.0, 1.0, 8);
        let line = blocked_bloom(512.0, 16.0, 1.0, 8);
        let word = blocked_bloom(64.0, 16.0, 1.0, 8);
        assert!(plain < line && line < word);
    }
}
