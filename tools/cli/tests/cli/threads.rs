//! Any number of threads gives the same bytes, counts and errors.

use std::io::{Read, Write};
use std::thread::{self, available_parallelism};

use serde_json::Value;

use crate::run::{Folder, Run, command, dedup, echoless, file};

/// Records that fill many chunks: a third are repeats, some lack a second field, the last lacks its
/// terminator.
fn records() -> Vec<u8> {
    let mut bytes = b"id,name\n".to_vec();
    for index in 0u64..150_000 {
        let repeats = index % 3 == 1;
        let id = if repeats {
            index.saturating_sub(index * 7919 % 5000)
        } else {
            index
        };
        if id % 1000 == 77 {
            bytes.extend(format!("{id}\n").bytes());
        } else if id % 1000 == 78 {
            bytes.extend(format!("{id},\"two\nlines \"\" and more\"\r\n").bytes());
        } else {
            bytes.extend(format!("{id},{}\n", "x".repeat(id as usize % 40)).bytes());
        }
    }
    bytes.extend(b"no end");
    bytes
}

/// The outputs of a run, without the statistics that differ from run to run.
fn outcome(args: &[&str], input: &[u8]) -> (Vec<u8>, String, i32, Vec<u8>, Value) {
    let directory = tempfile::tempdir().unwrap();
    let side = file(directory.path(), "side", b"");
    let stats = file(directory.path(), "stats", b"{}");
    let mut all = vec!["dedup", "-q", "--stats", &stats];
    if !args.contains(&"-m") {
        all.extend(["-m", "1MiB"]);
    }
    if !args.contains(&"--invert") {
        all.extend(["--duplicates", &side]);
    }
    all.extend(args);
    let Run {
        stdout,
        stderr,
        code,
    } = echoless(&all, input);
    let mut stats: Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    if let Some(fields) = stats.as_object_mut() {
        for varying in ["seconds", "threads", "huge_pages", "huge_page_bytes"] {
            fields.remove(varying);
        }
    }
    (stdout, stderr, code, std::fs::read(side).unwrap(), stats)
}

/// Compares the run on several threads with that on one, of a pipe and of a file, which the threads
/// read in parallel. Returns its exit code.
fn check(args: &[&str], input: &[u8]) -> i32 {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "records", input);
    compare(&[args, &[&path]].concat(), b"", &["3"]);
    compare(args, input, &["2", "3", "8"])
}

fn compare(args: &[&str], input: &[u8], numbers: &[&str]) -> i32 {
    let mut one = vec!["--threads", "1"];
    one.extend(args);
    let mut expected = outcome(&one, input);
    // A run that fails counts all that was read of a file, and one thread reads less at a time.
    let counts_reads = expected.2 == 2 && input.is_empty();
    let of_run = |stats: &mut Value| {
        if counts_reads && let Some(fields) = stats.as_object_mut() {
            fields.remove("bytes_in");
        }
    };
    of_run(&mut expected.4);
    for threads in numbers {
        let mut many = vec!["--threads", threads];
        many.extend(args);
        let (stdout, stderr, code, side, mut stats) = outcome(&many, input);
        of_run(&mut stats);
        assert_eq!((&stderr, code), (&expected.1, expected.2), "{many:?}");
        assert!(stdout == expected.0, "{many:?}: the records differ");
        assert!(side == expected.3, "{many:?}: the dropped records differ");
        assert_eq!(stats, expected.4, "{many:?}");
    }
    expected.2
}

#[test]
fn all_outputs_are_the_same_as_on_one_thread() {
    let input = records();
    check(&[], &input);
    check(
        &["--csv", "--header", "-k", "name,id", "--missing", "skip"],
        &input,
    );
    check(&["-k", "1"], &input);
    check(&["-z"], &input);
    check(&["--invert"], &input);
    check(&["--count", "--crlf"], &input);
    check(&["--fail-on-duplicates"], &input);
}

#[test]
fn files_are_cut_into_the_same_records_wherever_threads_read_them() {
    let directory = tempfile::tempdir().unwrap();
    // Lines that are longer than what is read of a chunk in its turn, and shorter ones.
    let mut long = Vec::new();
    for index in 0u64..4000 {
        let length = if index % 50 == 7 { 30_000 } else { index % 700 };
        long.extend(format!("{} {}\r\n", index % 3000, "x".repeat(length as usize)).bytes());
    }
    let short: Vec<u8> = (0u64..400_000)
        .flat_map(|index| format!("{{\"id\": {}}}\n", index * index % 300_007).into_bytes())
        .collect();
    let [long, short] = [("long", &long), ("short", &short)]
        .map(|(name, bytes)| file(directory.path(), name, bytes));
    for args in [
        &[&*long, &*short, &*long][..],
        &["--read-bytes", "100k", &short, &long],
        &["--read-bytes", "5000", &short],
        &["--max-record", "40000", "-k", "1", "-d", " ", &long],
        &["--max-record", "20000", &long],
        &["--format", "jsonl", "-k", "id", &short],
        &["--keep", "last", &short, &long],
        &["--comment", "#", &long],
        &["--format", "fixed:100", &short],
    ] {
        compare(args, b"", &["2", "5"]);
    }
}

