//! The digests of all keys that a program has ever passed on, on the disk.
//!
//! ```text
//! append -> recent (memory) -> a run for each full memory -> runs, each at least twice the next one
//! ```
//!
//! A run is a sorted file, which is written once. Their names say which of the appended digests they
//! have, so the number of digests in the commit of a journal selects the runs: those behind it were
//! not committed, and are removed. Runs are merged only below a commit, so a crash leaves the merged
//! run or those that it was made of.

mod run;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use echoless::hash::{KeyDigest, KeyDigester};
use echoless::verified::DigestSet;

use self::run::{Run, RunHeader, damaged, write_run};
use crate::error::{At, JournalError};
use crate::storage::Storage;

/// The digests that are gathered in memory, of which a run is made.
const MOST_RECENT: usize = 1 << 20;

/// The digests that are merged at a time.
const MERGED_DIGESTS: u64 = 1 << 18;

/// A run is merged with those behind it unless it has more than so many times their digests.
const GROWTH: u64 = 2;

/// A set of digests in a folder, which grows at the commits of a [journal](crate::Journal), or of
/// anything else that is durable.
///
/// Finding a digest takes a read of 4 KiB for each run, of which there are as many as powers of two
/// between the first and the last one at most; many digests at once are found in the order of the
/// files. Memory: 8 bytes for 255 digests, and up to 32 MiB for those that are in no run yet. On the
/// disk, a digest takes 16.1 bytes.
///
/// # Commits
/// [`flush`](Self::flush) makes what was appended durable, and returns how many digests there are.
/// The caller commits this number, and then calls [`committed`](Self::committed). After a crash,
/// [`open`](Self::open) with the number of the last commit has exactly the digests up to it.
///
/// # Errors
/// After an error, open the set again at the last commit.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use echoless::hash::KeyDigester;
/// use echoless_durable::storage::RealStorage;
/// use echoless_durable::{DigestStore, JournalError};
/// # let temporary = tempfile::tempdir().expect("a folder");
/// # let folder = &temporary.path().join("keys");
/// let digester = KeyDigester::keyed([7; 16]);
/// let [call, other] = ["call 17", "call 18"].map(|key| digester.digest(key));
/// let storage = Arc::new(RealStorage);
/// let mut keys = DigestStore::open(storage.clone(), folder, &digester, 0)?;
/// keys.append(call)?;
/// let committed = keys.flush()?;
/// keys.append(other)?;
/// keys.flush()?;
/// // This is where the program is killed, before it commits for the second time.
/// drop(keys);
/// let mut keys = DigestStore::open(storage, folder, &digester, committed)?;
/// let mut found = Vec::new();
/// let mut sorted = [call, other];
/// sorted.sort_unstable();
/// keys.find(&sorted, &mut |number| found.push(sorted[number]))?;
/// assert_eq!(found, [call]);
/// # Ok::<(), JournalError>(())
/// ```
pub struct DigestStore {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    /// Tells the runs of this store from those of another digester.
    id: u64,
    runs: Vec<Run>,
    /// What is in no run yet, and those of them that a call has looked for so far.
    recent: Vec<KeyDigest>,
    recent_set: HashSet<KeyDigest, BuildHasherDefault<FirstWord>>,
    most_recent: usize,
}

impl fmt::Debug for DigestStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("DigestStore");
        debug
            .field("folder", &self.folder)
            .field("len", &self.len());
        debug.finish_non_exhaustive()
    }
}

/// The first word of a digest, which is uniform already.
#[derive(Debug, Default)]
struct FirstWord(u64);

impl Hasher for FirstWord {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, words: &[u8]) {
        let word = words
            .first_chunk()
            .map_or(0, |word| u64::from_ne_bytes(*word));
        self.0 = word;
    }

    fn write_usize(&mut self, _: usize) {}
}

