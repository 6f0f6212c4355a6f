//! Files that are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use echoless::state::replace_file;

/// An empty folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("echoless-state-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(path: &PathBuf, content: &str) -> io::Result<()> {
    replace_file(path, |file| file.write_all(content.as_bytes()))
}

#[test]
fn a_file_is_replaced_or_stays_as_it_was() {
    let folder = Folder::new();
    let path = folder.0.join("filter.state");
    write(&path, "one").unwrap();
    write(&path, "two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    let failed: io::Result<()> = replace_file(&path, |file| {
        file.write_all(b"three")?;
        // The old one is in place as long as the new one is written.
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(folder.names().len(), 2);
        Err(io::Error::other("unplugged"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "unplugged");
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(folder.names(), ["filter.state"]);
    let panicked = std::panic::catch_unwind(|| {
        replace_file(&path, |_| -> io::Result<()> {
            std::panic::resume_unwind(Box::new(""))
        })
    });
    assert!(panicked.is_err());
    assert_eq!(folder.names(), ["filter.state"]);
    let number = replace_file(&path, |_| Ok::<_, io::Error>(7)).unwrap();
    assert_eq!((number, fs::read(&path).unwrap()), (7, Vec::new()));
}

#[test]
fn places_without_a_file_are_errors() {
    let folder = Folder::new();
    assert!(write(&folder.0.join("none/filter.state"), "").is_err());
    assert!(write(&folder.0.join(".."), "").is_err());
    assert!(write(&PathBuf::from(""), "").is_err());
    // A folder of that name.
    fs::create_dir(folder.0.join("taken")).unwrap();
    fs::write(folder.0.join("taken/file"), "").unwrap();
    assert!(write(&folder.0.join("taken"), "").is_err());
    assert_eq!(folder.names(), ["taken"]);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new();
    let path = folder.0.join("filter.state");
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    write(&path, "one").unwrap();
    // As any new file.
    let plain = folder.0.join("plain");
    File::create(&plain).unwrap();
    assert_eq!(mode(&path), mode(&plain));
    for kept in [0o640, 0o604] {
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
        replace_file(&path, |file| {
            // Nobody else reads it before.
            assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
            file.write_all(b"two")
        })
        .unwrap();
        assert_eq!(mode(&path), kept);
    }
    let link = folder.0.join("link");
    for target in ["filter.state", "new.state"] {
        symlink(target, &link).unwrap();
        write(&link, "three").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(folder.0.join(target)).unwrap(), "three");
        fs::remove_file(&link).unwrap();
    }
}
