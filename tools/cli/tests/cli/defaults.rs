//! `ECHOLESS_OPTS`: default options of `dedup`.

use crate::run::{Folder, Run, Words, command, run_on};

/// Runs `echoless` with these options in the variable.
fn with_options(options: &str, args: impl Words, input: &str) -> Run {
    let mut command = command(args);
    command.env("ECHOLESS_OPTS", options);
    run_on(command, input.as_bytes())
}

const QUIET: &str = "dedup -q -m 64k";

#[test]
fn options_of_the_variable_come_before_the_typed_ones() {
    let input = "a;1\nb;1\na;2\n";
    for (options, args, expected) in [
        ("", "", "a;1\nb;1\na;2\n"),
        ("-d ';' -k 1", "", "a;1\nb;1\n"),
        ("-d ';' -k 1", "-k 2", "a;1\na;2\n"),
        ("-d \\; -k\t\"2\"", "", "a;1\na;2\n"),
        // Completed by a typed option.
        ("-d ';'", "-k 2", "a;1\na;2\n"),
        ("--invert", "-d ; -k 1", "a;2\n"),
    ] {
        let run = with_options(options, format!("{QUIET} {args}"), input);
        assert_eq!(run.text(), expected, "{options} {args}");
    }
    // Quiet by default: neither summary nor progress.
    assert_eq!(with_options("-q -m 64k", "dedup", "a\na\n").text(), "a\n");
}

#[test]
fn other_subcommands_do_not_read_it() {
    let options = "--no-such-option 'an open quote";
    let codes = [options, ""].map(|options| with_options(options, "gen keys -n 1 -q", "").code);
    assert_eq!(codes[0], codes[1]);
    assert!(with_options(options, "--help", "").text().contains("dedup"));
    with_options(options, "dedup", "").fails_with(
        "invalid ECHOLESS_OPTS=--no-such-option 'an open quote: expected options in UTF-8, with \
         quotes that end",
    );
}

#[test]
fn a_value_that_is_no_list_of_options_is_an_error_of_the_variable() {
    for (options, expected) in [
        (
            "--memry 1G",
            "ECHOLESS_OPTS: unexpected argument '--memry' found; tip: a similar argument exists: \
             '--memory'",
        ),
        (
            "--tag --invert",
            "ECHOLESS_OPTS: the argument '--tag[=<NAME>]' cannot be used with '--invert'",
        ),
        (
            "-d ; -k",
            "ECHOLESS_OPTS: a value is required for '--key <FIELDS>' but none was supplied",
        ),
        (
            "file",
            "invalid ECHOLESS_OPTS=file: expected options only, no names of files",
        ),
        (
            "-q -",
            "invalid ECHOLESS_OPTS=-q -: expected options only, no names of files",
        ),
        (
            "-q -- -k",
            "invalid ECHOLESS_OPTS=-q -- -k: expected options only, no names of files",
        ),
        (
            "-k '1",
            "invalid ECHOLESS_OPTS=-k '1: expected options in UTF-8, with quotes that end",
        ),
    ] {
        // Also with options on the command line.
        for args in ["dedup", "dedup -m 0"] {
            with_options(options, args, "a\n").fails_with(expected);
        }
    }
}

#[test]
fn every_error_names_the_variable_while_it_has_options() {
    for (options, args) in [
        // Options that are rejected, by whichever of the two.
        ("-m 0", ""),
        ("-q", "-m 0"),
        ("-q", "--memry 1G"),
        ("--tag", "--invert"),
        // A run that cannot start.
        ("-o /no/such/folder/out", ""),
        ("-q", "/no/such/file"),
        ("-m 4000000GiB", ""),
        ("--pin --threads 1024", ""),
        // Records that contradict them.
        ("-k 2", ""),
        ("-q", "--format jsonl -k a"),
    ] {
        let folder = Folder::new();
        // Options that are rejected replace the statistics of an earlier run only.
        folder.echoless(format!("{QUIET} --stats stats")).text();
        for (value, typed) in [(options, ""), ("", options)] {
            let mut command = folder.command(format!("dedup --stats stats {args} {typed}"));
            command.env("ECHOLESS_OPTS", value);
            let run = run_on(command, b"a\n");
            let error = run.error();
            let ending = format!(" (with ECHOLESS_OPTS={value})");
            assert_eq!(
                error.ends_with(&ending),
                !value.is_empty(),
                "{options}: {error}"
            );
            assert_eq!(
                error.contains("ECHOLESS_OPTS"),
                !value.is_empty(),
                "{error}"
            );
            assert_eq!(
                folder.json("stats")["error"],
                error,
                "{options} {args} {typed}"
            );
        }
    }
}

#[test]
fn other_bytes_than_text_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let mut command = command(QUIET);
    command.env("ECHOLESS_OPTS", OsStr::from_bytes(b"-d \xff"));
    let run = run_on(command, b"");
    run.fails_with(
        "invalid ECHOLESS_OPTS=-d \u{fffd}: expected options in UTF-8, with quotes that end",
    );
}
