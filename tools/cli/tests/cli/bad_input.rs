//! Invalid options and unusable files end the run with one clear line, exit code 2 and no partial
//! record.

use std::fs::{self, File, OpenOptions};
use std::process::Stdio;

use crate::run::{assert_errors, command, dedup, echoless, file, path, run};

#[test]
fn invalid_options_of_dedup() {
    let run = |args: &[&str]| echoless(&[&["dedup"], args].concat(), b"");
    let cases = [
        "-k 0 | invalid --key=`0`: expected field numbers from 1",
        "-k 7-5 | invalid --key=`7-5`: expected a range from a lower",
        "-k 2,,3 | invalid --key=``: expected",
        "-k -0 | invalid --key=`-0`: expected field numbers from 1",
        "-k name | names require --header",
        "-k 1 -d ,\\ | invalid --delimiter=,\\: expected one byte or more",
        "-k 1 -d \\x0a | invalid --delimiter=\\n: expected bytes that neither end nor quote",
        "--csv -d \" | invalid --delimiter=\\\": expected bytes that",
        "-d ; | invalid --delimiter=;: expected no delimiter without --key, --time-field, --tag or --csv",
        "-m 12Q | invalid --memory=12Q: expected a whole number with",
        "-m 0 | invalid --memory=0: expected 1 byte or more",
        "-m -1G | invalid --memory=-1G: expected",
        "-m 63 | invalid --memory=63: expected at least 64 B (one line)",
        "-m 63 --filter rlbsbf:k=2,form=line | invalid --memory=63: expected 64 B (one line)",
        "-m 63 --dense | invalid --memory=63: expected at least 4096 B (one page)",
        "-m 9999G | invalid --memory=9999G: expected less memory, or a rate --fpr of at least 7.3e-8",
        "-m 9999G --dense | invalid --memory=9999G: expected less memory, or a rate --fpr of at least",
        "--filter rlbsbf:k=2,form=line,memory=63 | invalid memory=63 B: expected",
        "--csv -w -k 1 | invalid --whitespace: expected lines of fields, as fields of --csv are",
        "--max-record 0 | invalid --max-record=0: expected",
        "--fpr 0 | invalid --fpr=0: expected a rate between 0 and 1 (exclusive)",
        "--fpr 1 | invalid --fpr=1: expected",
        "--fpr -0.5 | invalid --fpr=-0.5: expected",
        "--fpr x | invalid --fpr=x: expected",
        "--fpr 1e-300 | invalid --fpr=1e-300: expected",
        "--replacement random | [possible values: fifo, lru, qqhtd]",
        "--kernel sse9 | possible values: auto, scalar",
        "--missing skip | --key",
        "-k 1 --missing drop | error, skip, empty",
        "--seed x | --seed",
        "--seed -1 | invalid --seed=-1: expected a whole number from 0 to 18446744073709551615",
        "--seed 18446744073709551616 | invalid --seed=18446744073709551616: expected a whole",
        "--threads 1.5 | invalid --threads=1.5: expected a whole number from 1 to 1024",
        "--threads -1 | invalid --threads=-1: expected a whole number from 1 to 1024",
        "-z --csv | --csv",
        "-z --crlf | --crlf",
        "--invert --duplicates x | --duplicates",
        "--no-such-flag | --no-such-flag",
    ];
    assert_errors(run, &cases);
    let empty = echoless(&["dedup", "-k", "1", "-d", ""], b"");
    assert!(empty.error().contains("--delimiter: expected one byte"));
}

#[test]
fn csv_implies_crlf() {
    let input = b"a\r\na\n\"b\nb\"\n";
    assert_eq!(dedup(&["--csv", "--crlf"], input).text(), "a\r\n\"b\nb\"\n");
}

