//! LRU buffering, and the variant that guesses on a miss.

use super::lru::LruSet;
use crate::error::{BuildError, SpecError};
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::kind::{KindSpec, unknown_name};
use crate::filters::scattered::random::SeededRng;
use crate::filters::{Filter, Form, Workload};
use crate::hash::KeyHash;
use crate::limits::bits_of;
use crate::options::{Options, name_of};
use crate::report::Tally;
use crate::theory::RateModel;

/// The number of bytes that an entry of the buffer is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accounting {
    /// Its true size: 24 bytes (hash, two links, two index slots).
    Full,
    /// The 8 bytes of its hash, as paper 004 counts on its crawl (section 5.2). The true size, from
    /// [`memory_bytes`](crate::Filter::memory_bytes), is three times the memory of the
    /// specification.
    HashOnly,
    /// 4 bytes, as paper 004 counts on its synthetic 32-bit keys. The entry still holds a 64-bit
    /// hash, and the true size is six times the memory of the specification.
    ShortHash,
}

impl Accounting {
    /// The number of bytes that an entry is charged.
    const fn entry_bytes(self) -> u64 {
        match self {
            Self::Full => LruSet::ENTRY_BYTES,
            Self::HashOnly => 8,
            Self::ShortHash => 4,
        }
    }
}

/// The parameters of an exact buffer, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BufferSpec {
    /// The number of bytes that an entry is charged.
    pub accounting: Accounting,
    /// q: the probability that a miss is answered "duplicate" (0 to below 1); 0 is plain LRU
    /// buffering.
    pub guess: f64,
}

/// A buffer of the most recently used key hashes (paper 004, section 5.2).
///
/// LRU buffering has an FPR of 0. `FPBuffering` answers a miss with "duplicate" with probability q,
/// so its FPR is q and its FNR is (1 - q) times that of LRU buffering.
///
/// Cache lines touched per key: about two of the index, the entry and the links of three entries,
/// six to eight in total.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHasher, Verdict};
/// use echoless::spec::{Accounting, BufferSpec};
/// let mut filter = BufferSpec::new(Accounting::Full).build(48, 0)?;
/// assert_eq!(filter.capacity(), 2);
/// let keys = [1, 2, 3].map(|id| KeyHasher::seeded(0).hash_u64(id));
/// for key in keys {
///     assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// }
/// assert_eq!(filter.observe_one(keys[2]), Verdict::Duplicate);
/// assert_eq!(filter.observe_one(keys[0]), Verdict::Fresh); // forgotten
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
    /// An exact buffer whose entries are charged like this.
    #[must_use]
    pub const fn new(accounting: Accounting) -> Self {
        Self {
            accounting,
            guess: 0.0,
        }
    }

    /// q: the probability that a miss is answered "duplicate".
    #[must_use]
    pub const fn guess(mut self, probability: f64) -> Self {
        self.guess = probability;
        self
    }

    /// Builds the buffer in `memory_bytes` by its accounting; `seed` seeds its guesses.
    ///
    /// # Errors
    /// [`BuildError`] if q is not 0 to below 1, the memory holds no entry or more than 2^32 - 1 of
    /// them, or the memory cannot be allocated.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<LruFilter, BuildError> {
        if !(0.0..1.0).contains(&self.guess) {
            return Err(SpecError::new("q", self.guess.to_string(), GUESSES).into());
        }
        bits_of(memory_bytes)?;
        let entry = self.accounting.entry_bytes();
        let capacity = memory_bytes / entry;
        if capacity == 0 || memory_bytes > self.most_memory() {
            return Err(SpecError::new(
                "memory",
                format!("{memory_bytes} B"),
                format!(
                    "{entry} B to {} B (1 to 2^32 - 1 entries)",
                    self.most_memory()
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
    /// The number of key hashes that fit in the buffer.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Tests and records one key; true means duplicate.
    fn observe_key(&mut self, key: KeyHash) -> bool {
        self.set.touch(key.0) || self.guess > 0.0 && self.rng.chance(self.guess)
    }
}

impl Filter for LruFilter {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        // The same guess as observing the key now would draw: the generator is cloned.
        self.set.contains(key.0) || self.guess > 0.0 && self.rng.clone().chance(self.guess)
    }

    fn clear(&mut self) {
        self.set.clear();
        self.rng.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.set.bytes()
    }

    fn tally(&self) -> Tally {
        tally_of_cells(self.memory_bytes(), self.set.occupied())
    }
}

const ACCOUNTINGS: [(&str, Accounting); 3] = [
    ("full", Accounting::Full),
    ("hash", Accounting::HashOnly),
    ("hash32", Accounting::ShortHash),
];

/// The accepted values of `q`.
const GUESSES: &str = "a number from 0 to 1 (1 excluded)";

fn parse_guess(options: &mut Options) -> Result<f64, SpecError> {
    let guess = options.checked("q", GUESSES, |guess| (0.0..1.0).contains(guess))?;
    Ok(guess.unwrap_or(0.1))
}

impl KindSpec for BufferSpec {
    const NAMES: &'static [&'static str] = &["lru", "fpbuffer"];

    fn parse(name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        let buffer = Self::new(options.choice("charge", &ACCOUNTINGS)?);
        match name {
            "lru" => Ok(buffer),
            "fpbuffer" => Ok(buffer.guess(parse_guess(options)?)),
            _ => Err(unknown_name(name, Self::NAMES)),
        }
    }

    fn name(&self) -> &'static str {
        if self.guess == 0.0 { "lru" } else { "fpbuffer" }
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![("charge", name_of(&ACCOUNTINGS, &self.accounting))];
        if self.guess != 0.0 {
            options.push(("q", self.guess.to_string()));
        }
        options
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn most_memory(&self) -> u64 {
        self.accounting.entry_bytes() * LruSet::MOST_ENTRIES
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        8.0
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        Some(self.guess)
    }

    fn settles(&self) -> bool {
        true
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let guesses = [0.1, 0.2, 0.4].map(|q| format!("fpbuffer:q={q}"));
        std::iter::once("lru".into()).chain(guesses).collect()
    }
}
