//! Names for the keys that have to be compared: one number for each key.

use std::mem;

use echoless::hash::KeyDigester;
use echoless::{BuildError, KeyHash};
use echoless_durable::{DigestStore, JournalError};
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::keys::KeyReader;

use super::suspects::Suspects;
use super::table::DigestTable;

/// The name of keys that are not compared.
pub(super) const UNNAMED: KeyHash = KeyHash::from_uniform(u64::MAX);

/// The keys whose marks and digests are looked up together, so that their cache misses overlap.
const BLOCK: usize = 256;

/// The keys that are looked up in a store between two looks at the signals: each may take a read of
/// the disk for each file of the store.
const LOOKED_UP: usize = 1024;

/// Gives each suspect that takes part in a round a name, the number of its digest in a table. Which
/// key has which number depends on the threads, but no verdict depends on it.
#[derive(Debug)]
pub(in crate::dedup) struct KeyNames {
    digester: KeyDigester,
    table: DigestTable,
    round: u64,
    rounds: u64,
    /// Whether chunks get the digests of all keys.
    keeps_digests: bool,
}

impl KeyNames {
    /// No names yet, for those suspects that take part in this one of so many rounds, which are
    /// about so many.
    pub(super) fn new(
        digester: KeyDigester,
        (round, rounds): (u64, u64),
        suspects: u64,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            digester,
            table: DigestTable::new(suspects)?,
            round,
            rounds,
            keeps_digests: false,
        })
    }

    /// The numbers that names have, unless many keys have one hash.
    pub(super) fn slots(&self) -> u64 {
        self.table.slots()
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        16 * self.slots()
    }

    /// Whether chunks get the digests of all keys from now on.
    pub(super) const fn keep_digests(&mut self, keeps: bool) {
        self.keeps_digests = keeps;
    }

    /// Finds which of the named keys a store has. `found` gets their numbers, with the times that
    /// it has of them. Ends early once there is a signal, and returns that.
    pub(super) fn find_stored(
        &self,
        store: &mut DigestStore,
        signal: impl Fn() -> Option<u8>,
        mut found: impl FnMut(u64, u64),
    ) -> Result<Option<u8>, JournalError> {
        let mut sorted = Vec::with_capacity(LOOKED_UP);
        self.table.try_for_each_part(|numbered| {
            numbered.sort_unstable();
            for numbered in numbered.chunks(LOOKED_UP) {
                if signal().is_some() {
                    break;
                }
                sorted.clear();
                sorted.extend(numbered.iter().map(|(digest, _)| *digest));
                store.find_times(&sorted, &mut |index, tick| found(numbered[index].1, tick))?;
            }
            Ok(())
        })?;
        Ok(signal())
    }

    /// Names the keys of a chunk that this reader has read.
    pub(super) fn name(
        &self,
        suspects: &Suspects,
        reader: &mut KeyReader,
        chunk: &mut Chunk,
    ) -> Result<(), Failure> {
        let mut names = mem::take(&mut chunk.keys.names);
        names.clear();
        names.resize(chunk.keys.hashes.len(), UNNAMED);
        let mut all = mem::take(&mut chunk.keys.digests);
        all.clear();
        let mut digests = Vec::with_capacity(BLOCK);
        for (block, hashes) in chunk.keys.hashes.chunks(BLOCK).enumerate() {
            let first = block * BLOCK;
            let (mut wanted, mut count) = ([0; BLOCK], 0);
            // Without branches, whose outcomes are random.
            for (index, key) in hashes.iter().enumerate() {
                wanted[count] = first + index;
                count += usize::from(suspects.contain(*key) & self.takes(*key));
            }
            let wanted = &wanted[..count];
            digests.clear();
            if self.keeps_digests {
                let mut keys = [0; BLOCK];
                (keys.iter_mut().zip(first..)).for_each(|(key, number)| *key = number);
                let keys = &keys[..hashes.len()];
                reader.digest_keys(chunk, &self.digester, keys, &mut all);
                digests.extend(wanted.iter().map(|key| all[*key]));
            } else {
                reader.digest_keys(chunk, &self.digester, wanted, &mut digests);
            }
            self.table.prefetch(&digests);
            for (index, digest) in wanted.iter().zip(&digests) {
                let number = self.table.number(*digest);
                let number = number.map_err(Failure::file("the keys of duplicates"))?;
                names[*index] = KeyHash::from_uniform(number);
            }
        }
        chunk.keys.names = names;
        chunk.keys.digests = all;
        Ok(())
    }

    /// Whether a key is one of this round.
    fn takes(&self, key: KeyHash) -> bool {
        // By the low bits: the high ones have selected the marks.
        let low = key.get() & u64::from(u32::MAX);
        (low * self.rounds) >> 32 == self.round
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use echoless_durable::Kept;
    use echoless_durable::storage::RealStorage;

    use super::*;

    #[test]
    fn a_signal_ends_the_search_for_stored_keys_at_once() {
        const KEYS: u64 = 20_000;
        let temporary = tempfile::tempdir().unwrap();
        let digester = KeyDigester::keyed([7; 16]);
        let folder = temporary.path().join("keys");
        let storage = Arc::new(RealStorage);
        let store = DigestStore::open(storage, &folder, &digester, Kept::LastSeen, 0);
        let mut store = store.unwrap();
        let names = KeyNames::new(digester.clone(), (0, 1), KEYS).unwrap();
        for key in 0..KEYS {
            let digest = digester.digest(key.to_le_bytes());
            names.table.number(digest).unwrap();
            store.append_at(digest, key + 1).unwrap();
        }
        store.flush().unwrap();
        for looks in [1, 3, 7, u64::MAX] {
            let (left, mut found) = (Cell::new(looks), 0);
            let signal = || {
                left.set(left.get().saturating_sub(1));
                (left.get() == 0).then_some(15)
            };
            let ended = names.find_stored(&mut store, signal, |_, _| found += 1);
            let expected = (looks - 1).saturating_mul(LOOKED_UP as u64).min(KEYS);
            assert_eq!(ended.unwrap(), (looks < 20).then_some(15));
            // The parts of the table are no multiples of the keys that are looked up together.
            assert!(
                found <= expected && found + 2 * LOOKED_UP as u64 >= expected,
                "{found}"
            );
        }
    }
}