impl DigestStore {
    /// Opens the set of a folder, which is created if necessary, with the digests that this digester
    /// made, up to this number. Removes what was not committed.
    ///
    /// # Errors
    /// [`JournalError::Segments`] if runs are missing or damaged, or of another digester;
    /// [`JournalError::Io`] if the storage fails.
    pub fn open(
        storage: Arc<dyn Storage>,
        folder: &Path,
        digester: &KeyDigester,
        committed: u64,
    ) -> Result<Self, JournalError> {
        storage.create_folder(folder).at(folder)?;
        if let Some(parent) = folder.parent() {
            storage.sync_folder(parent).at(parent)?;
        }
        let (store, leftover) = Self::load(storage, folder, digester, committed)?;
        for path in &leftover {
            // Another set may have been here.
            let header = RunHeader::read(&*store.storage, path)?;
            if header.is_some_and(|header| header.store != store.id) {
                return Err(damaged(path, "is of another set of keys"));
            }
            store.storage.remove(path).at(path)?;
        }
        if !leftover.is_empty() {
            store.storage.sync_folder(folder).at(folder)?;
        }
        Ok(store)
    }

    /// Reads the set of a folder, all of it, without changing anything.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn verify(
        storage: Arc<dyn Storage>,
        folder: &Path,
        digester: &KeyDigester,
        committed: u64,
    ) -> Result<(), JournalError> {
        let (mut store, _) = Self::load(storage, folder, digester, committed)?;
        for run in &mut store.runs {
            merge(slice::from_mut(run)).try_for_each(|part| part.map(drop))?;
        }
        Ok(())
    }

    /// The set of a folder, and the files that do not belong to it.
    fn load(
        storage: Arc<dyn Storage>,
        folder: &Path,
        digester: &KeyDigester,
        committed: u64,
    ) -> Result<(Self, Vec<PathBuf>), JournalError> {
        let [id, _] = digester.digest([]).words();
        let mut store = Self {
            folder: folder.to_owned(),
            id,
            runs: Vec::new(),
            recent: Vec::new(),
            recent_set: HashSet::default(),
            most_recent: MOST_RECENT,
            storage,
        };
        let leftover = store.open_runs(committed)?;
        Ok((store, leftover))
    }

    /// Opens the runs with the committed digests. Returns those that are not needed.
    fn open_runs(&mut self, committed: u64) -> Result<Vec<PathBuf>, JournalError> {
        let (mut named, mut leftover) = (Vec::new(), Vec::new());
        for name in self.storage.list(&self.folder).at(&self.folder)? {
            let Some(name) = name.to_str() else {
                continue;
            };
            if let Some(numbers) = RunHeader::numbers_in(name) {
                named.push((numbers, self.folder.join(name)));
            } else if let Some(complete) = name.strip_suffix(".new")
                && RunHeader::numbers_in(complete).is_some()
            {
                leftover.push(self.folder.join(name));
            }
        }
        // Of those that begin at one number, the longest one is the first.
        named.sort_unstable_by_key(|((first, end), _)| (*first, Reverse(*end)));
        for ((first, end), path) in named {
            if first != self.runs_end() || end > committed || end == first {
                leftover.push(path);
                continue;
            }
            let header = RunHeader {
                store: self.id,
                first,
                count: end - first,
            };
            match RunHeader::read(&*self.storage, &path)? {
                Some(read) if read == header => {}
                Some(read) if read.store != self.id => {
                    return Err(damaged(&path, "is of another set of keys"));
                }
                Some(_) | None => return Err(damaged(&path, "its header is damaged")),
            }
            self.runs.push(Run::open(&*self.storage, path, header)?);
        }
        let end = self.runs_end();
        if end < committed {
            let reason = format!("the keys from number {end} to {committed} are missing");
            return Err(damaged(&self.folder, &reason));
        }
        Ok(leftover)
    }

    /// The number behind the digests in runs.
    fn runs_end(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.header.end())
    }

    /// The number of digests.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.runs_end() + self.recent.len() as u64
    }

    /// Whether there is no digest.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes on the disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.header.file_bytes()).sum()
    }

    /// Sets how many digests are gathered in memory, 2^20 if this is not called.
    pub fn set_most_recent(&mut self, digests: usize) {
        self.most_recent = digests.max(1);
    }

    /// Adds a digest that is not in the set.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails.
    pub fn append(&mut self, digest: KeyDigest) -> Result<(), JournalError> {
        self.recent.push(digest);
        if self.recent.len() >= self.most_recent {
            self.write_recent()?;
        }
        Ok(())
    }

    /// Makes the recent digests a run.
    fn write_recent(&mut self) -> Result<(), JournalError> {
        let header = RunHeader {
            store: self.id,
            first: self.runs_end(),
            count: self.recent.len() as u64,
        };
        if header.count == 0 {
            return Ok(());
        }
        self.recent_set.clear();
        let mut digests = mem::take(&mut self.recent);
        digests.sort_unstable();
        self.write(header, [Ok(digests)])
    }

    /// Writes a run, and opens it behind the others.
    fn write(
        &mut self,
        header: RunHeader,
        parts: impl IntoIterator<Item = Result<Vec<KeyDigest>, JournalError>>,
    ) -> Result<(), JournalError> {
        write_run(&*self.storage, &self.folder, header, parts)?;
        let path = self.folder.join(header.name());
        self.runs.push(Run::open(&*self.storage, path, header)?);
        Ok(())
    }

    /// Makes all digests durable. Returns how many there are, for a commit.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails.
    pub fn flush(&mut self) -> Result<u64, JournalError> {
        self.write_recent()?;
        Ok(self.runs_end())
    }

    /// Merges runs, now that the digests up to the last [`flush`](Self::flush) are committed.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails, [`JournalError::Segments`] if a run is damaged. The
    /// commit stands.
    pub fn committed(&mut self) -> Result<(), JournalError> {
        let Some(last) = self.runs.last() else {
            return Ok(());
        };
        let (mut from, mut count) = (self.runs.len() - 1, last.header.count);
        while from > 0 && self.runs[from - 1].header.count <= GROWTH.saturating_mul(count) {
            from -= 1;
            count += self.runs[from].header.count;
        }
        if from + 1 == self.runs.len() {
            return Ok(());
        }
        let mut merged = self.runs.split_off(from);
        let header = RunHeader {
            store: self.id,
            first: merged[0].header.first,
            count,
        };
        self.write(header, merge(&mut merged))?;
        for run in merged {
            self.storage.remove(&run.path).at(&run.path)?;
        }
        self.storage.sync_folder(&self.folder).at(&self.folder)
    }

    /// Finds which of these digests are in the set. They are in ascending order, and `found` gets
    /// the index of each that is, in no order.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails, [`JournalError::Segments`] if a run is damaged.
    ///
    /// # Panics
    /// If debug assertions are on and the digests are not in order.
    pub fn find(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize),
    ) -> Result<(), JournalError> {
        debug_assert!(sorted.is_sorted(), "digests in ascending order");
        self.recent_set
            .extend(&self.recent[self.recent_set.len()..]);
        for (index, digest) in sorted.iter().enumerate() {
            if self.recent_set.contains(digest) {
                found(index);
            }
        }
        let mut runs = self.runs.iter_mut();
        runs.try_for_each(|run| run.find(sorted, found))
    }
}

impl DigestSet for DigestStore {
    type Error = JournalError;

    fn find(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize),
    ) -> Result<(), JournalError> {
        Self::find(self, sorted, found)
    }

    fn insert(&mut self, digest: KeyDigest) -> Result<(), JournalError> {
        self.append(digest)
    }
}

/// The digests of all runs in ascending order, in parts.
fn merge(runs: &mut [Run]) -> impl Iterator<Item = Result<Vec<KeyDigest>, JournalError>> {
    let count: u64 = runs.iter().map(|run| run.header.count).sum();
    // Digests are uniform.
    let parts = count / MERGED_DIGESTS + 1;
    let mut next = vec![0; runs.len()];
    (1..=parts).map(move |part| {
        let last = ((u128::from(part) << 64) / u128::from(parts) - 1) as u64;
        let mut digests = Vec::with_capacity(2 * MERGED_DIGESTS as usize);
        for (run, next) in runs.iter_mut().zip(&mut next) {
            *next = run.read_up_to(last, *next, &mut digests)?;
        }
        // It finds and merges what is sorted.
        digests.sort();
        Ok(digests)
    })
}
