//! A storage in memory that tests whether a program survives power cuts and errors: a test tool.
//!
//! It records every operation that changes something. Afterwards
//! [`crash_states`](SimulatedStorage::crash_states) lists what a disk can hold if the power fails
//! between two operations, and [`fail`](SimulatedStorage::fail) makes one operation fail.
//!
//! # What survives a power cut
//! Everything that was synced, and of the rest any part:
//! - Of the writes to a file that were not synced, each can be lost, also one before another that
//!   is kept: its bytes are zeros then. The last one that is kept can be torn: cut to 1 byte, to
//!   about half (an odd number of bytes), by its last byte; or its length is kept and its bytes are
//!   zeros.
//! - Of the creations, renames and removals in a folder that was not synced, each can be lost, also
//!   one before another that is kept. A rename is kept or lost as a whole.
//! - After a sync that failed, what it was to make durable can be lost although later syncs
//!   succeed.
//!
//! Bytes that were synced do not change: media do not decay here.
//!
//! # Bounds
//! Files that are appended to and synced have few states, and products of many files many. So
//! - up to 3 changes of a file or folder that were not synced are lost in every combination; of
//!   more, all after each one, all but one, or all others;
//! - if the combinations over files and folders are more than 600 after an operation, each file and
//!   folder varies alone, and the others are kept whole, or lose everything;
//! - equal states after one operation are visited once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt::{Debug, Write as _};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use echoless_durable::storage::{ReadFile, Storage, StorageFile};

/// The most combinations after one operation.
const MOST_STATES: usize = 600;

/// The most unsynced changes of which all subsets are tried.
const MOST_SUBSETS: usize = 3;

/// Files in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimulatedStorage {
    shared: Arc<Mutex<Shared>>,
}

/// What an operation that fails reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The storage is full: nothing is written, and nothing created.
    NoSpace,
    /// The device fails: half of a write is written; what a sync was to make durable may be lost.
    Device,
    /// A write takes half of its bytes and succeeds. Other operations are not affected.
    ShortWrite,
}

/// What a disk can hold after a power cut.
#[derive(Debug)]
pub(crate) struct CrashState {
    /// The operations before the power cut.
    pub(crate) operations: usize,
    /// What of the changes that were not synced was lost, for messages of tests.
    pub(crate) loss: String,
    /// The files that are left.
    pub(crate) storage: SimulatedStorage,
}

#[derive(Debug, Default)]
struct Shared {
    disk: Disk,
    /// The disk before the first operation.
    start: Disk,
    operations: Vec<Operation>,
    faults: BTreeMap<usize, Fault>,
    locked: BTreeSet<PathBuf>,
}

/// An operation that was carried out.
#[derive(Debug, Clone)]
enum Operation {
    /// It failed and changed nothing.
    Nothing,
    Create(PathBuf),
    File(usize, Edit),
    SyncFile(usize, bool),
    Folder(PathBuf, Entry),
    SyncFolder(PathBuf, bool),
}

/// A change of the bytes of a file.
#[derive(Debug, Clone)]
enum Edit {
    Write { at: usize, bytes: Arc<[u8]> },
    Truncate(usize),
}

/// A change of the names in a folder, all of it or nothing.
#[derive(Debug, Clone)]
struct Entry(Vec<(OsString, Option<Node>)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    File(usize),
    Folder,
}

type Names = BTreeMap<OsString, Node>;

/// How much of a change is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    /// The first bytes of a write.
    First(usize),
    /// The length of a write, with zeros.
    Length,
    All,
}

trait Change {
    type Content: Clone + Default;

    fn apply(&self, content: &mut Self::Content, kept: Kept);

    /// The ways to keep a part of it.
    fn parts(&self) -> Vec<Kept>;
}

impl Change for Edit {
    type Content = Vec<u8>;

    fn apply(&self, content: &mut Vec<u8>, kept: Kept) {
        match (self, kept) {
            (_, Kept::Nothing) => {}
            (Self::Truncate(size), _) => content.truncate(*size),
            (Self::Write { at, bytes }, kept) => {
                let count = match kept {
                    Kept::First(count) => count,
                    _ => bytes.len(),
                };
                let end = at + count;
                // The bytes of a lost write before this one are zeros.
                content.resize(end.max(content.len()), 0);
                if kept == Kept::Length {
                    content[*at..end].fill(0);
                } else {
                    content[*at..end].copy_from_slice(&bytes[..count]);
                }
            }
        }
    }

