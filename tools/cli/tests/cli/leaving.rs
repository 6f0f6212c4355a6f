//! Readers that close their pipes, and rejected runs: no loss goes unreported, and no file is
//! destroyed in vain.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;

use serde_json::Value;

use crate::run::{command, dedup, file, run};

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
    let pipe = directory.path().join("pipe").to_str().unwrap().to_owned();
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
    }
}

#[test]
fn a_failed_run_keeps_the_statistics_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(
        directory.path(),
        "stats",
        b"statistics of yesterday, much longer",
    );
    let run = dedup(&["-k", "2", "--stats", &stats], b"1,a\n2\n");
    assert!(run.error().contains("field 2 of the key is missing"));
    let kept = fs::read(&stats).unwrap();
    assert_eq!(kept, b"statistics of yesterday, much longer");
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
