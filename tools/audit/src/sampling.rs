//! What is sampled: keys by their hashes, so that all arrivals of a key are in the sample or none,
//! or verdicts at random, independently of each other and of the keys. And the tables that hold the
//! sampled keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use echoless::KeyHash;
use echoless::extend::DetectedKernel;
use echoless::extend::select::{BITMAP_WORDS, GROUP, SelectLoop, SelectOps, bit_of, run_with_ops};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::saved::saved;

/// An odd multiplier that no filter uses. Dense lines take the partner of a line from the high bits
/// of a product, too: with the same multiplier, all keys of a sample would have the same partner.
const SPREAD: u64 = 0xd134_2543_de82_ef95;

/// Whether a key belongs to a sample of 1 key in `2^halvings`, at most 63 halvings. A smaller
/// sample is a subset of a larger one.
#[inline(always)]
pub(crate) const fn is_sampled(key: KeyHash, halvings: u32) -> bool {
    // The high bits of the product depend on all bits of the hash, so the sample is independent of
    // lines (high bits of the hash) and of fingerprints (low bits). Two shifts, as a single one
    // would be by 64 with 0 halvings.
    key.get().wrapping_mul(SPREAD) >> (63 - halvings) >> 1 == 0
}

/// Chooses each verdict with the same probability, 1 in `2^halvings`, independently of all others.
/// Nothing but the sequence of keys and verdicts decides the choices.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    random: SplitMix64,
    /// One verdict in `2^halvings` is chosen on average.
    halvings: u32,
    /// The number of verdicts before the next chosen one.
    skipped: u64,
}

impl Choices {
    /// Chooses every verdict. The seed need not be secret, only independent of the stream.
    pub(crate) fn all(seed: u64) -> Self {
        Self {
            random: SplitMix64::seed_from_u64(seed),
            halvings: 0,
            skipped: 0,
        }
    }

    /// Passes over `verdicts` verdicts, unless one of them is chosen. Returns whether it did.
    #[inline]
    pub(crate) fn pass(&mut self, verdicts: u64) -> bool {
        let passes = verdicts <= self.skipped;
        if passes {
            self.skipped -= verdicts;
        }
        passes
    }

    /// Passes over one verdict. Returns whether it is chosen.
    #[inline]
    pub(crate) fn choose(&mut self) -> bool {
        if self.pass(1) {
            return false;
        }
        self.skipped = self.gap();
        true
    }

    /// Passes over the verdicts at the set bits, up to the one before the next chosen one. Returns
    /// all bits below that of the chosen one; all bits if none of these is chosen.
    pub(crate) fn before_chosen(&mut self, verdicts: u64) -> u64 {
        let mut left = verdicts;
        while self.skipped > 0 && left != 0 {
            self.skipped -= 1;
            left &= left - 1;
        }
        match left {
            0 => u64::MAX,
            left => (left & left.wrapping_neg()) - 1,
        }
    }

    pub(crate) const fn halvings(&self) -> u32 {
        self.halvings
    }

    /// The number of verdicts that a chosen one stands for.
    pub(crate) const fn weight(&self) -> u64 {
        1 << self.halvings
    }

    /// From now on, chooses 1 verdict in `2^halvings`.
    ///
    /// The choices depend on the stream, of which the `keys` were held: a sequence that every run
    /// shares would be wrong about the same part of every stream.
    pub(crate) fn set_halvings(&mut self, halvings: u32, keys: impl Iterator<Item = u64>) {
        let content = keys.fold(0, u64::wrapping_add);
        self.halvings = halvings;
        self.random = SplitMix64::seed_from_u64(self.random.next_u64() ^ content);
        self.skipped = self.gap();
    }

    /// A random number.
    pub(crate) fn draw(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Draws the number of verdicts before the next chosen one.
    ///
    /// It uses bits, because the last digits of a logarithm differ between machines: each bit of
    /// `halvings` random words AND-ed together is set with the probability of a choice. After 7
    /// words on average all 64 bits are clear, so a verdict costs 0.1 draws.
    fn gap(&mut self) -> u64 {
        let mut gap = 0;
        loop {
            let mut chosen = u64::MAX;
            for _ in 0..self.halvings {
                chosen &= self.random.next_u64();
                if chosen == 0 {
                    break;
                }
            }
            if chosen != 0 {
                return gap + u64::from(chosen.trailing_zeros());
            }
            gap += 64;
        }
    }
}

/// A bit for every key of a table, and for some that have left it: a table of 4096 keys sets 1 bit in
/// 32. Half of the words would cost more in look-ups of keys that are not held, twice as many more in
/// cache misses.
#[derive(Debug, Clone)]
pub(crate) struct KeyBitmap {
    words: Box<[u64; BITMAP_WORDS]>,
}

impl KeyBitmap {
    pub(crate) fn new() -> Self {
        Self {
            words: Box::new([0; BITMAP_WORDS]),
        }
    }

    /// `false` if the table does not hold the key. It may be `true` for others.
    #[inline(always)]
    pub(crate) fn may_hold(&self, key: KeyHash) -> bool {
        let (word, bit) = bit_of(key);
        self.words[word] >> bit & 1 == 1
    }

    pub(crate) fn add(&mut self, key: KeyHash) {
        let (word, bit) = bit_of(key);
        self.words[word] |= 1 << bit;
    }

    /// Forgets the keys that have left the table: it holds these.
    pub(crate) fn redraw<'a>(&mut self, keys: impl Iterator<Item = &'a KeyHash>) {
        self.words.fill(0);
        for key in keys {
            self.add(*key);
        }
    }
}

