//! The last packet of each key: a table of the keys that were seen last, which exists only for
//! reports. A packet whose key has left it counts as one whose original is unknown.

use std::collections::{HashMap, VecDeque};

use echoless::KeyHash;

/// The most keys in a table. The table of a report takes some 150 MB with so many.
pub(crate) const CAPACITY: usize = 1 << 18;

/// What was noted of the last packet of each key.
#[derive(Debug)]
pub(crate) struct LastSeen<T> {
    last: HashMap<KeyHash, (u64, T)>,
    /// The keys in the order of their packets; an entry whose key was seen again is stale.
    order: VecDeque<(KeyHash, u64)>,
    /// The number of entries so far.
    entries: u64,
}

impl<T> LastSeen<T> {
    pub(crate) fn new() -> Self {
        Self {
            last: HashMap::new(),
            order: VecDeque::new(),
            entries: 0,
        }
    }

    /// Notes the next packet with this key. Returns what was noted of the one before.
    pub(crate) fn replace(&mut self, key: KeyHash, packet: T) -> Option<T> {
        self.entries += 1;
        let before = self.last.insert(key, (self.entries, packet));
        self.order.push_back((key, self.entries));
        self.forget();
        before.map(|(_, packet)| packet)
    }

    /// What was noted of the last packet with this key.
    pub(crate) fn get(&self, key: KeyHash) -> Option<&T> {
        self.last.get(&key).map(|(_, packet)| packet)
    }

    /// Keeps the table and the queue within their bounds.
    fn forget(&mut self) {
        // A key that is seen often leaves an entry each time. They must not push out other keys.
        if self.order.len() > 2 * CAPACITY {
            let last = &self.last;
            let is_last = |(key, entry): &(KeyHash, u64)| {
                last.get(key).is_some_and(|(newest, _)| newest == entry)
            };
            self.order.retain(is_last);
        }
        while self.last.len() > CAPACITY {
            let Some((key, entry)) = self.order.pop_front() else {
                return;
            };
            if self.last.get(&key).is_some_and(|(last, _)| *last == entry) {
                self.last.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_keys() {
        let mut table = LastSeen::new();
        // Every third packet repeats the one before it.
        for number in 0..3 * CAPACITY as u64 {
            let is_copy = number % 3 == 2;
            let key = KeyHash::from_uniform(number - u64::from(is_copy));
            let before = table.replace(key, number);
            assert_eq!(before, is_copy.then(|| number - 1));
            assert!(table.last.len() <= CAPACITY && table.order.len() <= 2 * CAPACITY);
        }
        assert_eq!(table.last.len(), CAPACITY);
        // The last third has two keys for each three packets, and so has the one before.
        assert!(table.get(KeyHash::from_uniform(0)).is_none());
        let last = 3 * CAPACITY as u64 - 1;
        assert!(table.get(KeyHash::from_uniform(last - 1)).is_some());
    }
}