    fn parts(&self) -> Vec<Kept> {
        let Self::Write { bytes, .. } = self else {
            return Vec::new();
        };
        let size = bytes.len();
        let mut counts = vec![1, (size / 2) | 1, size.saturating_sub(1)];
        counts.dedup();
        counts.retain(|count| (1..size).contains(count));
        let mut parts: Vec<_> = counts.into_iter().map(Kept::First).collect();
        parts.push(Kept::Length);
        parts
    }
}

impl Change for Entry {
    type Content = Names;

    fn apply(&self, names: &mut Names, kept: Kept) {
        if kept == Kept::Nothing {
            return;
        }
        for (name, node) in &self.0 {
            match node {
                Some(node) => names.insert(name.clone(), *node),
                None => names.remove(name),
            };
        }
    }

    fn parts(&self) -> Vec<Kept> {
        Vec::new()
    }
}

/// Whether a change survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// Perhaps, and the next sync decides it.
    Pending,
    /// Perhaps, and no sync decides it: one has failed.
    Doubtful,
    /// Yes. It is still listed because a doubtful one comes before.
    Durable,
}

/// The content of a file or folder, and what of it survives.
#[derive(Debug, Clone)]
struct Cached<C: Change> {
    durable: C::Content,
    /// What came after `durable`, in order.
    changes: Vec<(C, Durability)>,
    now: C::Content,
}

impl<C: Change> Default for Cached<C> {
    fn default() -> Self {
        Self::new(C::Content::default())
    }
}

impl<C: Change> Cached<C> {
    fn new(content: C::Content) -> Self {
        Self {
            durable: content.clone(),
            changes: Vec::new(),
            now: content,
        }
    }

    fn change(&mut self, change: C) {
        change.apply(&mut self.now, Kept::All);
        self.changes.push((change, Durability::Pending));
    }

    fn sync(&mut self, succeeds: bool) {
        for (_, durability) in &mut self.changes {
            if *durability == Durability::Pending {
                *durability = match succeeds {
                    true => Durability::Durable,
                    false => Durability::Doubtful,
                };
            }
        }
        let is_durable = |change: &&(C, Durability)| change.1 == Durability::Durable;
        let count = self.changes.iter().take_while(is_durable).count();
        for (change, _) in self.changes.drain(..count) {
            change.apply(&mut self.durable, Kept::All);
        }
    }

    /// The content after a power cut.
    fn after(&self, kept: &[Kept]) -> C::Content {
        let mut content = self.durable.clone();
        for ((change, _), kept) in self.changes.iter().zip(kept) {
            change.apply(&mut content, *kept);
        }
        content
    }

    /// How much of each change can be left after a power cut. The first one keeps everything and
    /// the last one as little as possible.
    fn losses(&self) -> Vec<Vec<Kept>> {
        let open: Vec<usize> = (0..self.changes.len())
            .filter(|index| self.changes[*index].1 != Durability::Durable)
            .collect();
        let count = open.len();
        let all = vec![true; count];
        let mut subsets = Vec::new();
        if count <= MOST_SUBSETS {
            for mask in (0..1 << count).rev() {
                subsets.push((0..count).map(|bit| mask >> bit & 1 == 1).collect());
            }
        } else {
            subsets.push(all.clone());
            for index in 0..count {
                // All but this one, this one alone, and all up to this one.
                subsets.push((0..count).map(|other| other != index).collect());
                subsets.push((0..count).map(|other| other == index).collect());
                subsets.push((0..count).map(|other| other <= index).collect());
            }
            subsets.push(vec![false; count]);
        }
        let mut losses: Vec<Vec<Kept>> = Vec::new();
        for subset in subsets {
            let mut kept = vec![Kept::All; self.changes.len()];
            for (index, keep) in open.iter().zip(&subset) {
                if !keep {
                    kept[*index] = Kept::Nothing;
                }
            }
            losses.push(kept.clone());
            if let Some(last) = subset.iter().rposition(|keep| *keep) {
                let last = open[last];
                for part in self.changes[last].0.parts() {
                    kept[last] = part;
                    losses.push(kept.clone());
                }
            }
        }
        // As little as possible comes last: parts follow their subsets.
        losses
    }
}

