//! What must hold for any bytes: no panic, every record in exactly one output, and the same outputs
//! however the bytes arrive. The fuzz targets share this file.

use std::fs;
use std::ops::AddAssign;
use std::path::Path;

use echoless_cli::run_in_process;
use echoless_packets::framing::{Framer, Next};
use serde_json::Value;
use tempfile::TempDir;

/// The files of runs, reused from one to the next.
pub(crate) struct Runs {
    directory: TempDir,
}

/// What happened in checked runs, so that tests can see that everything did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Happened {
    pub(crate) kept: usize,
    pub(crate) dropped: usize,
    pub(crate) rejected: usize,
    pub(crate) failed: usize,
}

impl AddAssign for Happened {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.dropped += other.dropped;
        self.rejected += other.rejected;
        self.failed += other.failed;
    }
}

/// The outcome of a run: its outputs and its error.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    kept: Vec<u8>,
    dropped: Vec<u8>,
    rejected: Vec<u8>,
    /// Where the dropped and rejected records are in the input.
    positions: Vec<(usize, usize)>,
    error: Option<String>,
}

impl Runs {
    pub(crate) fn new() -> Self {
        // Files in memory, where the system has them: a million runs would wear out a disk.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Self {
            directory: directory.unwrap(),
        }
    }

    /// Checks `echoless dedup` with these arguments on these bytes, read at once and in pieces of
    /// `piece` bytes.
    pub(crate) fn check_records(&self, args: &str, bytes: &[u8], piece: usize) -> Happened {
        let args: Vec<&str> = args.split_whitespace().collect();
        let fixed = ["dedup", "-m", "64k", "--max-record", "4k", "--rejects"];
        self.check(
            &[&fixed[..], &[&self.path("rejected")], &args].concat(),
            bytes,
            piece,
        )
    }

    /// Checks `echoless packets` with these arguments on these bytes.
    pub(crate) fn check_packets(&self, args: &str, bytes: &[u8], piece: usize) -> Happened {
        let args: Vec<&str> = args.split_whitespace().collect();
        self.check(
            // What is before damage is written either way; a strict run reports it as its error.
            &[&["packets", "--strict", "-m", "64k"], &args[..]].concat(),
            bytes,
            piece,
        )
    }

    fn check(&self, args: &[&str], bytes: &[u8], piece: usize) -> Happened {
        let input = self.path("input");
        fs::write(&input, bytes).unwrap();
        let piece = piece.max(1).to_string();
        let whole = self.run(args, &[]);
        let pieces = self.run(args, &["--read-bytes", &piece]);
        assert!(
            whole == pieces,
            "{args:?} in pieces of {piece} bytes: {whole:?}, {pieces:?}: {}",
            shown(bytes)
        );
        whole.check(args, bytes);
        Happened {
            kept: usize::from(!whole.kept.is_empty()),
            dropped: usize::from(!whole.dropped.is_empty()),
            rejected: usize::from(!whole.rejected.is_empty()),
            failed: usize::from(whole.error.is_some()),
        }
    }

    fn run(&self, args: &[&str], more: &[&str]) -> Outcome {
        let [input, kept, dropped] = ["input", "kept", "dropped"].map(|name| self.path(name));
        let outputs = ["-q", "--threads", "1", "--explain", "-o", &kept];
        let files = ["--duplicates", &dropped, &input];
        let result = run_in_process(&[args, &outputs, more, &files].concat());
        let read = |name| fs::read(self.path(name)).unwrap_or_default();
        let mut positions = positions(&read("dropped.jsonl"));
        positions.extend(positions_of_rejects(&read("rejected.jsonl")));
        positions.sort_unstable();
        let outcome = Outcome {
            kept: read("kept"),
            dropped: read("dropped"),
            rejected: read("rejected"),
            positions,
            error: result.err(),
        };
        for output in [
            "kept",
            "dropped",
            "dropped.jsonl",
            "rejected",
            "rejected.jsonl",
        ] {
            let _ = fs::remove_file(self.path(output));
        }
        outcome
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().into()
    }
}

impl Outcome {
    /// The kept records are the input without the dropped and the rejected ones, up to an error.
    fn check(&self, args: &[&str], bytes: &[u8]) {
        let mut rest = Vec::new();
        let mut at = 0;
        for (start, length) in &self.positions {
            assert!(
                at <= *start,
                "{args:?}: positions overlap: {}",
                shown(bytes)
            );
            rest.extend_from_slice(&bytes[at..*start]);
            at = start + length;
        }
        rest.extend_from_slice(&bytes[at..]);
        if let Some(error) = &self.error {
            assert!(!error.contains('\n'), "{args:?}: {error}");
        }
        if args.iter().any(|arg| arg.starts_with("json:container=")) {
            // Commas and the end of the array are written anew around what is kept.
            return;
        }
        if args[0] == "packets" {
            leave_out_section_lengths(&mut rest, &self.kept);
            upgrade_pcap(&mut rest);
        }
        let removed: usize = self.positions.iter().map(|(_, length)| length).sum();
        match &self.error {
            None => assert!(rest == self.kept, "{args:?}: {}", shown(bytes)),
            Some(_) => assert!(rest.starts_with(&self.kept), "{args:?}: {}", shown(bytes)),
        }
        // A header is in each of the files.
        if args[0] == "dedup" && !args.contains(&"--header") {
            let listed = self.dropped.len() + self.rejected.len();
            assert_eq!(listed, removed, "{args:?}: {}", shown(bytes));
        }
    }
}

/// Replaces the length of each section by -1 where `kept` has that: the outputs leave it out.
fn leave_out_section_lengths(input: &mut [u8], kept: &[u8]) {
    const UNSPECIFIED: [u8; 8] = [0xff; 8];
    for start in 0..kept.len() {
        let length = start + 16..start + 24;
        if kept[start..].starts_with(b"\n\r\r\n")
            && kept.get(length.clone()) == Some(&UNSPECIFIED[..])
            && let Some(bytes) = input.get_mut(length)
        {
            bytes.copy_from_slice(&UNSPECIFIED);
        }
    }
}

/// Rewrites a pcap file before version 2.4 as the outputs have it.
fn upgrade_pcap(input: &mut [u8]) {
    let (mut framer, mut at) = (Framer::new(), 0);
    while let Ok(Next::Block { range, kind }) = framer.next_block(input, at, true) {
        at = range.end;
        framer.upgrade(&mut input[range], &kind);
    }
}

fn positions(lines: &[u8]) -> Vec<(usize, usize)> {
    let lines = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let position = |line: &[u8]| {
        let position: Value = serde_json::from_slice(line).unwrap();
        let number = |name: &str| usize::try_from(position[name].as_u64().unwrap()).unwrap();
        assert!(number("record") > 0);
        (number("offset"), number("bytes"))
    };
    lines.map(position).collect()
}

/// The positions of rejected records, each with a reason of one line.
fn positions_of_rejects(lines: &[u8]) -> Vec<(usize, usize)> {
    for line in lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let position: Value = serde_json::from_slice(line).unwrap();
        let reason = position["reason"].as_str().unwrap();
        assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
    }
    positions(lines)
}

/// Bytes in messages.
fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