#[test]
fn invalid_options_of_gen() {
    let run = |args: &[&str]| echoless(&[&["gen"], args].concat(), b"");
    let cases = [
        " | <KIND>",
        "words | possible values: cdr, keys, lines",
        "keys -n -1 | invalid --count=-1: expected 0, or a whole number above 0, alone or with k",
        "keys --seed -1 | invalid --seed=-1: expected a whole number from 0 to",
        "packets --snap -1 | invalid --snap=-1: expected a whole number from 0 to 4294967295",
        "keys --gap -1 | invalid --gap=-1: expected a whole number",
        "lines --record-bytes -1 | invalid --record-bytes=-1: expected a whole number",
        "keys --duplicates 1 | invalid --duplicates=1: expected a fraction from 0 to 0.999",
        "keys --duplicates -0.1 | invalid --duplicates=-0.1: expected",
        "keys --distribution normal | invalid --distribution=normal: expected",
        "keys --distribution zipf:0 | invalid --distribution=zipf:0: expected",
        "keys --gap 0 | invalid --gap=0: expected",
        "keys --gap 5 --distribution zipf | --distribution",
        "keys --record-bytes 50 | invalid --record-bytes=50: expected no length except for `lines`",
        "keys --header | invalid KIND=keys: expected cdr with --header",
        "lines --record-bytes 1 | invalid --record-bytes=1: expected",
        "keys -o /no/such/directory/file | /no/such/directory/file: ",
    ];
    assert_errors(run, &cases);
}

#[test]
fn no_subcommand() {
    assert!(echoless(&[], b"").error().contains("subcommand"));
    assert!(echoless(&["undo"], b"").error().contains("undo"));
}

#[test]
fn unreadable_inputs_end_the_run_before_it_writes() {
    let directory = tempfile::tempdir().unwrap();
    let good = file(directory.path(), "good", b"a\n");
    let output = file(directory.path(), "output", b"precious");
    let folder = directory.path().to_str().unwrap();
    let absent = path(&directory, "absent");
    for (bad, reason) in [(folder, "is a directory"), (&absent, "No such file")] {
        let run = dedup(&[&good, bad, "-o", &output], b"");
        assert!(
            run.error().starts_with(&format!("{bad}: ")),
            "{}",
            run.error()
        );
        assert!(run.error().contains(reason), "{}", run.error());
        assert_eq!(fs::read(&output).unwrap(), b"precious");
    }
    let run = dedup(&[&good, "-o", folder], b"");
    assert!(run.error().starts_with(folder), "{}", run.error());
}

#[cfg(unix)]
#[test]
fn a_file_without_read_permission() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "secret", b"a\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        eprintln!("skipped: this user can read every file");
        return;
    }
    let run = dedup(&[&path], b"");
    assert!(run.error().contains("ermission"), "{}", run.error());
}

#[cfg(unix)]
#[test]
fn a_directory_as_standard_input() {
    let mut command = command(&["dedup", "-q", "-m", "64k"]);
    command.stdin(Stdio::from(File::open(std::env::temp_dir()).unwrap()));
    let run = run(command);
    assert!(
        run.error().starts_with("standard input: "),
        "{}",
        run.error()
    );
}

#[test]
fn an_input_is_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "data", b"a\na\n");
    let other = path(&directory, "./data");
    for option in ["-o", "--duplicates", "--stats"] {
        let run = dedup(&[&input, option, &other], b"");
        assert_eq!(run.error(), format!("{other}: is also an input"));
        assert_eq!(fs::read(&input).unwrap(), b"a\na\n");
    }
    let mut appending = command(&["dedup", "-q", "-m", "64k", &input]);
    appending.stdout(Stdio::from(
        OpenOptions::new().append(true).open(&input).unwrap(),
    ));
    assert_eq!(run(appending).error(), "standard output: is also an input");
    assert_eq!(fs::read(&input).unwrap(), b"a\na\n");
}

#[test]
fn outputs_must_be_different_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = path(&directory, "output");
    let run = dedup(&["-o", &path, "--duplicates", &path], b"a\n");
    assert_eq!(run.error(), format!("{path}: is also another output"));
    let fresh = file(directory.path(), "fresh", b"precious");
    let run = dedup(&["-o", &fresh, "--stats", &fresh], b"a\n");
    assert_eq!(run.error(), format!("{fresh}: is also another output"));
    assert_eq!(fs::read(&fresh).unwrap(), b"precious");
    let run = dedup(&["--stats", "-"], b"a\n");
    assert_eq!(run.error(), "standard output: is also another output");
}

