//! A journal that a running program appends to.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use echoless::filters::lines::Progress;
use echoless::memory::{LINE_BYTES, Line};
use echoless::state::{Header, MOST_BLOCK_LINES, Mark, StateError, StateWriter};
use echoless::{Batch, FilterSpec, KeyHash, KeyHasher, LineFilter, Partitioned, Ticks, Verdicts};

use crate::chain::{ChainLength, MOST_CALLER_BYTES};
use crate::error::{At, JournalError};
use crate::segment::{Commit, Numbered, Scan, Wanted, create, name_of};
use crate::segments::Segments;
use crate::storage::{LOCK, Storage, note_commit};
use crate::whole::Output;

/// The least bytes of keys after which a cycle of blocks begins.
const LEAST_LOG_BYTES: u64 = 64 << 20;

/// A folder that holds a filter, and what the caller did with it, over restarts and crashes.
///
/// The keys of each batch are appended, and [`commit`](Self::commit) makes them durable, together
/// with bytes of the caller, such as its position in an input. After a crash,
/// [`open`](Self::open) returns the filter and these bytes as they were at the last commit.
///
/// A program that writes outputs syncs them before it commits their lengths, and truncates them to
/// the committed lengths when it starts again. Then a crash neither loses nor doubles a record.
///
/// # Segments
/// The keys are in files, the **segments**. When the keys take more than twice the memory of the
/// filter, and at least 64 MiB, a new segment begins. In the course of the following batches it
/// takes the lines of the filter, too, block by block ([`wanted_block`](Self::wanted_block)), and
/// the segments before it are removed once two commits follow the last block. A caller that never
/// passes a block has a journal that grows without end.
///
/// # A sink with commits of its own
/// A database commits rows and position in one transaction, and nothing makes that one with the
/// commit of a journal. So the transaction decides, and the journal follows: commit the journal
/// first, then the database. After a crash the journal is at the position that the database has, or
/// one commit ahead, and [`open_at`](Self::open_at) goes back. The last two commits can always be
/// opened. The [crate](crate) has the argument, and `examples/sqlite.rs` the program.
///
/// # Errors
/// An error of the storage is final: all later calls fail, and the last commit that returned `Ok`
/// stands. After an error of `commit`, that commit may be in the journal or not. Open the journal
/// again to see.
///
/// # Examples
/// A consumer that keeps its offset with the filter.
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use echoless::{Batch, Filter, FilterSpec, KeyHasher, Verdicts};
/// use echoless_durable::{Journal, JournalError, progress_of};
/// use echoless_durable::storage::{RealStorage, Storage};
///
/// // Passes up to two batches of one event on, and then stops in any way.
/// fn consume(storage: Arc<dyn Storage>, folder: &Path) -> Result<Vec<u64>, JournalError> {
///     let log = [[1, 2], [2, 3], [3, 1], [4, 4]];
///     let spec: FilterSpec = "fingerprint:memory=64KiB".parse().expect("a specification");
///     let hasher = KeyHasher::seeded(0);
///     let opened = Journal::open(storage, folder, &spec, &hasher, 1)?;
///     let (mut journal, mut filter) = (opened.journal, opened.filter);
///     // A new folder has no commit.
///     let mut offset = opened.commit.map_or(0, |commit| usize::from(commit.bytes[0]));
///     let mut passed = Vec::new();
///     for batch in log.iter().skip(offset).take(2) {
///         let keys = batch.map(|event| hasher.hash_u64(event));
///         let mut verdicts = Verdicts::new();
///         filter.filters_mut()[0].observe(&keys, &mut verdicts);
///         passed.extend(verdicts.fresh().map(|index| batch[index]));
///         offset += 1;
///         journal.append_observed(Batch::new(&keys), 0, &verdicts)?;
///         if let Some(block) = journal.wanted_block() {
///             let lines = block.copy(&*filter.filters()[block.partition]);
///             journal.append_block(&lines)?;
///         }
///         journal.commit(progress_of(filter.filters()), &[offset as u8])?;
///     }
///     Ok(passed)
/// }
///
/// let folder = std::env::temp_dir().join(format!("{}.journal", std::process::id()));
/// assert_eq!(consume(Arc::new(RealStorage), &folder)?, [1, 2, 3]);
/// assert_eq!(consume(Arc::new(RealStorage), &folder)?, [4]);
/// assert_eq!(consume(Arc::new(RealStorage), &folder)?, []);
/// # std::fs::remove_dir_all(folder).expect("a folder");
/// # Ok::<(), JournalError>(())
/// ```
pub struct Journal {
    storage: Arc<dyn Storage>,
    folder: PathBuf,
    header: Header,
    /// The lines of each partition.
    partitions: Vec<Range<u64>>,
    logs_duplicates: bool,
    writer: StateWriter<Output>,
    /// The file of the writer.
    path: PathBuf,
    /// The last commit, and the point behind it.
    last: Numbered,
    committed: Mark,
    /// What the last commit is read from in the newest segment.
    chain: ChainLength,
    /// The segments before the newest one. Without any, there is no cycle.
    older: Vec<PathBuf>,
    /// The blocks of the newest segment, now and at the last commit.
    blocks: Blocks,
    committed_blocks: Blocks,
    /// The bytes that are no blocks in the needed segments before the newest one.
    older_log_bytes: u64,
    most_log_bytes: u64,
    has_failed: bool,
    /// Unlocks the folder when it is dropped.
    _lock: Box<dyn Send + Sync>,
}

