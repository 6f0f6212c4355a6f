//! What the simulated storage says about power cuts, and the errors that it makes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use crate::simulated::{Fault, SimulatedStorage};
use echoless_durable::storage::Storage;

use crate::support::{files, write};

const ROOT: &str = "";

/// The states after the last operation, as the files `a` and `b`: `-` for a missing one, and `.`
/// for a zero.
fn last_states(storage: &SimulatedStorage) -> BTreeSet<String> {
    let count = storage.operations();
    let last = storage
        .crash_states()
        .filter(|state| state.operations == count);
    last.map(|state| shown(&files(&state.storage, ROOT)))
        .collect()
}

fn shown(files: &BTreeMap<String, String>) -> String {
    let file = |name| {
        files
            .get(name)
            .map_or("-", String::as_str)
            .replace('\0', ".")
    };
    match files.contains_key("b") {
        true => format!("{} {}", file("a"), file("b")),
        false => file("a"),
    }
}

fn set<const N: usize>(states: [&str; N]) -> BTreeSet<String> {
    states.map(str::to_owned).into()
}

fn sync(storage: &SimulatedStorage, name: &str) -> std::io::Result<()> {
    storage.open(Path::new(name)).unwrap().sync()
}

#[test]
fn what_was_not_synced_is_lost_torn_or_zero() {
    let storage = SimulatedStorage::new();
    write(&storage, "a", "abcdef");
    let torn = ["-", "", "a", "abc", "abcde", "......", "abcdef"];
    assert_eq!(last_states(&storage), set(torn));
    // The name is lost until its folder is synced.
    sync(&storage, "a").unwrap();
    assert_eq!(last_states(&storage), set(["-", "abcdef"]));
    storage.sync_folder(Path::new(ROOT)).unwrap();
    assert_eq!(last_states(&storage), set(["abcdef"]));
}

#[test]
fn a_name_can_be_durable_before_its_bytes() {
    let storage = SimulatedStorage::new();
    write(&storage, "a", "ab");
    storage.sync_folder(Path::new(ROOT)).unwrap();
    assert_eq!(last_states(&storage), set(["", "a", "..", "ab"]));
}

#[test]
fn a_later_write_can_be_kept_without_an_earlier_one() {
    let storage = SimulatedStorage::new();
    let mut file = storage.create(Path::new("a")).unwrap();
    storage.sync_folder(Path::new(ROOT)).unwrap();
    file.write_all(b"ab").unwrap();
    file.write_all(b"cd").unwrap();
    let states = [
        "", "a", "..", "ab", "abc", "ab..", "abcd", "..c", "..cd", "....",
    ];
    assert_eq!(last_states(&storage), set(states));
}

#[test]
fn a_truncation_is_lost_or_kept() {
    let storage = SimulatedStorage::new();
    write(&storage, "a", "abcd");
    sync(&storage, "a").unwrap();
    storage.sync_folder(Path::new(ROOT)).unwrap();
    let mut file = storage.open(Path::new("a")).unwrap();
    file.truncate(2).unwrap();
    assert_eq!(last_states(&storage), set(["abcd", "ab"]));
    file.write_all(b"x").unwrap();
    assert_eq!(
        last_states(&storage),
        set(["abcd", "abxd", "ab.d", "ab", "ab.", "abx"])
    );
    file.sync().unwrap();
    assert_eq!(last_states(&storage), set(["abx"]));
}

#[test]
fn renames_and_removals_are_lost_one_by_one_until_their_folder_is_synced() {
    let storage = SimulatedStorage::new();
    for (name, content) in [("a", "1"), ("b", "2"), ("c", "3")] {
        write(&storage, name, content);
        sync(&storage, name).unwrap();
    }
    storage.sync_folder(Path::new(ROOT)).unwrap();
    storage.rename(Path::new("c"), Path::new("a")).unwrap();
    storage.remove(Path::new("b")).unwrap();
    assert_eq!(last_states(&storage), set(["1 2", "3 2", "1", "3"]));
    storage.sync_folder(Path::new(ROOT)).unwrap();
    assert_eq!(last_states(&storage), set(["3"]));
}

