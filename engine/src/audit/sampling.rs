//! Which keys are in a sample: chosen by their hashes, so that all arrivals of a key are in it, or
//! none.

use crate::hash::KeyHash;

/// An odd multiplier that no filter uses. Dense lines take the partner of a line from the high bits
/// of a product, too: with the same multiplier, all keys of a sample would have the same partner.
const SPREAD: u64 = 0xd134_2543_de82_ef95;

/// Whether a key belongs to a sample of 1 key in `2^halvings`, at most 63 halvings. A smaller
/// sample is a subset of a larger one.
#[inline(always)]
pub(super) const fn is_sampled(key: KeyHash, halvings: u32) -> bool {
    // The high bits of the product depend on all bits of the hash, so the sample is independent of
    // lines (high bits of the hash) and of fingerprints (low bits). Two shifts, as a single one
    // would be by 64 with 0 halvings.
    key.0.wrapping_mul(SPREAD) >> (63 - halvings) >> 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::KeyHasher;
    use crate::kernels::PageKey;

    /// Chi-squared of counts that should be equal, divided by the degrees of freedom: about 1.
    fn unevenness(counts: &[u32]) -> f64 {
        let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let squares = counts
            .iter()
            .map(|count| (f64::from(*count) - mean).powi(2));
        squares.sum::<f64>() / mean / (counts.len() - 1) as f64
    }

    #[test]
    fn sampled_keys_are_spread_over_lines_partners_coins_and_fingerprints() {
        let hasher = KeyHasher::seeded(1);
        for halvings in [0, 4, 6, 8, 10] {
            let mut counts = [[0_u32; 64]; 4];
            let mut sampled = 0_u32;
            for key in 0..64_000_u64 << halvings {
                let key = hasher.hash_u64(key);
                if is_sampled(key, halvings) {
                    let page = PageKey::new(key);
                    sampled += 1;
                    counts[0][key.line(64) as usize] += 1;
                    counts[1][page.step] += 1;
                    counts[2][(page.coin % 64) as usize] += 1;
                    counts[3][(key.get() % 64) as usize] += 1;
                }
            }
            assert!((62_000..66_000).contains(&sampled), "{halvings}: {sampled}");
            // No key has step 0: those that would have it take 1.
            let [lines, steps, coins, fingerprints] = &counts;
            assert!((1700..2300).contains(&steps[1]), "{halvings}: {}", steps[1]);
            for evenly in [&lines[..], &steps[2..], &coins[..], &fingerprints[..]] {
                let unevenness = unevenness(evenly);
                assert!(unevenness < 1.8, "{halvings}: {unevenness} in {evenly:?}");
            }
        }
    }
}