/// The blocks of a segment.
#[derive(Debug, Clone, Copy, Default)]
struct Blocks {
    /// In a cycle: the lines before this one are in them.
    covered: Option<u64>,
    bytes: u64,
}

/// A journal that was opened, and what it holds.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The journal, to append to.
    pub journal: Journal,
    /// The filter after the last commit. The first partition has all counts, so only the [report of
    /// all](echoless::report_of) is right.
    pub filter: Partitioned<Box<dyn LineFilter>>,
    /// The last commit; `None` if the folder is new.
    pub commit: Option<Commit>,
    /// What was cut off behind the last commit, if anything was: what an earlier run did not
    /// commit.
    pub cut: Option<Cut>,
}

/// Bytes behind the last commit, which an earlier run left.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// The file.
    pub path: PathBuf,
    /// How many they were, with commits that were [not wanted](Journal::open_at).
    pub bytes: u64,
    /// The section that is torn, if one is: a write that a crash has cut short. If the run before
    /// ended well, the section is damaged, and with it the last commit.
    pub torn: Option<String>,
}

/// Lines that a journal needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedBlock {
    /// The partition that has them, of those that the journal was opened with.
    pub partition: usize,
    /// Their numbers in the whole filter.
    pub lines: Range<u64>,
}

/// A copy of the lines of a [`WantedBlock`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedBlock {
    first: u64,
    tick: u64,
    lines: Vec<Line>,
}

impl WantedBlock {
    /// Copies the lines from the filter of their partition, which is at the clock of the stream.
    ///
    /// The copy must be appended before the keys of any batch that the filter observes later, and
    /// after those of all earlier ones.
    ///
    /// # Panics
    /// If the filter does not have the lines.
    #[must_use]
    pub fn copy(&self, filter: &dyn LineFilter) -> CopiedBlock {
        let first = self.lines.start.checked_sub(filter.range().first);
        let first = first.expect("the filter of the partition that is wanted");
        let mut lines = vec![Line::EMPTY; (self.lines.end - self.lines.start) as usize];
        filter.copy_lines(first as usize, &mut lines);
        CopiedBlock {
            first: self.lines.start,
            tick: filter.progress().tick,
            lines,
        }
    }
}

impl Journal {
    /// Opens the journal of a folder, which is created if necessary, with its filter in a number of
    /// partitions.
    ///
    /// # Errors
    /// [`JournalError::Locked`] if it is open already; [`JournalError::State`] if it is of another
    /// filter or other keys, if a file is damaged before the last commit, or if the filter cannot
    /// be built; [`JournalError::Segments`] if files are missing or do not belong together;
    /// [`JournalError::Io`] if the storage fails.
    pub fn open(
        storage: Arc<dyn Storage>,
        folder: &Path,
        spec: &FilterSpec,
        hasher: &KeyHasher,
        partitions: usize,
    ) -> Result<Opened, JournalError> {
        Self::open_wanted(storage, folder, spec, hasher, partitions, None)
    }

