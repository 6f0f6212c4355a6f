//! `--keep last`, `--unique` and `--all-repeated`: regular files, judged backwards.

use std::collections::HashMap;
use std::fs;
use std::process::{Command, Stdio};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{assert_errors, dedup, echoless, file, path};

/// What a run with these options and files writes, the same on one thread and on several.
#[track_caller]
fn kept(options: &[&str], files: &[&str]) -> String {
    let run = |threads: &[&str]| dedup(&[options, threads, files].concat(), b"").text();
    let alone = run(&["--threads", "1"]);
    assert_eq!(alone, run(&["--threads", "3", "--read-bytes", "5000"]));
    alone
}

#[test]
fn the_last_record_of_each_key_stays_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name, content: &str| file(directory.path(), name, content.as_bytes());
    let csv = path("l.csv", "id,v\n1,a\n2,b\n1,c\n");
    let options = ["--csv", "--header", "-k", "id"];
    for (more, expected) in [
        (&["--keep", "first"][..], "id,v\n1,a\n2,b\n"),
        (&["--keep", "last"], "id,v\n2,b\n1,c\n"),
        (&["--last"], "id,v\n2,b\n1,c\n"),
        (&["--keep", "none"], "id,v\n2,b\n"),
        (&["-u"], "id,v\n2,b\n"),
        (&["-D"], "id,v\n1,a\n1,c\n"),
        (&["--unique", "--invert"], "id,v\n1,a\n1,c\n"),
        (&["--keep", "last", "--invert"], "id,v\n1,a\n"),
        (&["--keep", "last", "--count"], "2\n"),
        (&["--all-repeated", "--count"], "2\n"),
    ] {
        assert_eq!(
            kept(&[&options, more].concat(), &[&csv]),
            expected,
            "{more:?}"
        );
    }
    // What no program can find from the end of a file: newlines in quotes, quotes in quotes.
    let quoted = path(
        "quoted",
        "1,\"a\n1,\"\"x\"\"\n\"\n2,\"\n\"\n\"1\",\"\"\"\n\n\"\n",
    );
    let last = "2,\"\n\"\n\"1\",\"\"\"\n\n\"\n";
    assert_eq!(
        kept(&["--csv", "-k", "1", "--keep", "last"], &[&quoted]),
        last
    );
    let nul = path("nul", "a\n1\0b\n\0a\n1\0");
    assert_eq!(kept(&["-z", "--keep", "last"], &[&nul]), "b\n\0a\n1\0");
    let json = path("json", "{\"id\":1}\n{\"id\":2}\n{\"v\":0,\"id\":1.0}\n");
    assert_eq!(
        kept(
            &["--format", "jsonl", "-k", "id", "--keep", "last"],
            &[&json]
        ),
        "{\"id\":2}\n{\"v\":0,\"id\":1.0}\n"
    );
    let prefixed = path("prefixed", "\u{1}a\u{1}b\u{2}ab\u{1}a");
    assert_eq!(
        kept(&["--format", "prefixed:u8", "--keep", "last"], &[&prefixed]),
        "\u{1}b\u{2}ab\u{1}a"
    );
}

#[test]
fn several_inputs_are_one_stream_and_known_records_count_as_seen() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name, content: &str| file(directory.path(), name, content.as_bytes());
    let one = path("one", "k\na\nb\nc");
    let two = path("two", "k\nb\nd\nd\n");
    let known = path("known", "k\nc\ne\ne\n");
    let empty = path("empty", "");
    let all = [&*one, &empty, &two];
    assert_eq!(
        kept(&["--header", "--keep", "last"], &all),
        "k\na\nc\nb\nd\n"
    );
    assert_eq!(kept(&["--header", "-u"], &all), "k\na\nc");
    let with_known = |option| kept(&["--header", option, "--known", &known], &all);
    assert_eq!(with_known("--last"), "k\na\nb\nd\n");
    assert_eq!(with_known("-u"), "k\na\n");
    assert_eq!(with_known("-D"), "k\nb\nc\nb\nd\nd\n");
    // A record without a newline gets the one before it, wherever it is in the output.
    assert_eq!(
        kept(&["--last"], &[&path("1", "x\ny"), &path("2", "x\n")]),
        "y\nx\n"
    );
}

