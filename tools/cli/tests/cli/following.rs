//! Runs that follow a file, and waiting for what they write and commit.

use std::fs;
use std::io::Read;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::run::{Folder, send};

/// How often a test checks before it gives up: some minutes, in which a run only has to read a few
/// lines.
const CHECKS: usize = 6000;

/// Waits until this holds. Returns whether it did in time.
fn holds_in_time(holds: impl Fn() -> bool) -> bool {
    for _ in 0..CHECKS {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Waits until this holds.
#[track_caller]
pub(crate) fn wait_until(holds: impl Fn() -> bool) {
    assert!(holds_in_time(holds), "it never held");
}

/// What `state show` reports; null if a file of the state was removed while it was read.
pub(crate) fn shown(folder: &Folder) -> Value {
    let shown = folder.echoless("state show --json state");
    serde_json::from_slice(&shown.stdout).unwrap_or_default()
}

/// The last input of the state, which is the one that a run follows; null if it has none.
fn followed(folder: &Folder) -> Value {
    let shown = shown(folder);
    let inputs = shown["run"]["inputs"].as_array();
    inputs
        .and_then(|inputs| inputs.last())
        .cloned()
        .unwrap_or_default()
}

/// Whether the state has an input.
pub(crate) fn has_input(folder: &Folder) -> bool {
    !followed(folder).is_null()
}

/// Whether the last commit has so many bytes of the input that a run follows.
pub(crate) fn has_committed(folder: &Folder, bytes: u64) -> bool {
    followed(folder)["position"]["bytes"] == bytes
}

/// Waits until the state has all of the log.
#[track_caller]
pub(crate) fn wait_for_commit(folder: &Folder) {
    let bytes = fs::metadata(folder.path("log")).unwrap().len();
    wait_until(|| has_committed(folder, bytes));
}

/// A run that goes on until it is ended, at the latest with its test.
pub(crate) struct Follower<'a> {
    folder: &'a Folder,
    child: Child,
}

impl<'a> Follower<'a> {
    /// Starts a run in the folder.
    pub(crate) fn new(folder: &'a Folder, mut command: Command) -> Self {
        let child = command.spawn().unwrap();
        Self { folder, child }
    }

    fn output(&self) -> String {
        fs::read_to_string(self.folder.path("out")).unwrap_or_default()
    }

    /// Waits for an output.
    #[track_caller]
    pub(crate) fn writes(&self, expected: &str) {
        let is_written = holds_in_time(|| self.output() == expected);
        assert!(is_written, "{:?}, and not {expected:?}", self.output());
    }

    /// Sends a signal such as `-INT`.
    pub(crate) fn signal(&self, signal: &str) {
        send(&self.child, signal);
    }

    /// Waits for the end of the run. Returns what it has written to standard error.
    #[track_caller]
    pub(crate) fn ended(mut self, code: Option<i32>) -> String {
        let mut told = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut told).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), code, "{told}");
        told
    }

    /// Ends the run with `-TERM`. Returns what it has written to standard error.
    #[track_caller]
    pub(crate) fn end(self) -> String {
        self.signal("-TERM");
        self.ended(Some(143))
    }

    #[track_caller]
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.ended(None);
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
