//! `ECHOLESS_OPTS`: default options of `dedup`.

use crate::run::{Run, command, run_on};

/// Runs `echoless` with these options in the variable.
fn with_options(options: &str, args: &[&str], input: &[u8]) -> Run {
    let mut command = command(args);
    command.env("ECHOLESS_OPTS", options);
    run_on(command, input)
}

const QUIET: [&str; 4] = ["dedup", "-q", "-m", "64k"];

#[test]
fn options_of_the_variable_come_before_the_typed_ones() {
    let input = b"a;1\nb;1\na;2\n";
    for (options, args, expected) in [
        ("", &[][..], "a;1\nb;1\na;2\n"),
        ("-d ';' -k 1", &[], "a;1\nb;1\n"),
        ("-d ';' -k 1", &["-k", "2"], "a;1\na;2\n"),
        ("-d \\; -k\t\"2\"", &[], "a;1\na;2\n"),
        // Completed by a typed option.
        ("-d ';'", &["-k", "2"], "a;1\na;2\n"),
        ("--invert", &["-d", ";", "-k", "1"], "a;2\n"),
    ] {
        let run = with_options(options, &[&QUIET[..], args].concat(), input);
        assert_eq!(run.text(), expected, "{options} {args:?}");
    }
    // Quiet by default: neither summary nor progress.
    assert_eq!(
        with_options("-q -m 64k", &["dedup"], b"a\na\n").text(),
        "a\n"
    );
}

#[test]
fn other_subcommands_do_not_read_it() {
    let options = "--no-such-option 'an open quote";
    let run = with_options(options, &["gen", "keys", "-n", "1", "-q"], b"");
    assert_eq!(
        run.code,
        with_options("", &["gen", "keys", "-n", "1", "-q"], b"").code
    );
    assert!(
        with_options(options, &["--help"], b"")
            .text()
            .contains("dedup")
    );
    let run = with_options(options, &["dedup"], b"");
    assert!(
        run.error().starts_with("invalid ECHOLESS_OPTS="),
        "{}",
        run.error()
    );
}

#[test]
fn errors_name_the_variable_if_it_is_the_cause() {
    for (options, args, expected) in [
        (
            "--memry 1G",
            &[][..],
            "ECHOLESS_OPTS: unexpected argument '--memry' found",
        ),
        ("-m 0", &[], "ECHOLESS_OPTS: invalid --memory=0: expected"),
        ("--tag", &["--invert"], "ECHOLESS_OPTS: the argument"),
        ("-k 0", &["-d", ";"], "ECHOLESS_OPTS: invalid --key="),
        // Also without the variable.
        (
            "-q",
            &["--memry", "1G"],
            "unexpected argument '--memry' found",
        ),
        ("-q", &["-m", "0"], "invalid --memory=0: expected"),
        ("-m 0", &["-m", "1X"], "invalid --memory=1X"),
        (
            "file",
            &[],
            "invalid ECHOLESS_OPTS=file: expected options only",
        ),
        (
            "-q -- -k",
            &[],
            "invalid ECHOLESS_OPTS=-q -- -k: expected options only",
        ),
        (
            "-k '1",
            &[],
            "invalid ECHOLESS_OPTS=-k '1: expected options in UTF-8",
        ),
    ] {
        let args = [&["dedup"], args].concat();
        let run = with_options(options, &args, b"a\n");
        assert!(
            run.error().starts_with(expected),
            "{options}: {}",
            run.error()
        );
    }
}

