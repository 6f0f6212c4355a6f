//! A program that removes duplicates with a journal and an output, and the plain run that it must
//! agree with.

use std::path::Path;
use std::sync::Arc;

use crate::simulated::SimulatedStorage;
use echoless::filters::lines::Progress;
use echoless::memory::Line;
use echoless::{Batch as Keys, Filter, FilterSpec, KeyHash, KeyHasher, LineFilter, Verdicts};
use echoless_durable::storage::Storage;
use echoless_durable::{Commit, Journal, JournalError, Opened, progress_of};

use crate::support::read;

pub(crate) const FOLDER: &str = "journal";
pub(crate) const OUTPUT: &str = "output";

/// Keys with their ticks.
pub(crate) type Batch = (Vec<KeyHash>, Vec<u64>);

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) spec: FilterSpec,
    pub(crate) batches: Vec<Batch>,
    pub(crate) partitions: usize,
    pub(crate) most_log_bytes: u64,
    /// The bytes of a commit beside the position. Most are those of the commit before, so that it is
    /// stored as a patch.
    pub(crate) more_bytes: usize,
    /// A fault: the journal is committed before the output is synced.
    pub(crate) commits_first: bool,
    /// Behind each commit, keys and a block are appended and taken back, and the commit follows
    /// once more.
    pub(crate) rewinds: bool,
}

/// The filter and the output after some batches.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expected {
    pub(crate) lines: Vec<Line>,
    pub(crate) progress: Progress,
    pub(crate) output: Vec<u8>,
}

/// A commit that returned `Ok`: the operations of the storage by then, and the batches before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) operations: usize,
    pub(crate) batches: usize,
}

pub(crate) fn hasher() -> KeyHasher {
    KeyHasher::seeded(0)
}

/// What a small journal needs: batches of keys, of which some are repeated soon, others later.
pub(crate) fn batches(count: u64, keys: u64) -> Vec<Batch> {
    let hasher = hasher();
    let batch = |batch: u64| {
        let number = |key: u64| match key % 4 {
            0 => batch * keys + key,
            1 => batch * keys + key - 1,
            2 => batch / 2 * keys + key,
            _ => key,
        };
        let keys: Vec<u64> = (0..keys).collect();
        let ticks = keys.iter().map(|key| batch * 10 + key * 7 % 10);
        let hashes = keys.iter().map(|key| hasher.hash_u64(number(*key)));
        (hashes.collect(), ticks.collect())
    };
    (0..count).map(batch).collect()
}

impl Program {
    pub(crate) fn new(spec: &str) -> Self {
        Self {
            spec: spec.parse().unwrap(),
            batches: batches(10, 12),
            partitions: 2,
            most_log_bytes: 1 << 30,
            more_bytes: 0,
            commits_first: false,
            rewinds: false,
        }
    }

    /// Whether the filter takes ticks.
    fn has_clock(&self) -> bool {
        self.spec.to_string().contains("window")
    }

    /// The filter and the output after each number of batches.
    pub(crate) fn expected(&self) -> Vec<Expected> {
        let mut filter = self.spec.build_lines().unwrap();
        let mut output = Vec::new();
        let mut all = vec![self.after(&mut *filter, &output)];
        for batch in &self.batches {
            let verdicts = self.observe(batch, std::slice::from_mut(&mut filter), |_| 0);
            write_fresh(&mut output, batch, &verdicts);
            all.push(self.after(&mut *filter, &output));
        }
        all
    }

    fn after(&self, filter: &mut dyn LineFilter, output: &[u8]) -> Expected {
        filter.finish_expiry();
        Expected {
            lines: filter.lines().to_vec(),
            progress: filter.progress(),
            output: output.to_vec(),
        }
    }

    /// Passes a batch through the partitions, key by key.
    fn observe(
        &self,
        (keys, ticks): &Batch,
        filters: &mut [Box<dyn LineFilter>],
        owner: impl Fn(KeyHash) -> usize,
    ) -> Verdicts {
        let mut clock = 0;
        let mut verdicts = Vec::new();
        for (key, tick) in keys.iter().zip(ticks) {
            clock = clock.max(*tick);
            if self.has_clock() {
                for filter in &mut *filters {
                    filter.advance_to(clock);
                }
            }
            verdicts.push(filters[owner(*key)].observe_one(*key).is_duplicate());
        }
        verdicts.into_iter().collect()
    }

    pub(crate) fn open(&self, storage: Arc<dyn Storage>) -> Result<Opened, JournalError> {
        self.open_at(storage, usize::MAX)
    }

    /// Opens the journal at the newest commit of at most so many batches.
    pub(crate) fn open_at(
        &self,
        storage: Arc<dyn Storage>,
        most: usize,
    ) -> Result<Opened, JournalError> {
        let (folder, partitions) = (Path::new(FOLDER), self.partitions);
        let batches = |commit: &Commit| position(&commit.bytes).0;
        let is_wanted =
            |commit: Option<&Commit>| most == usize::MAX || commit.map_or(0, batches) <= most;
        let mut opened = Journal::open_at(
            storage,
            folder,
            &self.spec,
            &hasher(),
            partitions,
            &is_wanted,
        )?;
        opened.journal.set_most_log_bytes(self.most_log_bytes);
        Ok(opened)
    }

