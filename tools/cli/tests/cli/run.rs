//! Runs the command and collects its output.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;
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

    /// Checks that the run has failed with one line that has this part.
    #[track_caller]
    pub(crate) fn fails(&self, part: &str) {
        assert!(self.error().contains(part), "{}", self.stderr);
    }

    /// Checks that the run has failed with this line.
    #[track_caller]
    pub(crate) fn fails_with(&self, message: &str) {
        assert_eq!(self.error(), message);
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

/// The arguments of a command: a slice of them, or one text with blanks between them, in which
/// `'` quotes those that are empty or have blanks.
pub(crate) trait Words {
    fn words(&self) -> Vec<String>;
}

impl Words for str {
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        // The word that has begun, if any: quotes begin one that may stay empty.
        let mut word: Option<String> = None;
        let mut is_quoted = false;
        for character in self.chars() {
            match character {
                '\'' => {
                    is_quoted = !is_quoted;
                    word.get_or_insert_default();
                }
                ' ' if !is_quoted => words.extend(word.take()),
                _ => word.get_or_insert_default().push(character),
            }
        }
        words.extend(word);
        words
    }
}

impl Words for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl<S: AsRef<str>> Words for [S] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<str>, const N: usize> Words for [S; N] {
    fn words(&self) -> Vec<String> {
        self[..].words()
    }
}

impl<S: AsRef<str>> Words for Vec<S> {
    fn words(&self) -> Vec<String> {
        self[..].words()
    }
}

impl<W: Words + ?Sized> Words for &W {
    fn words(&self) -> Vec<String> {
        (**self).words()
    }
}

/// The command with these arguments, its standard streams piped. Its summary is that of a terminal,
/// unless the arguments set another.
pub(crate) fn command(args: impl Words) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echoless"));
    let args = args.words();
    let (subcommand, rest) = args.split_at(args.len().min(1));
    let has_summary = ["dedup", "packets"]
        .map(str::to_owned)
        .contains(&subcommand.concat());
    let summary = has_summary && !args.iter().any(|arg| arg.starts_with("--summary"));
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
pub(crate) fn echoless(args: impl Words, input: impl AsRef<[u8]>) -> Run {
    run_on(command(args), input.as_ref())
}

/// Runs `echoless dedup` quietly and with little memory.
pub(crate) fn dedup(args: impl Words, input: impl AsRef<[u8]>) -> Run {
    run_on(quiet(args), input.as_ref())
}

/// The command `echoless dedup`, quiet and with little memory.
fn quiet(args: impl Words) -> Command {
    let mut command = command("dedup -q -m 1MiB");
    command.args(args.words());
    command
}

/// Checks runs of `dedup`, each `ARGS | INPUT | OUTPUT` with an empty standard error. Behind the
/// output of a run that fails is the one line of its error, `!!= MESSAGE`, or a part of it,
/// `!! PART`.
#[track_caller]
pub(crate) fn assert_runs(cases: &[&str]) {
    assert_runs_with(&[""], cases);
}

/// Checks the runs of [`assert_runs`] with each of these further arguments.
#[track_caller]
pub(crate) fn assert_runs_with(more: &[&str], cases: &[&str]) {
    for case in cases {
        let parts: Vec<&str> = case.splitn(3, " | ").collect();
        let &[args, input, output] = &parts[..] else {
            panic!("{case:?}: expected ARGS | INPUT | OUTPUT");
        };
        for more in more {
            let run = dedup(format!("{args} {more}"), input);
            assert_run(&run, output, &format!("{case:?} {more}"));
        }
    }
}

/// Checks a run as one of [`assert_runs`].
#[track_caller]
fn assert_run(run: &Run, expected: &str, case: &str) {
    let found = String::from_utf8_lossy(&run.stdout);
    match split_message(expected, "!!") {
        None => assert_eq!(
            (run.code, &*run.stderr, &*found),
            (0, "", expected),
            "{case}"
        ),
        Some((output, message)) => {
            message.check(run, case);
            assert_eq!(found, output, "{case}");
        }
    }
}

/// What a case expects of the one line of an error.
enum Message<'a> {
    Whole(&'a str),
    Part(&'a str),
}

impl Message<'_> {
    #[track_caller]
    fn check(&self, run: &Run, case: &str) {
        let error = run.error();
        match self {
            Self::Whole(message) => assert_eq!(error, *message, "{case}"),
            Self::Part(part) => assert!(error.contains(part), "{case}: {error}"),
        }
    }
}

/// Splits a case at its marker: `MARKER= MESSAGE`, or `MARKER PART`.
fn split_message<'a>(case: &'a str, marker: &str) -> Option<(&'a str, Message<'a>)> {
    match case.split_once(&format!("{marker}= ")) {
        Some((before, message)) => Some((before, Message::Whole(message))),
        None => {
            let (before, part) = case.split_once(&format!("{marker} "))?;
            Some((before, Message::Part(part)))
        }
    }
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
    send_all(child, &[signal]);
}

