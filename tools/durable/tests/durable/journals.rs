//! Journals of programs that do not crash: restarts, cycles of blocks, locks, and folders that do
//! not fit.

use std::path::Path;
use std::sync::Arc;

use crate::simulated::{Fault, SimulatedStorage};
use echoless::filters::lines::Progress;
use echoless::{Batch, FilterSpec, KeyHasher};
use echoless_durable::storage::{RealStorage, Storage};
use echoless_durable::{Journal, JournalError, MOST_CALLER_BYTES, progress_of, verify};

use crate::program::{FOLDER, Program, batches, hasher};

/// Filters of every kind of lines: with and without a clock, in pages, that
/// duplicates change or not.
const SPECS: [&str; 7] = [
    "fingerprint:memory=4KiB",
    "fingerprint:replacement=lru,memory=4KiB",
    "fingerprint:replacement=fifo,bits=8,memory=4KiB",
    "fingerprint:replacement=qqhtd,bits=16,memory=4KiB",
    "clocked:window=40,memory=4KiB",
    "stamped:window=40,memory=4KiB",
    "dense:memory=16KiB",
];

fn segments(storage: &dyn Storage) -> Vec<String> {
    let names = storage.list(Path::new(FOLDER)).unwrap();
    let names = names.into_iter().map(|name| name.into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

fn segment(number: u64) -> String {
    format!("{FOLDER}/segment-{number:010}")
}

fn error_of(result: Result<echoless_durable::Opened, JournalError>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_filter_goes_on_after_each_restart_in_any_number_of_partitions() {
    for spec in SPECS {
        for most_log_bytes in [1 << 30, 1000, 0] {
            let all = batches(24, 20);
            let mut program = Program {
                batches: all.clone(),
                most_log_bytes,
                ..Program::new(spec)
            };
            let expected = program.expected();
            let storage = SimulatedStorage::new();
            for (run, partitions) in [1, 3, 2, 4, 1, 2].into_iter().enumerate() {
                program.partitions = partitions;
                program.batches = all[..(run + 1) * 4].to_vec();
                program.finish(&storage, &expected[..]).expect(spec);
            }
            let names = segments(&storage);
            assert!(names.len() <= 2, "{names:?}");
            let has_cycles = names[0] != "segment-0000000001";
            assert_eq!(has_cycles, most_log_bytes < 1 << 30, "{spec}: {names:?}");
        }
    }
}

#[test]
fn a_journal_does_not_grow_with_the_stream() {
    let program = Program {
        batches: batches(300, 20),
        most_log_bytes: 2000,
        ..Program::new("fingerprint:replacement=lru,memory=2KiB")
    };
    let storage = SimulatedStorage::new();
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let (mut most, mut newest) = (0, String::new());
    let after_commit = || {
        let names = segments(&storage);
        assert!(names.len() <= 2, "{names:?}");
        storage.operations()
    };
    let mut done = Vec::new();
    program.run(&shared, after_commit, &mut done).unwrap();
    assert_eq!(done.len(), 300);
    for name in segments(&storage) {
        most += storage.size(&Path::new(FOLDER).join(&name)).unwrap();
        newest = name;
    }
    // The keys of all batches take 48,000 bytes, and more than 10 cycles.
    assert!(most < 10_000, "{most} bytes");
    assert!(newest.as_str() > "segment-0000000010", "{newest}");
    program.check(&storage, &program.expected(), 300).unwrap();
}

/// A caller with much to say, of which little changes, such as a run with many inputs.
#[test]
fn a_commit_takes_the_bytes_that_changed() {
    let spec: FilterSpec = "fingerprint:memory=64KiB".parse().unwrap();
    let storage = SimulatedStorage::new();
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let open = || Journal::open(shared.clone(), Path::new(FOLDER), &spec, &hasher(), 1).unwrap();
    let size = || storage.size(Path::new(&segment(1))).unwrap();
    let length = 70_000;
    let word = |at: u64| (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes: Vec<u8> = (0..length).map(|at| (word(at) >> 40) as u8).collect();
    let mut journal = open().journal;
    journal.commit(Progress::default(), &bytes).unwrap();
    let before = size();
    for number in 0..1000 {
        let at = (word(number) >> 24) % (length - 8);
        bytes[at as usize..][..8].copy_from_slice(&number.to_le_bytes());
        journal.commit(Progress::default(), &bytes).unwrap();
        if number % 100 == 99 {
            // A restart goes on with the patches.
            drop(journal);
            let opened = open();
            assert!(opened.commit.unwrap().bytes == bytes, "{number}");
            journal = opened.journal;
        }
    }
    let of_commit = (size() - before) / 1000;
    println!("{of_commit} bytes a commit");
    assert!(of_commit < 500, "{of_commit} bytes a commit");
    drop(journal);
    verify(&storage, Path::new(FOLDER)).unwrap();
}

#[test]
fn a_new_folder_has_no_commit_until_the_first_one() {
    let storage = SimulatedStorage::new();
    let program = Program::new("fingerprint:memory=2KiB");
    for _ in 0..2 {
        let opened = program.open(Arc::new(storage.clone())).unwrap();
        assert_eq!((opened.commit, opened.cut), (None, None));
    }
    let mut journal = program.open(Arc::new(storage.clone())).unwrap().journal;
    journal.commit(Progress::default(), b"").unwrap();
    drop(journal);
    let opened = program.open(Arc::new(storage)).unwrap();
    assert_eq!(opened.commit.unwrap().bytes, b"");
}

#[test]
fn what_was_not_committed_is_cut() {
    let storage = SimulatedStorage::new();
    let program = Program::new("fingerprint:memory=2KiB");
    let expected = program.expected();
    program.finish(&storage, &expected).unwrap();
    let size = storage.size(Path::new(&segment(1))).unwrap();
    let mut journal = program.open(Arc::new(storage.clone())).unwrap().journal;
    // More than is gathered.
    let keys: Vec<_> = (0..100_000).map(|key| hasher().hash_u64(key)).collect();
    journal.append_keys(Batch::new(&keys), 0).unwrap();
    drop(journal);
    let longer = storage.size(Path::new(&segment(1))).unwrap();
    let opened = program.open(Arc::new(storage.clone())).unwrap();
    let cut = opened.cut.clone().unwrap();
    assert_eq!(cut.path, Path::new(&segment(1)));
    assert_eq!(cut.bytes, longer - size);
    program
        .check_opened(opened, &storage, &expected, program.batches.len())
        .unwrap();
    assert_eq!(storage.size(Path::new(&segment(1))).unwrap(), size);
}

#[test]
fn a_journal_goes_back_to_the_commit_that_is_wanted_and_on_from_there() {
    for most_log_bytes in [1 << 30, 1000, 0] {
        let mut program = Program {
            batches: batches(24, 20),
            most_log_bytes,
            ..Program::new("fingerprint:replacement=lru,memory=4KiB")
        };
        let expected = program.expected();
        let storage = SimulatedStorage::new();
        let all = program.batches.clone();
        for count in 1..=all.len() {
            program.batches = all[..count].to_vec();
            program.run_simulated(&storage).0.unwrap();
            let opened = program
                .open_at(Arc::new(storage.clone()), count - 1)
                .unwrap();
            assert!(opened.cut.is_some(), "{count}");
            let found = program.check_opened(opened, &storage, &expected, count - 1);
            assert_eq!(found, Ok(count - 1));
            // The commit that was ahead is gone, and another one takes its place.
            let opened = program.open(Arc::new(storage.clone())).unwrap();
            let found = program.check_opened(opened, &storage, &expected, count - 1);
            assert_eq!(found, Ok(count - 1));
            program.finish(&storage, &expected[..=count]).unwrap();
        }
        // What no file leads to any more is an error, and the journal stays as it is.
        let far = program.open_at(Arc::new(storage.clone()), 3);
        if most_log_bytes == 1 << 30 {
            let found = program.check_opened(far.unwrap(), &storage, &expected, 3);
            assert_eq!(found, Ok(3));
        } else {
            let expected_error =
                format!("the journal {FOLDER} has no commit as old as the one that is wanted");
            assert_eq!(error_of(far), expected_error);
            program.check(&storage, &expected, all.len()).unwrap();
        }
    }
}

#[test]
fn duplicates_are_logged_only_if_they_change_the_filter() {
    for spec in SPECS {
        let program = Program {
            batches: batches(6, 20),
            ..Program::new(spec)
        };
        let storage = SimulatedStorage::new();
        program.finish(&storage, &program.expected()).unwrap();
        let opened = program.open(Arc::new(storage.clone())).unwrap();
        let progress = progress_of(opened.filter.filters());
        let keys = verify(&storage, Path::new(FOLDER)).unwrap().files[0].keys;
        let expected = match opened.journal.logs_duplicates() {
            true => progress.observed,
            false => progress.fresh,
        };
        assert!(progress.fresh < progress.observed);
        assert_eq!(keys, expected, "{spec}");
    }
}

#[test]
fn a_journal_is_open_once() {
    let storage: Arc<dyn Storage> = Arc::new(SimulatedStorage::new());
    let folder = tempfile::tempdir().unwrap();
    let real: Arc<dyn Storage> = Arc::new(RealStorage);
    for (storage, folder) in [
        (storage, Path::new(FOLDER)),
        (real, &folder.path().join("j")),
    ] {
        let spec: FilterSpec = "fingerprint:memory=2KiB".parse().unwrap();
        let open = || Journal::open(storage.clone(), folder, &spec, &hasher(), 1);
        let opened = open().unwrap();
        let error = open().unwrap_err();
        assert!(matches!(&error, JournalError::Locked(path) if path == folder));
        drop(opened);
        let mut journal = open().unwrap().journal;
        journal.commit(Progress::default(), b"here").unwrap();
        drop(journal);
        assert_eq!(open().unwrap().commit.unwrap().bytes, b"here");
    }
}

#[test]
fn a_journal_of_another_filter_or_other_keys_is_rejected() {
    let storage: Arc<dyn Storage> = Arc::new(SimulatedStorage::new());
    let folder = Path::new(FOLDER);
    let spec: FilterSpec = "fingerprint:memory=2KiB".parse().unwrap();
    drop(Journal::open(storage.clone(), folder, &spec, &hasher(), 1).unwrap());
    let other = spec.memory(4 << 10);
    let error = error_of(Journal::open(storage.clone(), folder, &other, &hasher(), 1));
    assert!(error.starts_with(&segment(1)), "{error}");
    assert!(
        error.contains("memory=2KiB") && error.contains("memory=4KiB"),
        "{error}"
    );
    let seed = KeyHasher::seeded(1);
    let error = error_of(Journal::open(storage.clone(), folder, &spec, &seed, 1));
    assert!(error.contains("key hasher"), "{error}");
    let error = error_of(Journal::open(storage.clone(), folder, &spec, &hasher(), 0));
    assert!(error.contains("partitions"), "{error}");
    Journal::open(storage, folder, &spec, &hasher(), 1).unwrap();
}

/// A journal in the middle of a cycle, with two segments; the second one has its number.
fn in_a_cycle() -> (Program, SimulatedStorage, u64) {
    let mut program = Program {
        partitions: 4,
        most_log_bytes: 700,
        ..Program::new("fingerprint:memory=2KiB")
    };
    let all = program.batches.clone();
    let storage = SimulatedStorage::new();
    for count in 1..all.len() {
        program.batches = all[..count].to_vec();
        program.run_simulated(&storage).0.unwrap();
        let names = segments(&storage);
        if let [_, newest] = &names[..] {
            let number = newest.strip_prefix("segment-").unwrap().parse().unwrap();
            return (program, storage, number);
        }
    }
    panic!("no cycle began");
}

#[test]
fn segments_that_do_not_belong_together_are_rejected() {
    let (program, storage, newest) = in_a_cycle();
    let open = |storage: &SimulatedStorage| error_of(program.open(Arc::new(storage.clone())));
    let copy = |from: &str, to: &str, size: usize| {
        let bytes = crate::support::read(&storage, from);
        let _ = storage.remove(Path::new(to));
        storage
            .create(Path::new(to))
            .unwrap()
            .write_all(&bytes[..size])
            .unwrap();
    };
    let (old, new) = (segment(newest - 1), segment(newest));
    let old_size = storage.size(Path::new(&old)).unwrap() as usize;
    copy(&old, "saved", old_size);

    // Its end is missing, although a later segment follows.
    copy("saved", &old, old_size - 1);
    let error = open(&storage);
    let reason = "it does not begin where the segment before it ends";
    assert_eq!(error, format!("{new}: {reason}"));

    copy(
        &new,
        "newest",
        storage.size(Path::new(&new)).unwrap() as usize,
    );
    storage.remove(Path::new(&old)).unwrap();
    assert_eq!(
        open(&storage),
        format!("{new}: the segment before it is missing")
    );

    // Under another number.
    copy("saved", &old, old_size);
    copy(
        "newest",
        &segment(newest + 1),
        storage.size(Path::new("newest")).unwrap() as usize,
    );
    let expected = format!(
        "{}: it is segment {newest}, and not {}",
        segment(newest + 1),
        newest + 1
    );
    assert_eq!(open(&storage), expected);
    storage.remove(Path::new(&segment(newest + 1))).unwrap();

    // Of another run.
    let other = SimulatedStorage::new();
    let shorter = Program {
        batches: program.batches[1..].to_vec(),
        ..program.clone()
    };
    shorter.run_simulated(&other).0.unwrap();
    let bytes = crate::support::read(&other, segment(1));
    storage.remove(Path::new(&old)).unwrap();
    storage
        .create(Path::new(&old))
        .unwrap()
        .write_all(&bytes)
        .unwrap();
    assert_eq!(open(&storage), format!("{new}: {reason}"));

    copy("saved", &old, old_size);
    program.open(Arc::new(storage.clone())).unwrap();
}

#[test]
fn an_error_is_final_until_the_journal_is_opened_again() {
    let storage = SimulatedStorage::new();
    let program = Program::new("fingerprint:memory=2KiB");
    let expected = program.expected();
    program.finish(&storage, &expected).unwrap();
    let mut journal = program.open(Arc::new(storage.clone())).unwrap().journal;
    let key = [hasher().hash_u64(1)];

    // Not an error of the storage.
    let error = journal.commit(Progress::default(), &vec![0; MOST_CALLER_BYTES + 1]);
    let error = error.unwrap_err().to_string();
    let allowed = format!("at most {MOST_CALLER_BYTES} bytes of the caller");
    assert!(error.ends_with(&allowed), "{error}");

    journal.append_keys(Batch::new(&key), 0).unwrap();
    storage.fail(storage.operations(), Fault::NoSpace);
    let error = journal.commit(Progress::default(), b"").unwrap_err();
    assert!(matches!(&error, JournalError::Io { path, .. } if path == Path::new(&segment(1))));
    let failed = "the journal journal has failed before: open it again";
    let results = [
        journal.commit(Progress::default(), b""),
        journal.append_keys(Batch::new(&key), 0),
    ];
    for result in results {
        assert_eq!(result.unwrap_err().to_string(), failed);
    }
    drop(journal);
    program
        .check(&storage, &expected, program.batches.len())
        .unwrap();
}

#[test]
#[should_panic(expected = "the block that is wanted")]
fn a_block_that_is_not_wanted_is_rejected() {
    let (program, storage, _) = in_a_cycle();
    let mut opened = program.open(Arc::new(storage)).unwrap();
    let block = opened.journal.wanted_block().unwrap();
    let copied = block.copy(&*opened.filter.filters()[block.partition]);
    opened.journal.append_block(&copied).unwrap();
    let _ = opened.journal.append_block(&copied);
}