/// Call records whose times go up with small steps back and a few long ones.
fn timed() -> String {
    let mut input = String::new();
    for index in 0_u64..120_000 {
        let back = if index % 997 == 0 {
            900
        } else {
            index * 7919 % 11
        };
        let time = (index / 40).saturating_sub(back);
        let key = index * index % 7001;
        match index % 1000 {
            13 => input += &format!("{time}\n"),
            14 => input += &format!("soon,{key}\n"),
            _ => input += &format!("{time},{key},{}\n", "x".repeat((key % 30) as usize)),
        }
    }
    input
}

#[test]
fn windows_do_not_depend_on_threads() {
    let input = timed();
    let time = "-m 32k -k 2 --time-field 1 --time-format s --missing";
    for args in [
        &*format!("{time} skip --window 30s"),
        &format!("{time} empty --window 7s --refresh --late pass"),
        &format!("{time} skip --window 100s --late reject --lateness 800s"),
        &format!("{time} error --window 100s"),
        &format!("{time} skip --window 30s --dense"),
        "-m 32k -k 2 --missing skip --window 100",
        "-m 32k -k 2 --missing skip --window 20000 --dense",
        "-m 32k -k 2 --missing skip --window 20000 --refresh",
        "-m 32k -k 2 --missing skip --repeated",
        "-m 32k -k 2 --missing skip --window 20000 --repeated",
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        compare(&args, input.as_bytes(), &["2", "8"]);
    }
}

/// The options of each format with a key, and a stream of records that fills many chunks.
fn streams() -> Vec<(&'static str, Vec<u8>)> {
    let keys = || (0_u32..60_000).map(|index| index.wrapping_mul(2_654_435_761) >> 17);
    let all = |record: &dyn Fn(u32) -> Vec<u8>| keys().flat_map(record).collect::<Vec<u8>>();
    let json = |key| {
        let name = if key % 2 == 0 { "A" } else { "\\u0041" };
        format!("{{\"user\":{{\"name\":\"{name}\"}},\"id\":{key},\"text\":\"{key:>50}\"}}\n")
            .into_bytes()
    };
    let prefixed = |key: u32| {
        let payload = format!("{key:0>width$}", width = 5 + key as usize % 100).into_bytes();
        [&[payload.len() as u8][..], &payload].concat()
    };
    let ber = echoless("gen cdr --format ber --duplicates 0.3 -n 40000", "").bytes();
    let filled = [&[0xff; 70_000][..], &ber, &[0; 70_000], &ber].concat();
    vec![
        ("--format ber", ber),
        ("--format ber:3gpp", filled),
        ("--format jsonl -k id --tag", all(&json)),
        ("--format jsonl -k id,user.name", all(&json)),
        (
            "--format fixed:9 -k 0-3",
            all(&|key| [&key.to_le_bytes()[..], b"\n\0 \xef\xbb"].concat()),
        ),
        ("--format prefixed:u8", all(&prefixed)),
        ("--format prefixed:varint -k 0-4", all(&prefixed)),
        (
            "--format tsv -k 2",
            all(&|key| format!("x\t{key}\n").into_bytes()),
        ),
        (
            "--format csv -k 1",
            all(&|key| format!("\"{key}\"\n").into_bytes()),
        ),
        (
            "--format lines",
            all(&|key| format!("{key}\n").into_bytes()),
        ),
    ]
}

#[test]
fn formats_do_not_depend_on_threads() {
    for (args, input) in streams() {
        // Too little memory for all keys, so that another order of the records shows.
        let args: Vec<&str> = ["-m", "64k"].into_iter().chain(args.split(' ')).collect();
        let broken = [&input[..], b"\xff{", &input[..]].concat();
        for input in [&input[..], &input[..input.len() - 1], &broken] {
            compare(&args, input, &["2", "8"]);
        }
    }
}

#[test]
fn the_evictions_of_a_full_filter_do_not_depend_on_threads() {
    let input = records();
    for replacement in ["fifo", "lru", "qqhtd"] {
        // 1024 lines of 16 slots for a hundred thousand keys.
        let code = check(&["-m", "64k", "--replacement", replacement], &input);
        assert_eq!(code, 0);
    }
}