/// Sends signals, one right behind the other.
///
/// # Panics
/// As [`send`].
pub(crate) fn send_all(child: &Child, signals: &[&str]) {
    let kills = signals.iter().map(|signal| {
        assert_not_ignored(signal);
        format!("kill {signal} {}; ", child.id())
    });
    let script: String = kills.collect();
    // The second one may come to a process that has ended.
    let sent = Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(sent.success() || signals.len() > 1);
}

fn assert_not_ignored(signal: &str) {
    let ignored = ignored_signals();
    let number = match signal {
        "-HUP" => 1,
        "-INT" => 2,
        "-USR1" => 10,
        "-STOP" if cfg!(target_os = "linux") => 19,
        "-CONT" if cfg!(target_os = "linux") => 18,
        "-TERM" => 15,
        other => panic!("the number of {other} is not listed"),
    };
    assert!(
        ignored >> (number - 1) & 1 == 0,
        "{signal} is ignored by the process that runs the tests"
    );
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

/// Checks that every run fails and writes nothing to standard output. The cases are `ARGS |=
/// MESSAGE`, or `ARGS | PART` with a part of the message.
#[track_caller]
pub(crate) fn assert_errors(run: impl Fn(&[&str]) -> Run, cases: &[&str]) {
    for case in cases {
        let (args, message) = split_message(case, " |").expect("ARGS |= MESSAGE");
        let args = args.words();
        let run = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        message.check(&run, case);
        assert_eq!(run.stdout, b"", "{case}");
    }
}

/// Makes a named pipe. If that is not possible here, says that the test is skipped.
pub(crate) fn fifo(path: impl AsRef<OsStr>) -> bool {
    let made = Command::new("mkfifo").arg(path).status();
    let is_made = made.is_ok_and(|status| status.success());
    if !is_made {
        eprintln!("skipped: mkfifo is missing");
    }
    is_made
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

/// A folder of files, in which commands run.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with files of these names and contents.
    pub(crate) fn with<C: AsRef<[u8]>>(files: &[(&str, C)]) -> Self {
        let folder = Self::new();
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn append(&self, name: &str, content: impl AsRef<[u8]>) {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .open(self.path(name))
            .unwrap();
        file.write_all(content.as_ref()).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.bytes(name)).unwrap()
    }

    /// The names of all files in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The command with these arguments, in the folder.
    pub(crate) fn command(&self, args: impl Words) -> Command {
        let mut command = command(args);
        command.current_dir(self.0.path());
        command
    }

    /// Runs the command in the folder.
    pub(crate) fn echoless(&self, args: impl Words) -> Run {
        self.echoless_on(args, "")
    }

    /// Runs the command on `input` in the folder.
    pub(crate) fn echoless_on(&self, args: impl Words, input: impl AsRef<[u8]>) -> Run {
        run_on(self.command(args), input.as_ref())
    }

    /// Runs `echoless dedup` in the folder, quietly and with little memory.
    pub(crate) fn dedup(&self, args: impl Words) -> Run {
        self.dedup_on(args, "")
    }

    /// Runs `echoless dedup` on `input` in the folder, quietly and with little memory.
    pub(crate) fn dedup_on(&self, args: impl Words, input: impl AsRef<[u8]>) -> Run {
        let mut command = quiet(args);
        command.current_dir(self.0.path());
        run_on(command, input.as_ref())
    }

    /// A script of the shell in the folder, in which `$0` is the command.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, env!("CARGO_BIN_EXE_echoless")]);
        shell.env_remove("ECHOLESS_OPTS").current_dir(self.0.path());
        shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        shell
    }

    /// Checks that runs fail because of a file, for each text in it with a part of the message.
    #[track_caller]
    pub(crate) fn assert_file_errors(
        &self,
        name: &str,
        run: impl Fn() -> Run,
        cases: &[(&str, &str)],
    ) {
        for (text, expected) in cases {
            self.write(name, text);
            let run = run();
            let begin = format!("{name}, ");
            assert!(run.error().starts_with(&begin), "{}", run.stderr);
            run.fails(expected);
        }
    }

    /// Checks runs of `dedup` in the folder, each `ARGS | OUTPUT`, as those of [`assert_runs`].
    #[track_caller]
    pub(crate) fn assert_runs(&self, cases: &[&str]) {
        for case in cases {
            let (args, output) = case.split_once(" | ").expect("ARGS | OUTPUT");
            assert_run(&self.dedup(args), output, &format!("{case:?}"));
        }
    }
}
