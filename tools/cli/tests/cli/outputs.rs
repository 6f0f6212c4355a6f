//! The outputs: records and dropped records, and which outputs exclude each other; the help.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::run::{command, dedup, echoless, file, path};

pub(crate) const INPUT: &[u8] = b"a\nb\na\nc\nb\na\n";

#[test]
fn invert_count_and_exit_code() {
    assert_eq!(dedup(&["--invert"], INPUT).text(), "a\nb\na\n");
    assert_eq!(dedup(&["--count"], INPUT).text(), "3\n");
    assert_eq!(
        dedup(&["--count", "--invert"], b"a\na\na\nb\n").text(),
        "2\n"
    );
    assert_eq!(dedup(&["--fail-on-duplicates"], b"a\nb\n").text(), "a\nb\n");
    let run = dedup(&["--fail-on-duplicates"], INPUT);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert_eq!(run.stdout, b"a\nb\nc\n");
}

#[test]
fn output_and_duplicates_in_files() {
    let directory = tempfile::tempdir().unwrap();
    let fresh = file(
        directory.path(),
        "fresh",
        b"the old content, which is longer",
    );
    let dropped = path(&directory, "dropped");
    let args = ["-o", &fresh, "--duplicates", &dropped];
    assert_eq!(dedup(&args, INPUT).text(), "");
    assert_eq!(fs::read(&fresh).unwrap(), b"a\nb\nc\n");
    assert_eq!(fs::read(&dropped).unwrap(), b"a\nb\na\n");

    let args = ["-o", "-", "--duplicates", &dropped, "--count"];
    assert_eq!(dedup(&args, INPUT).text(), "3\n");
    assert_eq!(fs::read(&dropped).unwrap(), b"a\nb\na\n");

    let args = ["-o", &fresh, "--duplicates", "-"];
    assert_eq!(dedup(&args, INPUT).text(), "a\nb\na\n");
}

#[test]
fn every_output_has_the_header() {
    let directory = tempfile::tempdir().unwrap();
    let dropped = path(&directory, "dropped");
    let input = b"h\na\na\n";
    let args = ["--header", "--duplicates", &dropped];
    assert_eq!(dedup(&args, input).text(), "h\na\n");
    assert_eq!(fs::read(&dropped).unwrap(), b"h\na\n");
    assert_eq!(dedup(&["--header", "--invert"], input).text(), "h\na\n");
    assert_eq!(dedup(&["--header", "--count"], input).text(), "1\n");
}

#[test]
fn many_short_runs() {
    // Every other record is a duplicate, which makes more runs than fit in one system call.
    let input: String = (0..20_000).map(|i| format!("{i}\nx\n")).collect();
    let expected = input
        .replacen("x\n", "_", 1)
        .replace("x\n", "")
        .replace('_', "x\n");
    assert!(dedup("", input.as_bytes()).text() == expected);
    assert!(dedup(&["--invert"], input.as_bytes()).text() == "x\n".repeat(19_999));
}

#[test]
fn help_version_completions_and_manual() {
    let version = format!("echoless {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(echoless(&["--version"], b"").text(), version);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = echoless(&["completions", shell], b"").text();
        assert!(script.contains("fail-on-duplicates"), "{shell}");
    }
    for (args, word) in [
        (&["--help"][..], "Exit codes"),
        (&["dedup", "--help"], "--fail-on-duplicates"),
        (&["man"], ".TH echoless 1"),
        (&["man", "dedup"], "fail\\-on\\-duplicates"),
        (&["man", "gen"], "distribution"),
    ] {
        let text = echoless(args, b"").text();
        assert!(text.contains(word), "{args:?}");
        assert!(!text.contains('\x1b'), "colours: {args:?}");
    }
    let run = echoless(&["man", "dedupe"], b"");
    assert!(
        run.error().contains("dedup, packets, gen"),
        "{}",
        run.error()
    );
}

#[cfg(unix)]
#[test]
fn an_output_that_is_standard_error_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let log = path.to_str().unwrap();
    for args in [
        &["-o", log][..],
        &["-o", "/dev/null", "--duplicates", "/dev/stderr"],
        &["-o", "/dev/null", "--stats", log],
    ] {
        let stderr = fs::File::create(&path).unwrap();
        let mut child = command(&[&["dedup"], args].concat())
            .stderr(stderr)
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"a\na\n").ok();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{args:?}");
        let message = fs::read_to_string(&path).unwrap();
        let name = args.last().unwrap();
        assert_eq!(
            message,
            format!("echoless: {name}: is also standard error\n")
        );
    }
}