    /// As [`open`](Self::open), at the newest commit that `is_wanted` accepts, instead of the last
    /// one. `None` is the beginning of the journal, where the filter is empty; a new folder is
    /// there without being asked. What was committed behind is cut off.
    ///
    /// The last commit and the one before it can always be opened, and older ones only as far as
    /// the files lead to them.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`JournalError::NoCommit`] if no commit is accepted, and nothing is
    /// cut off.
    ///
    /// # Examples
    /// A journal that is one commit ahead of what a database has.
    /// ```
    /// use std::sync::Arc;
    /// use echoless::{FilterSpec, KeyHasher, filters::lines::Progress};
    /// use echoless_durable::storage::{RealStorage, Storage};
    /// use echoless_durable::{Commit, Journal, JournalError};
    /// # let temporary = tempfile::tempdir().expect("a folder");
    /// # let folder = &temporary.path().join("journal");
    /// let (storage, hasher) = (Arc::new(RealStorage) as Arc<dyn Storage>, KeyHasher::seeded(0));
    /// let spec: FilterSpec = "fingerprint:memory=64KiB".parse().expect("a specification");
    /// let mut journal = Journal::open(storage.clone(), folder, &spec, &hasher, 1)?.journal;
    /// for offset in 1..=3 {
    ///     journal.commit(Progress::default(), &[offset])?;
    /// }
    /// drop(journal);
    /// let open_at = |offset| {
    ///     let is_wanted = |commit: Option<&Commit>| commit.is_some_and(|c| c.bytes == [offset]);
    ///     Journal::open_at(storage.clone(), folder, &spec, &hasher, 1, &is_wanted)
    /// };
    /// let opened = open_at(2)?;
    /// assert_eq!(opened.commit.expect("a commit").bytes, [2]);
    /// assert!(opened.cut.is_some());
    /// drop(opened.journal);
    /// assert!(matches!(open_at(9), Err(JournalError::NoCommit(_))));
    /// # Ok::<(), JournalError>(())
    /// ```
    pub fn open_at(
        storage: Arc<dyn Storage>,
        folder: &Path,
        spec: &FilterSpec,
        hasher: &KeyHasher,
        partitions: usize,
        is_wanted: &dyn Fn(Option<&Commit>) -> bool,
    ) -> Result<Opened, JournalError> {
        Self::open_wanted(storage, folder, spec, hasher, partitions, Some(is_wanted))
    }

    fn open_wanted(
        storage: Arc<dyn Storage>,
        folder: &Path,
        spec: &FilterSpec,
        hasher: &KeyHasher,
        partitions: usize,
        is_wanted: Wanted<'_>,
    ) -> Result<Opened, JournalError> {
        let header = Header::new(spec, hasher).at(folder)?;
        let (lock, segments) = lock_and_load(&*storage, folder, is_wanted)?;
        if let Some(newest) = segments.needed.last() {
            newest.header.check(spec, hasher).at(&newest.path)?;
            return Self::recover(storage, folder, segments, partitions, lock);
        }
        let lock_path = folder.join(LOCK);
        if storage.size(&lock_path).at(&lock_path)? > 0 {
            let reason = "it had segments, which are missing: remove its file lock to begin anew";
            return Err(JournalError::segments(folder, reason));
        }
        // A number of partitions that is not possible leaves nothing behind.
        let filter = spec.build_line_partitions(partitions);
        drop(filter.map_err(StateError::from).at(folder)?);
        let last = Numbered {
            number: 0,
            commit: Commit {
                progress: Progress::default(),
                bytes: Vec::new(),
            },
        };
        let header = header.segment(1).starts_empty(true);
        create(&*storage, folder, &header, |writer| {
            last.append_to(writer, &mut ChainLength::default(), None)
        })?;
        let segments = Segments::load(&*storage, folder, None)?;
        Self::recover(storage, folder, segments, partitions, lock)
    }

