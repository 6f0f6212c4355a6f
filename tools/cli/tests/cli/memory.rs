//! Memory is bounded for any input: an address space of fixed size is enough for records
//! without an end.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// The address space of a run: more than it has before it reads anything, and less than the input.
const LIMIT_KIB: &str = "80000";

/// The length of the input in MiB.
const INPUT_MIB: usize = 90;

/// The length in MiB of an input of empty lines that fills the chunks of many threads.
const SHORT_MIB: usize = 150;

/// Runs the command with a limited address space on `start` and endless bytes after it. Returns its
/// exit code and its message.
fn endless(args: &str, start: &[u8], filler: u8) -> (Option<i32>, String) {
    let block = vec![filler; 1 << 20];
    let blocks = std::iter::repeat_n(block, INPUT_MIB);
    limited(
        LIMIT_KIB,
        args,
        std::iter::once(start.to_vec()).chain(blocks),
    )
}

/// Runs the command with an address space of so many KiB on these bytes. Returns its exit code and
/// its message.
fn limited(
    limit: &str,
    args: &str,
    input: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> (Option<i32>, String) {
    let script = format!("ulimit -v {limit} && exec \"$0\" {args}");
    let mut child = Command::new("sh")
        .env_remove("ECHOLESS_OPTS")
        .args(["-c", &script, env!("CARGO_BIN_EXE_echoless")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let writing = thread::spawn(move || {
        for block in input {
            // Writing fails when the command ends.
            if pipe.write_all(&block).is_err() {
                break;
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn records_without_an_end_take_no_more_memory_than_max_record() {
    let fixed = "--threads 1 -q -m 64k --max-record 1MiB";
    for (args, start, filler) in [
        ("dedup", &b"ab"[..], b'x'),
        ("dedup -z -k 1", b"ab", b'x'),
        ("dedup --csv -k 2", b"a,\"", b'\n'),
        ("dedup --format jsonl -k a", b"{\"a\":\"", b'x'),
        ("dedup --format prefixed:u32be", b"\xff\xff\xff\xff", 0),
        ("dedup --format prefixed:varint", b"\xff\xff\xff\xff\x7f", 1),
        ("dedup --format ber", b"\xa0\x84\xff\xff\xff\xff", 5),
        ("dedup --format ber -k 0x80", b"\xa0\x80", 5),
    ] {
        let (code, message) = endless(&format!("{args} {fixed}"), start, filler);
        let expected = "longer than 1 MiB (--max-record)";
        assert!(
            code == Some(2) && message.contains(expected),
            "{args}: {code:?} {message}"
        );
    }
}

#[test]
fn long_inputs_of_short_records_take_no_memory() {
    let fixed = "--threads 1 -q -m 64k";
    for (args, start, filler) in [
        ("dedup", &b""[..], b'\n'),
        ("dedup --format fixed:1", b"", b'x'),
    ] {
        let (code, message) = endless(&format!("{args} {fixed}"), start, filler);
        assert_eq!((code, message.as_str()), (Some(0), ""), "{args}");
    }
}

#[test]
fn long_records_take_the_memory_of_a_few_on_any_number_of_threads() {
    // Each of the chunks of two threads would hold a record: more than twice the address space.
    let record = |number: u8| {
        let mut record = vec![b'a' + number; 24 << 20];
        record.push(b'\n');
        record
    };
    for threads in [1, 2] {
        let args = format!("dedup -q -m 64k --threads {threads}");
        let ended = limited("400000", &args, (0..20).map(record));
        assert_eq!(ended, (Some(0), String::new()), "{threads} threads");
    }
}

#[test]
fn short_records_after_a_long_one_take_little_memory() {
    let long = [vec![b'x'; 24 << 20], vec![b'\n']].concat();
    let short = std::iter::repeat_n(vec![b'\n'; 1 << 20], SHORT_MIB);
    let ended = limited(
        "250000",
        "dedup -q -m 64k --threads 1",
        std::iter::once(long).chain(short),
    );
    assert_eq!(ended, (Some(0), String::new()));
}

/// The most memory of a run so far, in KiB, once it has read all of its input.
#[cfg(target_os = "linux")]
fn peak_kib(args: &[&str], input: impl Iterator<Item = Vec<u8>>) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_echoless"))
        .env_remove("ECHOLESS_OPTS")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    for block in input {
        pipe.write_all(&block).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    kib.unwrap().trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn the_shortest_records_take_little_memory_on_many_threads() {
    // Without a bound, chunks of empty lines would take more than twice as much.
    let long = [vec![b'x'; 33 << 20], vec![b'\n']].concat();
    let short = std::iter::repeat_n(vec![b'\n'; 1 << 20], SHORT_MIB);
    let args = ["dedup", "-q", "-m", "64k", "--threads", "8"];
    let peak = peak_kib(&args, std::iter::once(long).chain(short));
    assert!(peak < 250_000, "{peak} KiB");
}

#[cfg(target_os = "linux")]
#[test]
fn batches_of_one_record_take_little_memory_on_several_threads() {
    // Nearly every record is judged at a tick of its own. A chunk has 37,000 of them: as messages
    // between threads, the batches of 16 chunks would take hundreds of megabytes.
    let lines = |block: u32| -> Vec<u8> {
        let numbers = (0..40_000).map(|line| format!("{}\n", 1_000_000 + block * 40_000 + line));
        numbers.collect::<String>().into_bytes()
    };
    let args = [
        "dedup",
        "-q",
        "-m",
        "64k",
        "--threads",
        "2",
        "--window",
        "100",
    ];
    let peak = peak_kib(&args, (0..20).map(lines));
    assert!(peak < 100_000, "{peak} KiB");
}

#[test]
fn the_default_memory_fits_into_the_limit_of_the_process() {
    let input = || std::iter::once(b"a\nb\na\n".to_vec());
    let (code, summary) = limited(LIMIT_KIB, "dedup --threads 1 --summary full", input());
    assert_eq!(code, Some(0), "{summary}");
    assert!(summary.contains("1 duplicate"), "{summary}");
    assert!(
        summary.contains("less than the default memory"),
        "{summary}"
    );
    let (code, summary) = limited(LIMIT_KIB, "dedup --threads 1 --repeated", input());
    assert_eq!(code, Some(0), "{summary}");
    // The requested memory is rejected, and the message names the option.
    let (code, message) = limited(LIMIT_KIB, "dedup --threads 1 -m 256MiB", input());
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("bytes are available (-m "), "{message}");
}