#[test]
fn errors_of_a_run_that_cannot_start_name_the_variable_too() {
    let too_much = "-m 4000000GiB";
    for (options, args, is_named) in [
        ("-o /no/such/folder/out", &[][..], true),
        ("--stats=/no/such/folder/out", &[], true),
        ("--skip-seen-files /no/such/folder/out", &[], true),
        ("--known /no/such/file", &[], true),
        ("--rejects /no/such/folder/out", &["-k", "1"], true),
        (too_much, &[], true),
        ("--pin --threads 1024", &[], true),
        ("--pin --threads=1024", &[], true),
        ("-q", &["-o", "/no/such/folder/out"], false),
        ("-q", &["/no/such/file"], false),
        ("-m 1M", &["-o", "/no/such/folder/out"], false),
        ("-q", &["-m", "4000000GiB"], false),
        (too_much, &["-m", "4000000GiB"], false),
        (
            "-o /no/such/folder/out",
            &["-o", "/no/such/folder/out"],
            false,
        ),
    ] {
        let args = [&["dedup"], args].concat();
        let run = with_options(options, &args, b"a\n");
        let error = run.error();
        let named = error.starts_with("ECHOLESS_OPTS: ");
        assert_eq!(named, is_named, "{options}: {error}");
        assert!(!error[1..].contains("ECHOLESS_OPTS"), "{error}");
    }
}

#[test]
fn errors_of_a_run_that_reads_name_the_variable_too() {
    let typed_key = ["-k", "2"];
    for (options, args, input, is_named) in [
        ("-k 2", &[][..], "a\n", true),
        ("--key=2", &[], "a\n", true),
        ("-qk2", &[], "a\n", true),
        ("-k no", &["--header"], "a,b\n", true),
        ("--tag=b", &["--header"], "a,b\n", true),
        ("--format jsonl -k a", &[], "{\"a\":1}\n{\n", true),
        ("--csv", &[], "\"a", true),
        ("--max-record 3", &[], "a\nabcdef\n", true),
        ("--window 1s --time-field 1", &[], "a\n", true),
        ("--window 1s", &["--time-field", "1"], "a\n", false),
        (
            "--late reject --time-format s",
            &["--window", "1s", "--time-field", "1"],
            "9\n1\n",
            true,
        ),
        ("-q", &typed_key, "a\n", false),
        ("-k 2", &typed_key, "a\n", false),
        ("-k 1", &["--key=2"], "a\n", false),
        ("-d ,", &typed_key, "a\n", false),
        ("-q", &["--csv"], "\"a", false),
        ("--blank-lines skip", &["--csv"], "\"a", false),
        ("--format csv", &["--csv"], "\"a", false),
        (
            "--csv",
            &["-k", "1", "--blank-lines", "error"],
            "a\n\n",
            false,
        ),
        ("--blank-lines error", &["--csv", "-k", "1"], "a\n\n", true),
        ("--format jsonl", &["--tag=dup"], "[1]\n", true),
        ("--tag=dup", &["--format", "jsonl"], "[1]\n", true),
        (
            "--tag=dup",
            &["--format", "jsonl", "--tag=other"],
            "[1]\n",
            false,
        ),
        ("--format jsonl --tag=dup", &[], "[1]\n", true),
    ] {
        for threads in ["1", "3"] {
            let folder = tempfile::tempdir().unwrap();
            let stats = folder.path().join("stats");
            let stats = stats.to_str().unwrap();
            let run = ["dedup", "--threads", threads, "--stats", stats];
            let run = with_options(options, &[&run[..], args].concat(), input.as_bytes());
            let error = run.error();
            let named = error.starts_with("ECHOLESS_OPTS: ");
            assert_eq!(named, is_named, "{options} {args:?}: {error}");
            assert!(!error[1..].contains("ECHOLESS_OPTS"), "{error}");
            let written = std::fs::read_to_string(stats).unwrap();
            let written: serde_json::Value = serde_json::from_str(&written).unwrap();
            assert_eq!(written["error"], format!("{error}"), "{options} {args:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_of_the_variable_that_is_full_names_it() {
    for options in ["-o /dev/full", "--stats /dev/full"] {
        let run = with_options(options, &QUIET, b"a\n");
        let error = run.error();
        assert!(error.starts_with("ECHOLESS_OPTS: /dev/full: "), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn other_bytes_than_text_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let mut command = command(&QUIET);
    command.env("ECHOLESS_OPTS", OsStr::from_bytes(b"-d \xff"));
    let run = run_on(command, b"");
    assert!(
        run.error().contains("expected options in UTF-8"),
        "{}",
        run.error()
    );
}