#[derive(Debug, Clone)]
struct File {
    /// Its first name, for messages.
    path: PathBuf,
    bytes: Cached<Edit>,
}

#[derive(Debug, Clone)]
struct Disk {
    files: Vec<File>,
    /// By path: a folder comes after the one that it is in.
    folders: BTreeMap<PathBuf, Cached<Entry>>,
}

/// What is left of a disk: folders, and files with their bytes.
type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

impl Default for Disk {
    /// The root, whose path is empty.
    fn default() -> Self {
        Self {
            files: Vec::new(),
            folders: BTreeMap::from([(PathBuf::new(), Cached::default())]),
        }
    }
}

impl Disk {
    fn of(image: Image) -> Self {
        let mut disk = Self::default();
        for (path, bytes) in image {
            let node = match bytes {
                Some(bytes) => {
                    disk.files.push(File {
                        path: path.clone(),
                        bytes: Cached::new(bytes),
                    });
                    Node::File(disk.files.len() - 1)
                }
                None => {
                    disk.folders.insert(path.clone(), Cached::default());
                    Node::Folder
                }
            };
            let (parent, name) = split(&path).expect("the root is not in an image");
            let folder = disk.folders.get_mut(parent).expect("a parent comes first");
            folder.durable.insert(name.to_owned(), node);
            folder.now.insert(name.to_owned(), node);
        }
        disk
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Nothing => {}
            Operation::Create(path) => {
                let (parent, name) = split(path).expect("a path that was checked");
                let id = self.files.len();
                self.files.push(File {
                    path: path.clone(),
                    bytes: Cached::default(),
                });
                self.change_names(parent, Entry(vec![(name.to_owned(), Some(Node::File(id)))]));
            }
            Operation::File(id, edit) => self.files[*id].bytes.change(edit.clone()),
            Operation::SyncFile(id, succeeds) => self.files[*id].bytes.sync(*succeeds),
            Operation::Folder(path, entry) => {
                for (name, node) in &entry.0 {
                    if *node == Some(Node::Folder) {
                        self.folders.insert(path.join(name), Cached::default());
                    }
                }
                self.change_names(path, entry.clone());
            }
            Operation::SyncFolder(path, succeeds) => {
                let folder = self.folders.get_mut(path).expect("a folder that was found");
                folder.sync(*succeeds);
            }
        }
    }

    fn change_names(&mut self, folder: &Path, entry: Entry) {
        let folder = self
            .folders
            .get_mut(folder)
            .expect("a folder that was found");
        folder.change(entry);
    }

    fn folder(&self, path: &Path) -> io::Result<&Names> {
        let folder = self.folders.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(&folder.now)
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        let (parent, name) = split(path)?;
        match self.folder(parent)?.get(name) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Folder) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// The states after a power cut now.
    fn crash_states(&self) -> Vec<(String, Image)> {
        let folders: Vec<_> = self.folders.values().map(Cached::losses).collect();
        let files: Vec<_> = self.files.iter().map(|file| file.bytes.losses()).collect();
        let losses: Vec<&[Vec<Kept>]> = folders.iter().chain(&files).map(Vec::as_slice).collect();
        let mut seen = HashSet::new();
        let mut states = Vec::new();
        for choice in choices(&losses.iter().map(|losses| losses.len()).collect::<Vec<_>>()) {
            let kept: Vec<&[Kept]> = losses
                .iter()
                .zip(choice)
                .map(|(losses, choice)| losses[choice].as_slice())
                .collect();
            let image = self.after(&kept);
            if seen.insert(image.clone()) {
                states.push((self.describe(&kept), image));
            }
        }
        states
    }

    /// What is left of folders and files, in this order.
    fn after(&self, kept: &[&[Kept]]) -> Image {
        let (of_folders, of_files) = kept.split_at(self.folders.len());
        let mut image = Image::new();
        for ((path, folder), kept) in self.folders.iter().zip(of_folders) {
            if !path.as_os_str().is_empty() && image.get(path) != Some(&None) {
                // The folder itself was lost.
                continue;
            }
            for (name, node) in folder.after(kept) {
                let content = match node {
                    Node::File(id) => Some(self.files[id].bytes.after(of_files[id])),
                    Node::Folder => None,
                };
                image.insert(path.join(name), content);
            }
        }
        image
    }

    fn describe(&self, kept: &[&[Kept]]) -> String {
        let folders = self.folders.keys();
        let paths = folders.chain(self.files.iter().map(|file| &file.path));
        let mut text = String::new();
        for (path, kept) in paths.zip(kept) {
            if kept.iter().any(|kept| *kept != Kept::All) {
                write!(text, "`{}`: {kept:?}; ", path.display()).expect("strings grow");
            }
        }
        text
    }
}