#[test]
fn a_folder_that_was_not_synced_is_lost_with_its_files() {
    let storage = SimulatedStorage::new();
    let folder = Path::new("folder");
    storage.create_folder(folder).unwrap();
    write(&storage, "folder/a", "ab");
    sync(&storage, "folder/a").unwrap();
    storage.sync_folder(folder).unwrap();
    let left = |storage: &SimulatedStorage| -> Vec<_> {
        let count = storage.operations();
        let last = storage
            .crash_states()
            .filter(|state| state.operations == count);
        last.map(|state| state.storage.list(folder).ok()).collect()
    };
    assert_eq!(left(&storage), [Some(vec!["a".into()]), None]);
    storage.sync_folder(Path::new(ROOT)).unwrap();
    assert_eq!(left(&storage), [Some(vec!["a".into()])]);
}

#[test]
fn after_a_failed_sync_data_is_lost_although_later_syncs_succeed() {
    let storage = SimulatedStorage::new();
    let mut file = storage.create(Path::new("a")).unwrap();
    storage.sync_folder(Path::new(ROOT)).unwrap();
    file.write_all(b"ab").unwrap();
    storage.fail(storage.operations(), Fault::Device);
    assert!(file.sync().is_err());
    file.sync().unwrap();
    file.write_all(b"c").unwrap();
    file.sync().unwrap();
    assert_eq!(files(&storage, ROOT)["a"], "abc", "the cache still has it");
    assert_eq!(last_states(&storage), set(["..c", "a.c", "abc"]));

    // So it is with names.
    storage.rename(Path::new("a"), Path::new("b")).unwrap();
    storage.fail(storage.operations(), Fault::Device);
    assert!(storage.sync_folder(Path::new(ROOT)).is_err());
    storage.sync_folder(Path::new(ROOT)).unwrap();
    let states = ["..c", "a.c", "abc", "- ..c", "- a.c", "- abc"];
    assert_eq!(last_states(&storage), set(states));
}

#[test]
fn operations_fail_when_they_are_told_to() {
    let storage = SimulatedStorage::new();
    storage.fail(0, Fault::NoSpace);
    let error = storage.create(Path::new("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let mut file = storage.create(Path::new("a")).unwrap();
    storage.fail(2, Fault::ShortWrite);
    assert_eq!(file.write(b"abcde").unwrap(), 3);
    storage.fail(3, Fault::NoSpace);
    assert_eq!(file.write(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    storage.fail(4, Fault::Device);
    file.write(b"yz").unwrap_err();
    storage.fail(5, Fault::Device);
    file.truncate(0).unwrap_err();
    for fault in [Fault::Device, Fault::NoSpace] {
        storage.fail(storage.operations(), fault);
        storage.rename(Path::new("a"), Path::new("b")).unwrap_err();
        storage.fail(storage.operations(), fault);
        storage.remove(Path::new("a")).unwrap_err();
    }
    assert_eq!(files(&storage, ROOT)["a"], "abcy");
    assert_eq!(storage.operations(), 10);
}

#[test]
fn every_operation_has_crash_states_and_they_are_bounded() {
    let storage = SimulatedStorage::new();
    let names = ["a", "b", "c", "d"];
    for name in names {
        let mut file = storage.create(Path::new(name)).unwrap();
        for _ in 0..6 {
            file.write_all(name.repeat(9).as_bytes()).unwrap();
        }
    }
    let mut counts = vec![0; storage.operations() + 1];
    for state in storage.crash_states() {
        counts[state.operations] += 1;
    }
    assert_eq!(counts.len(), 4 * 7 + 1);
    assert_eq!(counts[..2], [1, 2]);
    assert!(
        counts.iter().all(|count| (1..=600).contains(count)),
        "{counts:?}"
    );
    // The last state is one of them, and so is the empty storage.
    let last = storage
        .crash_states()
        .filter(|state| state.operations == 28);
    let states: Vec<_> = last.map(|state| files(&state.storage, ROOT)).collect();
    assert!(states.contains(&files(&storage, ROOT)));
    assert!(states.contains(&BTreeMap::new()));
}

#[test]
fn a_state_goes_on_as_a_storage_of_its_own() {
    let storage = SimulatedStorage::new();
    write(&storage, "a", "ab");
    sync(&storage, "a").unwrap();
    storage.sync_folder(Path::new(ROOT)).unwrap();
    let state = storage.crash_states().last().unwrap().storage;
    assert_eq!(state.operations(), 0);
    let mut file = state.open(Path::new("a")).unwrap();
    file.write_all(b"c").unwrap();
    assert_eq!(last_states(&state), set(["ab", "ab.", "abc"]));
    assert_eq!(files(&storage, ROOT)["a"], "ab");
}
