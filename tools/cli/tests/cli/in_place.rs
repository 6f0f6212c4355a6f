//! `--in-place`: a file is replaced as a whole or not at all.

use std::fs::File;
use std::io::Read;

use crate::codecs::{compress, decompress};
use crate::run::{Folder, fifo, run, send};

const INPUT: &str = "a\nb\na\nc\nb\na";

#[test]
fn the_file_is_replaced_and_nothing_else_changes() {
    for (options, expected) in [
        ("", "a\nb\nc\n"),
        ("--invert", "a\nb\na"),
        ("--repeated", "a\nb\n"),
        ("--threads 3", "a\nb\nc\n"),
        ("--header", "a\nb\na\nc\n"),
    ] {
        let folder = Folder::with(&[("in", INPUT)]);
        folder.assert_runs(&[&format!("--in-place in {options} | ")]);
        assert_eq!(folder.read("in"), expected, "{options}");
        assert_eq!(folder.names(), ["in"]);
    }
}

#[test]
fn other_outputs_are_written_beside_it() {
    let folder = Folder::with(&[("in", INPUT), ("known", "c\n")]);
    folder.assert_runs(&["--in-place --known known --duplicates - in | a\nc\nb\na"]);
    assert_eq!(folder.read("in"), "a\nb\n");
    assert_eq!(folder.read("known"), "c\n");
}

#[test]
fn a_failed_run_leaves_the_file() {
    let content = "1,a\n2,b\n3\n4,d\n";
    let folder = Folder::with(&[("in", content)]);
    for threads in ["1", "3"] {
        let run = folder.dedup(format!("--in-place -k 2 --threads {threads} in"));
        run.fails("line 3: field 2");
        assert_eq!(folder.read("in"), content);
        assert_eq!(folder.names(), ["in"]);
    }
}

/// A limit on the length of files stands in for a full disk.
#[test]
fn a_full_disk_leaves_the_file() {
    let lines: String = (0..1000).map(|number| format!("{number:098},\n")).collect();
    let folder = Folder::with(&[("in", &lines)]);
    let script = "ulimit -f 64 || exit 77; exec \"$0\" dedup -q -m 64k --in-place in";
    let run = run(folder.shell(script));
    if run.code == 77 {
        eprintln!("skipped: this shell cannot limit the length of files");
        return;
    }
    run.fails("File too large");
    assert_eq!(folder.read("in"), lines);
    assert_eq!(folder.names(), ["in"]);
}

#[test]
fn a_signal_or_a_change_meanwhile_leaves_the_file() {
    let lines = "a record that occurs again\n".repeat(100_000);
    let folder = Folder::with(&[("in", &lines)]);
    let dropped = folder.path("dropped");
    if !fifo(&dropped) {
        return;
    }
    let interrupted = "echoless: in: left as it was, as a signal ended the run\n";
    for (signal, told) in [
        (Some("-INT"), interrupted),
        (Some("-TERM"), interrupted),
        (Some("-HUP"), interrupted),
        (None, "in: has changed meanwhile, and is left as it was"),
    ] {
        let args = "dedup -q --in-place --duplicates dropped in";
        let child = folder.command(args).spawn().unwrap();
        // The pipe takes less than the duplicates, so the run is in its middle.
        let mut duplicates = File::open(&dropped).unwrap();
        duplicates.read_exact(&mut [0; 2]).unwrap();
        let mut expected = lines.clone();
        match signal {
            Some(signal) => send(&child, signal),
            None => {
                folder.append("in", "another\n");
                expected.push_str("another\n");
            }
        }
        duplicates.read_to_end(&mut Vec::new()).unwrap();
        let output = child.wait_with_output().unwrap();
        let code = output.status.code();
        assert!(
            if signal.is_some() {
                code > Some(128)
            } else {
                code == Some(2)
            },
            "{code:?}"
        );
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(told), "{message}");
        assert!(folder.read("in") == expected);
        assert_eq!(folder.names(), ["dropped", "in"]);
    }
}

#[test]
fn compressed_files_stay_compressed() {
    let before = compress("gzip", b"a\nb\na\nb\n");
    let folder = Folder::with(&[("in.gz", &before)]);
    folder.assert_runs(&[
        "--in-place in.gz | !! missing --compress: expected --compress gzip beside --in-place",
        "--in-place in.gz --compress zstd | !! invalid --compress=zstd: expected --compress gzip",
        "--in-place in.gz --compress zstd:19 | !! invalid --compress=zstd:19: expected --compress gzip",
        "--in-place in.gz --compress lz4 | !! invalid --compress=lz4: expected --compress gzip",
    ]);
    assert_eq!(folder.bytes("in.gz"), before);
    folder.assert_runs(&["--in-place --compress gzip in.gz | "]);
    assert_eq!(decompress("gzip", &folder.bytes("in.gz")), b"a\nb\n");
    // Read as they are, the bytes are plain.
    folder.assert_runs(&["--in-place --no-decompress in.gz | "]);
}

#[test]
fn what_cannot_be_replaced() {
    let folder = Folder::with(&[("in", INPUT), ("other", INPUT)]);
    let one = "invalid --in-place: expected one input, a regular file, not";
    folder.assert_runs(&[
        &format!("--in-place in other | !! {one} 2 inputs"),
        &format!("--in-place | !! {one} standard input"),
        &format!("--in-place - | !! {one} standard input"),
        &format!("--in-place . | !! {one} ."),
        "--in-place in -o other | !! cannot be used with",
        "--in-place in --count | !! cannot be used with",
        "--in-place in --skip-seen-files list | !! cannot be used with",
        "--in-place in --known in | !! is also a file of --known",
        "--in-place in --duplicates in | !! is also an input",
        "--in-place in --stats in | !! is also an input",
        "--in-place in --compress zstd | !! invalid --in-place: expected no --compress",
        "--in-place missing | !! No such file",
    ]);
    assert_eq!(folder.read("in"), INPUT);
    assert_eq!(folder.names(), ["in", "other"]);
}