#[test]
fn all_outputs_have_the_same_verdicts() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| path(&directory, name);
    let input = file(directory.path(), "in", b"1,a\n2,b\nx\n1,c\n1,d\n3,e\n");
    let (dropped, stats, tags) = (path("dropped"), path("stats"), path("tags"));
    let last = ["-k", "1", "--keep", "last", &input];
    let run = |more: &[&str]| dedup(&[&last[..], more].concat(), b"");
    let outputs = ["--duplicates", &dropped, "--stats", &stats, "--explain"];
    assert_eq!(run(&outputs).text(), "2,b\nx\n1,d\n3,e\n");
    assert_eq!(fs::read_to_string(&dropped).unwrap(), "1,a\n1,c\n");
    let explained = fs::read_to_string(path("dropped.jsonl")).unwrap();
    assert!(
        explained.contains("\"record\":4,\"offset\":10,\"bytes\":4"),
        "{explained}"
    );
    let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    for (field, expected) in [
        ("records", Value::from(6)),
        ("duplicates", Value::from(2)),
        ("keep", Value::from("last")),
        ("evictions", Value::from(0)),
        ("estimated_missed_duplicates_high", Value::from(0)),
        ("bytes_in", Value::from(22)),
    ] {
        assert_eq!(json[field], expected, "{field}");
    }
    assert_eq!(
        run(&["--tag"]).text(),
        "1,a,duplicate\n2,b,fresh\nx,fresh\n1,c,duplicate\n1,d,fresh\n3,e,fresh\n"
    );
    assert_eq!(run(&["--tag-file", &tags, "--count"]).code, 2);
    assert_eq!(
        run(&["--tag-file", &tags]).stdout,
        fs::read(&input).unwrap()
    );
    let words = "duplicate\nfresh\nfresh\nduplicate\nfresh\nfresh\n";
    assert_eq!(fs::read_to_string(&tags).unwrap(), words);
    assert_eq!(run(&["--fail-on-duplicates"]).code, 1);
    assert_eq!(run(&["--in-place"]).text(), "");
    assert_eq!(fs::read_to_string(&input).unwrap(), "2,b\nx\n1,d\n3,e\n");
}

#[test]
fn faulty_records_end_the_run_before_it_writes_or_are_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name, content: &str| file(directory.path(), name, content.as_bytes());
    let good = path("good", "1,a\n2,b\n");
    // Two records lack the field; the input of the last error ends in quotes.
    let faulty = path("faulty", "1,c\n\"x\ny\"\n3,d\nz\n3,e\n");
    let open = path("open", "1,c\n\"x\ny\n");
    let options = ["--csv", "-k", "2"];
    for keep in ["--keep=last", "--keep=none"] {
        for last in [&faulty, &open] {
            let run = |keep| dedup(&[&options[..], &[keep, &good, last]].concat(), b"");
            let (kept, first) = (run(keep), run("--keep=first"));
            assert_eq!(
                (kept.error(), &*kept.stdout),
                (first.error(), &b""[..]),
                "{keep}"
            );
        }
        let rejects = directory.path().join("rejects");
        let rejects = ["--rejects", rejects.to_str().unwrap(), keep];
        let kept = kept(&[&options[..], &rejects].concat(), &[&faulty]);
        assert_eq!(kept, "1,c\n3,d\n3,e\n");
        let set_aside = fs::read_to_string(rejects[1]).unwrap();
        assert_eq!(set_aside, "\"x\ny\"\nz\n");
    }
}

#[test]
fn what_cannot_be_read_again_is_rejected() {
    let several = "since it reads them several times, not";
    assert_errors(
        |args| dedup(args, b"a\nb\na\n"),
        &[
            &format!(
                "--keep last | invalid --keep last: expected names of regular files, {several} \
                 standard input: write it to a file first, cat > FILE"
            ),
            "--keep none - | invalid --keep none: expected names of regular files",
            "-u | invalid --unique: expected names of regular files",
            "-D | invalid --all-repeated: expected names of regular files",
            "--last | invalid --last: expected names of regular files",
            "--last /dev/zero | not /dev/zero: write it to a file first, cat /dev/zero > FILE",
            "--keep last --known - x | invalid --keep last: expected names of regular files",
            "--keep last --window 5 x | invalid --keep last: expected no --window beside it",
            "-u --repeated x | invalid --unique: expected no --repeated beside it",
            "-u --keep last x | cannot be used with",
            "-D --tag x | cannot be used with",
            "-D --duplicates y x | cannot be used with",
            "--keep middle | invalid value 'middle'",
            "--keep last nosuch | nosuch: No such file",
        ],
    );
}

/// Runs a command of the shell in a folder; false if its program is not installed.
fn shell(folder: &std::path::Path, command: &str) -> bool {
    let shell = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    shell.unwrap().success()
}

