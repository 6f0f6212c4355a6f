//! LRU buffering, and the variant that guesses on a miss.

use super::lru::LruSet;
use crate::scattered::random::SeededRng;
use echoless::extend::{
    Allowed, FilterRow, Head, Named, OptionRow, Value, bits_of, names, tally_of_cells,
};
use echoless::memory::LINE_BYTES;
use echoless::spec::{Facts, Form};
use echoless::{Batch, BuildError, Filter, KeyHash, Report, SpecError, Tally};

/// The number of bytes that an entry of the buffer is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accounting {
    /// Its true size: 24 bytes (hash, two links, two index slots).
    Full,
    /// The 8 bytes of its hash, as paper 004 counts on its crawl (section 5.2). The true size, from
    /// [`memory_bytes`](echoless::Filter::memory_bytes), is three times the memory of the
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
pub(crate) struct BufferSpec {
    /// The number of bytes that an entry is charged.
    pub(crate) accounting: Accounting,
    /// q: the probability that a miss is answered "duplicate" (0 to below 1); 0 is plain LRU
    /// buffering.
    pub(crate) guess: f64,
}

/// A buffer of the most recently used key hashes (paper 004, section 5.2).
///
/// LRU buffering has an FPR of 0. `FPBuffering` answers a miss with "duplicate" with probability q,
/// so its FPR is q and its FNR is (1 - q) times that of LRU buffering.
///
/// Cache lines touched per key: about two of the index, the entry and the links of three entries,
/// six to eight in total.
#[derive(Debug, Clone)]
pub(crate) struct LruFilter {
    set: LruSet,
    guess: f64,
    rng: SeededRng,
}

impl BufferSpec {
    fn of(named: &Named) -> Self {
        Self {
            accounting: named.choice("charge", &ACCOUNTINGS),
            guess: match named.name() {
                "fpbuffer" => named.decimal("q").expect("a default"),
                _ => 0.0,
            },
        }
    }

    /// The most memory by the accounting, in bytes.
    const fn most_memory(self) -> u64 {
        self.accounting.entry_bytes() * LruSet::MOST_ENTRIES
    }

    /// Builds the buffer in `memory_bytes` by its accounting; `seed` seeds its guesses.
    ///
    /// # Errors
    /// [`BuildError`] if the memory holds no entry or more than 2^32 - 1 of them, or cannot be
    /// allocated.
    fn build(self, memory_bytes: u64, seed: u64) -> Result<LruFilter, BuildError> {
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
            guess: self.guess,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl LruFilter {
    /// Tests and records one key; true means duplicate.
    fn observe_key(&mut self, key: KeyHash) -> bool {
        self.set.touch(key.get()) || self.guess > 0.0 && self.rng.chance(self.guess)
    }
}

impl Filter for LruFilter {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_each(duplicates, |key| self.observe_key(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        // The same guess as observing the key now would draw: the generator is cloned.
        self.set.contains(key.get()) || self.guess > 0.0 && self.rng.clone().chance(self.guess)
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

    fn report_on(&self, tally: Tally) -> Report {
        Report::new(tally)
    }
}

const ACCOUNTINGS: [(&str, Accounting); 3] = [
    ("full", Accounting::Full),
    ("hash", Accounting::HashOnly),
    ("hash32", Accounting::ShortHash),
];

/// The accepted values of `q`.
const GUESSES: Allowed = Allowed::Number(
    |guess| (0.0..1.0).contains(&guess),
    "a number from 0 to 1 (1 excluded)",
);

const EXACT: &[OptionRow] = &[OptionRow::choice("charge", &names(&ACCOUNTINGS))];
const GUESSING: &[OptionRow] = &[
    EXACT[0],
    OptionRow::new("q", GUESSES).or(Value::Decimal(0.1)),
];

/// The buffers.
pub(crate) static ROWS: [FilterRow; 2] = [
    row(Head {
        name: "lru",
        options: |_| EXACT,
        complete: Named::as_given,
    }),
    row(Head {
        name: "fpbuffer",
        options: |_| GUESSING,
        complete: Named::as_given,
    }),
];

const fn row(head: Head) -> FilterRow {
    FilterRow {
        head,
        default_form: Form::Scattered,
        scattered: Some(|named, memory, seed| {
            Ok(Box::new(BufferSpec::of(named).build(memory, seed)?))
        }),
        cells: None,
        lines: None,
        facts: |named, _, _| {
            let spec = BufferSpec::of(named);
            Facts {
                cache_lines: 8.0,
                rate_model: None,
                fpr_limit: Some(spec.guess),
                most_memory: spec.most_memory(),
                memory_unit: LINE_BYTES,
                window: None,
                renews_keys: false,
                forgets_by_time: false,
                settles: true,
                power_of_two_rows: false,
            }
        },
    }
}
