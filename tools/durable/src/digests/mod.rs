//! The digests of all keys that a program has ever passed on, or in a window, on the disk.
//!
//! ```text
//! append -> recent (memory) -> runs, one for each full memory -> merged runs
//! ```
//!
//! A run is a sorted file, which is written once. Their names say which of the appended digests they
//! have, so the number of digests in the commit of a journal selects the runs: those behind it were
//! not committed, and are removed. Only committed runs are merged, or only those that are not, so a
//! crash leaves the merged run or those that it was made of.
//!
//! A set for a window keeps the last time of each digest. A digest that is seen again is appended
//! again; a run has the last time alone, and none that is older than the window.

mod run;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, ErrorKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use echoless::hash::{KeyDigest, KeyDigester};

pub use self::run::Kept;
use self::run::{Entry, Run, RunHeader, damaged, write_run};
use crate::error::{At, JournalError};
use crate::storage::Storage;
use crate::verified::DigestSet;
use crate::whole::ASIDE;

/// The folder beside the state of a program for its set, if it has one.
pub const KEYS_FOLDER: &str = "keys";

/// The digests that are gathered in memory, of which a run is made.
const MOST_RECENT: usize = 1 << 20;

/// The digests that are merged at a time.
const MERGED_DIGESTS: u64 = 1 << 18;

/// A run is merged with those behind it unless it has more than so many times their digests.
const GROWTH: u64 = 2;

/// The runs that are not committed, before they are merged among themselves.
const MOST_UNCOMMITTED: usize = 64;

/// A set of digests in a folder, which grows at the commits of a [journal](crate::Journal), or of
/// anything else that is durable.
///
/// Finding a digest takes a read of 4 KiB for each run. [Merged](Self::merge) runs have more than
/// twice as many digests as all behind them: 8 runs at most for a billion digests, if the last one has
/// 200,000. Many digests at once are found in the order of the files.
///
/// Memory: 8 bytes for 255 digests that are looked for, and 24 MiB for recent ones, 75 MiB more if
/// they are looked for while they are recent. On the disk, a digest takes 16.1 bytes, with its time
/// 24.1; those whose [window](Self::forget_before) is over are there until they are merged.
///
/// One process at a time may open a set: lock the journal beside it.
///
/// # Commits
/// [`flush`](Self::flush) makes what was appended durable, and returns how many digests there are,
/// for the caller to commit. After a crash, [`open`](Self::open) with the number of a commit has
/// exactly the digests up to it, if that is the last one or no [`merge`](Self::merge) came behind it.
///
/// # Errors
/// After an error, open the set again at the last commit.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use echoless::hash::KeyDigester;
/// use echoless_durable::storage::RealStorage;
/// use echoless_durable::{DigestSet, DigestStore, JournalError, Kept};
/// # let temporary = tempfile::tempdir().expect("a folder");
/// # let folder = &temporary.path().join("keys");
/// let digester = KeyDigester::keyed([7; 16]);
/// let [call, other] = ["call 17", "call 18"].map(|key| digester.digest(key));
/// let storage = Arc::new(RealStorage);
/// let mut keys = DigestStore::open(storage.clone(), folder, &digester, Kept::Digest, 0)?;
/// keys.append(call)?;
/// let committed = keys.flush()?;
/// keys.append(other)?;
/// keys.flush()?;
/// // This is where the program is killed, before it commits for the second time.
/// drop(keys);
/// let mut keys = DigestStore::open(storage, folder, &digester, Kept::Digest, committed)?;
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
    kept: Kept,
    /// Tells the runs of this store from those of another digester.
    id: u64,
    runs: Vec<Run>,
    /// The number of the digests that were there when the set was opened, or merged last.
    committed: u64,
    /// What is in no run yet, and those of them that a call has looked for so far.
    recent: Vec<Entry>,
    recent_set: HashMap<KeyDigest, u64, BuildHasherDefault<DigestHasher>>,
    /// How many of `recent` are in that.
    in_set: usize,
    most_recent: usize,
    /// The first tick that is not too old.
    oldest: u64,
    stops: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
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

/// Hashes a digest in memory: its first word, which is uniform already.
#[derive(Debug, Default)]
pub struct DigestHasher(u64);

