//! LRU buffering, and its variant that guesses on a miss.

use super::lru::LruSet;
use crate::error::{BuildError, SpecError};
use crate::filters::scattered::checks::bits_of;
use crate::filters::scattered::key_by_key::KeyByKey;
use crate::filters::scattered::random::SeededRng;
use crate::hash::KeyHash;

/// What an entry of the buffer is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accounting {
    /// All that it takes: 24 bytes (hash, two links, two index slots).
    Full,
    /// The 8 bytes of its hash alone, as paper 004 counts on its crawl (section 5.2). The true size, from
    /// [`memory_bytes`](crate::Filter::memory_bytes), is three times the memory asked for.
    HashOnly,
    /// 4 bytes, as paper 004 counts on its synthetic keys of 32 bits. The entry holds a 64-bit hash all the same, and the true size is six times the
    /// memory asked for.
    ShortHash,
}

impl Accounting {
    /// The bytes that an entry is charged.
    const fn entry_bytes(self) -> u64 {
        match self {
            Self::Full => LruSet::ENTRY_BYTES,
            Self::HashOnly => 8,
            Self::ShortHash => 4,
        }
    }
}

/// What an exact buffer is made of, its memory aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferSpec {
    /// What an entry is charged.
    pub accounting: Accounting,
    /// q: the probability that a miss is answered "duplicate" (0 to below 1): 0 is plain buffering.
    pub guess: f64,
}

/// A buffer of the most recently used key hashes (paper 004, section 5.2): LRU buffering has FPR 0; `FPBuffering` answers a miss with "duplicate" with
/// probability q, so that its FPR is q and its FNR (1 - q) times that of LRU.
///
/// Cache lines touched per key: about two of the index, the entry and the links of three entries, six to eight in all.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHash, Verdict};
/// use echoless::filters::scattered::buffers::{Accounting, BufferSpec};
/// let mut filter = BufferSpec { accounting: Accounting::Full, guess: 0.0 }.build(48, 0)?;
/// assert_eq!(filter.capacity(), 2);
/// for key in [1, 2, 3] {
///     assert_eq!(filter.observe_one(KeyHash(key)), Verdict::Fresh);
/// }
/// assert_eq!(filter.observe_one(KeyHash(3)), Verdict::Duplicate);
/// assert_eq!(filter.observe_one(KeyHash(1)), Verdict::Fresh); // forgotten
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LruFilter {
    set: LruSet,
    capacity: u64,
    guess: f64,
    rng: SeededRng,
}

impl BufferSpec {
    /// Builds the buffer in `memory_bytes` by its accounting, its guesses seeded by `seed`.
    ///
    /// # Errors
    /// [`BuildError`] if q is not 0 to below 1, the memory holds no entry or 2^32 - 1 and more, or the machine refuses it.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<LruFilter, BuildError> {
        if !(0.0..1.0).contains(&self.guess) {
            let allowed = "a number from 0 to 1 (1 excluded)";
            return Err(SpecError::new("q", self.guess.to_string(), allowed).into());
        }
        bits_of(memory_bytes)?;
        let entry = self.accounting.entry_bytes();
        let capacity = memory_bytes / entry;
        if !(1..=LruSet::MOST_ENTRIES).contains(&capacity) {
            return Err(SpecError::new(
                "memory",
                format!("{memory_bytes} B"),
                format!(
                    "{entry} B to {} B (1 to 2^32 - 1 entries)",
                    entry * LruSet::MOST_ENTRIES
                ),
            )
            .into());
        }
        Ok(LruFilter {
            set: LruSet::new(capacity)?,
            capacity,
            guess: self.guess,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl LruFilter {
    /// How many key hashes the buffer holds.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }
}

impl KeyByKey for LruFilter {
    fn observe_key(&mut self, key: KeyHash) -> bool {
        self.set.touch(key.0) || self.guess > 0.0 && self.rng.chance(self.guess)
    }

    fn holds(&self, key: KeyHash) -> bool {
        // The guess is the one that observing the key now would rng.
        self.set.contains(key.0) || self.guess > 0.0 && self.rng.clone().chance(self.guess)
    }

    fn forget(&mut self) {
        self.set.clear();
        self.rng.restart();
    }

    fn state_bytes(&self) -> u64 {
        self.set.bytes()
    }

    fn taken(&self) -> f64 {
        self.set.taken()
    }
}
