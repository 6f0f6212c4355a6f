//! `tshark` and `capinfos` read every file that `echoless packets` writes.

use std::fs;
use std::process::Command;

use crate::codecs::compress;
use crate::packets_support::packets;
use crate::run::{echoless, file};

/// Whether both are installed; a message if one is absent.
fn has_tools() -> bool {
    let absent = ["tshark", "capinfos"]
        .into_iter()
        .find(|tool| Command::new(tool).arg("--version").output().is_err());
    if let Some(tool) = absent {
        eprintln!("skipped: {tool} is absent");
    }
    absent.is_none()
}

/// The standard output of a tool, which must succeed.
fn output_of(tool: &str, args: &[&str]) -> String {
    let run = Command::new(tool).args(args).output().unwrap();
    assert!(run.status.success(), "{tool} {args:?}: {run:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// The number of packets in a file, which both tools must read to its end.
fn packets_in(path: &str) -> usize {
    let table = output_of("capinfos", &["-c", "-M", "-T", "-r", path]);
    let counted: usize = table
        .trim_end()
        .rsplit('\t')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let lines = output_of("tshark", &["-n", "-r", path]);
    assert_eq!(lines.lines().count(), counted, "{path}");
    counted
}

fn generate(args: &[&str]) -> Vec<u8> {
    let all = [
        "gen",
        "packets",
        "-n",
        "2000",
        "--duplicates",
        "0.25",
        "--gap",
        "9",
    ];
    echoless([&all, args].concat(), b"").bytes()
}

#[test]
fn kept_and_dropped_packets_are_files_that_both_read() {
    if !has_tools() {
        return;
    }
    for args in [
        &[][..],
        &["--nanoseconds", "--frame-bytes", "60"],
        &["--pcapng", "--copies", "ttl,vlan"],
        &["--pcapng", "--nanoseconds", "--snap", "100"],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let capture = generate(args);
        let compressed = compress("gzip", &capture);
        for input in [&capture, &compressed] {
            let input = file(directory.path(), "input", input);
            let kept = file(directory.path(), "kept", b"");
            let dropped = file(directory.path(), "dropped", b"");
            let run = packets(
                &[&input, "-o", &kept, "--duplicates", &dropped, "-m", "1MiB"],
                b"",
            );
            run.text();
            let (kept, dropped) = (packets_in(&kept), packets_in(&dropped));
            assert_eq!(kept + dropped, 2000, "{args:?}");
            assert!((400..600).contains(&dropped), "{args:?}: {dropped}");
        }
    }
}

#[test]
fn tshark_shows_the_comment_of_duplicates() {
    if !has_tools() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "input", &generate(&["--pcapng"]));
    let tagged = file(directory.path(), "tagged", b"");
    let dropped = file(directory.path(), "dropped", b"");
    packets(
        &[
            &input,
            "--tag",
            "-o",
            &tagged,
            "--duplicates",
            &dropped,
            "-m",
            "1MiB",
        ],
        b"",
    )
    .text();
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "udp.payload",
    ];
    let list = |path: &str, more: &[&str]| {
        let args = [&["-n", "-r", path], &fields[..], more].concat();
        output_of("tshark", &args)
    };
    // All packets are there, with the same times and bytes, and the comment marks the dropped ones.
    assert_eq!(list(&tagged, &[]), list(&input, &[]));
    let marked = "frame.comment == \"echoless: duplicate\"";
    assert_eq!(list(&tagged, &["-Y", marked]), list(&dropped, &[]));
    assert_eq!(list(&tagged, &["-Y", "frame.comment"]), list(&dropped, &[]));
    assert!(!fs::read(&dropped).unwrap().is_empty());
}