#[test]
fn the_null_device_can_be_every_output_at_once() {
    if !std::path::Path::new("/dev/null").exists() {
        eprintln!("skipped: /dev/null is missing");
        return;
    }
    let null = "/dev/null";
    let args = [null, "-o", null, "--duplicates", null, "--stats", null];
    assert_eq!(dedup(&args, b"").text(), "");
}

#[test]
fn an_open_quote_is_an_error_after_the_records_before_it() {
    let input = b"a,1\n\"b\nc\",2\na,1\nd,\"3\ne,4\n";
    let run = dedup(&["--csv"], input);
    assert_eq!(
        run.error(),
        "standard input, line 5: a quoted field that begins in this record does not end"
    );
    assert_eq!(run.stdout, b"a,1\n\"b\nc\",2\n");
    for (key, input) in [("1", "\""), ("a", "\"a,b\nx")] {
        let run = dedup(&["--csv", "--header", "-k", key], input.as_bytes());
        assert_eq!(
            run.error(),
            "standard input, line 1: a quoted field that begins in this record does not end"
        );
    }
}

#[test]
fn an_unknown_name_lists_the_names() {
    let run = dedup(&["--header", "-k", "nam"], b"id,name\n1,a\n");
    assert_eq!(
        run.error(),
        "invalid --key=`nam`: expected one of the header's names: \"id\", \"name\""
    );
    let run = dedup(&["--csv", "--header", "-k", "b"], b"\n\na,b\n1,2\n");
    assert_eq!(
        run.error(),
        "invalid --key=`b`: expected a header with names: the first record has none"
    );
    let run = dedup(&["--header", "-k", "id"], b"id,id\n1,a\n");
    assert!(run.error().contains("only one field"), "{}", run.error());
}

#[test]
fn a_full_device_is_an_error() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: /dev/full is missing");
        return;
    }
    for option in ["-o", "--duplicates", "--stats"] {
        let run = dedup(&[option, "/dev/full"], b"a\na\n");
        assert!(run.error().starts_with("/dev/full: "), "{}", run.error());
    }
    let run = echoless(&["gen", "keys", "-n", "1", "-o", "/dev/full"], b"");
    assert!(run.error().starts_with("/dev/full: "), "{}", run.error());
}

/// A limit on the length of files stands in for a disk that fills up in the middle of a record.
#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_leaves_whole_records() {
    use std::process::Command;

    let directory = tempfile::tempdir().unwrap();
    let lines: String = (0..1000).map(|i| format!("{i:098},\n")).collect();
    let input = file(directory.path(), "input", lines.as_bytes());
    let output = path(&directory, "output");
    let stats = path(&directory, "stats");
    for to_stdout in [false, true] {
        let mut command = Command::new("sh");
        command.env_remove("ECHOLESS_OPTS");
        // 64 blocks are 32 or 64 KiB, which is not a multiple of 100 bytes.
        let script = "trap '' XFSZ; ulimit -f 64 || exit 77; exec \"$@\"";
        let mut args = vec![
            env!("CARGO_BIN_EXE_echoless"),
            "dedup",
            "-q",
            "-m",
            "64k",
            "--stats",
            &stats,
            &input,
        ];
        if to_stdout {
            command.stdout(Stdio::from(File::create(&output).unwrap()));
        } else {
            args.extend(["-o", &output]);
        }
        command.args(["-c", script, "sh"]).args(args);
        command.stderr(Stdio::piped());
        let run = run(command);
        if run.code == 77 {
            eprintln!("skipped: this shell cannot limit the length of files");
            return;
        }
        assert!(run.error().contains("File too large"), "{}", run.error());
        let written = fs::read(&output).unwrap();
        assert!(
            written.len() > 30_000 && written.len().is_multiple_of(100),
            "{}",
            written.len()
        );
        assert!(lines.as_bytes().starts_with(&written));
        let told: serde_json::Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert_eq!(told["bytes_out"], written.len());
        assert_eq!(told["complete"], false);
    }
}