/// One index for each count, in all combinations if these are few.
fn choices(counts: &[usize]) -> Vec<Vec<usize>> {
    let product = counts
        .iter()
        .try_fold(1_usize, |product, count| product.checked_mul(*count));
    let mut choices = Vec::new();
    if product.is_some_and(|product| product <= MOST_STATES) {
        choices.push(Vec::new());
        for count in counts {
            choices = choices
                .iter()
                .flat_map(|choice| (0..*count).map(|index| [&choice[..], &[index]].concat()))
                .collect();
        }
    } else {
        let kept = vec![0; counts.len()];
        let lost: Vec<usize> = counts.iter().map(|count| count - 1).collect();
        for others in [kept, lost] {
            for (place, count) in counts.iter().enumerate() {
                for index in 0..*count {
                    let mut choice = others.clone();
                    choice[place] = index;
                    choices.push(choice);
                }
            }
        }
    }
    choices
}

/// The folder and the name.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

impl SimulatedStorage {
    /// An empty root folder, whose path is empty.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The operations so far that change something or were to do so: creations, writes,
    /// truncations, syncs, renames, removals.
    #[must_use]
    pub(crate) fn operations(&self) -> usize {
        self.lock_shared().operations.len()
    }

    /// Lets an operation fail: 0 is the first one since the storage was created.
    pub(crate) fn fail(&self, operation: usize, fault: Fault) {
        self.lock_shared().faults.insert(operation, fault);
    }

    /// The states of the disk if the power fails before the first operation, after it, and so on,
    /// within the [bounds](self#bounds).
    ///
    /// Each state is a storage of its own, with its own operations.
    pub(crate) fn crash_states(&self) -> impl Iterator<Item = CrashState> + use<> {
        self.crash_states_from(0)
    }

    /// As [`crash_states`](Self::crash_states), if the power fails after so many operations or
    /// later.
    pub(crate) fn crash_states_from(
        &self,
        first: usize,
    ) -> impl Iterator<Item = CrashState> + use<> {
        let shared = self.lock_shared();
        let mut disk = shared.start.clone();
        let operations = shared.operations.clone();
        drop(shared);
        (0..=operations.len()).flat_map(move |count| {
            if let Some(last) = count.checked_sub(1) {
                disk.apply(&operations[last]);
            }
            let states = match count >= first {
                true => disk.crash_states(),
                false => Vec::new(),
            };
            states.into_iter().map(move |(loss, image)| CrashState {
                operations: count,
                loss,
                storage: Self::of(Disk::of(image)),
            })
        })
    }

