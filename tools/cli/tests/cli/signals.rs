//! Signals that ask a run to end while its input stays open.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::run::{command, file};

fn send(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// Feeds the command, sends the signal once it has answered, and lets it end while its input is open.
fn end_by(signal: &str, args: &[&str], input: &str, answer: &str) -> (Vec<u8>, Output) {
    let mut child = command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let mut heard = vec![0; answer.len()];
    stdout.read_exact(&mut heard).unwrap();
    send(&child, signal);
    stdout.read_to_end(&mut heard).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    (heard, output)
}

#[test]
fn a_signal_ends_the_stream_in_good_order() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"");
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let args = [
            "dedup",
            "-m",
            "64k",
            "--fail-on-duplicates",
            "--stats",
            &stats,
        ];
        // The record that had not ended is not a record yet.
        let (heard, output) = end_by(signal, &args, "a\na\nb\nhalf of a rec", "a\nb\n");
        assert_eq!(heard, b"a\nb\n");
        assert_eq!(output.status.code(), Some(code), "{signal}");
        let summary = String::from_utf8(output.stderr).unwrap();
        assert!(summary.contains("3 records"), "{summary}");
        let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert_eq!(stats["duplicates"], 1);
    }
}

#[test]
fn a_signal_ends_a_count() {
    let directory = tempfile::tempdir().unwrap();
    let dropped = directory.path().join("dropped");
    let made = Command::new("mkfifo").arg(&dropped).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no mkfifo");
        return;
    }
    let dropped = dropped.to_str().unwrap();
    let args = [
        "dedup",
        "-q",
        "-m",
        "64k",
        "--count",
        "--duplicates",
        dropped,
    ];
    let mut child = command(&args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\nb\na\n").unwrap();
    let mut duplicates = fs::File::open(dropped).unwrap();
    duplicates.read_exact(&mut [0; 2]).unwrap();
    send(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stdout),
        (Some(130), b"2\n".to_vec())
    );
}

#[test]
fn an_input_that_does_not_block_is_waited_for() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let (mut here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    let mut command = command(&["dedup", "-q", "-m", "64k"]);
    command.stdin(Stdio::from(OwnedFd::from(there)));
    let mut child = command.spawn().unwrap();
    // Keeps no copy of the child's end.
    drop(command);
    let mut stdout = child.stdout.take().unwrap();
    for record in [b"a\n", b"b\n"] {
        here.write_all(record).unwrap();
        let mut heard = [0; 2];
        stdout.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, record);
    }
    drop(here);
    assert!(child.wait().unwrap().success());
}