#[test]
fn other_filters_do_not_depend_on_threads() {
    let input = records();
    for filter in [
        "rlbsbf:k=2,form=line",
        "rowlru:form=line",
        "dense:bits=16",
        "bsbf:k=2",
    ] {
        // With so little memory, any other order of the records would give other verdicts.
        let args = ["-m", "32k", "--filter", filter];
        assert_eq!(check(&args, &input), 0);
        let skipping = [&args[..], &["-k", "2", "--missing", "skip"]].concat();
        assert_eq!(check(&skipping, &input), 0);
        // A record without a second field ends the run.
        assert_eq!(check(&[&args[..], &["-k", "2"]].concat(), &input), 2);
        assert_eq!(check(&args, b""), 0);
    }
}

#[test]
fn an_error_in_the_middle_is_the_same_on_any_number_of_threads() {
    let input = records();
    check(&["-k", "2"], &input);
    check(&["--header", "-k", "unknown"], &input);
    let mut open = input;
    open.extend(b"\n\"never closed\nmore\nmore\n");
    check(&["--csv"], &open);
}

#[test]
fn small_streams_and_one_repeated_record() {
    for input in [&b""[..], b"a", b"a\n", b"\n\n\n"] {
        check(&[], input);
    }
    check(&[], &b"the same again\n".repeat(200_000));
}

#[test]
fn several_inputs_are_one_stream_on_any_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let first = file(directory.path(), "first", &records());
    let second = file(directory.path(), "second", &records()[..500_000]);
    check(&[&first, &second, &first], b"");
}