impl Hasher for DigestHasher {
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
    /// Opens the set of a folder, which is created if necessary, with the digests that this
    /// digester made, up to this number. Removes what was not committed. `kept` is as it was when
    /// the set was new.
    ///
    /// # Errors
    /// [`JournalError::Segments`] if runs are missing or damaged, or of another digester;
    /// [`JournalError::Io`] if the storage fails.
    pub fn open(
        storage: Arc<dyn Storage>,
        folder: &Path,
        digester: &KeyDigester,
        kept: Kept,
        committed: u64,
    ) -> Result<Self, JournalError> {
        Self::open_after(Some(committed), storage, folder, digester, kept)
    }

    /// Opens the set of a folder that has no commit, which is created if necessary. Removes the
    /// runs in it, of any digester: its secret would be in a commit, and without it nobody can use
    /// them.
    ///
    /// # Errors
    /// [`JournalError::Segments`] if a file has the name of a run and is none;
    /// [`JournalError::Io`] if the storage fails.
    pub fn create(
        storage: Arc<dyn Storage>,
        folder: &Path,
        digester: &KeyDigester,
        kept: Kept,
    ) -> Result<Self, JournalError> {
        Self::open_after(None, storage, folder, digester, kept)
    }

    /// Opens a set, and removes the runs that were not committed: without any commit, those of all
    /// digesters.
    fn open_after(
        commit: Option<u64>,
        storage: Arc<dyn Storage>,
        folder: &Path,
        digester: &KeyDigester,
        kept: Kept,
    ) -> Result<Self, JournalError> {
        storage.create_folder(folder).at(folder)?;
        if let Some(parent) = folder.parent() {
            storage.sync_folder(parent).at(parent)?;
        }
        // A name of a merged run may be in the cache of the system alone, if the run before was killed.
        storage.sync_folder(folder).at(folder)?;
        let (store, leftover) = Self::load(storage, folder, digester, kept, commit.unwrap_or(0))?;
        for path in &leftover {
            // Another set may have been here.
            let header = RunHeader::read(&*store.storage, path)?;
            let is_aside = path.to_string_lossy().ends_with(ASIDE);
            let is_own = |header: RunHeader| commit.is_none() || header.store == store.id;
            if !header.map_or(is_aside, is_own) {
                return Err(of_another_set(path));
            }
        }
        for path in &leftover {
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
        kept: Kept,
        committed: u64,
    ) -> Result<(), JournalError> {
        if committed == 0 {
            // There need not be a folder.
            return Ok(());
        }
        let (mut store, _) = Self::load(storage, folder, digester, kept, committed)?;
        for run in &mut store.runs {
            merge(slice::from_mut(run), 0).try_for_each(|part| part.map(drop))?;
        }
        Ok(())
    }

    /// The set of a folder, and the files that do not belong to it.
    fn load(
        storage: Arc<dyn Storage>,
        folder: &Path,
        digester: &KeyDigester,
        kept: Kept,
        committed: u64,
    ) -> Result<(Self, Vec<PathBuf>), JournalError> {
        let [id, _] = digester.digest([]).words();
        let mut store = Self {
            folder: folder.to_owned(),
            kept,
            id,
            runs: Vec::new(),
            committed,
            recent: Vec::new(),
            recent_set: HashMap::default(),
            in_set: 0,
            most_recent: MOST_RECENT,
            oldest: 0,
            stops: None,
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
            let complete = name.strip_suffix(ASIDE);
            match RunHeader::of_name(self.kept, self.id, complete.unwrap_or(name)) {
                Some(_) if complete.is_some() => leftover.push(self.folder.join(name)),
                Some(header) => named.push(header),
                None => {}
            }
        }
        // Of those that begin at one number, the longest one is the first.
        named.sort_unstable_by_key(|header| (header.first, Reverse(header.count)));
        for header in named {
            let path = self.folder.join(header.name());
            if header.first != self.runs_end() || header.end() > committed {
                leftover.push(path);
                continue;
            }
            match RunHeader::read(&*self.storage, &path)? {
                Some(read) if read == header => {}
                Some(read) if read.store != self.id => return Err(of_another_set(&path)),
                Some(_) | None => return Err(damaged(&path, "its header is damaged")),
            }
            let mut run = Run::new(path, header);
            // Damage is found before anything is done with the set.
            run.open(&*self.storage)?;
            self.runs.push(run);
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

    /// The number of digests that were appended.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.runs_end() + self.recent.len() as u64
    }

    /// Whether no digest was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of digests that are kept: a set with times forgets some, and may have several
    /// times of one digest until they are merged.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.runs.iter().map(|run| run.entries).sum::<u64>() + self.recent.len() as u64
    }

    /// Sets how many digests are gathered in memory, 2^20 if this is not called.
    pub fn set_most_recent(&mut self, digests: usize) {
        self.most_recent = digests.max(1);
    }

    /// From now on, a merge ends as soon as this is true, and leaves the set as it was: what is
    /// asked for next is the end of the program. It is called after some milliseconds of work.
    pub fn stop_merges_if(&mut self, stops: impl Fn() -> bool + Send + Sync + 'static) {
        self.stops = Some(Arc::new(stops));
    }

    /// A set that keeps times may forget those of ticks before this one, and does with the next
    /// merge. An earlier tick than before has no effect.
    pub fn forget_before(&mut self, tick: u64) {
        self.oldest = self.oldest.max(tick);
    }

    /// Adds a digest that is not in the set.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails.
    pub fn append(&mut self, digest: KeyDigest) -> Result<(), JournalError> {
        debug_assert_eq!(self.kept, Kept::Digest, "a digest without a time");
        self.append_entry((digest, 0))
    }

    /// Adds the tick at which a digest was seen, none before those of the calls before.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails.
    pub fn append_at(&mut self, digest: KeyDigest, tick: u64) -> Result<(), JournalError> {
        debug_assert_eq!(self.kept, Kept::LastSeen, "a set with times");
        self.append_entry((digest, tick))
    }

    fn append_entry(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.recent.push(entry);
        if self.recent.len() >= self.most_recent {
            self.write_recent()?;
        }
        Ok(())
    }

    /// Finds when each of these digests was last seen. They are in ascending order, each once, and
    /// `found` gets the index of each that is in the set with a tick of it: maybe several, of which
    /// the highest counts. A tick that [may be forgotten](Self::forget_before) may still be there.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails, [`JournalError::Segments`] if a run is damaged.
    pub fn find_times(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize, u64),
    ) -> Result<(), JournalError> {
        debug_assert!(sorted.is_sorted(), "digests in ascending order");
        let next = self.recent[self.in_set..].iter().copied();
        self.recent_set.extend(next);
        self.in_set = self.recent.len();
        if !self.recent_set.is_empty() {
            for (index, digest) in sorted.iter().enumerate() {
                if let Some(tick) = self.recent_set.get(digest) {
                    found(index, *tick);
                }
            }
        }
        for run in &mut self.runs {
            run.open(&*self.storage)?;
            run.find(sorted, found)?;
        }
        Ok(())
    }

