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
fn a_value_that_is_no_list_of_options_is_an_error_of_the_variable() {
    for (options, expected) in [
        (
            "--memry 1G",
            "ECHOLESS_OPTS: unexpected argument '--memry' found",
        ),
        ("--tag --invert", "ECHOLESS_OPTS: the argument"),
        (
            "-d ; -k",
            "ECHOLESS_OPTS: a value is required for '--key <FIELDS>'",
        ),
        ("file", "invalid ECHOLESS_OPTS=file: expected options only"),
        (
            "-q -- -k",
            "invalid ECHOLESS_OPTS=-q -- -k: expected options only",
        ),
        (
            "-k '1",
            "invalid ECHOLESS_OPTS=-k '1: expected options in UTF-8",
        ),
    ] {
        // Whatever is typed.
        for args in [&["dedup"][..], &["dedup", "-m", "0"]] {
            let run = with_options(options, args, b"a\n");
            let error = run.error();
            assert!(error.starts_with(expected), "{options}: {error}");
        }
    }
}

#[test]
fn every_error_names_the_variable_while_it_has_options() {
    for (options, args) in [
        // Options that are rejected, by whichever of the two.
        ("-m 0", &[][..]),
        ("-q", &["-m", "0"]),
        ("-q", &["--memry", "1G"]),
        ("--tag", &["--invert"]),
        // A run that cannot start.
        ("-o /no/such/folder/out", &[]),
        ("-q", &["/no/such/file"]),
        ("-m 4000000GiB", &[]),
        ("--pin --threads 1024", &[]),
        // Records that contradict them.
        ("-k 2", &[]),
        ("-q", &["--format", "jsonl", "-k", "a"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let stats = folder.path().join("stats");
        let stats = stats.to_str().unwrap();
        // Options that are rejected replace the statistics of an earlier run only.
        with_options("", &[&QUIET[..], &["--stats", stats]].concat(), b"").text();
        for (value, ending) in [
            (options, format!(" (with ECHOLESS_OPTS={options})")),
            ("", String::new()),
        ] {
            let typed: Vec<&str> = if value.is_empty() {
                options.split(' ').collect()
            } else {
                Vec::new()
            };
            let args = [&["dedup", "--stats", stats], args, &typed].concat();
            let run = with_options(value, &args, b"a\n");
            let error = run.error();
            assert!(error.ends_with(&ending), "{options}: {error}");
            assert_eq!(
                error.contains("ECHOLESS_OPTS"),
                !value.is_empty(),
                "{error}"
            );
            let written = std::fs::read_to_string(stats).unwrap();
            let written: serde_json::Value = serde_json::from_str(&written).unwrap();
            assert_eq!(written["error"], format!("{error}"), "{options} {args:?}");
        }
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
