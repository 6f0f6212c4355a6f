//! The keys that runs of a state have passed on, in a window with their times, for the exact runs
//! after them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use echoless::hash::KeyDigester;
use echoless_durable::storage::RealStorage;
use echoless_durable::{DigestStore, JournalError, KEYS_FOLDER, Kept};
use echoless_records::chunk::Chunk;
use echoless_records::failure::{Failure, lock};
use echoless_records::signals::Signals;
use serde::{Deserialize, Serialize};

use super::set::SetWindow;

/// Which keys belong to a commit.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SavedKeys {
    /// The secret key of the digests.
    secret: [u8; 16],
    /// The number of keys that were appended.
    count: u64,
    /// How many times of keys are kept; `None` without a window, where all keys are, without times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
}

impl fmt::Debug for SavedKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SavedKeys({}, secret)", self.count)
    }
}

impl SavedKeys {
    /// Those of a new state, with times or without.
    pub(in crate::dedup) fn none(have_times: bool) -> Self {
        Self {
            secret: KeyDigester::random_key(),
            count: 0,
            times: have_times.then_some(0),
        }
    }

    const fn kept(&self) -> Kept {
        match self.times {
            None => Kept::Digest,
            Some(_) => Kept::LastSeen,
        }
    }

    /// What is kept, how many there are, and their bytes on the disk, nearly.
    pub(crate) fn on_disk(&self) -> (&'static str, u64, f64) {
        match self.times {
            None => ("keys", self.count, (16.1 * self.count as f64).ceil()),
            Some(times) => ("times of keys", times, (24.1 * times as f64).ceil()),
        }
    }

    /// What may be shown of them.
    pub(in crate::dedup) fn json(&self) -> serde_json::Value {
        match self.times {
            None => serde_json::json!({ "keys": self.count }),
            Some(times) => serde_json::json!({ "times": times }),
        }
    }

    /// Reads all keys of a state.
    pub(crate) fn verify(&self, state: &Path) -> Result<(), JournalError> {
        let digester = KeyDigester::keyed(self.secret);
        DigestStore::verify(
            Arc::new(RealStorage),
            &state.join(KEYS_FOLDER),
            &digester,
            self.kept(),
            self.count,
        )
    }
}

/// The digest of each key that the runs of a state have found fresh, in a window with the tick from
/// which it counts as seen. A pass looks keys up while the delivery has them, too.
#[derive(Debug)]
pub(in crate::dedup) struct StoredKeys {
    pub(super) digester: KeyDigester,
    saved: SavedKeys,
    window: Option<SetWindow>,
    store: Mutex<DigestStore>,
}

impl StoredKeys {
    /// Opens the keys of a state as they were at its commit, at this tick. Fails if some are
    /// missing or damaged.
    pub(in crate::dedup) fn open(
        state: &Path,
        saved: &SavedKeys,
        window: Option<(SetWindow, Option<u64>)>,
    ) -> Result<Self, Failure> {
        let digester = KeyDigester::keyed(saved.secret);
        let storage = Arc::new(RealStorage);
        let folder = state.join(KEYS_FOLDER);
        let mut store = DigestStore::open(storage, &folder, &digester, saved.kept(), saved.count)?;
        if let Some((window, Some(tick))) = window {
            store.forget_before(window.first_seen_at(tick));
        }
        let signals = Signals::catch().map_err(Failure::file("signals"))?;
        store.stop_merges_if(move || signals.caught().is_some());
        Ok(Self {
            digester,
            saved: saved.clone(),
            window: window.map(|(window, _)| window),
            store: Mutex::new(store),
        })
    }

    pub(super) fn store(&self) -> MutexGuard<'_, DigestStore> {
        lock(&self.store)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.store().is_empty()
    }

    /// Adds the fresh keys of a chunk that has its digests and all verdicts, and the duplicates
    /// that renew theirs.
    pub(in crate::dedup) fn append(&self, chunk: &Chunk) -> Result<(), Failure> {
        let (digests, verdicts) = (&chunk.keys.digests, &chunk.verdicts.of_keys);
        let mut store = self.store();
        let Some(window) = self.window else {
            let mut fresh = verdicts.fresh();
            return Ok(fresh.try_for_each(|key| store.append(digests[key]))?);
        };
        let ticks = &chunk.clock.ticks;
        if let Some(tick) = ticks.last() {
            store.forget_before(window.first_seen_at(*tick));
        }
        for (key, (digest, tick)) in digests.iter().zip(ticks).enumerate() {
            if window.refresh || !verdicts.is_duplicate(key) {
                store.append_at(*digest, *tick)?;
            }
        }
        Ok(())
    }

    /// Puts all keys on the disk, for the next commit.
    pub(in crate::dedup) fn flush(&self) -> Result<SavedKeys, JournalError> {
        let mut store = self.store();
        Ok(SavedKeys {
            count: store.flush()?,
            times: self.saved.times.map(|_| store.kept()),
            ..self.saved
        })
    }

    /// Merges files, unless a signal has arrived. What is stored was committed twice.
    pub(in crate::dedup) fn merge(&self) -> Result<(), JournalError> {
        self.store().merge()
    }
}
