//! Readers that close their pipes, and rejected runs: no loss goes unreported, and no file is
//! destroyed in vain.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;

use serde_json::Value;

use crate::run::{command, dedup, echoless, file, path, run};

/// More records than a pipe can hold.
fn long_stream() -> Vec<u8> {
    let lines: String = (0..200_000).map(|i| format!("{i}\n{i}\n")).collect();
    lines.into_bytes()
}

#[cfg(unix)]
#[test]
fn a_side_output_whose_reader_closes_the_pipe_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "input", &long_stream());
    let pipe = path(&directory, "pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mkfifo is missing");
        return;
    }
    for args in [&["-o", "/dev/null", "--duplicates"][..], &["-o"]] {
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || File::open(pipe).unwrap().read_exact(&mut [0; 10]).unwrap()
        });
        let run = dedup(&[args, &[&pipe, &input]].concat(), b"");
        reader.join().unwrap();
        assert_eq!(
            run.error(),
            format!("{pipe}: the reader closed the pipe before the output was complete")
        );
    }
}

#[test]
fn the_report_covers_the_records_read_when_the_reader_closes_the_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"old");
    let args = ["dedup", "-m", "1MiB", "--stats", &stats];
    for (more, code) in [(&[][..], 0), (&["--fail-on-duplicates"], 1)] {
        let mut child = command(&[&args, more].concat()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let producer = thread::spawn(move || while stdin.write_all(&long_stream()).is_ok() {});
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        producer.join().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let summary = String::from_utf8(output.stderr).unwrap();
        assert!(summary.contains(" duplicates ("), "{summary}");
        let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert!(stats["duplicates"].as_u64().unwrap() > 0);
        assert_eq!(stats["complete"], false);
        assert_eq!(stats["reason"], "reader left");
    }
}

#[test]
fn a_failed_run_replaces_the_statistics_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let stats = path(&directory, "stats");
    let bad_header = file(directory.path(), "bad", b"a,b\n1,2\n");
    // After the first record, before it, and before any input is open.
    for (args, message, records) in [
        (&["-k", "2"][..], "field 2 of the key is missing", 1),
        (&["-k", "c", "--header", &bad_header], "", 0),
        (&["/no/such/file"], "/no/such/file: No such file", 0),
    ] {
        for threads in ["1", "3"] {
            fs::write(
                &stats,
                "statistics of yesterday, of a run that was complete",
            )
            .unwrap();
            let args = [args, &["--threads", threads, "--stats", &stats]].concat();
            let run = dedup(&args, b"1,a\n2\n");
            let error = run.error();
            assert!(error.contains(message), "{error}");
            let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
            assert_eq!(json["complete"], false, "{args:?}");
            assert_eq!(json["reason"], "error");
            assert_eq!(json["error"], error, "{args:?}");
            assert!(json["records"].as_u64().unwrap() >= records);
            assert_eq!(json["memory_bytes"], 1 << 20);
        }
    }
}

#[test]
fn a_rejected_command_line_keeps_a_file_that_holds_no_statistics() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"old");
    for args in [
        &["--fpr", "2"][..],
        &["--filter", "no"],
        &["-o", &stats],
        &["--duplicates", &stats],
        &[&stats],
        &["/no/such/file", "-o", &stats],
        &["/no/such/file", &stats],
    ] {
        let run = dedup(&[args, &["--stats", &stats]].concat(), b"a\n");
        assert_eq!(run.code, 2, "{args:?}");
        assert_eq!(fs::read(&stats).unwrap(), b"old", "{args:?}");
    }
}

#[test]
fn old_statistics_do_not_survive_options_that_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let stats = path(&directory, "stats");
    let key = file(directory.path(), "key", b"no key");
    let input = file(directory.path(), "input", b"a\n");
    for args in [
        &["--fpr", "2"][..],
        &["--filter", "no"],
        &["-m", "0"],
        &["--hash-key", &key],
        &["-o", &input, &input],
        // The parser rejects these.
        &["--tag", "--invert"],
        &["--late", "pass"],
        &["-k", "1", "-k", "2"],
    ] {
        assert_eq!(dedup(&["--stats", &stats], b"a\n").text(), "a\n");
        let args = [&["dedup", "-q"], args, &["--stats", &stats]].concat();
        let run = echoless(&args, b"a\n");
        let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert_eq!(json["complete"], false, "{args:?}");
        assert_eq!(json["error"], run.error(), "{args:?}");
    }
    // So are those of the variable.
    let mut command = command(&["dedup", "-q", "--stats", &stats]);
    command.env("ECHOLESS_OPTS", "a file");
    assert_eq!(dedup(&["--stats", &stats], b"a\n").text(), "a\n");
    assert_eq!(run(command).code, 2);
    let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(json["complete"], false);
    // An input is never replaced.
    assert_eq!(dedup(&["--stats", &stats], b"a\n").text(), "a\n");
    let before = fs::read(&stats).unwrap();
    for args in [
        ["--fpr", "2", &stats],
        ["--tag", "--invert", &stats],
        ["--late", "nosuch", &stats],
        ["--nosuch", "-q", &stats],
    ] {
        let args = [&["dedup", "-q", "--stats", &stats], &args[..]].concat();
        assert_eq!(echoless(&args, b"").code, 2);
        assert_eq!(fs::read(&stats).unwrap(), before);
    }
}