    /// Makes the recent digests a run.
    fn write_recent(&mut self) -> Result<(), JournalError> {
        let header = RunHeader {
            kept: self.kept,
            store: self.id,
            first: self.runs_end(),
            count: self.recent.len() as u64,
        };
        if header.count == 0 {
            return Ok(());
        }
        self.recent_set.clear();
        self.in_set = 0;
        let mut entries = mem::take(&mut self.recent);
        entries.sort_unstable();
        keep_needed(self.kept, self.oldest, &mut entries);
        self.write(header, [Ok(entries)])?;
        let committed = self.committed_runs();
        if self.runs.len() - committed >= MOST_UNCOMMITTED {
            self.merge_within(committed)?;
        }
        Ok(())
    }

    /// The number of runs up to the last merge.
    fn committed_runs(&self) -> usize {
        let is_committed = |run: &Run| run.header.end() <= self.committed;
        self.runs.partition_point(is_committed)
    }

    /// Writes a run, behind the others.
    fn write(
        &mut self,
        header: RunHeader,
        parts: impl IntoIterator<Item = Result<Vec<Entry>, JournalError>>,
    ) -> Result<(), JournalError> {
        let entries = write_run(&*self.storage, &self.folder, header, parts)?;
        let path = self.folder.join(header.name());
        let mut run = Run::new(path, header);
        run.entries = entries;
        self.runs.push(run);
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

    /// Merges runs, now that all commits that may be opened again have all digests of this set.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails, [`JournalError::Segments`] if a run is damaged.
    ///
    /// # Panics
    /// If digests were appended since the last [`flush`](Self::flush).
    pub fn merge(&mut self) -> Result<(), JournalError> {
        assert!(self.recent.is_empty(), "a set that was flushed");
        self.committed = self.runs_end();
        self.merge_within(0)
    }

    /// Merges the last runs, of those from this one on, so that each has more than twice the digests
    /// of all behind it.
    fn merge_within(&mut self, first: usize) -> Result<(), JournalError> {
        let (mut from, mut behind) = (self.runs.len(), 0);
        for index in (first..self.runs.len()).rev() {
            // One without entries is not merged with itself.
            let count = self.runs[index].entries.max(1);
            if count <= GROWTH.saturating_mul(behind) {
                from = index;
            }
            behind += count;
        }
        let mut merged = self.runs.split_off(from);
        let Some(first) = merged.first() else {
            return Ok(());
        };
        let header = RunHeader {
            kept: self.kept,
            store: self.id,
            first: first.header.first,
            count: merged.iter().map(|run| run.header.count).sum(),
        };
        let mut opening = merged.iter_mut();
        opening.try_for_each(|run| run.open(&*self.storage))?;
        let (stops, mut is_stopped) = (self.stops.clone(), false);
        let parts = merge(&mut merged, self.oldest).map(|part| {
            is_stopped = stops.as_ref().is_some_and(|stops| stops());
            match is_stopped {
                // It removes what was written so far.
                true => Err(io::Error::from(ErrorKind::Interrupted)).at(Path::new("")),
                false => part,
            }
        });
        let written = self.write(header, parts);
        if is_stopped {
            self.runs.append(&mut merged);
            return Ok(());
        }
        written?;
        for run in merged {
            self.storage.remove(&run.path).at(&run.path)?;
        }
        self.storage.sync_folder(&self.folder).at(&self.folder)
    }
}

impl DigestSet for DigestStore {
    type Error = JournalError;

