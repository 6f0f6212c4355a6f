//! Runs the command and collects its output.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use tempfile::TempDir;

/// The output and exit code of a run.
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
            code: output.status.code().expect("no signal ended the run"),
        }
    }

    /// Standard output as text. The run must succeed and write nothing to standard error.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// [`text`](Self::text) as bytes.
    #[track_caller]
    pub(crate) fn bytes(self) -> Vec<u8> {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""));
        self.stdout
    }

    /// The message of a run that must fail with one line.
    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        assert_eq!(self.code, 2, "{}", self.stderr);
        assert_eq!(self.stderr.matches('\n').count(), 1, "{}", self.stderr);
        let line = self.stderr.strip_suffix('\n').unwrap();
        line.strip_prefix("echoless: ").expect("the command's name")
    }
}

/// The command with these arguments, its standard streams piped. Its summary is that of a terminal,
/// unless the arguments set another.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echoless"));
    let (subcommand, rest) = args.split_at(args.len().min(1));
    let summary = ["dedup", "packets"].contains(subcommand.first().unwrap_or(&""))
        && !args.iter().any(|arg| arg.starts_with("--summary"));
    command
        .args(subcommand)
        .args(summary.then_some("--summary=full"))
        .args(rest)
        .env_remove("ECHOLESS_OPTS")
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

/// Runs a prepared command.
pub(crate) fn run(command: Command) -> Run {
    run_on(command, b"")
}

/// Runs a prepared command on `input`.
pub(crate) fn run_on(mut command: Command, input: &[u8]) -> Run {
    Run::new(feed(command.spawn().unwrap(), input))
}

fn feed(mut child: Child, input: &[u8]) -> Output {
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        // Writing fails if the command ends early.
        scope.spawn(move || stdin.map(|mut pipe| pipe.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

/// Sends a signal such as `-INT` to a child.
///
/// # Panics
/// If this process ignores the signal, as under `nohup`: the child inherits that, and the test
/// would wait for its end forever.
pub(crate) fn send(child: &Child, signal: &str) {
    let ignored = ignored_signals();
    let number = match signal {
        "-HUP" => 1,
        "-INT" => 2,
        "-USR1" => 10,
        "-TERM" => 15,
        other => panic!("the number of {other} is not listed"),
    };
    assert!(
        ignored >> (number - 1) & 1 == 0,
        "{signal} is ignored by the process that runs the tests"
    );
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// A bit for each signal that this process ignores, from signal 1 on; 0 if the system does not
/// report them.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap())
}

/// Divides `records` into first occurrences and repeats.
pub(crate) fn split_seen<K: Eq + std::hash::Hash>(
    records: &[&[u8]],
    mut key: impl FnMut(&[u8]) -> K,
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

/// Checks that every run fails with a message that contains the text after the bar, and writes
/// nothing to standard output. The arguments before it are separated by blanks.
#[track_caller]
pub(crate) fn assert_errors(run: impl Fn(&[&str]) -> Run, cases: &[&str]) {
    for case in cases {
        let (args, expected) = case.split_once(" | ").expect("ARGS | MESSAGE");
        let args: Vec<&str> = args.split_whitespace().collect();
        let run = run(&args);
        assert!(run.error().contains(expected), "{args:?}: {}", run.error());
        assert_eq!(run.stdout, b"", "{args:?}");
    }
}

/// The path of a file in a folder, which need not exist.
pub(crate) fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

/// Creates a file with this content and returns its path.
pub(crate) fn file(directory: &Path, name: &str, content: &[u8]) -> String {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}