    /// Opens the journal of a folder with segments.
    fn recover(
        storage: Arc<dyn Storage>,
        folder: &Path,
        segments: Segments,
        partitions: usize,
        lock: Box<dyn Send + Sync>,
    ) -> Result<Opened, JournalError> {
        let replay = segments.replay(&*storage, partitions)?;
        let filter = replay
            .into_partitioned()
            .expect("scans are of whole filters");
        let (newest, older) = segments
            .needed
            .split_last()
            .expect("a journal has segments");
        // The newest one first: a crash leaves segments that follow each other.
        for path in &segments.unwanted {
            remove(&*storage, folder, std::slice::from_ref(path))?;
        }
        note_begun(&*storage, folder)?;
        let mut output = Output::new(storage.open(&newest.path).at(&newest.path)?);
        if newest.tail > 0 {
            output.cut(newest.end.position).at(&newest.path)?;
        }
        // What was read may be in the cache of the system alone, if the run before was killed.
        output.sync().at(&newest.path)?;
        // With those that only the commit before the last one needs.
        let older_paths = (segments.older.iter().map(|(path, _)| path))
            .chain(older.iter().map(|scan| &scan.path))
            .cloned()
            .collect::<Vec<_>>();
        let cut = (newest.tail > 0).then(|| Cut {
            path: newest.path.clone(),
            bytes: newest.tail,
            torn: newest.damage.as_ref().map(ToString::to_string),
        });
        let is_new = newest.header.starts_empty && newest.last.number == 0;
        let blocks = Blocks {
            covered: (!older_paths.is_empty()).then_some(newest.content.covered),
            bytes: newest.content.block_bytes,
        };
        let journal = Self {
            path: newest.path.clone(),
            folder: folder.to_owned(),
            partitions: filter.filters().iter().map(LineFilter::held).collect(),
            logs_duplicates: filter.filters()[0].duplicates_change_lines(),
            most_log_bytes: most_log_bytes(&newest.header),
            header: newest.header.clone(),
            writer: StateWriter::resume(output, newest.end),
            last: newest.last.clone(),
            chain: newest.chain,
            committed: newest.end,
            older: older_paths,
            blocks,
            committed_blocks: blocks,
            older_log_bytes: older.iter().map(Scan::log_bytes).sum(),
            has_failed: false,
            storage,
            _lock: lock,
        };
        Ok(Opened {
            commit: (!is_new).then(|| journal.last.commit.clone()),
            journal,
            filter,
            cut,
        })
    }

    /// Sets the bytes of keys and commits after which a cycle of blocks begins, in place of twice
    /// the memory of the filter or 64 MiB. Fewer of them take less time at a start, and more
    /// writes.
    pub fn set_most_log_bytes(&mut self, bytes: u64) {
        self.most_log_bytes = bytes;
    }

    /// Whether duplicates must be appended, too. If not, fresh keys are enough.
    #[must_use]
    pub const fn logs_duplicates(&self) -> bool {
        self.logs_duplicates
    }

    /// The last commit; that of a new folder has no bytes.
    #[must_use]
    pub const fn last_commit(&self) -> &Commit {
        &self.last.commit
    }

    /// Appends a batch as the filter has observed it: with its ticks, if the filter has a window.
    /// `clock` is the clock of the stream afterwards, 0 without a window.
    ///
    /// # Errors
    /// [`JournalError::Io`] if the storage fails, [`JournalError::Failed`] if it has failed before.
    pub fn append_keys(&mut self, batch: Batch<'_>, clock: u64) -> Result<(), JournalError> {
        self.run(|journal| journal.writer.append_keys(batch, clock).at(&journal.path))
    }

    /// As [`append_keys`](Self::append_keys), without the duplicates of the batch if these [change
    /// nothing](Self::logs_duplicates).
    ///
    /// # Errors
    /// As [`append_keys`](Self::append_keys).
    ///
    /// # Panics
    /// If there is not one verdict for each key.
    pub fn append_observed(
        &mut self,
        batch: Batch<'_>,
        clock: u64,
        verdicts: &Verdicts,
    ) -> Result<(), JournalError> {
        let keys = batch.keys();
        assert_eq!(keys.len(), verdicts.len(), "one verdict for each key");
        if self.logs_duplicates {
            return self.append_keys(batch, clock);
        }
        let fresh: Vec<KeyHash> = verdicts.fresh().map(|index| keys[index]).collect();
        let ticks: Vec<u64>;
        let batch = match batch.ticks() {
            Ticks::Unmoved => Batch::new(&fresh),
            Ticks::One(tick) => Batch::at(&fresh, tick),
            Ticks::Each(each) => {
                // A duplicate that is left out has moved the clock for the keys behind it.
                let clocks = each.iter().scan(0, |latest: &mut u64, tick| {
                    *latest = (*latest).max(*tick);
                    Some(*latest)
                });
                let clocks: Vec<u64> = clocks.collect();
                ticks = verdicts.fresh().map(|index| clocks[index]).collect();
                Batch::at_each(&fresh, &ticks)
            }
        };
        self.append_keys(batch, clock)
    }

    /// The lines that the journal needs next; `None` if it needs none now. They lie in one
    /// partition. A program that passes one block with each batch is through after as many batches
    /// as the filter has MiB.
    #[must_use]
    pub fn wanted_block(&self) -> Option<WantedBlock> {
        let covered = self.blocks.covered;
        let first = covered.filter(|covered| *covered < self.header.lines)?;
        let partition = self.partitions.iter().position(|lines| lines.end > first)?;
        let end = self.partitions[partition].end;
        Some(WantedBlock {
            partition,
            // Partitions and blocks begin with whole buckets.
            lines: first..end.min(first + MOST_BLOCK_LINES as u64),
        })
    }

