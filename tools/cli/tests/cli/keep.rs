//! `--keep last`, `--unique` and `--all-repeated`: regular files, judged backwards.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{Folder, assert_errors, dedup};

/// What a run with these arguments writes, the same on one thread and on several.
#[track_caller]
fn kept(folder: &Folder, args: &str) -> String {
    let alone = folder.dedup(format!("{args} --threads 1")).text();
    let several = folder.dedup(format!("{args} --threads 3 --read-bytes 5000"));
    assert_eq!(alone, several.text(), "{args}");
    alone
}

#[test]
fn the_last_record_of_each_key_stays_where_it_was() {
    let folder = Folder::with(&[
        ("csv", "id,v\n1,a\n2,b\n1,c\n"),
        // What no program can find from the end of a file: newlines in quotes, quotes in quotes.
        (
            "quoted",
            "1,\"a\n1,\"\"x\"\"\n\"\n2,\"\n\"\n\"1\",\"\"\"\n\n\"\n",
        ),
        ("nul", "a\n1\0b\n\0a\n1\0"),
        ("json", "{\"id\":1}\n{\"id\":2}\n{\"v\":0,\"id\":1.0}\n"),
        ("prefixed", "\u{1}a\u{1}b\u{2}ab\u{1}a"),
    ]);
    for (args, expected) in [
        ("csv --csv --header -k id --keep first", "id,v\n1,a\n2,b\n"),
        ("csv --csv --header -k id --keep last", "id,v\n2,b\n1,c\n"),
        ("csv --csv --header -k id --last", "id,v\n2,b\n1,c\n"),
        ("csv --csv --header -k id --keep none", "id,v\n2,b\n"),
        ("csv --csv --header -k id -u", "id,v\n2,b\n"),
        ("csv --csv --header -k id -D", "id,v\n1,a\n1,c\n"),
        (
            "csv --csv --header -k id --unique --invert",
            "id,v\n1,a\n1,c\n",
        ),
        (
            "csv --csv --header -k id --keep last --invert",
            "id,v\n1,a\n",
        ),
        ("csv --csv --header -k id --keep last --count", "2\n"),
        ("csv --csv --header -k id --all-repeated --count", "2\n"),
        (
            "quoted --csv -k 1 --keep last",
            "2,\"\n\"\n\"1\",\"\"\"\n\n\"\n",
        ),
        ("nul -z --keep last", "b\n\0a\n1\0"),
        (
            "json --format jsonl -k id --keep last",
            "{\"id\":2}\n{\"v\":0,\"id\":1.0}\n",
        ),
        (
            "prefixed --format prefixed:u8 --keep last",
            "\u{1}b\u{2}ab\u{1}a",
        ),
    ] {
        assert_eq!(kept(&folder, args), expected, "{args}");
    }
}

#[test]
fn several_inputs_are_one_stream_and_known_records_count_as_seen() {
    let folder = Folder::with(&[
        ("one", "k\na\nb\nc"),
        ("empty", ""),
        ("two", "k\nb\nd\nd\n"),
        ("known", "k\nc\ne\ne\n"),
        ("open", "x\ny"),
        ("x", "x\n"),
    ]);
    for (args, expected) in [
        ("--header --keep last one empty two", "k\na\nc\nb\nd\n"),
        ("--header -u one empty two", "k\na\nc"),
        (
            "--header --last --known known one empty two",
            "k\na\nb\nd\n",
        ),
        ("--header -u --known known one empty two", "k\na\n"),
        (
            "--header -D --known known one empty two",
            "k\nb\nc\nb\nd\nd\n",
        ),
        // A record without a newline gets the one before it, wherever it is in the output.
        ("--last open x", "y\nx\n"),
    ] {
        assert_eq!(kept(&folder, args), expected, "{args}");
    }
}

