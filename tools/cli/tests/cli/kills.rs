//! Signals at random instants: what was written is always whole records, the first ones of the
//! stream, and nothing else.

use std::io::{Read, Write};
use std::thread;

use crate::run::{command, send};

/// The number of runs.
const RUNS: u64 = 200;

/// The pieces that the stream is written in.
const PIECES: u64 = 200;

/// The records of a piece, half of them repeats. Their lengths differ.
fn piece(number: u64) -> Vec<u8> {
    let record = |index: u64| format!("{:width$}\n", index / 2, width = (index % 90) as usize);
    let records = (number * 100..(number + 1) * 100).map(record);
    records.collect::<String>().into_bytes()
}

/// The fresh records of the whole stream.
fn fresh() -> Vec<u8> {
    let mut seen = std::collections::HashSet::new();
    let all: Vec<u8> = (0..PIECES).flat_map(piece).collect();
    let fresh = all.split_inclusive(|byte| *byte == b'\n');
    fresh
        .filter(|record| seen.insert(record.to_vec()))
        .flatten()
        .copied()
        .collect()
}

/// A number below `bound` that depends on the seed alone.
pub(crate) fn draw(seed: u64, bound: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % bound
}

/// Runs the command on the stream and sends the signal after `after` pieces. Returns what it wrote
/// and its exit code.
fn killed(signal: &str, threads: &str, after: u64) -> (Vec<u8>, Option<i32>) {
    let args = ["dedup", "-q", "-m", "1MiB", "--threads", threads];
    let mut child = command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reading = thread::spawn(move || {
        let mut written = Vec::new();
        stdout.read_to_end(&mut written).unwrap();
        written
    });
    for number in 0..PIECES {
        if number == after {
            send(&child, signal);
        }
        // Writing fails once the command has ended.
        if stdin.write_all(&piece(number)).is_err() {
            break;
        }
    }
    if after >= PIECES {
        send(&child, signal);
    }
    let status = child.wait().unwrap();
    drop(stdin);
    (reading.join().unwrap(), status.code())
}

#[test]
fn at_any_instant_whole_records_are_written() {
    let fresh = fresh();
    let mut stopped = 0;
    for run in 0..RUNS {
        let (signal, code) = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)][(run % 3) as usize];
        let threads = ["1", "2", "3"][(run / 3 % 3) as usize];
        let after = draw(run, PIECES + 1);
        let (written, ended) = killed(signal, threads, after);
        let told = format!("{signal}, run {run}, {threads} threads, after {after} pieces");
        assert!(fresh.starts_with(&written), "{told}");
        assert!(written.is_empty() || written.ends_with(b"\n"), "{told}");
        match ended {
            Some(ended) => assert_eq!(ended, code, "{told}"),
            // It arrived before the command was ready for it.
            None => assert!(written.is_empty(), "{told}"),
        }
        stopped += u64::from(written.len() < fresh.len());
    }
    assert!(stopped > RUNS / 2, "{stopped}");
}
