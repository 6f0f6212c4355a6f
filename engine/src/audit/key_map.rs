//! Hash tables whose keys are key hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::hash::KeyHash;

/// A hash table of key hashes. Nothing may depend on the order in which it iterates.
pub(super) type KeyMap<V> = HashMap<KeyHash, V, SecretState>;

/// Hashes key hashes once more under a secret of the process, which takes one multiplication:
/// crafted key hashes do not collide in the table.
#[derive(Debug, Clone)]
pub(super) struct SecretState {
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
pub(super) struct SecretHasher(u64);

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
