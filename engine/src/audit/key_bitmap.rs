//! Which keys a table may hold, in so little memory that it stays in the cache.

use crate::hash::KeyHash;

/// The words of the bitmap: 16 KiB. A table of 4096 keys sets 1 bit in 32. Half of that costs more
/// in look-ups of keys that are not held, twice as much more in cache misses.
const WORDS: usize = 1 << 11;

/// A bit for every key of a table, and for some that have left it.
#[derive(Debug, Clone)]
pub(super) struct KeyBitmap {
    words: Box<[u64; WORDS]>,
}

impl KeyBitmap {
    pub(super) fn new() -> Self {
        Self {
            words: Box::new([0; WORDS]),
        }
    }

    /// `false` if the table does not hold the key. It may be `true` for others.
    #[inline(always)]
    pub(super) fn may_hold(&self, key: KeyHash) -> bool {
        let (word, bit) = position(key);
        self.words[word] >> bit & 1 == 1
    }

    pub(super) fn add(&mut self, key: KeyHash) {
        let (word, bit) = position(key);
        self.words[word] |= 1 << bit;
    }

    /// Forgets the keys that have left the table: it holds these.
    pub(super) fn redraw<'a>(&mut self, keys: impl Iterator<Item = &'a KeyHash>) {
        self.words.fill(0);
        for key in keys {
            self.add(*key);
        }
    }
}

/// The word and the bit of a key in the bitmap.
#[inline(always)]
const fn position(key: KeyHash) -> (usize, u32) {
    // Any bits of a hash will do: what is held was chosen at random.
    ((key.0 >> 32) as usize % WORDS, key.0 as u32 % 64)
}
