//! A filter without errors: the digests of all keys decide, in memory or in a folder.
//!
//! ```text
//! folder/lock     locked by the program that uses the folder, and empty before the first commit
//! folder/keys     the digests
//! folder/filter   the filter, how many digests count, their secret, and the bytes of the caller
//! ```
//!
//! The file `filter` is a commit: it is replaced as a whole once its digests are on the disk.
//! Without it, and with an empty lock, what is in a folder is the rest of a first save.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::hash::BuildHasherDefault;
use std::io::{BufReader, ErrorKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use echoless::hash::{KeyDigest, KeyDigester};
use echoless::spec::Form;
use echoless::state::{StateReader, restore_parts};
use echoless::{
    Filter as _, FilterSpec, KeyHash, KeyHasher, LineFilter, Report, SpecError, Tally, Verdicts,
};
use echoless_durable::storage::{LOCK, RealStorage, Storage, note_commit};
use echoless_durable::{
    DigestHasher, DigestSet, DigestStore, KEYS_FOLDER, Kept, Verified, is_left_aside,
};

use crate::failure::{Code, Failure};
use crate::filter::{read_file, spec_of, write_file};
use crate::keys::{Keys, check_masks, count_ones};

/// The keys that are judged together: those of them that are looked up share reads of the disk.
const BLOCK: usize = 1 << 16;

/// The file that a folder has once a filter was saved in it.
pub const FILTER_FILE: &str = "filter";

/// What the bytes in front of those of the caller begin with.
const MAGIC: [u8; 8] = *b"ECHOEXAC";

/// The digests of keys in any form: two hashes of 64 bits with secrets of their own.
#[derive(Debug, Clone)]
pub struct Digester([KeyHasher; 2]);

impl Digester {
    fn new(secret: &KeyDigester) -> Self {
        Self([[0], [1]].map(|half| {
            let mut key = [0; 16];
            let words = secret.digest(half).words().map(u64::to_le_bytes);
            key.copy_from_slice(words.as_flattened());
            KeyHasher::keyed(key)
        }))
    }

    /// Writes digests, whose halves `hash` makes with a hasher each.
    ///
    /// # Errors
    /// That of `hash`.
    pub fn digest<E>(
        &self,
        digests: &mut [KeyDigest],
        mut hash: impl FnMut(&KeyHasher, &mut [KeyHash]) -> Result<(), E>,
    ) -> Result<(), E> {
        let [mut first, mut second] = [(); 2].map(|()| vec![KeyHash::default(); digests.len()]);
        hash(&self.0[0], &mut first)?;
        hash(&self.0[1], &mut second)?;
        for (digest, halves) in digests.iter_mut().zip(first.iter().zip(&second)) {
            *digest = KeyDigest::from_words([halves.0.get(), halves.1.get()]);
        }
        Ok(())
    }
}

type DigestsInMemory = HashSet<KeyDigest, BuildHasherDefault<DigestHasher>>;

/// All keys so far.
enum KeySet {
    Memory(DigestsInMemory),
    Folder(Folder),
}

/// The folder that a filter is saved in. It stays locked until this is dropped.
struct Folder {
    path: PathBuf,
    /// The process that opened it. A fork has the same lock.
    process: u32,
    store: DigestStore,
    _lock: Box<dyn Send + Sync>,
}

impl DigestSet for KeySet {
    type Error = Failure;

    fn find(&mut self, sorted: &[KeyDigest], found: &mut dyn FnMut(usize)) -> Result<(), Failure> {
        match self {
            Self::Memory(digests) => {
                let Ok(()) = digests.find(sorted, found);
            }
            Self::Folder(folder) => folder.store.find(sorted, found)?,
        }
        Ok(())
    }

    fn insert_all(&mut self, digests: &[KeyDigest]) -> Result<(), Failure> {
        match self {
            Self::Memory(known) => {
                let reserved = known.try_reserve(digests.len());
                reserved.map_err(|error| Failure::new(Code::OutOfMemory, error.to_string()))?;
                let Ok(()) = known.insert_all(digests);
            }
            Self::Folder(folder) => folder.store.insert_all(digests)?,
        }
        Ok(())
    }
}

/// A filter in lines whose verdicts are those of an unbounded set; see [`Verified`]. The digests of
/// the keys are in memory, and from the first [`save`](Self::save) on in a folder.
pub struct Exact {
    judge: Verified<Box<dyn LineFilter>, KeySet>,
    pub(crate) spec: FilterSpec,
    pub(crate) hasher: KeyHasher,
    secret: [u8; 16],
    pub(crate) digester: Digester,
    /// Those of a block of keys.
    hashes: Vec<KeyHash>,
    digests: Vec<KeyDigest>,
    verdicts: Verdicts,
    /// A call has failed that may have changed a part.
    has_failed: bool,
}

impl fmt::Debug for Exact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Exact");
        debug.field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Exact {
    /// Builds the filter of a specification such as `fingerprint:fpr=1e-8,memory=64MiB`, with its
    /// digests in memory.
    ///
    /// # Errors
    /// [`Failure`] as [`FilterSpec::build_lines`] has them, or if the filter has a window or does
    /// not count what it evicts.
    pub fn new(spec: &str, hasher: KeyHasher) -> Result<Self, Failure> {
        let spec = spec_of(spec)?.form(Form::Line);
        let set = KeySet::Memory(HashSet::default());
        Self::of_parts(
            spec.build_lines()?,
            set,
            spec,
            hasher,
            KeyDigester::random_key(),
        )
    }

    fn of_parts(
        filter: Box<dyn LineFilter>,
        set: KeySet,
        spec: FilterSpec,
        hasher: KeyHasher,
        secret: [u8; 16],
    ) -> Result<Self, Failure> {
        let of_secret = KeyDigester::keyed(secret);
        let digester = Digester::new(&of_secret);
        // Its error has no specification.
        let judge = Verified::new(filter, set, hasher.clone(), of_secret)
            .map_err(|error| SpecError::new("spec", spec.to_string(), error.allowed))?;
        Ok(Self {
            digester,
            judge,
            spec,
            hasher,
            secret,
            hashes: Vec::new(),
            digests: Vec::new(),
            verdicts: Verdicts::new(),
            has_failed: false,
        })
    }

    /// Opens a folder as it was last saved, with the bytes of the caller.
    ///
    /// # Errors
    /// [`Code::Io`] if there is no such folder, nothing was saved in it, or it cannot be read;
    /// [`Code::Busy`] if another filter or process uses it; [`Code::InvalidState`] if it is damaged;
    /// [`Code::StateMismatch`] if the keys were hashed otherwise, and [`Code::InvalidSpec`] if the
    /// filter has more memory than `memory_limit`.
    pub fn load(
        path: &Path,
        hasher: KeyHasher,
        memory_limit: u64,
    ) -> Result<(Vec<u8>, Self), Failure> {
        // A lock would make a file in any folder.
        let file = path.join(FILTER_FILE);
        check_not_lost(path)?;
        let canonical = fs::metadata(&file).and_then(|_| fs::canonicalize(path));
        let canonical = canonical.map_err(|error| Failure::from(error).of_path(&file))?;
        let lock = lock(&canonical)?;
        let (filter, spec, bytes) = read_file(&file, |file| {
            let state = StateReader::open(BufReader::new(file))?.limit_memory(memory_limit)?;
            state.check(*state.spec(), &hasher)?;
            let spec = *state.spec().lines()?;
            let restored = restore_parts(vec![state], 1)?;
            let filter = restored.filter.into_parts().1.pop();
            Ok((filter, spec, restored.bytes.concat()))
        })?;
        let (Some(filter), Some((count, secret, bytes))) = (filter, saved_parts(&bytes)) else {
            let text = "expected the filter of a folder of exact keys, not a state of its own";
            return Err(Failure::new(Code::InvalidState, text).of_path(&file));
        };
        let digester = KeyDigester::keyed(secret);
        let set = KeySet::Folder(Folder {
            process: process::id(),
            store: DigestStore::open(
                Arc::new(RealStorage),
                &canonical.join(KEYS_FOLDER),
                &digester,
                Kept::Digest,
                count,
            )?,
            path: canonical.clone(),
            _lock: lock,
        });
        let exact = Self::of_parts(filter, set, spec, hasher, secret)?;
        // The process may have been killed before it noted the first commit.
        note(&canonical);
        remove_left_aside(&canonical);
        Ok((bytes.to_vec(), exact))
    }

    /// Judges each key in order, and records it. The bits of `duplicates` and the result are those
    /// of [`Filter::observe`](crate::Filter).
    ///
    /// # Errors
    /// [`Failure`] as [`check_masks`], or if the keys [have no digests](Keys::digests); nothing was
    /// judged then. [`Code::Io`] or [`Code::InvalidState`] if the folder fails: all later calls
    /// fail, too, and the folder is as it was last saved.
    pub fn observe(
        &mut self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        self.judge_blocks(keys, ticks, duplicates, |exact, from, words| {
            let (hashes, verdicts) = (&mut exact.hashes, &mut exact.verdicts);
            hashes.resize(exact.digests.len(), KeyHash::default());
            keys.hash(&exact.hasher, from, hashes);
            let judged = (exact.judge).observe_digests(hashes, &exact.digests, verdicts);
            judged.inspect_err(|_| exact.has_failed = true)?;
            words.copy_from_slice(verdicts.words());
            Ok(())
        })
    }

    /// Whether each key would be a duplicate now. Changes nothing.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub fn contains(&mut self, keys: &dyn Keys, duplicates: &mut [u64]) -> Result<u64, Failure> {
        self.judge_blocks(keys, None, duplicates, |exact, _, words| {
            words.fill(0);
            let mut sorted = exact.digests.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let mut found = HashSet::new();
            exact.judge.set_mut().find(&sorted, &mut |index| {
                found.insert(sorted[index]);
            })?;
            for (key, digest) in exact.digests.iter().enumerate() {
                words[key / 64] |= u64::from(found.contains(digest)) << (key % 64);
            }
            Ok(())
        })
    }

    /// Makes the digests of each block of keys, and calls `judge` with the number of its first key
    /// and its words of `duplicates`.
    fn judge_blocks(
        &mut self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
        judge: impl Fn(&mut Self, usize, &mut [u64]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        check_masks(keys.len(), ticks.map(<[u64]>::len), duplicates.len())?;
        self.check_usable()?;
        for (number, words) in duplicates.chunks_mut(BLOCK / 64).enumerate() {
            let from = number * BLOCK;
            let to = keys.len().min(from + BLOCK);
            self.digests
                .resize(to - from, KeyDigest::from_words([0; 2]));
            if let Some(digests) = keys.digests()? {
                self.digests.copy_from_slice(&digests[from..to]);
            } else {
                let Ok(()) = (self.digester).digest(&mut self.digests, |hasher, hashes| {
                    keys.hash(hasher, from, hashes);
                    Ok::<_, Infallible>(())
                });
            }
            judge(self, from, words)?;
        }
        Ok(count_ones(duplicates))
    }

    /// Removes all keys of a filter that was never saved.
    ///
    /// # Errors
    /// [`Code::Unsupported`] if it was.
    pub fn clear(&mut self) -> Result<(), Failure> {
        self.check_usable()?;
        match self.judge.set_mut() {
            KeySet::Memory(digests) => digests.clear(),
            KeySet::Folder(folder) => {
                let path = folder.path.display();
                let text = format!("cannot clear {path}: expected a filter that was never saved");
                return Err(Failure::new(Code::Unsupported, text));
            }
        }
        self.judge.filter_mut().clear();
        Ok(())
    }

    /// Counters. `fresh` are all keys, and the evictions those of the filter: once there are any,
    /// all keys are looked up.
    #[must_use]
    pub fn report(&mut self) -> Report {
        let fresh = match self.judge.set_mut() {
            KeySet::Memory(digests) => digests.len() as u64,
            KeySet::Folder(folder) => folder.store.len(),
        };
        let of_filter = self.judge.filter().report();
        Report {
            tally: Tally {
                memory_bytes: self.memory_bytes(),
                fresh: Some(fresh),
                ..of_filter.tally
            },
            expected_fpr: Some(0.0),
            expected_false_duplicates: Some(0.0),
            miss_age: None,
            ..of_filter
        }
    }

    /// The memory of the filter, and of the digests until they are in a folder, in bytes.
    #[must_use]
    pub fn memory_bytes(&mut self) -> u64 {
        let of_digests = match self.judge.set_mut() {
            // A byte of each slot says whether it is taken; one slot of eight is free.
            KeySet::Memory(digests) => digests.capacity() as u64 * 8 / 7 * 17,
            KeySet::Folder(_) => 0,
        };
        self.judge.filter().memory_bytes() + of_digests
    }

    /// Saves the filter with `bytes` of the caller in a folder, which is created if necessary. The
    /// first call moves the digests there; later ones, of the same folder, write what is new, and
    /// the filter. The secret of the hasher is not in it, but that of the digests is.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] if the folder is another one than before, or has anything else in
    /// it; [`Code::Busy`] if it is used; [`Code::Io`] if it cannot be written, and then all later
    /// calls fail, and the folder is as it was last saved.
    pub fn save(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        self.check_usable()?;
        let of_secret = KeyDigester::keyed(self.secret);
        let (mut folder, committed) = match self.judge.set_mut() {
            KeySet::Memory(digests) => {
                let mut folder = Folder::create(path, &of_secret)?;
                for digest in &*digests {
                    folder.store.append(*digest)?;
                }
                // Until it is committed, the keys are in memory.
                self.commit(&mut folder, bytes)?;
                (folder, Ok(()))
            }
            KeySet::Folder(folder) => {
                if fs::canonicalize(path).ok().as_ref() != Some(&folder.path) {
                    let value = path.display().to_string();
                    let allowed = format!("{}, where it was saved before", folder.path.display());
                    return Err(Failure::argument("folder", value, allowed));
                }
                let set = KeySet::Memory(HashSet::default());
                let KeySet::Folder(mut folder) = mem::replace(self.judge.set_mut(), set) else {
                    unreachable!("a folder")
                };
                let committed = self.commit(&mut folder, bytes);
                (folder, committed)
            }
        };
        let saved = committed.and_then(|()| Ok(folder.store.merge()?));
        self.has_failed = saved.is_err();
        *self.judge.set_mut() = KeySet::Folder(folder);
        saved
    }

    /// Commits all digests of a folder.
    fn commit(&mut self, folder: &mut Folder, bytes: &[u8]) -> Result<(), Failure> {
        let count = folder.store.flush()?;
        let bytes = [&MAGIC[..], &count.to_le_bytes(), &self.secret, bytes].concat();
        let filters = std::slice::from_mut(self.judge.filter_mut());
        let lines = 0..filters[0].range().total;
        write_file(&folder.path.join(FILTER_FILE), |file| {
            let saved = self
                .spec
                .save_part(filters, lines, &self.hasher, &bytes, file);
            Ok(saved?)
        })?;
        note(&folder.path);
        Ok(())
    }

    fn check_usable(&mut self) -> Result<(), Failure> {
        if let KeySet::Folder(folder) = self.judge.set_mut()
            && folder.process != process::id()
        {
            let text = "the process is a fork of the one that opened the folder";
            return Err(Failure::new(Code::Forked, text).of_path(&folder.path));
        }
        if self.has_failed {
            let text = "the filter has failed before: load it as it was last saved";
            return Err(Failure::new(Code::Io, text));
        }
        Ok(())
    }
}

impl Folder {
    /// Begins a folder that has no filter.
    fn create(path: &Path, digester: &KeyDigester) -> Result<Self, Failure> {
        let of_path = |error| Failure::from(error).of_path(path);
        RealStorage.create_folder(path).map_err(of_path)?;
        let path = fs::canonicalize(path).map_err(of_path)?;
        let check = || {
            let names = RealStorage.list(&path).map_err(of_path)?;
            if names.is_empty() || is_begun(&path, &names) {
                return Ok(());
            }
            check_not_lost(&path)?;
            let allowed = "a new folder, or an empty one; what was saved is loaded first";
            Err(Failure::argument("folder", path.display(), allowed))
        };
        // Before the lock, which would make a file in any folder, and under it.
        check()?;
        let lock = lock(&path)?;
        check()?;
        remove_left_aside(&path);
        if let Some(around) = path.parent() {
            RealStorage.sync_folder(around).map_err(of_path)?;
        }
        Ok(Self {
            process: process::id(),
            store: DigestStore::create(
                Arc::new(RealStorage),
                &path.join(KEYS_FOLDER),
                digester,
                Kept::Digest,
            )?,
            path,
            _lock: lock,
        })
    }
}

/// Whether a filter was saved in a folder: it has its file, or the note of that.
#[must_use]
pub fn is_saved(folder: &Path) -> bool {
    let is_noted = fs::metadata(folder.join(LOCK)).is_ok_and(|lock| lock.len() > 0);
    is_noted || folder.join(FILTER_FILE).exists()
}

/// Fails if a folder has the note of a commit, and not the commit.
fn check_not_lost(folder: &Path) -> Result<(), Failure> {
    let file = folder.join(FILTER_FILE);
    if file.exists() || !is_saved(folder) {
        return Ok(());
    }
    let text = "it is missing: restore it, or remove its folder to begin anew";
    Err(Failure::new(Code::InvalidState, text).of_path(&file))
}

/// Notes a commit in the lock of a folder. Without the note, as on some disks of other machines, a
/// folder that lost its filter cannot be told from one that never had any.
fn note(folder: &Path) {
    let _ = note_commit(&RealStorage, &folder.join(LOCK));
}

/// Whether a folder has the rest of a first save that failed, or was killed, and nothing else.
fn is_begun(folder: &Path, names: &[OsString]) -> bool {
    names.iter().any(|name| name == LOCK) && names.iter().all(is_own) && !is_saved(folder)
}

/// Whether a file of a folder with exact keys may have this name.
fn is_own(name: &OsString) -> bool {
    [LOCK, KEYS_FOLDER, FILTER_FILE]
        .iter()
        .any(|own| name == own)
        || is_left_aside(name)
}

/// Removes the files that killed saves have left in a folder, which is locked and has nothing of
/// others. Those that stay do no harm.
fn remove_left_aside(folder: &Path) {
    let Ok(names) = RealStorage.list(folder) else {
        return;
    };
    if !names.iter().all(is_own) {
        return;
    }
    for name in names.iter().filter(|name| is_left_aside(name)) {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|file| file.is_file()) {
            let _ = RealStorage.remove(&path);
        }
    }
}

fn lock(folder: &Path) -> Result<Box<dyn Send + Sync>, Failure> {
    RealStorage.lock(&folder.join(LOCK)).map_err(|error| {
        let failure = match error.kind() {
            ErrorKind::WouldBlock => {
                Failure::new(Code::Busy, "in use by another filter or process")
            }
            _ => error.into(),
        };
        failure.of_path(folder)
    })
}

/// The number of digests, their secret and the bytes of the caller.
fn saved_parts(bytes: &[u8]) -> Option<(u64, [u8; 16], &[u8])> {
    let bytes = bytes.strip_prefix(&MAGIC)?;
    let (count, bytes) = bytes.split_first_chunk()?;
    let (secret, bytes) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*count), *secret, bytes))
}
