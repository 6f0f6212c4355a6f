//! Runs the command and keeps what it wrote.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Run {
    fn new(output: Output) -> Self {
        Self {
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().expect("no signal ended it"),
        }
    }

    /// Standard output as text, of a run that must have gone well and without a word on standard error.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// As [`text`](Self::text), as bytes.
    #[track_caller]
    pub(crate) fn bytes(self) -> Vec<u8> {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self.stdout
    }

    /// The one line that says why the run failed.
    #[track_caller]
    pub(crate) fn refusal(&self) -> &str {
        assert_eq!(self.code, 2, "{}", self.stderr);
        assert_eq!(self.stderr.matches('\n').count(), 1, "{}", self.stderr);
        let line = self.stderr.strip_suffix('\n').unwrap();
        line.strip_prefix("echoless: ").expect("the command's name")
    }
}

/// The command with these arguments, its standard streams piped.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echoless"));
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command on `input`.
pub(crate) fn echoless(args: &[&str], input: &[u8]) -> Run {
    Run::new(feed(command(args).spawn().unwrap(), input))
}

/// Runs `echoless dedup` quietly and with little memory.
pub(crate) fn dedup(args: &[&str], input: &[u8]) -> Run {
    let mut all = vec!["dedup", "-q", "-m", "1MiB"];
    all.extend_from_slice(args);
    echoless(&all, input)
}

/// Runs a command that is set up already.
pub(crate) fn run(mut command: Command) -> Run {
    Run::new(feed(command.spawn().unwrap(), b""))
}

fn feed(mut child: Child, input: &[u8]) -> Output {
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        // A command that fails early does not read everything.
        scope.spawn(move || stdin.map(|mut pipe| pipe.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

/// The first occurrences among `records`, and the others.
pub(crate) fn split_seen<K: Eq + std::hash::Hash>(
    records: &[&[u8]],
    key: impl Fn(&[u8]) -> K,
) -> (Vec<u8>, Vec<u8>) {
    let mut seen = HashSet::new();
    let (mut fresh, mut duplicates) = (Vec::new(), Vec::new());
    for record in records {
        let new = seen.insert(key(record));
        let side = if new { &mut fresh } else { &mut duplicates };
        side.extend_from_slice(record);
    }
    (fresh, duplicates)
}

/// A file with this content in a directory.
pub(crate) fn file(directory: &Path, name: &str, content: &[u8]) -> String {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}
