//! The keys that runs of a state have passed on, for the exact runs after them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use echoless::hash::KeyDigester;
use echoless_durable::storage::RealStorage;
use echoless_durable::{DigestStore, JournalError, KEYS_FOLDER};
use echoless_records::chunk::Chunk;
use echoless_records::failure::{Failure, lock};
use serde::{Deserialize, Serialize};

/// Which keys belong to a commit.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SavedKeys {
    /// The secret key of the digests.
    secret: [u8; 16],
    /// The number of keys.
    pub(crate) count: u64,
}

impl fmt::Debug for SavedKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SavedKeys({}, secret)", self.count)
    }
}

impl SavedKeys {
    /// Those of a new state.
    pub(in crate::dedup) fn none() -> Self {
        Self {
            secret: KeyDigester::random_key(),
            count: 0,
        }
    }

    /// What may be shown of them.
    pub(in crate::dedup) fn json(&self) -> serde_json::Value {
        serde_json::json!({ "keys": self.count })
    }

    /// Reads all keys of a state.
    ///
    /// # Errors
    /// [`JournalError`] if some are missing or damaged.
    pub(crate) fn verify(&self, state: &Path) -> Result<(), JournalError> {
        let digester = KeyDigester::keyed(self.secret);
        DigestStore::verify(
            Arc::new(RealStorage),
            &state.join(KEYS_FOLDER),
            &digester,
            self.count,
        )
    }
}

/// The digest of each key that the runs of a state have found fresh. A pass looks keys up while the
/// delivery has them, too.
#[derive(Debug)]
pub(in crate::dedup) struct StoredKeys {
    pub(super) digester: KeyDigester,
    secret: [u8; 16],
    store: Mutex<DigestStore>,
}

impl StoredKeys {
    /// Opens the keys of a state as they were at its commit.
    ///
    /// # Errors
    /// [`JournalError`] if some are missing or damaged.
    pub(in crate::dedup) fn open(state: &Path, saved: &SavedKeys) -> Result<Self, JournalError> {
        let digester = KeyDigester::keyed(saved.secret);
        let storage = Arc::new(RealStorage);
        let store = DigestStore::open(storage, &state.join(KEYS_FOLDER), &digester, saved.count)?;
        Ok(Self {
            digester,
            secret: saved.secret,
            store: Mutex::new(store),
        })
    }

    pub(super) fn store(&self) -> MutexGuard<'_, DigestStore> {
        lock(&self.store)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.store().is_empty()
    }

    /// Adds the fresh keys of a chunk that has its digests and all verdicts.
    ///
    /// # Errors
    /// [`Failure`] of the storage.
    pub(in crate::dedup) fn append(&self, chunk: &Chunk) -> Result<(), Failure> {
        let mut store = self.store();
        for key in chunk.verdicts.of_keys.fresh() {
            store.append(chunk.keys.digests[key])?;
        }
        Ok(())
    }

    /// Puts all keys on the disk, for the next commit.
    ///
    /// # Errors
    /// [`JournalError`] of the storage.
    pub(in crate::dedup) fn flush(&self) -> Result<SavedKeys, JournalError> {
        Ok(SavedKeys {
            secret: self.secret,
            count: self.store().flush()?,
        })
    }

    /// Merges files. What is stored was committed twice.
    ///
    /// # Errors
    /// [`JournalError`] of the storage.
    pub(in crate::dedup) fn merge(&self) -> Result<(), JournalError> {
        self.store().merge()
    }
}
