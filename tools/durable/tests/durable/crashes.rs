//! A program with a journal and an output, after a power cut at any time and after every error of
//! the storage.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::simulated::{Fault, SimulatedStorage};
use echoless_durable::storage::{ReadFile, Storage, StorageFile};

use crate::program::{Done, Expected, Program};

/// What must not happen, and how many states there were.
#[derive(Debug, Default)]
struct Findings {
    states: usize,
    finished: usize,
    violations: Vec<String>,
    /// How often each number of batches was recovered.
    batches: BTreeMap<usize, usize>,
}

/// Checks all states after a power cut from an operation on; of some, that the program goes on to
/// the same end.
fn check_crashes(
    program: &Program,
    storage: &SimulatedStorage,
    expected: &[Expected],
    done: &[Done],
    first: usize,
) -> Findings {
    let mut findings = Findings::default();
    for state in storage.crash_states_from(first) {
        findings.states += 1;
        let committed = done
            .iter()
            .filter(|done| done.operations <= state.operations);
        let least = committed.map(|done| done.batches).max().unwrap_or(0);
        let mut result = program.check(&state.storage, expected, least);
        if let Ok(batches) = result {
            *findings.batches.entry(batches).or_default() += 1;
            if findings.states % 23 == 0 {
                findings.finished += 1;
                result = program.finish(&state.storage, expected).map(|()| batches);
            }
        }
        if let Err(error) = result {
            let (operations, loss) = (state.operations, state.loss);
            findings
                .violations
                .push(format!("after {operations} operations, {loss}{error}"));
        }
    }
    findings
}

/// A program with cycles of blocks, in more than two partitions.
fn with_cycles(spec: &str) -> Program {
    Program {
        partitions: 3,
        most_log_bytes: 900,
        ..Program::new(spec)
    }
}

/// The same with commits that are patches of those before.
fn with_patches(spec: &str) -> Program {
    Program {
        more_bytes: 300,
        most_log_bytes: 1800,
        ..with_cycles(spec)
    }
}

/// Runs a program on a storage that needs several writes for a batch.
fn run_in_pieces(program: &Program, storage: &SimulatedStorage) -> Vec<Done> {
    let mut done = Vec::new();
    let shared: Arc<dyn Storage> = Arc::new(Faulty::new(storage));
    program
        .run(&shared, || storage.operations(), &mut done)
        .unwrap();
    done
}

#[test]
fn every_crash_leaves_a_commit_and_none_that_succeeded_is_lost() {
    let mut states = 0;
    for program in [
        Program::new("fingerprint:memory=2KiB"),
        with_cycles("fingerprint:memory=2KiB"),
        with_cycles("stamped:window=30,memory=2KiB"),
        with_patches("fingerprint:memory=2KiB"),
        Program {
            rewinds: true,
            ..with_patches("fingerprint:memory=2KiB")
        },
        Program {
            rewinds: true,
            ..with_cycles("stamped:window=30,memory=2KiB")
        },
    ] {
        let storage = SimulatedStorage::new();
        let expected = program.expected();
        let done = run_in_pieces(&program, &storage);
        let findings = check_crashes(&program, &storage, &expected, &done, 0);
        assert_eq!(findings.violations.first(), None);
        // Each commit is the last one in some state.
        let batches: Vec<usize> = findings.batches.into_keys().collect();
        assert_eq!(batches, (0..=program.batches.len()).collect::<Vec<_>>());
        println!("{} states, {} finished", findings.states, findings.finished);
        states += findings.states;
    }
    assert!((2000..200_000).contains(&states), "{states} states");
}

#[test]
fn a_crash_of_a_recovery_leaves_the_commit_that_it_recovers() {
    let program = with_cycles("fingerprint:memory=2KiB");
    let storage = SimulatedStorage::new();
    let expected = program.expected();
    run_in_pieces(&program, &storage);
    let mut findings = Findings::default();
    for state in storage.crash_states().step_by(17) {
        let batches = program.check(&state.storage, &expected, 0).unwrap();
        let done = Done {
            operations: state.storage.operations(),
            batches,
        };
        let again = check_crashes(&program, &state.storage, &expected, &[done], 0);
        findings.states += again.states;
        findings.violations.extend(again.violations);
    }
    assert_eq!(findings.violations.first(), None);
    assert!(findings.states > 1000, "{} states", findings.states);
}