    /// Appends the lines that the journal [wants](Self::wanted_block).
    ///
    /// # Errors
    /// As [`append_keys`](Self::append_keys).
    ///
    /// # Panics
    /// If other lines are wanted, or none.
    pub fn append_block(&mut self, block: &CopiedBlock) -> Result<(), JournalError> {
        let lines = block.first..block.first + block.lines.len() as u64;
        let wanted = self.wanted_block().map(|wanted| wanted.lines);
        assert_eq!(wanted, Some(lines.clone()), "the block that is wanted");
        self.run(|journal| {
            let writer = &mut journal.writer;
            let before = writer.mark().position;
            writer
                .append_block(block.first, block.tick, &block.lines)
                .at(&journal.path)?;
            journal.blocks.bytes += writer.mark().position - before;
            journal.blocks.covered = Some(lines.end);
            Ok(())
        })
    }

    /// Makes everything that was appended durable, with the counts of the filter and bytes of the
    /// caller: up to [`MOST_CALLER_BYTES`].
    ///
    /// What the bytes say of other files must be durable before. A program that ends commits once
    /// more: damage to the last commit looks like a crash, and then costs nothing.
    ///
    /// # Errors
    /// [`JournalError::State`] if there are too many bytes, and nothing happens;
    /// [`JournalError::Io`] if the storage fails, [`JournalError::Failed`] if it has failed before.
    pub fn commit(&mut self, progress: Progress, bytes: &[u8]) -> Result<(), JournalError> {
        if bytes.len() > MOST_CALLER_BYTES {
            let allowed = format!("at most {MOST_CALLER_BYTES} bytes of the caller");
            let asked = format!("{} bytes", bytes.len());
            let error = echoless::SpecError::new("commit", asked, allowed);
            return Err(StateError::from(error)).at(&self.path);
        }
        self.run(|journal| {
            let commit = Numbered {
                number: journal.last.number + 1,
                commit: Commit {
                    progress,
                    bytes: bytes.to_vec(),
                },
            };
            let before = Some(&*journal.last.commit.bytes);
            commit
                .append_to(&mut journal.writer, &mut journal.chain, before)
                .at(&journal.path)?;
            journal.writer.output_mut().sync().at(&journal.path)?;
            journal.committed = journal.writer.mark();
            journal.last = commit;
            let before = std::mem::replace(&mut journal.committed_blocks, journal.blocks);
            match before.covered {
                // The commit before does not need the older segments, either.
                Some(covered) if covered == journal.header.lines => journal.end_cycle(),
                None if journal.log_bytes() > journal.most_log_bytes => journal.begin_cycle(),
                _ => Ok(()),
            }
        })
    }

    /// Takes back everything that was appended since the last commit, so that the next one follows
    /// that one: for a program that ends where it has committed, and has more to say of it, such as
    /// that its outputs are closed. The filter of the program is ahead of the journal then, and a
    /// block that was [wanted](Self::wanted_block) before is not any more.
    ///
    /// # Errors
    /// As [`append_keys`](Self::append_keys).
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use echoless::{Batch, Filter, FilterSpec, KeyHasher, Verdict, filters::lines::Progress};
    /// use echoless_durable::{Journal, JournalError, storage::RealStorage};
    /// # let temporary = tempfile::tempdir().expect("a folder");
    /// # let folder = &temporary.path().join("journal");
    /// let hasher = KeyHasher::seeded(0);
    /// let spec: FilterSpec = "fingerprint:memory=64KiB".parse().expect("a specification");
    /// let open = || Journal::open(Arc::new(RealStorage), folder, &spec, &hasher, 1);
    /// let (mut journal, keys) = (open()?.journal, [1, 2].map(|key| hasher.hash_u64(key)));
    /// journal.append_keys(Batch::new(&keys[..1]), 0)?;
    /// journal.commit(Progress::default(), b"running")?;
    /// journal.append_keys(Batch::new(&keys[1..]), 0)?;
    /// journal.rewind()?;
    /// journal.commit(Progress::default(), b"closed")?;
    /// drop(journal);
    /// let mut opened = open()?;
    /// assert_eq!(opened.commit.expect("a commit").bytes, b"closed");
    /// let filter = &mut opened.filter.filters_mut()[0];
    /// assert_eq!(keys.map(|key| filter.observe_one(key)), [Verdict::Duplicate, Verdict::Fresh]);
    /// # Ok::<(), JournalError>(())
    /// ```
    pub fn rewind(&mut self) -> Result<(), JournalError> {
        self.run(|journal| {
            let output = journal.writer.output_mut();
            // Synced, so that no crash leaves some of these bytes between later ones.
            let cut = output.cut(journal.committed.position);
            cut.and_then(|()| output.sync()).at(&journal.path)?;
            journal.writer.go_back(journal.committed);
            journal.blocks = journal.committed_blocks;
            Ok(())
        })
    }