    /// Goes on where the journal says, to the end. Pushes each commit to `done`; `operations`
    /// counts those of the storage.
    pub(crate) fn run(
        &self,
        storage: &Arc<dyn Storage>,
        operations: impl Fn() -> usize,
        done: &mut Vec<Done>,
    ) -> Result<(), JournalError> {
        let opened = self.open(storage.clone())?;
        let (mut journal, mut filter) = (opened.journal, opened.filter);
        let (first, length) = opened
            .commit
            .map_or((0, 0), |commit| position(&commit.bytes));
        let at_output = |error| JournalError::Io {
            path: OUTPUT.into(),
            error,
        };
        let path = Path::new(OUTPUT);
        let mut output = match storage.open(path) {
            Ok(file) => file,
            Err(_) => storage.create(path).map_err(at_output)?,
        };
        output.truncate(length).map_err(at_output)?;
        storage.sync_folder(Path::new("")).map_err(at_output)?;
        let mut length = length;
        for (index, batch) in self.batches.iter().enumerate().skip(first) {
            let owner = filter.partitioning().clone();
            let owner = |key| owner.partition_of(key);
            let verdicts = self.observe(batch, filter.filters_mut(), owner);
            let clock = progress_of(filter.filters()).tick;
            let (keys, clock) = match self.has_clock() {
                true => (Keys::at_each(&batch.0, &batch.1), clock),
                false => (Keys::new(&batch.0), 0),
            };
            journal.append_observed(keys, clock, &verdicts)?;
            if let Some(block) = journal.wanted_block() {
                let copied = block.copy(&*filter.filters()[block.partition]);
                journal.append_block(&copied)?;
            }
            let mut bytes = Vec::new();
            write_fresh(&mut bytes, batch, &verdicts);
            output.write_all(&bytes).map_err(at_output)?;
            length += bytes.len() as u64;
            if !self.commits_first {
                output.sync().map_err(at_output)?;
            }
            let mut bytes = (index as u64 + 1).to_le_bytes().to_vec();
            bytes.extend(length.to_le_bytes());
            bytes.extend(self.more_bytes(index));
            journal.commit(progress_of(filter.filters()), &bytes)?;
            done.push(Done {
                operations: operations(),
                batches: index + 1,
            });
            if self.commits_first {
                output.sync().map_err(at_output)?;
            }
            if self.rewinds {
                journal.append_keys(keys, clock)?;
                if let Some(block) = journal.wanted_block() {
                    let copied = block.copy(&*filter.filters()[block.partition]);
                    journal.append_block(&copied)?;
                }
                journal.rewind()?;
                journal.commit(progress_of(filter.filters()), &bytes)?;
            }
        }
        Ok(())
    }

    /// The bytes of a commit behind the position, which do not compress.
    fn more_bytes(&self, batch: usize) -> impl Iterator<Item = u8> {
        (0..self.more_bytes).map(move |at| match at % 100 {
            7 => batch as u8,
            _ => ((at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u8,
        })
    }

    /// As [`run`](Self::run), on a simulated storage.
    pub(crate) fn run_simulated(
        &self,
        storage: &SimulatedStorage,
    ) -> (Result<(), JournalError>, Vec<Done>) {
        let mut done = Vec::new();
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let result = self.run(&shared, || storage.operations(), &mut done);
        (result, done)
    }

    /// Opens the journal. Checks that it is at a commit, not before batch `least`, and that the
    /// filter and the output are those of the plain run. Returns the batches that are committed.
    pub(crate) fn check(
        &self,
        storage: &SimulatedStorage,
        expected: &[Expected],
        least: usize,
    ) -> Result<usize, String> {
        let opened = self
            .open(Arc::new(storage.clone()))
            .map_err(|error| error.to_string())?;
        self.check_opened(opened, storage, expected, least)
    }

    pub(crate) fn check_opened(
        &self,
        mut opened: Opened,
        storage: &SimulatedStorage,
        expected: &[Expected],
        least: usize,
    ) -> Result<usize, String> {
        let bytes = opened.commit.as_ref().map(|commit| &commit.bytes[..]);
        let (batches, length) = bytes.map_or((0, 0), position);
        if batches < least {
            return Err(format!("batch {batches}, and {least} was committed"));
        }
        let expected = &expected[batches];
        if length != expected.output.len() as u64 {
            return Err(format!("an output of {length} bytes is committed"));
        }
        if length > 0 {
            let output = match storage.size(Path::new(OUTPUT)) {
                Ok(_) => read(storage, OUTPUT),
                Err(error) => return Err(format!("no output: {error}")),
            };
            if output.get(..length as usize) != Some(&expected.output[..]) {
                return Err("the output is not the committed one".into());
            }
        }
        let mut lines: Vec<Line> = Vec::new();
        for filter in opened.filter.filters_mut() {
            filter.finish_expiry();
            lines.extend(filter.lines());
        }
        let progress = progress_of(opened.filter.filters());
        if lines != expected.lines || progress != expected.progress {
            return Err(format!(
                "another filter after {batches} batches: {progress:?}"
            ));
        }
        Ok(batches)
    }

    /// Runs to the end, and checks the output and the filter.
    pub(crate) fn finish(
        &self,
        storage: &SimulatedStorage,
        expected: &[Expected],
    ) -> Result<(), String> {
        self.run_simulated(storage)
            .0
            .map_err(|error| error.to_string())?;
        self.check(storage, expected, self.batches.len())?;
        let output = read(storage, OUTPUT);
        match output == expected[self.batches.len()].output {
            true => Ok(()),
            false => Err("another output at the end".into()),
        }
    }
}

/// Writes the fresh keys of a batch.
fn write_fresh(output: &mut Vec<u8>, batch: &Batch, verdicts: &Verdicts) {
    for index in verdicts.fresh() {
        output.extend(batch.0[index].get().to_le_bytes());
    }
}

/// The batches and the length of the output in the bytes of a commit.
fn position(bytes: &[u8]) -> (usize, u64) {
    let (numbers, _) = bytes.as_chunks();
    let numbers: Vec<u64> = numbers
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .collect();
    (numbers[0] as usize, numbers[1])
}