#[test]
fn old_statistics_do_not_survive_options_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let stats = path(&directory, "stats");
    for args in [
        &["--hash-key", "/no/such/file"][..],
        &["--filter", "/no/such/file.toml"],
        &["--format", "ber:profile=/no/such/file"],
    ] {
        assert_eq!(dedup(&["--stats", &stats], b"a\n").text(), "a\n");
        let args = [&["dedup", "-q"], args, &["--stats", &stats]].concat();
        let run = echoless(&args, b"a\n");
        let error = run.error();
        assert!(error.starts_with("/no/such/file"), "{error}");
        let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert_eq!(
            (&json["schema_version"], &json["complete"]),
            (&1.into(), &false.into())
        );
        assert_eq!(
            (&json["reason"], &json["error"]),
            (&"error".into(), &error.into())
        );
        // An input is left alone, even if it holds statistics.
        assert_eq!(dedup(&["--stats", &stats], b"a\n").text(), "a\n");
        let of_whole_run = fs::read(&stats).unwrap();
        echoless(&[&args[..], &[&stats]].concat(), b"").error();
        assert_eq!(fs::read(&stats).unwrap(), of_whole_run);
        // What is not a file of statistics may be anything, and no file appears.
        fs::write(&stats, b"{\"schema\": \"of another program\"}").unwrap();
        echoless(&args, b"a\n").error();
        assert!(fs::read_to_string(&stats).unwrap().contains("another"));
        fs::remove_file(&stats).unwrap();
        echoless(&args, b"a\n").error();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[cfg(unix)]
#[test]
fn statistics_replace_the_file_and_keep_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"old");
    let link = directory.path().join("link");
    symlink("stats", &link).unwrap();
    fs::set_permissions(&stats, fs::Permissions::from_mode(0o640)).unwrap();
    let mut reader = File::open(&stats).unwrap();
    assert_eq!(
        dedup(&["--stats", link.to_str().unwrap()], b"a\n").text(),
        "a\n"
    );
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = fs::metadata(&stats).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(json["complete"], true);
    // A process that had it open still reads the old one, and nothing else is in the folder.
    let mut old = String::new();
    reader.read_to_string(&mut old).unwrap();
    assert_eq!(old, "old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_rejected_run_destroys_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "input", b"id,name\n1,a\n");
    let output = file(directory.path(), "output", b"precious");
    let dropped = file(directory.path(), "dropped", b"precious too");
    let to_files = [&input, "-o", &output, "--duplicates", &dropped];
    for more in [
        &["--header", "-k", "zz"][..],
        &["--stats", "/no/such/directory/stats"],
    ] {
        let run = dedup(&[&to_files, more].concat(), b"");
        assert_eq!(run.code, 2);
        assert_eq!(fs::read(&output).unwrap(), b"precious");
        assert_eq!(fs::read(&dropped).unwrap(), b"precious too");
    }
    let run = dedup(&[&input, "--header", "-k", "zz"], b"");
    assert_eq!((run.code, run.stdout.as_slice()), (2, &b""[..]));
}

#[test]
fn an_empty_stream_truncates_the_output() {
    let directory = tempfile::tempdir().unwrap();
    let output = file(directory.path(), "output", b"of another run");
    assert_eq!(dedup(&["--header", "-o", &output], b"").text(), "");
    assert_eq!(fs::read(&output).unwrap(), b"");
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_by_another_name_is_still_appended_to() {
    let directory = tempfile::tempdir().unwrap();
    let output = file(directory.path(), "output", b"before\n");
    let input = file(directory.path(), "input", b"a\na\nb\n");
    for name in ["/dev/stdout", &output] {
        fs::write(&output, "before\n").unwrap();
        let mut command = command(&["dedup", "-q", "-m", "64k", "-o", name, &input]);
        let appending = OpenOptions::new().append(true).open(&output).unwrap();
        command.stdout(Stdio::from(appending));
        assert_eq!(run(command).text(), "");
        assert_eq!(fs::read(&output).unwrap(), b"before\na\nb\n", "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn messages_that_cannot_be_written_change_nothing() {
    for (args, code) in [(&["dedup", "-m", "64k"][..], 0), (&["dedup", "-k", "0"], 2)] {
        let mut command = command(args);
        command.stdin(Stdio::null());
        command.stderr(Stdio::from(
            OpenOptions::new().write(true).open("/dev/full").unwrap(),
        ));
        assert_eq!(run(command).code, code, "{args:?}");
    }
}