    /// The bytes from which the filter is recovered, beside the blocks of its base.
    fn log_bytes(&self) -> u64 {
        self.older_log_bytes + self.writer.mark().position - self.blocks.bytes
    }

    /// Begins a segment, whose blocks are still to come.
    fn begin_cycle(&mut self) -> Result<(), JournalError> {
        let number = self.header.segment + 1;
        let header = self.header.clone().segment(number).starts_empty(false);
        let older_log_bytes = self.log_bytes();
        let (last, mut chain) = (&self.last, ChainLength::default());
        self.writer = create(&*self.storage, &self.folder, &header, |writer| {
            last.append_to(writer, &mut chain, None)
        })?;
        self.chain = chain;
        self.older.push(std::mem::replace(
            &mut self.path,
            self.folder.join(name_of(number)),
        ));
        self.header = header;
        self.committed = self.writer.mark();
        self.older_log_bytes = older_log_bytes;
        self.blocks = Blocks {
            covered: Some(0),
            bytes: 0,
        };
        self.committed_blocks = self.blocks;
        Ok(())
    }

    /// Removes the segments that the newest one replaces.
    fn end_cycle(&mut self) -> Result<(), JournalError> {
        remove(&*self.storage, &self.folder, &self.older)?;
        self.older.clear();
        self.blocks.covered = None;
        self.committed_blocks.covered = None;
        self.older_log_bytes = 0;
        Ok(())
    }

    /// Runs an action; if it fails, all later ones do.
    fn run(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        if self.has_failed {
            return Err(JournalError::Failed(self.folder.clone()));
        }
        let result = action(self);
        if result.is_err() {
            self.has_failed = true;
            // What a failed sync leaves in the cache of the system may never reach the disk, so the
            // next run must not read it. The error before is the one to report.
            let _ = self.writer.output_mut().cut(self.committed.position);
        }
        result
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("folder", &self.folder)
            .field("header", &self.header)
            .field("committed", &self.committed)
            .field("blocks", &self.blocks)
            .field("log_bytes", &self.log_bytes())
            .field("has_failed", &self.has_failed)
            .finish_non_exhaustive()
    }
}

/// The counts of all partitions, and the latest of their clocks.
#[must_use]
pub fn progress_of<F: LineFilter>(partitions: &[F]) -> Progress {
    partitions.iter().map(F::progress).sum()
}

/// Locks a folder, and reads its segments. Removes those that were never complete.
pub(crate) fn lock_and_load(
    storage: &dyn Storage,
    folder: &Path,
    is_wanted: Wanted<'_>,
) -> Result<(Box<dyn Send + Sync>, Segments), JournalError> {
    storage.create_folder(folder).at(folder)?;
    if let Some(parent) = folder.parent() {
        storage.sync_folder(parent).at(parent)?;
    }
    let path = folder.join(LOCK);
    let lock = storage.lock(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => JournalError::Locked(folder.to_owned()),
        _ => JournalError::Io { path, error },
    })?;
    // The names that are read may be in the cache of the system alone.
    storage.sync_folder(folder).at(folder)?;
    let segments = Segments::load(storage, folder, is_wanted)?;
    remove(storage, folder, &segments.aside)?;
    Ok((lock, segments))
}

/// Notes that the folder has a segment, which is durable, so that a journal does not begin anew when
/// its segments are lost.
pub(crate) fn note_begun(storage: &dyn Storage, folder: &Path) -> Result<(), JournalError> {
    let path = folder.join(LOCK);
    note_commit(storage, &path).at(&path)
}

/// Removes files of a folder.
fn remove(storage: &dyn Storage, folder: &Path, paths: &[PathBuf]) -> Result<(), JournalError> {
    for path in paths {
        storage.remove(path).at(path)?;
    }
    if !paths.is_empty() {
        storage.sync_folder(folder).at(folder)?;
    }
    Ok(())
}

fn most_log_bytes(header: &Header) -> u64 {
    LEAST_LOG_BYTES.max(2 * header.lines * LINE_BYTES)
}
