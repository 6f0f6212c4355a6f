//! Files that are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use echoless_durable::replace_file;

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

/// What stands at a path, and what becomes of it when a state is saved there.
#[cfg(unix)]
mod kinds {
    use std::io::{ErrorKind, Read};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::Path;
    use std::process::Command;
    use std::thread;

    use echoless_durable::sync_folder;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn is_link(path: &Path) -> bool {
        fs::symlink_metadata(path).unwrap().is_symlink()
    }

    /// Makes a device as `mknod` does; `false` without the right to.
    fn make_node(path: &Path, numbers: &[&str]) -> bool {
        let made = Command::new("mknod").arg(path).args(numbers).output();
        let is_made = made.is_ok_and(|made| made.status.success());
        // A mounted folder may refuse to open devices.
        let opens =
            is_made && (numbers[0] == "b" || File::options().write(true).open(path).is_ok());
        if !opens {
            eprintln!("SKIPPED: no right to make the device {numbers:?}");
        }
        opens
    }

    /// Writes to a pipe while it is read, and returns what arrived.
    fn write_to_pipe(path: &PathBuf, pipe: &Path) -> Vec<u8> {
        let pipe = pipe.to_owned();
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            File::open(pipe).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        });
        write(path, "new").unwrap();
        reader.join().unwrap()
    }

    #[test]
    fn the_mode_of_a_file_is_kept_and_nobody_reads_the_new_one_before() {
        let folder = Folder::new();
        let path = folder.0.join("filter.state");
        write(&path, "one").unwrap();
        // As any new file.
        let plain = folder.0.join("plain");
        File::create(&plain).unwrap();
        assert_eq!(mode(&path), mode(&plain));
        for kept in [0o600, 0o640, 0o604, 0o400] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            replace_file(&path, |file| {
                assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
                file.write_all(b"two")
            })
            .unwrap();
            assert_eq!(mode(&path), kept);
        }
    }

    #[test]
    fn links_stay_and_what_they_point_to_is_replaced() {
        let folder = Folder::new();
        fs::create_dir(folder.0.join("other")).unwrap();
        let target = folder.0.join("other/filter.state");
        symlink("other/filter.state", folder.0.join("link")).unwrap();
        symlink(folder.0.join("link"), folder.0.join("second")).unwrap();
        symlink("../second", folder.0.join("other/third")).unwrap();
        for link in ["link", "second", "other/third"] {
            let link = folder.0.join(link);
            let before = fs::read_link(&link).unwrap();
            // First it is created, then replaced.
            for content in ["one", "two"] {
                write(&link, content).unwrap();
                assert_eq!(fs::read_link(&link).unwrap(), before);
                assert!(!is_link(&target));
                assert_eq!(fs::read_to_string(&target).unwrap(), content);
            }
            fs::remove_file(&target).unwrap();
        }
        assert_eq!(folder.names(), ["link", "other", "second"]);
        symlink("loop", folder.0.join("loop")).unwrap();
        assert!(write(&folder.0.join("loop"), "").is_err());
        assert!(is_link(&folder.0.join("loop")));
    }

    #[test]
    fn another_hard_link_keeps_the_old_content() {
        let folder = Folder::new();
        let (path, copy) = (folder.0.join("filter.state"), folder.0.join("copy"));
        write(&path, "one").unwrap();
        fs::hard_link(&path, &copy).unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_to_string(&copy).unwrap(), "one");
    }

    #[test]
    fn pipes_and_character_devices_are_written_to() {
        let folder = Folder::new();
        let (pipe, link) = (folder.0.join("pipe"), folder.0.join("link"));
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        symlink("pipe", &link).unwrap();
        for path in [&pipe, &link] {
            assert_eq!(write_to_pipe(path, &pipe), b"new");
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
            assert!(is_link(&link));
        }
        // As /dev/null, and as /dev/full.
        for (name, numbers, is_ok) in [
            ("null", ["c", "1", "3"], true),
            ("full", ["c", "1", "7"], false),
        ] {
            let path = folder.0.join(name);
            if !make_node(&path, &numbers) {
                continue;
            }
            let (link, before) = (folder.0.join(format!("{name}-link")), mode(&path));
            symlink(name, &link).unwrap();
            for named in [&path, &link] {
                assert_eq!(write(named, "new").is_ok(), is_ok, "{name}");
                let found = fs::symlink_metadata(&path).unwrap();
                assert!(found.file_type().is_char_device(), "{name}");
                assert_eq!(mode(&path), before);
                assert!(is_link(&link));
            }
        }
        assert!(folder.names().iter().all(|name| !name.ends_with(".new")));
    }

    #[test]
    fn what_is_neither_replaced_nor_written_to_is_named() {
        let folder = Folder::new();
        let path = |name: &str| folder.0.join(name);
        fs::create_dir(path("folder")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        let mut kinds = vec![("folder", "a folder"), ("socket", "a socket")];
        if make_node(&path("disk"), &["b", "7", "200"]) {
            kinds.push(("disk", "a block device"));
        }
        for (name, kind) in kinds {
            let link = path(&format!("link-to-{name}"));
            symlink(name, &link).unwrap();
            let before = fs::symlink_metadata(path(name)).unwrap().ino();
            for named in [path(name), link.clone()] {
                let error = write(&named, "new").unwrap_err().to_string();
                let expected = "expected a file, a pipe or a character device";
                assert_eq!(error, format!("is {kind}: {expected}"));
            }
            assert_eq!(fs::symlink_metadata(path(name)).unwrap().ino(), before);
            assert!(is_link(&link));
        }
        assert!(folder.names().iter().all(|name| !name.ends_with(".new")));
    }

    #[test]
    fn what_takes_the_place_of_the_file_meanwhile_is_not_replaced() {
        let folder = Folder::new();
        let path = folder.0.join("filter.state");
        let (link, pipe, kept) = ("link", "pipe", "kept");
        for kind in [link, pipe, kept, "none"] {
            write(&path, "one").unwrap();
            let written = replace_file(&path, |file| {
                fs::remove_file(&path)?;
                match kind {
                    "link" => symlink("elsewhere", &path)?,
                    "pipe" => drop(Command::new("mkfifo").arg(&path).status()?),
                    "kept" => fs::write(&path, "of another program")?,
                    _ => {}
                }
                file.write_all(b"two")
            });
            let found = fs::symlink_metadata(&path).unwrap().file_type();
            let is_file = [kept, "none"].contains(&kind);
            assert_eq!(written.is_ok(), is_file, "{kind}");
            assert_eq!(found.is_symlink(), kind == link);
            assert_eq!(found.is_fifo(), kind == pipe);
            fs::remove_file(&path).unwrap();
        }
        assert!(folder.names().is_empty());
    }

    /// As `/dev/stdout` of a command whose output goes to a file.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_end_of_a_file_that_is_open_in_a_process_is_written_to() {
        use std::os::fd::AsRawFd;

        let folder = Folder::new();
        let path = folder.0.join("output");
        let mut output = File::create(&path).unwrap();
        output.write_all(b"header ").unwrap();
        let named = PathBuf::from(format!("/proc/self/fd/{}", output.as_raw_fd()));
        let link = folder.0.join("link");
        symlink(&named, &link).unwrap();
        write(&named, "one ").unwrap();
        write(&link, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "header one two");
        assert_eq!(
            output.metadata().unwrap().ino(),
            fs::metadata(&path).unwrap().ino()
        );
        assert!(is_link(&link));
        // A file without a name is written to as well.
        fs::remove_file(&path).unwrap();
        write(&named, " three").unwrap();
        assert_eq!(output.metadata().unwrap().len(), 20);
        assert_eq!(folder.names(), ["link"]);
    }

    /// The parent of the state may be a folder of another user.
    #[test]
    fn folders_that_can_be_written_but_not_read_are_no_error() {
        let folder = Folder::new();
        let inner = folder.0.join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o311)).unwrap();
        let path = inner.join("filter.state");
        for content in ["one", "two"] {
            write(&path, content).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        sync_folder(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o511)).unwrap();
        if File::create(inner.join("probe")).is_ok() {
            eprintln!("SKIPPED: the administrator writes to any folder");
        } else {
            assert_eq!(
                write(&path, "three").unwrap_err().kind(),
                ErrorKind::PermissionDenied
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        }
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
