//! Exact buffers of whole key hashes (paper 004, section 5.2), the baselines for approximate filters
//! of equal memory: LRU buffering, and the variant that guesses on a miss.

use super::mechanism::{self, Mechanism, filter};
use super::random::SeededRng;
use super::storage::zeroed;
use echoless::extend::{Allowed, FilterRow, Head, Named, OptionRow, Value, names};
use echoless::spec::{Facts, Form};
use echoless::{BuildError, Cells, KeyHash, MemoryError, SpecError};

use crate::limits::bits_of;

/// The number of bytes that an entry of the buffer is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accounting {
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
struct BufferSpec {
    /// The number of bytes that an entry is charged.
    accounting: Accounting,
    /// q: the probability that a miss is answered "duplicate" (0 to below 1); 0 is plain LRU
    /// buffering.
    guess: f64,
}

/// A buffer of the most recently used key hashes (paper 004, section 5.2).
///
/// LRU buffering has an FPR of 0. `FPBuffering` answers a miss with "duplicate" with probability q,
/// so its FPR is q and its FNR is (1 - q) times that of LRU buffering.
///
/// Cache lines touched per key: about two of the index, the entry and the links of three entries,
/// six to eight in total.
#[derive(Debug, Clone)]
struct LruFilter {
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

    /// Builds the buffer in `memory_bytes` by its accounting; `seed` seeds its guesses. Fails if
    /// the memory holds no entry or more than 2^32 - 1 of them, or cannot be allocated.
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

impl Mechanism for LruFilter {
    fn observe_key(&mut self, key: KeyHash) -> bool {
        self.set.touch(key.get()) || self.guess > 0.0 && self.rng.chance(self.guess)
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

    fn fill(&self) -> (Cells, Option<f64>) {
        (self.set.occupied(), None)
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
pub(crate) static ROWS: [FilterRow; 2] = [row("lru", |_| EXACT), row("fpbuffer", |_| GUESSING)];

const fn row(name: &'static str, options: fn(Form) -> &'static [OptionRow]) -> FilterRow {
    mechanism::row(
        Head {
            name,
            options,
            complete: Named::as_given,
        },
        |named, memory, seed| filter(BufferSpec::of(named).build(memory, seed)),
        |named, _, _| {
            let spec = BufferSpec::of(named);
            Facts {
                fpr_limit: Some(spec.guess),
                most_memory: spec.most_memory(),
                ..Facts::touching(8.0)
            }
        },
    )
}

/// No entry. Indices are 32 bits wide, so a buffer holds fewer than 2^32 entries.
const NONE: u32 = u32::MAX;

/// A set of at most `capacity` key hashes that forgets the least recently used.
#[derive(Debug, Clone)]
struct LruSet {
    /// Entries by hash, with linear probing. At most half of the slots are occupied, so that probes
    /// are short and always end.
    index: Vec<u32>,
    keys: Vec<u64>,
    /// For each entry, the next more recently used one.
    newer: Vec<u32>,
    /// For each entry, the next less recently used one.
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
    len: u32,
}

impl LruSet {
    /// The number of bytes of one entry: its hash, two links and two index slots.
    const ENTRY_BYTES: u64 = 8 + 2 * 4 + 2 * 4;

    /// The largest number of entries that 32-bit links can address.
    const MOST_ENTRIES: u64 = NONE as u64;

    fn new(capacity: u64) -> Result<Self, MemoryError> {
        debug_assert!((1..=Self::MOST_ENTRIES).contains(&capacity));
        let mut index = zeroed(2 * capacity)?;
        index.fill(NONE);
        Ok(Self {
            index,
            keys: zeroed(capacity)?,
            newer: zeroed(capacity)?,
            older: zeroed(capacity)?,
            newest: NONE,
            oldest: NONE,
            len: 0,
        })
    }

    fn home(&self, key: u64) -> usize {
        KeyHash::from_uniform(key).line(self.index.len() as u64) as usize
    }

    fn next_slot(&self, slot: usize) -> usize {
        if slot + 1 == self.index.len() {
            0
        } else {
            slot + 1
        }
    }

    /// The index slot of the key, or the empty slot where it would be inserted.
    fn slot_of(&self, key: u64) -> usize {
        let mut slot = self.home(key);
        while self.index[slot] != NONE && self.keys[self.index[slot] as usize] != key {
            slot = self.next_slot(slot);
        }
        slot
    }

    fn contains(&self, key: u64) -> bool {
        self.index[self.slot_of(key)] != NONE
    }

    /// Makes the key the most recently used one, evicting the oldest from a full set if it is new.
    /// Returns whether the set held it.
    fn touch(&mut self, key: u64) -> bool {
        let entry = self.index[self.slot_of(key)];
        if entry != NONE {
            self.unlink(entry);
            self.link_newest(entry);
            return true;
        }
        let entry = if (self.len as usize) < self.keys.len() {
            self.len += 1;
            self.len - 1
        } else {
            let entry = self.oldest;
            self.unlink(entry);
            self.remove_from_index(self.keys[entry as usize]);
            entry
        };
        self.keys[entry as usize] = key;
        let slot = self.slot_of(key);
        self.index[slot] = entry;
        self.link_newest(entry);
        false
    }

    fn unlink(&mut self, entry: u32) {
        let (newer, older) = (self.newer[entry as usize], self.older[entry as usize]);
        match newer {
            NONE => self.newest = older,
            newer => self.older[newer as usize] = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
    }

    fn link_newest(&mut self, entry: u32) {
        self.newer[entry as usize] = NONE;
        self.older[entry as usize] = self.newest;
        match self.newest {
            NONE => self.oldest = entry,
            newest => self.newer[newest as usize] = entry,
        }
        self.newest = entry;
    }

    /// Frees the key's slot and closes the gap, so that no probe stops at a hole before its key.
    fn remove_from_index(&mut self, key: u64) {
        let len = self.index.len();
        let mut hole = self.slot_of(key);
        self.index[hole] = NONE;
        let mut slot = self.next_slot(hole);
        while self.index[slot] != NONE {
            let home = self.home(self.keys[self.index[slot] as usize]);
            // Distances around the ring: an entry may move back to the hole if its home is not past
            // the hole.
            if (slot + len - home) % len >= (slot + len - hole) % len {
                self.index.swap(hole, slot);
                hole = slot;
            }
            slot = self.next_slot(slot);
        }
    }

    fn clear(&mut self) {
        self.index.fill(NONE);
        self.newest = NONE;
        self.oldest = NONE;
        self.len = 0;
    }

    fn bytes(&self) -> u64 {
        self.keys.len() as u64 * Self::ENTRY_BYTES
    }

    /// How many entries hold a key.
    fn occupied(&self) -> Cells {
        Cells::new(self.len.into(), self.keys.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_searched_list(
            capacity in 1_u64..20,
            touches in prop::collection::vec(0_u64..40, 0..500),
        ) {
            let mut set = LruSet::new(capacity).expect("small");
            let mut model: Vec<u64> = Vec::new();
            for touch in touches {
                // The keys share few homes, so that probing and gap closing happen.
                let key = (touch % 3) << 62 | touch;
                let place = model.iter().position(|held| *held == key);
                prop_assert_eq!(set.contains(key), place.is_some());
                prop_assert_eq!(set.touch(key), place.is_some());
                place.map(|place| model.remove(place));
                model.insert(0, key);
                model.truncate(capacity as usize);
            }
            for touch in 0..40 {
                let key = (touch % 3) << 62 | touch;
                prop_assert_eq!(set.contains(key), model.contains(&key));
            }
        }
    }
}