#[test]
fn all_outputs_have_the_same_verdicts() {
    let input = "1,a\n2,b\nx\n1,c\n1,d\n3,e\n";
    let folder = Folder::with(&[("in", input)]);
    let run = |more: &str| folder.dedup(format!("-k 1 --keep last in {more}"));
    let outputs = "--duplicates dropped --stats stats --explain";
    assert_eq!(run(outputs).text(), "2,b\nx\n1,d\n3,e\n");
    assert_eq!(folder.read("dropped"), "1,a\n1,c\n");
    let explained = folder.read("dropped.jsonl");
    let position = "\"record\":4,\"offset\":10,\"bytes\":4";
    assert!(explained.contains(position), "{explained}");
    let stats = folder.json("stats");
    for (field, expected) in [
        ("records", Value::from(6)),
        ("duplicates", Value::from(2)),
        ("keep", Value::from("last")),
        ("evictions", Value::from(0)),
        ("estimated_missed_duplicates_high", Value::from(0)),
        ("bytes_in", Value::from(22)),
    ] {
        assert_eq!(stats[field], expected, "{field}");
    }
    assert_eq!(
        run("--tag").text(),
        "1,a,duplicate\n2,b,fresh\nx,fresh\n1,c,duplicate\n1,d,fresh\n3,e,fresh\n"
    );
    assert_eq!(run("--tag-file tags --count").code, 2);
    assert_eq!(run("--tag-file tags").text(), input);
    let words = "duplicate\nfresh\nfresh\nduplicate\nfresh\nfresh\n";
    assert_eq!(folder.read("tags"), words);
    assert_eq!(run("--fail-on-duplicates").code, 1);
    assert_eq!(run("--in-place").text(), "");
    assert_eq!(folder.read("in"), "2,b\nx\n1,d\n3,e\n");
}

#[test]
fn faulty_records_end_the_run_before_it_writes_or_are_set_aside() {
    let folder = Folder::with(&[
        ("good", "1,a\n2,b\n"),
        // Two records lack the field; the input of the last error ends in quotes.
        ("faulty", "1,c\n\"x\ny\"\n3,d\nz\n3,e\n"),
        ("open", "1,c\n\"x\ny\n"),
    ]);
    for keep in ["last", "none"] {
        for last in ["faulty", "open"] {
            let run = |keep| folder.dedup(format!("--csv -k 2 --keep={keep} good {last}"));
            let (kept, first) = (run(keep), run("first"));
            assert_eq!(
                (kept.error(), &*kept.stdout),
                (first.error(), &b""[..]),
                "{keep}"
            );
        }
        let args = format!("--csv -k 2 --rejects rejects --keep={keep} faulty");
        assert_eq!(kept(&folder, &args), "1,c\n3,d\n3,e\n");
        assert_eq!(folder.read("rejects"), "\"x\ny\"\nz\n");
    }
}

#[test]
fn what_cannot_be_read_again_is_rejected() {
    let several = "since it reads them several times, not";
    assert_errors(
        |args| dedup(args, "a\nb\na\n"),
        &[
            &format!(
                "--no-spool --keep last | invalid --keep last: expected names of regular files, {several} \
                 standard input: write it to a file first, cat > FILE"
            ),
            "--no-spool --keep none - | invalid --keep none: expected names of regular files",
            "--no-spool -u | invalid --unique: expected names of regular files",
            "--no-spool -D | invalid --all-repeated: expected names of regular files",
            "--no-spool --last | invalid --last: expected names of regular files",
            "--last /dev/zero | not /dev/zero: write it to a file first, cat /dev/zero > FILE",
            "--no-spool --keep last --known - x | invalid --keep last: expected names of regular files",
            "--keep last --window 5 x | invalid --keep last: expected no --window beside it",
            "-u --repeated x | invalid --unique: expected no --repeated beside it",
            "-u --keep last x | cannot be used with",
            "-D --tag x | cannot be used with",
            "-D --duplicates y x | cannot be used with",
            "--temp . --no-spool -u x | cannot be used with",
            "--temp nosuch -u | a copy of standard input in nosuch: No such file",
            "--keep middle | invalid value 'middle'",
            "--keep last nosuch | nosuch: No such file",
        ],
    );
}

