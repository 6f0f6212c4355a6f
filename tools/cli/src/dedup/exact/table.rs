//! A table of digests that threads share: each digest has a number, the place where it is.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use echoless::BuildError;
use echoless::hash::KeyDigest;
use echoless::memory::{AtomicWords, CacheLevel, prefetch};
use echoless_records::failure::lock;

/// The slots of a line of the cache.
const SLOTS: usize = 4;

/// The lines of a page, in which a digest has its place.
const PAGE_LINES: usize = 64;

/// The slots of the pages that are gone through at a time.
const PART_SLOTS: usize = 64 * PAGE_LINES * SLOTS;

/// How many slots there are for each digest that is expected: 1.5. A page whose digests are 1.5
/// times as many as expected is full, six standard deviations above.
const SLOTS_PER_DIGEST: (u64, u64) = (3, 2);

/// The bytes of memory for each digest that is expected.
pub(super) const DIGEST_BYTES: u64 = 16 * SLOTS_PER_DIGEST.0 / SLOTS_PER_DIGEST.1;

/// The locks of writers. A page has one of them.
const LOCKS: usize = 64;

/// Numbers for digests.
///
/// ```text
/// digest   | page, line in it |   its slot is the first free one from there on in the page
/// ```
///
/// Finding a digest takes no lock and, nearly always, one line of the cache. Both words of a slot
/// are written once, and a digest is found where both are equal, so a reader may meet a slot that is
/// half written: it finds nothing, and repeats the search with the lock before it writes. (A word of 0 is
/// that of one digest in 2^64.)
#[derive(Debug)]
pub(super) struct DigestTable {
    /// Two for each slot. A free slot is 0.
    words: AtomicWords,
    pages: usize,
    locks: Box<[Mutex<()>]>,
    /// The digests whose page is full. Only many keys of one hash, which no estimate counts, make
    /// this large.
    others: Mutex<HashMap<KeyDigest, u64>>,
}

/// The number of the slot where a digest is, or may be.
enum Place {
    Found(usize),
    Free(usize),
    PageFull,
}

impl DigestTable {
    /// An empty table for so many digests, or more at the price of their time.
    pub(super) fn new(digests: u64) -> Result<Self, BuildError> {
        let slots = digests.saturating_mul(SLOTS_PER_DIGEST.0) / SLOTS_PER_DIGEST.1;
        let pages = slots.div_ceil((SLOTS * PAGE_LINES) as u64).max(1);
        Ok(Self {
            words: AtomicWords::zeroed(pages * PAGE_LINES as u64)?,
            pages: pages as usize,
            locks: (0..LOCKS).map(|_| Mutex::default()).collect(),
            others: Mutex::default(),
        })
    }

    /// The slots, which have the numbers from 0 on.
    pub(super) fn slots(&self) -> u64 {
        self.words.len() as u64 / 2
    }

    /// The words of a digest. That of a free slot is no digest.
    fn words(digest: KeyDigest) -> [u64; 2] {
        match digest.words() {
            [0, 0] => [1, 0],
            words => words,
        }
    }

    /// The page of a digest, and its line there.
    fn home(&self, [first, second]: [u64; 2]) -> (usize, usize) {
        let page = (u128::from(first) * self.pages as u128) >> 64;
        (page as usize, second as usize % PAGE_LINES)
    }

    /// Prefetches the lines of these digests.
    pub(super) fn prefetch(&self, digests: &[KeyDigest]) {
        for digest in digests {
            let (page, line) = self.home(Self::words(*digest));
            let slot = (page * PAGE_LINES + line) * SLOTS;
            prefetch(&self.words, 2 * slot, CacheLevel::L1);
        }
    }

    fn place(&self, words: [u64; 2]) -> Place {
        let (page, home) = self.home(words);
        for step in 0..PAGE_LINES {
            let line = page * PAGE_LINES + (home + step) % PAGE_LINES;
            for slot in line * SLOTS..(line + 1) * SLOTS {
                // Relaxed: each word is that of a free slot or of its digest.
                let load = |word: usize| self.words[2 * slot + word].load(Ordering::Relaxed);
                match [load(0), load(1)] {
                    found if found == words => return Place::Found(slot),
                    [0, 0] => return Place::Free(slot),
                    _ => {}
                }
            }
        }
        Place::PageFull
    }

    /// Calls this for all digests with their numbers, some at a time. Those of one call are below
    /// those of the next one, but for the digests whose page is full, which come last.
    pub(super) fn try_for_each_part<E>(
        &self,
        mut call: impl FnMut(&mut [(KeyDigest, u64)]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut part = Vec::new();
        let slots = self.slots() as usize;
        for begin in (0..slots).step_by(PART_SLOTS) {
            part.clear();
            for slot in begin..slots.min(begin + PART_SLOTS) {
                let load = |word: usize| self.words[2 * slot + word].load(Ordering::Relaxed);
                let words = [load(0), load(1)];
                if words != [0, 0] {
                    part.push((KeyDigest::from_words(words), slot as u64));
                }
            }
            call(&mut part)?;
        }
        let mut others: Vec<_> = (lock(&self.others).iter())
            .map(|(digest, number)| (*digest, *number))
            .collect();
        call(&mut others)
    }

    /// The number of a digest, which gets one unless it has one.
    pub(super) fn number(&self, digest: KeyDigest) -> io::Result<u64> {
        let words = Self::words(digest);
        if let Place::Found(slot) = self.place(words) {
            return Ok(slot as u64);
        }
        let _writer = lock(&self.locks[self.home(words).0 % LOCKS]);
        match self.place(words) {
            Place::Found(slot) => Ok(slot as u64),
            Place::Free(slot) => {
                for (word, value) in self.words[2 * slot..].iter().zip(words) {
                    word.store(value, Ordering::Relaxed);
                }
                Ok(slot as u64)
            }
            Place::PageFull => {
                let mut others = lock(&self.others);
                others.try_reserve(1)?;
                let next = self.slots() + others.len() as u64;
                if next == u64::MAX {
                    return Err(ErrorKind::OutOfMemory.into());
                }
                Ok(*others.entry(digest).or_insert(next))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use echoless::hash::KeyDigester;

    use super::*;

    #[test]
    fn every_digest_has_a_number_of_its_own_on_any_threads() {
        let digester = KeyDigester::keyed([5; 16]);
        let digest = |key: u64| digester.digest(key.to_le_bytes());
        // As many as are expected, and far more.
        for keys in [2000_u64, 20_000] {
            let table = DigestTable::new(2000).unwrap();
            let number = |key| table.number(digest(key)).unwrap();
            let numbers = thread::scope(|scope| {
                let all = || (0..keys).map(number).collect::<Vec<_>>();
                let threads = [(); 4].map(|()| scope.spawn(all));
                threads.map(|thread| thread.join().unwrap())
            });
            assert!(numbers.iter().all(|own| own == &numbers[0]), "{keys}");
            let mut distinct = numbers[0].clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len() as u64, keys);
            let full = lock(&table.others).len();
            assert_eq!(full > 0, keys > 3000, "{full}");
        }
    }
}
