//! Hashes of keys of fixed width: a scalar function, and batches of it in vector lanes.
//!
//! A multiply-xorshift mix needs 64-bit lane arithmetic only, which AVX2 and AVX-512 support. The
//! 128-bit products of wyhash do not fit into lanes.

use wide::u64x8;

use super::KeyHash;
use crate::isa::{DetectedKernel, HotLoop, Kernel};

// The multipliers of the finaliser of SplitMix64 (Stafford's variant 13).
const MULTIPLIER_1: u64 = 0xbf58_476d_1ce4_e5b9;
const MULTIPLIER_2: u64 = 0x94d0_49bb_1331_11eb;
// Another odd constant of about as many ones as zeros, so that the two halves of a 128-bit key and
// the seeds go through different products.
const MULTIPLIER_3: u64 = 0x9fb2_1c65_1e98_df25;

/// The finaliser of `SplitMix64`: a bijection of 64-bit words in which every input bit flips about
/// half of the output bits.
///
/// Each xorshift moves high bits down, where the next multiplication spreads them up again.
#[inline(always)]
pub(super) const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(MULTIPLIER_1);
    let word = (word ^ (word >> 27)).wrapping_mul(MULTIPLIER_2);
    word ^ (word >> 31)
}

/// The seeds of the fixed-width hash, derived from one seed.
#[derive(Debug, Clone)]
pub(super) struct FixedKeys {
    low: u64,
    high: u64,
}

impl FixedKeys {
    pub(super) const fn new(seed: u64) -> Self {
        let low = mix(seed.wrapping_add(MULTIPLIER_3));
        Self {
            low,
            high: mix(low.wrapping_add(MULTIPLIER_3)),
        }
    }

    #[inline(always)]
    pub(super) const fn hash_u64(&self, key: u64) -> u64 {
        mix(key.wrapping_add(self.low)) ^ self.high
    }

    #[inline(always)]
    pub(super) const fn hash_u128(&self, key: u128) -> u64 {
        let low = (key as u64) ^ self.low;
        let high = ((key >> 64) as u64) ^ self.high;
        let low = (low ^ (low >> 32)).wrapping_mul(MULTIPLIER_3);
        mix(low ^ (low >> 29) ^ high.rotate_left(32).wrapping_mul(MULTIPLIER_2))
    }

    pub(super) fn hash_u64s(&self, kernel: DetectedKernel, keys: &[u64], hashes: &mut [KeyHash]) {
        match kernel.kernel() {
            Kernel::Portable => self.hash_u64s_wide(keys, hashes),
            _ => kernel.run(Each {
                keys,
                hashes,
                hash: |key| self.hash_u64(key),
            }),
        }
    }

    pub(super) fn hash_u128s(&self, kernel: DetectedKernel, keys: &[u128], hashes: &mut [KeyHash]) {
        match kernel.kernel() {
            Kernel::Portable => self.hash_u128s_wide(keys, hashes),
            _ => kernel.run(Each {
                keys,
                hashes,
                hash: |key| self.hash_u128(key),
            }),
        }
    }

    fn hash_u64s_wide(&self, keys: &[u64], hashes: &mut [KeyHash]) {
        let (blocks, tail) = keys.as_chunks::<8>();
        let (hash_blocks, hash_tail) = hashes.as_chunks_mut::<8>();
        for (block, hashes) in blocks.iter().zip(hash_blocks) {
            let mixed = mix_wide(u64x8::new(*block) + u64x8::splat(self.low));
            *hashes = (mixed ^ u64x8::splat(self.high)).to_array().map(KeyHash);
        }
        for (key, hash) in tail.iter().zip(hash_tail) {
            *hash = KeyHash(self.hash_u64(*key));
        }
    }

    fn hash_u128s_wide(&self, keys: &[u128], hashes: &mut [KeyHash]) {
        let (blocks, tail) = keys.as_chunks::<8>();
        let (hash_blocks, hash_tail) = hashes.as_chunks_mut::<8>();
        for (block, hashes) in blocks.iter().zip(hash_blocks) {
            let low = u64x8::new(block.map(|key| key as u64)) ^ u64x8::splat(self.low);
            let high = u64x8::new(block.map(|key| (key >> 64) as u64)) ^ u64x8::splat(self.high);
            let low = (low ^ (low >> 32)) * u64x8::splat(MULTIPLIER_3);
            let high = ((high << 32) | (high >> 32)) * u64x8::splat(MULTIPLIER_2);
            *hashes = mix_wide(low ^ (low >> 29) ^ high).to_array().map(KeyHash);
        }
        for (key, hash) in tail.iter().zip(hash_tail) {
            *hash = KeyHash(self.hash_u128(*key));
        }
    }
}

/// [`mix`] in eight lanes at once.
#[inline(always)]
fn mix_wide(word: u64x8) -> u64x8 {
    let word = (word ^ (word >> 30)) * u64x8::splat(MULTIPLIER_1);
    let word = (word ^ (word >> 27)) * u64x8::splat(MULTIPLIER_2);
    word ^ (word >> 31)
}

/// The scalar hash over a slice. Compiled for a vector instruction set, the loop becomes lanes.
struct Each<'a, K, H> {
    keys: &'a [K],
    hashes: &'a mut [KeyHash],
    hash: H,
}

impl<K: Copy, H: Fn(K) -> u64> HotLoop for Each<'_, K, H> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (key, hash) in self.keys.iter().zip(self.hashes) {
            *hash = KeyHash((self.hash)(*key));
        }
    }
}