/// The keys of a word that are sampled, as [`is_sampled`] says, and those that a table may hold, one
/// bit each.
pub(crate) fn find_sampled_and_held(
    kernel: DetectedKernel,
    keys: &[KeyHash],
    halvings: u32,
    held: &KeyBitmap,
) -> (u64, u64) {
    assert!(keys.len() <= 64, "keys of one word");
    let bitmap = &held.words;
    run_with_ops(
        kernel,
        FindKeys {
            keys,
            halvings,
            bitmap,
        },
    )
}

struct FindKeys<'a> {
    keys: &'a [KeyHash],
    halvings: u32,
    bitmap: &'a [u64; BITMAP_WORDS],
}

impl SelectLoop for FindKeys<'_> {
    type Output = (u64, u64);

    #[inline(always)]
    fn run<O: SelectOps>(self, ops: O) -> (u64, u64) {
        let (mut others, mut held) = (0, 0);
        let (groups, rest) = self.keys.as_chunks::<GROUP>();
        let mut last = [KeyHash::from_uniform(0); GROUP];
        last[..rest.len()].copy_from_slice(rest);
        let mut at = 0;
        // As in `is_sampled`; without halvings there is no border, and none are others.
        let border = 1_u64.checked_shl(64 - self.halvings).unwrap_or(0);
        // The last group is padded; the bits of the padding are masked off below.
        for keys in groups.iter().chain(std::iter::once(&last)).take(64 / GROUP) {
            let mut spread = [KeyHash::from_uniform(0); GROUP];
            for (spread, key) in spread.iter_mut().zip(keys) {
                *spread = KeyHash::from_uniform(key.get().wrapping_mul(SPREAD));
            }
            others |= u64::from(ops.at_least(&spread, border)) << at;
            held |= u64::from(ops.have_bits(keys, self.bitmap)) << at;
            at += GROUP;
        }
        if self.halvings == 0 {
            others = 0;
        }
        let known = u64::MAX
            .checked_shr(64 - self.keys.len() as u32)
            .unwrap_or(0);
        (!others & known, held & known)
    }
}

/// A hash table of key hashes. Nothing may depend on the order in which it iterates.
pub(crate) type KeyMap<V> = HashMap<KeyHash, V, SecretState>;

/// Hashes key hashes once more under a secret of the process, which takes one multiplication:
/// crafted key hashes do not collide in the table.
#[derive(Debug, Clone)]
pub(crate) struct SecretState {
    secret: u64,
}

impl Default for SecretState {
    fn default() -> Self {
        Self {
            secret: RandomState::new().hash_one(0_u64),
        }
    }
}

impl BuildHasher for SecretState {
    type Hasher = SecretHasher;

    fn build_hasher(&self) -> SecretHasher {
        SecretHasher(self.secret)
    }
}

/// The state of [`SecretState`]'s hasher.
#[derive(Debug, Clone)]
pub(crate) struct SecretHasher(u64);

impl Hasher for SecretHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        // The high half of the product depends on all bits, and so does the sum of both halves.
        let product = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

saved! {
    Choices { random, halvings, skipped }
    KeyBitmap { words }
}

#[cfg(test)]
mod tests {
    use echoless::KeyHasher;
    use echoless::extend::Bucket as _;
    use echoless::memory::Line;

    use super::*;
    use crate::tested::kernels;

    #[test]
    fn keys_of_a_word_are_found_as_one_by_one() {
        let hasher = KeyHasher::seeded(2);
        let keys: Vec<_> = (0..64).map(|key| hasher.hash_u64(key)).collect();
        let mut bitmap = KeyBitmap::new();
        keys.iter().step_by(3).for_each(|key| bitmap.add(*key));
        for kernel in kernels() {
            let cases =
                (0..=64).flat_map(|length| [0, 1, 2, 6, 63].map(|halvings| (length, halvings)));
            for (length, halvings) in cases {
                let keys = &keys[..length];
                let bits = |is_set: &dyn Fn(KeyHash) -> bool| {
                    let all = keys.iter().rev();
                    all.fold(0, |bits, key| bits << 1 | u64::from(is_set(*key)))
                };
                let sampled = bits(&|key| is_sampled(key, halvings));
                let held = bits(&|key| bitmap.may_hold(key));
                let kernel = kernel.detect().unwrap();
                let found = find_sampled_and_held(kernel, keys, halvings, &bitmap);
                assert_eq!(found, (sampled, held), "{kernel:?}, {length}, {halvings}");
            }
        }
    }

    /// Chi-squared of counts that should be equal, divided by the degrees of freedom: about 1.
    fn unevenness(counts: &[u32]) -> f64 {
        let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let squares = counts
            .iter()
            .map(|count| (f64::from(*count) - mean).powi(2));
        squares.sum::<f64>() / mean / (counts.len() - 1) as f64
    }

    /// The distance of the two lines of a key in dense lines, and the random bits that a filter
    /// chooses between them with.
    fn step_and_coin(key: KeyHash) -> (usize, u64) {
        let mut step = 0;
        <[Line; 64]>::for_each_line(0, key, |line| step = line);
        // Both are of one product. That its steps are those of the filter shows that it is the one.
        let product = key.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert_eq!(step, ((product >> 58) as usize).max(1));
        (step, product >> 32 & 0xff)
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
                    let (step, coin) = step_and_coin(key);
                    sampled += 1;
                    counts[0][key.line(64) as usize] += 1;
                    counts[1][step] += 1;
                    counts[2][(coin % 64) as usize] += 1;
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