#[test]
fn the_last_two_commits_can_be_opened_after_every_crash() {
    let (mut back, mut crashes) = (0, 0);
    for program in [
        with_cycles("fingerprint:memory=2KiB"),
        with_cycles("stamped:window=30,memory=2KiB"),
        with_patches("fingerprint:memory=2KiB"),
    ] {
        let storage = SimulatedStorage::new();
        let expected = program.expected();
        run_in_pieces(&program, &storage);
        for (index, state) in storage.crash_states().enumerate() {
            let last = program.check(&state.storage, &expected, 0).unwrap();
            let Some(before) = last.checked_sub(1) else {
                continue;
            };
            let operations = state.storage.operations();
            let opened = program.open_at(Arc::new(state.storage.clone()), before);
            let opened = opened.unwrap_or_else(|error| panic!("{} {error}", state.loss));
            let found = program.check_opened(opened, &state.storage, &expected, before);
            assert_eq!(found, Ok(before), "{}", state.loss);
            back += 1;
            if index % 11 == 0 {
                // A crash on the way back leaves the commit ahead, or the one before it, which can
                // be opened in any case. A run that goes on is as if it had never been ahead.
                for state in state.storage.crash_states_from(operations) {
                    crashes += 1;
                    let opened = program.open_at(Arc::new(state.storage.clone()), before);
                    let opened = opened.unwrap_or_else(|error| panic!("{} {error}", state.loss));
                    let found = program.check_opened(opened, &state.storage, &expected, before);
                    assert_eq!(found, Ok(before), "{}", state.loss);
                }
                program.finish(&state.storage, &expected).unwrap();
            }
        }
    }
    assert!(
        back > 1000 && crashes > 100,
        "{back} states, {crashes} crashes"
    );
}

/// A storage that writes in small pieces, or has a fault of the kind that programs have.
#[derive(Debug)]
struct Faulty {
    inner: SimulatedStorage,
    syncs_folders: bool,
    syncs_before_renames: bool,
    /// The most bytes of a write.
    most_bytes: usize,
    /// The process is killed after so many operations.
    killed_after: usize,
    /// The files that have their first name.
    unnamed: Arc<Mutex<Vec<PathBuf>>>,
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn StorageFile>,
    storage: SimulatedStorage,
    killed_after: usize,
    path: PathBuf,
    most_bytes: usize,
    unnamed: Arc<Mutex<Vec<PathBuf>>>,
}

impl Faulty {
    fn check_alive(&self) -> io::Result<()> {
        check_alive(&self.inner, self.killed_after)
    }

    fn file(&self, inner: Box<dyn StorageFile>, path: &Path) -> Box<dyn StorageFile> {
        Box::new(FaultyFile {
            inner,
            storage: self.inner.clone(),
            killed_after: self.killed_after,
            path: path.to_owned(),
            most_bytes: self.most_bytes,
            unnamed: self.unnamed.clone(),
        })
    }

    fn new(inner: &SimulatedStorage) -> Self {
        Self {
            inner: inner.clone(),
            syncs_folders: true,
            syncs_before_renames: true,
            most_bytes: 100,
            killed_after: usize::MAX,
            unnamed: Arc::default(),
        }
    }
}

fn check_alive(storage: &SimulatedStorage, killed_after: usize) -> io::Result<()> {
    match storage.operations() < killed_after {
        true => Ok(()),
        false => Err(io::Error::other("killed")),
    }
}