/// Runs a command of the shell in a folder; false if its program is not installed.
fn shell(folder: &Folder, command: &str) -> bool {
    let shell = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder.path(""))
        .stderr(Stdio::null())
        .status();
    shell.unwrap().success()
}

#[test]
fn the_advice_for_compressed_files_works_as_it_is_written() {
    let folder = Folder::new();
    for (program, name, plain) in [
        ("gzip -c", "-l one.csv.gz", "-l one.csv"),
        ("zstd -c", "it's.csv.zst", "it's.csv"),
        ("xz -c", "taken.csv.xz", "taken.csv.xz.plain"),
        ("bzip2 -c", "bare", "bare.plain"),
        ("lz4 -c", "l.csv.lz4", "l.csv"),
    ] {
        folder.write("taken.csv", "kept\n");
        folder.write("plain", "id,v\n1,a\n2,b\n1,c\n");
        let quoted = name.replace('\'', r"'\''");
        if !shell(&folder, &format!("{program} < plain > '{quoted}'")) {
            eprintln!("skipped: {program} is not installed");
            continue;
        }
        let run = |name: &str| {
            let mut command = folder.command("dedup -q --csv --header -k id --keep last --");
            command.arg(name);
            crate::run::run(command)
        };
        let rejected = run(name);
        assert_eq!(rejected.stdout, b"");
        let (_, advice) = rejected
            .error()
            .split_once("decompress it first, ")
            .unwrap();
        assert!(shell(&folder, advice), "{advice}");
        assert_eq!(run(plain).text(), "id,v\n2,b\n1,c\n", "{advice}");
    }
    assert_eq!(folder.read("taken.csv"), "kept\n");
    // Of a file that another program has to open by its name.
    folder.write("a b.zip", "PK\x03\x04 and more");
    let run = folder.dedup("-u 'a b.zip'");
    run.fails("decompress it first, unzip -p 'a b.zip' > 'a b'");
    let as_it_is = folder.dedup("-u --no-decompress 'a b.zip'");
    assert_eq!(as_it_is.text(), "PK\u{3}\u{4} and more");
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_are_copied_unless_that_is_forbidden() {
    let folder = Folder::with(&[("in", "a\nb\na\n")]);
    let echoless = env!("CARGO_BIN_EXE_echoless");
    for (command, expected) in [
        (
            "cat in | echoless dedup --last --no-spool -q /dev/stdin",
            None,
        ),
        (
            "cat in | echoless dedup --last -q /dev/stdin",
            Some("b\na\n"),
        ),
        ("cat in | echoless dedup --last -q", Some("b\na\n")),
        (
            "cat in | echoless dedup -u -q --threads 3 in - in",
            Some(""),
        ),
        (
            "cat in | echoless dedup --exact -q --temp .",
            Some("a\nb\n"),
        ),
        ("gzip -c in | echoless dedup --exact -q", Some("a\nb\n")),
        // It must be plain to be read backwards.
        ("gzip -c in | echoless dedup -u -q", None),
        (
            "mkfifo pipe && (cat in > pipe &) && echoless dedup --last -q in pipe",
            Some("b\na\n"),
        ),
        // Nothing is left of a copy.
        ("ls", Some("in\nout\npipe\n")),
        ("rm pipe", Some("")),
        ("echoless dedup --last -q /dev/stdin < in", Some("b\na\n")),
        // The advice for a pipe.
        (
            "cat in | cat > FILE && echoless dedup -u -q FILE",
            Some("b\n"),
        ),
    ] {
        let command = format!("{} > out", command.replace("echoless", echoless));
        assert_eq!(shell(&folder, &command), expected.is_some(), "{command}");
        assert_eq!(
            folder.read("out"),
            expected.unwrap_or_default(),
            "{command}"
        );
    }
}

#[test]
fn errors_of_both_directions_are_inside_their_bounds() {
    // 30,000 keys twice, 1000 to 8000 records apart, where 4 KiB remember some 1000; and as many
    // keys once.
    let mut records: Vec<(u64, u64)> = Vec::new();
    for key in 0..30_000_u64 {
        let apart = 1000 + key * 7919 % 7000;
        records.extend([
            (2 * key, key),
            (2 * key + apart, key),
            (2 * key, 1_000_000 + key),
        ]);
    }
    records.sort_unstable();
    let lines: String = records.iter().map(|(_, key)| format!("{key}\n")).collect();
    let folder = Folder::with(&[("in", lines)]);
    let (members, unique) = (60_000, 30_000);
    for keep in ["last", "none"] {
        for threads in ["1", "3"] {
            let args = format!("--count -m 16KiB --threads {threads} --keep {keep}");
            let run = folder.echoless(format!("dedup {args} --stats stats in"));
            assert_eq!(run.code, 0, "{}", run.stderr);
            let stats = folder.json("stats");
            let number = |field: &str| stats[field].as_u64().unwrap();
            let right = if keep == "none" { members } else { members / 2 };
            let missed = right - number("duplicates");
            assert!((right / 10..right).contains(&missed), "{missed}");
            let low = number("estimated_missed_duplicates_low");
            let high = number("estimated_missed_duplicates_high");
            assert!((low..=high).contains(&missed), "{missed}: {low} to {high}");
            // Without a third record of a key, the sum of both directions is the truth.
            let estimate = number("estimated_missed_duplicates");
            assert!(
                estimate.abs_diff(missed) < missed / 10,
                "{estimate}, {missed}"
            );
            assert!(number("evictions") >= missed / 2);
            assert_eq!(number("fresh"), members + unique - right + missed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_output_is_that_of_counters(
        keys in vec(prop::option::weighted(0.9, 0_u32..700), 0..2000),
        cuts in vec(0_usize..2000, 0..3),
        padding in 0_usize..30,
        known in vec(0_u32..700, 0..20),
    ) {
        let folder = Folder::new();
        let record = |(at, key): (usize, &Option<u32>)| match key {
            Some(key) => format!("{at}{},{key}\n", "x".repeat(at % 7 * padding)),
            None => format!("{at}\n"),
        };
        let records: Vec<String> = keys.iter().enumerate().map(record).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (keys.len() + 1)).collect();
        cuts.extend([0, keys.len()]);
        cuts.sort_unstable();
        let mut names = String::new();
        for (number, cut) in cuts.windows(2).enumerate() {
            folder.write(&format!("in{number}"), records[cut[0]..cut[1]].concat());
            names += &format!(" in{number}");
        }
        let seen: String = known.iter().map(|key| format!("known,{key}\n")).collect();
        folder.write("known", seen);
        let (mut last, mut count) = (HashMap::new(), HashMap::new());
        for (at, key) in keys.iter().enumerate() {
            last.insert(key, at);
            *count.entry(key).or_insert(0) += 1;
        }
        let passes = |option: &str, at: usize| {
            let Some(number) = keys[at] else {
                return option != "--all-repeated";
            };
            let (key, is_known) = (&keys[at], known.contains(&number));
            match option {
                "--last" => last[key] == at && !is_known,
                "--unique" => count[key] == 1 && !is_known,
                _ => count[key] > 1 || is_known,
            }
        };
        for option in ["--last", "--unique", "--all-repeated"] {
            let passing = (0..keys.len()).filter(|at| passes(option, *at));
            let expected: String = passing.map(|at| records[at].as_str()).collect();
            let args = format!("-k 2 --missing skip --known known {option} {names}");
            prop_assert_eq!(kept(&folder, &args), expected, "{}", option);
        }
    }
}