/// The shell opens the file once for each redirection, and `2>&1` shares the one that is open.
#[cfg(unix)]
#[test]
fn standard_error_may_be_standard_output_but_not_the_same_file_opened_again() {
    use std::process::Command;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    for (redirected, arguments, is_rejected) in [
        (">log 2>log", "-q", true),
        (">log 2>log", "", true),
        (">log 2>log", "-o /dev/stdout", true),
        (">log 2>log", "-o other --duplicates -", true),
        (">>log 2>log", "-q", true),
        (">log 2>>log", "-q", true),
        (">log 2>&1", "-q", false),
        ("2>log >&2", "-q", false),
        (">>log 2>>log", "-q", false),
        (">>log 2<>log", "-q", true),
        (">>log 2>&1", "-q", false),
        (">log 2>other", "-q", false),
        (">log 2>log", "-q -o other", false),
        (">/dev/null 2>/dev/null", "-q", false),
    ] {
        let mut shell = Command::new("sh");
        let dedup = format!("rm -f log && \"$0\" dedup -m 64k {arguments} {redirected}");
        shell.args(["-c", &dedup, env!("CARGO_BIN_EXE_echoless")]);
        shell.env_remove("ECHOLESS_OPTS").current_dir(&directory);
        let mut child = shell.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"a\na\nb\n").ok();
        let expected = if is_rejected { 2 } else { 0 };
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(expected), "{redirected} {arguments}");
        let log = fs::read_to_string(&path).unwrap_or_default();
        if is_rejected {
            assert!(log.starts_with("echoless: "), "{redirected}: {log}");
            assert!(
                log.ends_with(": is also standard error\n"),
                "{redirected}: {log}"
            );
        } else if redirected.contains("log") && !arguments.contains("-o") {
            assert_eq!(log, "a\nb\n", "{redirected} {arguments}");
        }
    }
}

/// They compare the flags of the same open file at the same time.
#[cfg(unix)]
#[test]
fn concurrent_runs_may_share_one_file() {
    use std::process::Command;

    let directory = tempfile::tempdir().unwrap();
    let runs = "for run in 1 2 3 4 5 6 7 8; do echo a | \"$0\" dedup -q -m 64k & done; wait";
    let mut shell = Command::new("sh");
    let script = format!("for round in 1 2 3 4 5 6 7 8; do {runs}; done >log 2>&1");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_echoless")]);
    shell.env_remove("ECHOLESS_OPTS").current_dir(&directory);
    assert!(shell.status().unwrap().success());
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(!log.contains("echoless"), "{log}");
}

#[test]
fn a_run_without_one_of_its_outputs_creates_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("old"), "old").unwrap();
    let missing = path("missing/x");
    for name in ["new", "old"] {
        let output = path(name);
        let (output, missing) = (output.to_str().unwrap(), missing.to_str().unwrap());
        let run = dedup(&["-o", output, "--duplicates", missing], b"a\n");
        assert!(run.error().starts_with(missing), "{}", run.stderr);
    }
    assert!(!path("new").exists());
    assert_eq!(fs::read(path("old")).unwrap(), b"old");
}

#[test]
fn two_outputs_on_one_pipe_are_rejected() {
    let run = dedup(&["--duplicates", "/dev/stdout"], INPUT);
    assert_eq!(run.error(), "/dev/stdout: is also another output");
    let run = dedup(&["-o", "/dev/null", "--duplicates", "/dev/null"], INPUT);
    assert_eq!(run.text(), "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_side_output_is_an_error_even_if_the_reader_left() {
    use std::io::Read;

    let directory = tempfile::tempdir().unwrap();
    let lines: String = (0..400_000)
        .map(|index| format!("{}\n", index / 2))
        .collect();
    let input = file(directory.path(), "input", lines.as_bytes());
    for codec in ["zstd", "gzip", "lz4", "xz:0", "bzip2"] {
        let args = [
            "dedup",
            "-q",
            "--compress",
            codec,
            "--duplicates",
            "/dev/full",
            &input,
        ];
        let mut child = crate::run::command(&args).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // The pipe is closed whether or not anything came.
        let _ = stdout.read(&mut [0; 10]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{codec}: {message}");
        assert!(
            message.starts_with("echoless: /dev/full: "),
            "{codec}: {message}"
        );
    }
}