impl Storage for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.check_alive()?;
        let inner = self.inner.create(path)?;
        if !self.syncs_before_renames && path.extension().is_some() {
            self.unnamed.lock().unwrap().push(path.to_owned());
        }
        Ok(self.file(inner, path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.file(self.inner.open(path)?, path))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.inner.read(path)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        self.inner.size(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_alive()?;
        self.inner.rename(from, to)?;
        let mut unnamed = self.unnamed.lock().unwrap();
        if unnamed.iter().any(|path| path == from) {
            unnamed.clear();
            self.inner.sync_folder(to.parent().unwrap())?;
            self.inner.open(to)?.sync()?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check_alive()?;
        self.inner.remove(path)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.check_alive()?;
        self.inner.create_folder(folder)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.inner.list(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.check_alive()?;
        match self.syncs_folders {
            true => self.inner.sync_folder(folder),
            false => Ok(()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.check_alive()?;
        self.inner.lock(path)
    }
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_alive(&self.storage, self.killed_after)?;
        self.inner.write(&bytes[..bytes.len().min(self.most_bytes)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl StorageFile for FaultyFile {
    fn truncate(&mut self, size: u64) -> io::Result<()> {
        check_alive(&self.storage, self.killed_after)?;
        self.inner.truncate(size)
    }

    fn sync(&mut self) -> io::Result<()> {
        check_alive(&self.storage, self.killed_after)?;
        match self.unnamed.lock().unwrap().contains(&self.path) {
            true => Ok(()),
            false => self.inner.sync(),
        }
    }
}

#[test]
fn the_check_finds_programs_with_a_wrong_order() {
    let sound = with_cycles("fingerprint:memory=2KiB");
    let expected = sound.expected();
    let violations = |program: &Program, fault: fn(&mut Faulty)| -> usize {
        let inner = SimulatedStorage::new();
        let mut faulty = Faulty::new(&inner);
        fault(&mut faulty);
        let mut done = Vec::new();
        let storage: Arc<dyn Storage> = Arc::new(faulty);
        program
            .run(&storage, || inner.operations(), &mut done)
            .unwrap();
        check_crashes(program, &inner, &expected, &done, 0)
            .violations
            .len()
    };
    assert_eq!(violations(&sound, |_| {}), 0);
    assert!(violations(&sound, |faulty| faulty.syncs_folders = false) > 0);
    assert!(violations(&sound, |faulty| faulty.syncs_before_renames = false) > 0);
    let commits_first = Program {
        commits_first: true,
        ..sound.clone()
    };
    assert!(violations(&commits_first, |_| {}) > 0);
}

#[test]
fn after_every_error_the_last_commit_is_intact() {
    let program = with_cycles("fingerprint:memory=2KiB");
    let expected = program.expected();
    let plain = SimulatedStorage::new();
    program.run_simulated(&plain).0.unwrap();
    let (mut errors, mut states) = (0, 0);
    for fault in [Fault::NoSpace, Fault::Device, Fault::ShortWrite] {
        for operation in 0..plain.operations() {
            let storage = SimulatedStorage::new();
            storage.fail(operation, fault);
            let (result, done) = program.run_simulated(&storage);
            let least = done.last().map_or(0, |done| done.batches);
            let context = format!("{fault:?} of operation {operation}");
            match result {
                Ok(()) => assert_eq!(fault, Fault::ShortWrite, "{context}"),
                Err(_) => errors += 1,
            }
            // If the power fails afterwards.
            let findings = check_crashes(&program, &storage, &expected, &done, operation);
            assert_eq!(findings.violations.first(), None, "{context}");
            states += findings.states;
            // If it does not.
            program.check(&storage, &expected, least).expect(&context);
            program.finish(&storage, &expected).expect(&context);
        }
    }
    assert_eq!(errors, 2 * plain.operations());
    println!("{errors} errors, {states} states");
}

#[test]
fn a_power_cut_long_after_a_failed_operation_loses_no_later_commit() {
    let program = with_cycles("fingerprint:memory=2KiB");
    let expected = program.expected();
    let plain = SimulatedStorage::new();
    program.run_simulated(&plain).0.unwrap();
    let (mut states, mut lost) = (0, Vec::new());
    for operation in 0..plain.operations() {
        let storage = SimulatedStorage::new();
        storage.fail(operation, Fault::Device);
        let (result, mut done) = program.run_simulated(&storage);
        result.unwrap_err();
        // The same system goes on, with what its cache has.
        let restart = storage.operations();
        let (result, more) = program.run_simulated(&storage);
        result.unwrap();
        done.extend(more);
        let findings = check_crashes(&program, &storage, &expected, &done, restart);
        if findings.violations.is_empty() {
            states += findings.states;
        } else {
            lost.push(operation);
        }
    }
    // The two syncs of the folder around, for the folder of the journal and for the output: nothing
    // creates these names again.
    assert_eq!(lost.len(), 2, "{lost:?}");
    println!("{states} states");
}

#[test]
fn a_power_cut_after_a_process_was_killed_loses_no_commit_of_the_next_one() {
    let program = with_cycles("fingerprint:memory=2KiB");
    let expected = program.expected();
    let plain = SimulatedStorage::new();
    run_in_pieces(&program, &plain);
    let mut states = 0;
    for killed_after in 1..plain.operations() {
        let storage = SimulatedStorage::new();
        let mut faulty = Faulty::new(&storage);
        faulty.killed_after = killed_after;
        let shared: Arc<dyn Storage> = Arc::new(faulty);
        let mut done = Vec::new();
        program
            .run(&shared, || storage.operations(), &mut done)
            .unwrap_err();
        drop(shared);
        // The next process recovers what the cache of the system has, which is more than the disk.
        let recovered = program.check(&storage, &expected, 0).unwrap();
        done.push(Done {
            operations: storage.operations(),
            batches: recovered,
        });
        let context = format!("killed after {killed_after} operations");
        let findings = check_crashes(&program, &storage, &expected, &done, storage.operations());
        assert_eq!(findings.violations.first(), None, "{context}");
        states += findings.states;
        program.finish(&storage, &expected).expect(&context);
    }
    println!("{states} states");
}