/// Far more threads than chunks, and records that are longer than a chunk.
#[test]
fn many_threads_and_long_records_give_the_same_output() {
    let mut input = Vec::new();
    for number in 0..150_000_u32 {
        writeln!(
            input,
            "record {}, some text that makes it longer",
            number / 2
        )
        .unwrap();
        if number % 40_000 == 20_000 {
            input.extend("long ".repeat(250_000 + number as usize).bytes());
            input.push(b'\n');
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "input", &input);
    let passed = |threads: &str| {
        let args = ["-m", "4MiB", "--threads", threads, &path];
        dedup(args, b"").bytes()
    };
    let expected = passed("1");
    assert!(expected.len() < input.len() - 3_000_000);
    for threads in ["3", "48", "130"] {
        assert!(passed(threads) == expected, "{threads} threads");
    }
}

/// Bursts that keep all threads busy, each with the start of a record whose end comes with the next
/// burst: whole records must not wait for it.
#[test]
fn bursts_of_a_producer_that_pauses_inside_a_record_are_written_at_once() {
    let window = ["--window", "2000000"];
    for filter in [&[][..], &["--filter", "lru"], &window, &["--window", "5"]] {
        for threads in ["2", "3", "8"] {
            let args = ["dedup", "-q", "-m", "1MiB", "--threads", threads];
            let mut child = command([&args, filter].concat()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = child.stdout.take().unwrap();
            let mut number = 0_u32;
            let mut rest = String::new();
            for burst in [1, 40_000, 1, 100_000, 3, 900, 20_000] {
                let (mut sent, mut whole) = (String::new(), rest);
                for index in 0..burst {
                    // Every fourth comes twice, but not the first: it ends what was begun.
                    let record = format!("record {number} of a burst\n");
                    sent += &record.repeat(if index % 4 == 1 { 2 } else { 1 });
                    whole += &record;
                    number += 1;
                }
                rest = "and the start of one".to_owned();
                let mut answer = vec![0; whole.len()];
                thread::scope(|scope| {
                    let bytes = [sent.as_bytes(), rest.as_bytes()].concat();
                    let stdin = &mut stdin;
                    scope.spawn(move || stdin.write_all(&bytes).unwrap());
                    // Blocks forever if a whole record waits for the next burst.
                    stdout.read_exact(&mut answer).unwrap();
                });
                assert!(answer == whole.as_bytes(), "{args:?} {filter:?}");
            }
            drop(stdin);
            let mut last = String::new();
            stdout.read_to_string(&mut last).unwrap();
            assert_eq!(last, rest);
            assert!(child.wait().unwrap().success());
        }
    }
}

/// The records of a file do not wait for the input after it, of which nothing has come, or so
/// little that it may be compressed.
#[test]
fn a_pipe_after_a_file_holds_nothing_back() {
    let directory = tempfile::tempdir().unwrap();
    let long: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let long_file = file(directory.path(), "long", long.as_bytes());
    for filter in [&[][..], &["--filter", "lru"]] {
        for threads in ["2", "3"] {
            let args = [
                "dedup",
                "-q",
                "-m",
                "1MiB",
                "--threads",
                threads,
                &long_file,
                "-",
            ];
            let mut child = command([&args, filter].concat()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = child.stdout.take().unwrap();
            let mut answer = vec![0; long.len()];
            stdin.write_all(b"B").unwrap();
            // Blocks forever if a worker waits for the pipe first.
            stdout.read_exact(&mut answer).unwrap();
            assert!(answer == long.as_bytes(), "{args:?} {filter:?}");
            stdin.write_all(b"Z\nB\n").unwrap();
            let mut last = [0; 5];
            stdout.read_exact(&mut last).unwrap();
            assert_eq!(&last, b"BZ\nB\n");
            drop(stdin);
            assert!(child.wait().unwrap().success());
        }
    }
}

#[test]
fn a_reader_that_closes_the_pipe_ends_many_threads_while_the_producer_stays() {
    for filter in [&[][..], &["--filter", "lru"]] {
        let args = ["dedup", "-q", "-m", "64k", "--threads", "3"];
        let mut child = command([&args, filter].concat()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        drop(child.stdout.take());
        // One write suffices to detect it; then the producer writes nothing and keeps the pipe
        // open.
        stdin.write_all(b"a\n").unwrap();
        assert!(child.wait().unwrap().success());
        drop(stdin);
    }
}

#[test]
fn threads_are_pinned_if_there_is_a_core_for_each() {
    let input = records();
    let expected = dedup("", &input).bytes();
    let cores = available_parallelism().unwrap().get();
    for threads in 1..=cores.min(3) {
        let pinned = dedup(["--pin", "--threads", &threads.to_string()], &input).bytes();
        assert!(pinned == expected, "{threads} threads");
    }
    let threads = (cores + 1).to_string();
    let expected_error =
        format!("invalid --threads={threads}: expected 1 to {cores} with --pin, one for each core");
    assert_eq!(
        dedup(["--pin", "--threads", &threads], &input).error(),
        expected_error
    );
}

#[test]
fn invalid_numbers_of_threads_are_rejected() {
    for count in ["0", "1025", "18446744073709551615"] {
        let run = dedup(["--threads", count], b"");
        assert_eq!(
            run.error(),
            format!("invalid --threads={count}: expected a whole number from 1 to 1024")
        );
    }
    let lines = ["-m", "64", "--filter", "bloom:form=line"];
    // No more threads start than there are lines.
    for threads in [&[][..], &["--threads", "2"]] {
        let run = echoless([&["dedup", "-q"][..], &lines, threads].concat(), b"a\na\n");
        assert_eq!(run.bytes(), b"a\n");
    }
}

#[test]
fn no_more_threads_start_than_can_have_work() {
    // A filter of one line is used in turns.
    check(&["-m", "64"], &b"a\nb\na\n".repeat(1000));
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "input", b"a\na\n");
    let stats = file(directory.path(), "stats", b"");
    let run = dedup(["--threads", "1024", "--stats", &stats, &input], b"");
    assert_eq!(run.text(), "a\n");
    let stats: Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    assert_eq!(stats["threads"], 1);
}

#[test]
fn a_short_pipe_gets_no_more_threads_than_are_cheap() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"");
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"a\nb\na\n").unwrap();
    // Its last writer is gone before the run begins.
    drop(writer);
    let mut many = command(["dedup", "-q", "--threads", "1024", "--stats", &stats]);
    let output = many.stdin(reader).output().unwrap();
    assert_eq!(
        (output.stdout, output.status.code()),
        (b"a\nb\n".to_vec(), Some(0))
    );
    let stats: Value = serde_json::from_slice(&std::fs::read(stats).unwrap()).unwrap();
    assert_eq!(stats["threads"], 64);
}

/// The first read ends inside of a record, of which a part begins that has fewer bytes than that.
#[test]
fn records_longer_than_a_part_are_as_with_one_thread() {
    let line = |byte: u8| [vec![byte; 1_050_000], vec![b'\n']].concat();
    let input = [b'a', b'b', b'a', b'c', b'b'].map(line).concat();
    let folder = Folder::new();
    folder.write("in", &input);
    let expected = [b'a', b'b', b'c'].map(line).concat();
    for threads in 1..=3 {
        for format in ["", "--csv"] {
            let args = format!("-q --threads {threads} {format} -o out in");
            assert_eq!(folder.dedup(args).code, 0);
            assert!(folder.bytes("out") == expected, "{threads} {format}");
        }
    }
}
