//! A least-recently-used set of key hashes: an open-addressing index over a linked list in arrays.
//!
//! ```text
//! index   | . | 3 | . | 0 | 1 | . | . | 2 |      entry numbers, by hash, linear probing
//! keys    | k0 | k1 | k2 | k3 |                  one hash for each entry
//! newer   older                                  links between entries, by number
//! newest -> 1 -> 3 -> 0 -> 2 <- oldest           along `older`; back along `newer`
//! ```

use crate::scattered::storage::zeroed;
use echoless::{Cells, KeyHash, MemoryError};

/// No entry. Indices are 32 bits wide, so a buffer holds fewer than 2^32 entries.
const NONE: u32 = u32::MAX;

/// A set of at most `capacity` key hashes that forgets the least recently used.
#[derive(Debug, Clone)]
pub(super) struct LruSet {
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
    pub(super) const ENTRY_BYTES: u64 = 8 + 2 * 4 + 2 * 4;

    /// The largest number of entries that 32-bit links can address.
    pub(super) const MOST_ENTRIES: u64 = NONE as u64;

    pub(super) fn new(capacity: u64) -> Result<Self, MemoryError> {
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

    pub(super) fn contains(&self, key: u64) -> bool {
        self.index[self.slot_of(key)] != NONE
    }

    /// Makes the key the most recently used one, evicting the oldest from a full set if it is new.
    /// Returns whether the set held it.
    pub(super) fn touch(&mut self, key: u64) -> bool {
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

    pub(super) fn clear(&mut self) {
        self.index.fill(NONE);
        self.newest = NONE;
        self.oldest = NONE;
        self.len = 0;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.keys.len() as u64 * Self::ENTRY_BYTES
    }

    /// How many entries hold a key.
    pub(super) fn occupied(&self) -> Cells {
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
