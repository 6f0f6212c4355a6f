//! Public sample data, if it is installed.

use std::path::PathBuf;

use crate::run::dedup;

/// The access log; `None`, with a message, if it is absent.
fn access_log() -> Option<String> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = workspace.join("../shared/data/apache_access.log");
    if path.exists() {
        return Some(path.to_str()?.to_owned());
    }
    eprintln!("skipped: {} is absent", path.display());
    None
}

#[test]
fn distinct_lines_of_the_access_log() {
    let Some(log) = access_log() else { return };
    assert_eq!(dedup(["--count", &log], b"").text(), "9981\n");
    let lines = dedup([&log], b"").bytes();
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 9981);
    for threads in ["1", "2", "3", "8"] {
        assert!(
            dedup(["--threads", threads, &log], b"").bytes() == lines,
            "{threads} threads"
        );
    }
}

#[test]
fn distinct_clients_and_paths_of_the_access_log() {
    let Some(log) = access_log() else { return };
    let args = ["--count", "-d", " ", "--key", "1,7", &log];
    assert_eq!(dedup(args, b"").text(), "7910\n");
}