    fn of(disk: Disk) -> Self {
        let shared = Shared {
            start: disk.clone(),
            disk,
            ..Shared::default()
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    /// A test that panicked with the lock is of no concern to another one.
    fn lock_shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Carries an operation out, or fails as planned.
    fn run(&mut self, operation: Operation) -> io::Result<()> {
        match self.faults.get(&self.operations.len()) {
            None | Some(Fault::ShortWrite) => self.record(operation),
            Some(Fault::NoSpace) => {
                self.record(Operation::Nothing);
                return Err(ErrorKind::StorageFull.into());
            }
            Some(Fault::Device) => {
                self.record(match operation {
                    Operation::SyncFile(id, _) => Operation::SyncFile(id, false),
                    Operation::SyncFolder(path, _) => Operation::SyncFolder(path, false),
                    _ => Operation::Nothing,
                });
                return Err(device_error());
            }
        }
        Ok(())
    }

    fn record(&mut self, operation: Operation) {
        self.disk.apply(&operation);
        self.operations.push(operation);
    }

    /// Changes names in a folder that exists.
    fn change_names(&mut self, folder: &Path, entry: Entry) -> io::Result<()> {
        self.run(Operation::Folder(folder.to_owned(), entry))
    }

    fn create(&mut self, path: &Path) -> io::Result<usize> {
        let (parent, name) = split(path)?;
        if self.disk.folder(parent)?.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let id = self.disk.files.len();
        self.run(Operation::Create(path.to_owned()))?;
        Ok(id)
    }

    /// Appends bytes, some or all of them.
    fn write(&mut self, id: usize, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let fault = self.faults.get(&self.operations.len()).copied();
        let count = match fault {
            None => bytes.len(),
            Some(Fault::NoSpace) => 0,
            Some(Fault::Device) => bytes.len() / 2,
            Some(Fault::ShortWrite) => bytes.len().div_ceil(2),
        };
        let at = self.disk.files[id].bytes.now.len();
        self.record(match count {
            0 => Operation::Nothing,
            _ => {
                let bytes = bytes[..count].into();
                Operation::File(id, Edit::Write { at, bytes })
            }
        });
        match fault {
            None | Some(Fault::ShortWrite) => Ok(count),
            Some(Fault::NoSpace) => Err(ErrorKind::StorageFull.into()),
            Some(Fault::Device) => Err(device_error()),
        }
    }
}

fn device_error() -> io::Error {
    io::Error::other("simulated failure of the device")
}

impl Storage for SimulatedStorage {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let id = self.lock_shared().create(path)?;
        Ok(self.file(id))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let id = self.lock_shared().disk.file(path)?;
        Ok(self.file(id))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let shared = self.lock_shared();
        let id = shared.disk.file(path)?;
        Ok(Box::new(io::Cursor::new(
            shared.disk.files[id].bytes.now.clone(),
        )))
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        let shared = self.lock_shared();
        let id = shared.disk.file(path)?;
        Ok(shared.disk.files[id].bytes.now.len() as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (folder, old) = split(from)?;
        let (new_folder, new) = split(to)?;
        if folder != new_folder {
            return Err(ErrorKind::Unsupported.into());
        }
        let mut shared = self.lock_shared();
        let id = shared.disk.file(from)?;
        let names = vec![
            (old.to_owned(), None),
            (new.to_owned(), Some(Node::File(id))),
        ];
        shared.change_names(folder, Entry(names))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut shared = self.lock_shared();
        shared.disk.file(path)?;
        let (folder, name) = split(path)?;
        shared.change_names(folder, Entry(vec![(name.to_owned(), None)]))
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut shared = self.lock_shared();
        if shared.disk.folders.contains_key(folder) {
            return Ok(());
        }
        let (parent, name) = split(folder)?;
        if shared.disk.folder(parent)?.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        shared.change_names(parent, Entry(vec![(name.to_owned(), Some(Node::Folder))]))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let shared = self.lock_shared();
        Ok(shared.disk.folder(folder)?.keys().cloned().collect())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut shared = self.lock_shared();
        shared.disk.folder(folder)?;
        shared.run(Operation::SyncFolder(folder.to_owned(), true))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut shared = self.lock_shared();
        if shared.disk.file(path).is_err() {
            shared.create(path)?;
        }
        if !shared.locked.insert(path.to_owned()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        drop(shared);
        Ok(Box::new(Lock {
            storage: self.clone(),
            path: path.to_owned(),
        }))
    }
}

struct Lock {
    storage: SimulatedStorage,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.storage.lock_shared().locked.remove(&self.path);
    }
}

#[derive(Debug)]
struct SimulatedFile {
    storage: SimulatedStorage,
    id: usize,
}

impl SimulatedStorage {
    fn file(&self, id: usize) -> Box<dyn StorageFile> {
        Box::new(SimulatedFile {
            storage: self.clone(),
            id,
        })
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.storage.lock_shared().write(self.id, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for SimulatedFile {
    fn truncate(&mut self, size: u64) -> io::Result<()> {
        let mut shared = self.storage.lock_shared();
        let edit = Edit::Truncate(size as usize);
        shared.run(Operation::File(self.id, edit))
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut shared = self.storage.lock_shared();
        shared.run(Operation::SyncFile(self.id, true))
    }
}