#[test]
fn the_advice_for_compressed_files_works_as_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let expected = "id,v\n2,b\n1,c\n";
    for (program, name, plain) in [
        ("gzip -c", "-l one.csv.gz", "-l one.csv"),
        ("zstd -c", "it's.csv.zst", "it's.csv"),
        ("xz -c", "taken.csv.xz", "taken.csv.xz.plain"),
        ("bzip2 -c", "bare", "bare.plain"),
        ("lz4 -c", "l.csv.lz4", "l.csv"),
    ] {
        fs::write(folder.join("taken.csv"), "kept\n").unwrap();
        fs::write(folder.join("plain"), "id,v\n1,a\n2,b\n1,c\n").unwrap();
        let quoted = name.replace('\'', r"'\''");
        if !shell(folder, &format!("{program} < plain > '{quoted}'")) {
            eprintln!("skipped: {program} is not installed");
            continue;
        }
        let run = |name: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_echoless"));
            let options = [
                "dedup", "-q", "--csv", "--header", "-k", "id", "--keep", "last",
            ];
            let output = command
                .args(options)
                .args(["--", name])
                .env_remove("ECHOLESS_OPTS")
                .current_dir(folder)
                .output()
                .unwrap();
            (
                String::from_utf8(output.stdout).unwrap(),
                String::from_utf8(output.stderr).unwrap(),
            )
        };
        let (stdout, message) = run(name);
        assert_eq!(stdout, "");
        let (_, advice) = message
            .trim_end()
            .split_once("decompress it first, ")
            .unwrap();
        assert!(shell(folder, advice), "{advice}");
        assert_eq!(run(plain), (expected.to_owned(), String::new()), "{advice}");
    }
    assert_eq!(fs::read(folder.join("taken.csv")).unwrap(), b"kept\n");
    // Of a file that another program has to open by its name.
    let zip = file(folder, "a b.zip", b"PK\x03\x04 and more");
    let run = dedup(&["-u", &zip], b"");
    let advice = format!(
        "decompress it first, unzip -p '{zip}' > '{}'",
        &zip[..zip.len() - 4]
    );
    assert!(run.error().ends_with(&advice), "{}", run.stderr);
    let as_it_is = dedup(&["-u", "--no-decompress", &zip], b"");
    assert_eq!(as_it_is.text(), "PK\u{3}\u{4} and more");
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_with_names_are_rejected_and_redirected_files_are_not() {
    let directory = tempfile::tempdir().unwrap();
    file(directory.path(), "in", b"a\nb\na\n");
    let echoless = env!("CARGO_BIN_EXE_echoless");
    let run = |command: &str| shell(directory.path(), &format!("{command} > out"));
    assert!(!run(&format!(
        "cat in | {echoless} dedup --last -q /dev/stdin"
    )));
    assert!(run(&format!("{echoless} dedup --last -q /dev/stdin < in")));
    let out = fs::read_to_string(directory.path().join("out")).unwrap();
    assert_eq!(out, "b\na\n");
    // The advice for a pipe.
    assert!(run(&format!(
        "cat in | cat > FILE && {echoless} dedup -u -q FILE"
    )));
    assert_eq!(
        fs::read_to_string(directory.path().join("out")).unwrap(),
        "b\n"
    );
}

#[test]
fn errors_of_both_directions_are_inside_their_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"{}");
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
    let input = file(directory.path(), "in", lines.as_bytes());
    let (members, unique) = (60_000, 30_000);
    for keep in ["last", "none"] {
        for threads in ["1", "3"] {
            let args = ["dedup", "--count", "-m", "16KiB", "--threads", threads];
            let more = ["--keep", keep, "--stats", &stats, &input];
            let run = echoless(&[&args[..], &more].concat(), b"");
            assert_eq!(run.code, 0, "{}", run.stderr);
            let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
            let number = |field: &str| json[field].as_u64().unwrap();
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
            let fresh = number("fresh");
            assert_eq!(fresh, members + unique - right + missed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_output_is_that_of_counters(
        keys in vec(prop::option::weighted(0.9, 0_u32..2000), 0..6000),
        cuts in vec(0_usize..6000, 0..3),
        padding in 0_usize..30,
        known in vec(0_u32..2000, 0..20),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let record = |(at, key): (usize, &Option<u32>)| match key {
            Some(key) => format!("{at}{},{key}\n", "x".repeat(at % 7 * padding)),
            None => format!("{at}\n"),
        };
        let records: Vec<String> = keys.iter().enumerate().map(record).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (keys.len() + 1)).collect();
        cuts.extend([0, keys.len()]);
        cuts.sort_unstable();
        let input = |(number, cut): (usize, &[usize])| {
            let content = records[cut[0]..cut[1]].concat();
            file(directory.path(), &format!("in{number}"), content.as_bytes())
        };
        let inputs: Vec<String> = cuts.windows(2).enumerate().map(input).collect();
        let names: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let seen: String = known.iter().map(|key| format!("known,{key}\n")).collect();
        let seen = file(directory.path(), "known", seen.as_bytes());
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
            let options = ["-k", "2", "--missing", "skip", "--known", &seen, option];
            prop_assert_eq!(kept(&options, &names), expected, "{}", option);
        }
    }
}