    fn find(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize),
    ) -> Result<(), JournalError> {
        self.find_times(sorted, &mut |index, _| found(index))
    }

    fn insert_all(&mut self, digests: &[KeyDigest]) -> Result<(), JournalError> {
        digests.iter().try_for_each(|digest| self.append(*digest))
    }
}

/// What is wrong with a file that has the name of a run.
fn of_another_set(path: &Path) -> JournalError {
    damaged(
        path,
        "is of another set of keys: remove its folder, if its state was removed",
    )
}

/// The entries of all runs, which are open, in ascending order, in parts, without those that are
/// needed no more.
fn merge(runs: &mut [Run], oldest: u64) -> impl Iterator<Item = Result<Vec<Entry>, JournalError>> {
    let count: u64 = runs.iter().map(|run| run.entries).sum();
    // Digests are uniform.
    let parts = count / MERGED_DIGESTS + 1;
    let mut next = vec![0; runs.len()];
    (1..=parts).map(move |part| {
        let last = ((u128::from(part) << 64) / u128::from(parts) - 1) as u64;
        let mut entries = Vec::with_capacity(2 * MERGED_DIGESTS as usize);
        for (run, next) in runs.iter_mut().zip(&mut next) {
            *next = run.read_up_to(last, *next, &mut entries)?;
        }
        // It finds and merges what is sorted.
        entries.sort();
        if let Some(run) = runs.first() {
            keep_needed(run.header.kept, oldest, &mut entries);
        }
        Ok(entries)
    })
}

/// Removes what a set with times needs no more of these entries, which are in ascending order: all
/// but the last time of a digest, and those that are too old.
fn keep_needed(kept: Kept, oldest: u64, entries: &mut Vec<Entry>) {
    if kept == Kept::LastSeen {
        entries.dedup_by(|next, last| {
            let is_same = next.0 == last.0;
            if is_same {
                last.1 = next.1;
            }
            is_same
        });
        entries.retain(|(_, tick)| *tick >= oldest);
    }
}
