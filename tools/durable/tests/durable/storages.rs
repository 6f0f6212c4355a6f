//! The real storage and the simulated one do the same with files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::simulated::SimulatedStorage;
use echoless_durable::storage::{RealStorage, Storage};

use crate::support::read;

/// Runs a test on both storages, in an empty folder.
fn on_both(test: fn(&dyn Storage, &Path)) {
    test(&SimulatedStorage::new(), Path::new(""));
    let folder = tempfile::tempdir().unwrap();
    test(&RealStorage, folder.path());
}

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.kind(),
    }
}

#[test]
fn writes_append_also_after_a_truncation_and_when_opened_again() {
    on_both(|storage, root| {
        let path = root.join("file");
        let mut file = storage.create(&path).unwrap();
        file.write_all(b"abcdef").unwrap();
        file.truncate(4).unwrap();
        file.write_all(b"gh").unwrap();
        file.sync().unwrap();
        assert_eq!(storage.size(&path).unwrap(), 6);
        drop(file);
        let mut file = storage.open(&path).unwrap();
        assert_eq!(storage.size(&path).unwrap(), 6);
        file.write_all(b"ij").unwrap();
        file.truncate(7).unwrap();
        assert_eq!(read(storage, &path), b"abcdghi");
    });
}

#[test]
fn folders_list_what_was_created_renamed_and_removed() {
    on_both(|storage, root| {
        let folder = root.join("folder");
        storage.create_folder(&folder).unwrap();
        storage.create_folder(&folder).unwrap();
        for name in ["c", "a", "b"] {
            let mut file = storage.create(&folder.join(name)).unwrap();
            file.write_all(name.as_bytes()).unwrap();
        }
        assert_eq!(storage.list(&folder).unwrap(), ["a", "b", "c"]);
        storage
            .rename(&folder.join("a"), &folder.join("b"))
            .unwrap();
        storage.remove(&folder.join("c")).unwrap();
        storage.sync_folder(&folder).unwrap();
        assert_eq!(storage.list(&folder).unwrap(), ["b"]);
        assert_eq!(read(storage, folder.join("b")), b"a");
        assert_eq!(storage.list(root).unwrap(), ["folder"]);
    });
}

#[test]
fn missing_and_existing_files_are_errors() {
    on_both(|storage, root| {
        let missing = root.join("missing");
        assert_eq!(kind(storage.open(&missing)), ErrorKind::NotFound);
        assert_eq!(kind(storage.read(&missing)), ErrorKind::NotFound);
        assert_eq!(kind(storage.size(&missing)), ErrorKind::NotFound);
        assert_eq!(kind(storage.remove(&missing)), ErrorKind::NotFound);
        let other = root.join("other");
        assert_eq!(kind(storage.rename(&missing, &other)), ErrorKind::NotFound);
        assert_eq!(kind(storage.list(&missing)), ErrorKind::NotFound);
        assert_eq!(kind(storage.sync_folder(&missing)), ErrorKind::NotFound);
        assert_eq!(
            kind(storage.create(&missing.join("a"))),
            ErrorKind::NotFound
        );
        assert_eq!(
            kind(storage.create_folder(&missing.join("a"))),
            ErrorKind::NotFound
        );
        storage.create(&other).unwrap();
        assert_eq!(kind(storage.create(&other)), ErrorKind::AlreadyExists);
        assert_eq!(
            kind(storage.create_folder(&other)),
            ErrorKind::AlreadyExists
        );
    });
}

#[test]
fn a_lock_excludes_others_until_it_is_dropped_and_its_file_stays() {
    on_both(|storage, root| {
        let path = root.join("lock");
        let lock = storage.lock(&path).unwrap();
        assert_eq!(kind(storage.lock(&path)), ErrorKind::WouldBlock);
        drop(lock);
        assert_eq!(storage.list(root).unwrap(), ["lock"]);
        storage.lock(&path).unwrap();
    });
}

#[test]
fn the_folder_of_a_bare_name_is_the_current_one() {
    let path = PathBuf::from("Cargo.toml");
    let folder = path.parent().unwrap();
    assert!(
        RealStorage
            .list(folder)
            .unwrap()
            .contains(&"Cargo.toml".into())
    );
    RealStorage.sync_folder(folder).unwrap();
    RealStorage.create_folder(folder).unwrap();
}