#[cfg(unix)]
#[test]
fn generated_records_end_with_an_error_at_a_limit_on_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("sh");
    let script = "ulimit -f 16 || exit 77; exec \"$0\" gen keys -n 100k -o generated";
    command
        .current_dir(directory.path())
        .args(["-c", script, env!("CARGO_BIN_EXE_echoless")])
        .stderr(Stdio::piped());
    let run = run(command);
    if run.code == 77 {
        eprintln!("skipped: this shell cannot limit the length of files");
        return;
    }
    assert_eq!(run.code, 2);
    assert!(run.error().contains("File too large"), "{}", run.error());
}

#[test]
fn control_characters_in_messages_are_escaped() {
    let run = dedup(&["no\nsuch\tfile\x1b[2J"], b"");
    assert!(
        run.error().starts_with("no\\nsuch\\tfile\\u{1b}[2J: "),
        "{}",
        run.error()
    );
    let long = "x".repeat(100_000);
    let run = dedup(&["--key", &long, "--time-field", &long], b"");
    assert!(run.error().len() < 5000, "{}", run.error().len());
}

#[test]
fn a_repeated_option_counts_as_its_last_value() {
    assert_eq!(
        dedup(&["--fpr", "2", "--fpr", "1e-6"], b"a\na\n").text(),
        "a\n"
    );
    assert_eq!(dedup(&["-q", "-q"], b"a\n").text(), "a\n");
}

#[test]
fn a_memory_beyond_all_memories_is_an_error() {
    let args = [
        "plan",
        "-q",
        "-m",
        "18446744073709551615",
        "-n",
        "10k",
        "--distinct",
        "0.5",
    ];
    let run = echoless(&args, b"");
    assert!(run.error().contains("memory"), "{}", run.error());
}

#[test]
fn a_quote_that_swallows_records_is_named_once() {
    let swallowed = "b,2\n".repeat(1100);
    let input = format!("id,n\na,1\n\"x\",\"{swallowed}\",3\nc,\"{swallowed}\"\n");
    let run = dedup(&["--csv", "-k", "1"], input.as_bytes());
    assert_eq!(run.text(), input, "-q writes no summary");
    let run = echoless(
        &["dedup", "-m", "64k", "--csv", "-k", "1"],
        input.as_bytes(),
    );
    let warnings: Vec<&str> = run
        .stderr
        .lines()
        .filter(|line| line.contains("quote"))
        .collect();
    assert_eq!(
        warnings,
        [
            "echoless: standard input, line 3: a quote opens a field here whose record has 1,101 lines \
          and 4,409 bytes: is a quote missing, or one too many?"
        ]
    );
    let long = "x".repeat(600_000);
    for (fields, warns) in [
        ("\n".repeat(1000), false),
        (format!("{long}{long}"), false),
        (format!("{long}\n{long}"), true),
    ] {
        // The header makes one line more than records in any case.
        let input = format!("id,text\na,\"{fields}\"\n");
        let args = ["dedup", "-m", "64k", "--csv", "--header", "-k", "1"];
        let run = echoless(&args, input.as_bytes());
        assert_eq!(run.stderr.contains("quote"), warns, "{}", run.stderr);
    }
}

#[test]
#[cfg(unix)]
fn a_value_that_is_not_utf8_is_named_with_its_option() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    for (words, named) in [
        (&[b"-k".as_slice(), b"\xff"][..], "-k \\xff"),
        (&[b"file", b"--memory=\xfe"], "--memory=\\xfe"),
        // A name of a file is valid, but the message cannot show which word is invalid.
        (&[b"-k", b"\xff", b"caf\xe9"], "-k \\xff, caf\\xe9"),
    ] {
        let mut given = command(&["dedup"]);
        given.args(words.iter().map(|word| OsStr::from_bytes(word)));
        assert_eq!(
            run(given).error(),
            format!("not UTF-8, as only delimiters and names of files may be: {named}")
        );
    }
}
