//! `--format json:container=PATH`: records inside of arrays.

use std::collections::HashSet;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Deserializer, Value, json};

use crate::run::{assert_errors, dedup, echoless, file};

const TRAIL: &str = "{\"Records\":[{\"eventID\":\"a1\",\"n\":1},{\"eventID\":\"a2\",\"n\":2},\
    {\"eventID\":\"a1\",\"n\":3}]}\n";

const ARRAY: &str = "[\n{\"id\":1},\n{\"id\":1},\n{\"id\":2}\n]\n";

#[test]
fn records_in_arrays_are_compared_and_what_is_around_them_stays() {
    let directory = tempfile::tempdir().unwrap();
    for (path, key, input, expected) in [
        (
            "Records",
            &["-k", "eventID"][..],
            TRAIL,
            "{\"Records\":[{\"eventID\":\"a1\",\"n\":1},{\"eventID\":\"a2\",\"n\":2}]}\n",
        ),
        (".", &["-k", "id"], ARRAY, "[\n{\"id\":1},\n{\"id\":2}\n]\n"),
        (".", &[], ARRAY, "[\n{\"id\":1},\n{\"id\":2}\n]\n"),
        // The first record that is written has no comma.
        (".", &["-k", "id", "--invert"], ARRAY, "[\n{\"id\":1}\n]\n"),
        (
            ".",
            &["-k", "id", "--keep", "last"],
            ARRAY,
            "[\n{\"id\":1},\n{\"id\":2}\n]\n",
        ),
        (
            ".",
            &["-k", "id", "--keep", "none"],
            ARRAY,
            "[\n{\"id\":2}\n]\n",
        ),
        (".", &["--repeated"], ARRAY, "[\n{\"id\":1}\n]\n"),
        (
            ".",
            &["-k", "id"],
            "[] [ ]\n[{\"id\":1}][{\"id\":1}\n,{\"id\":2}]",
            "[] [ ]\n[{\"id\":1}][\n{\"id\":2}]",
        ),
        (
            "a.b",
            &["-k", "."],
            "{\"n\":[1,1],\"a\":{\"b\":[1,1.0, 2 ,2],\"c\":[1,1]}}",
            "{\"n\":[1,1],\"a\":{\"b\":[1, 2],\"c\":[1,1]}}",
        ),
        (
            ".",
            &["-k", "id", "--missing", "skip"],
            "\u{feff}[{\"id\":1},{},{\"id\":1}]",
            "\u{feff}[{\"id\":1},{}]",
        ),
    ] {
        let format = format!("json:container={path}");
        let path = file(directory.path(), "input", input.as_bytes());
        for more in [
            &[][..],
            &["--read-bytes", "1"],
            &["--threads", "3", "--read-bytes", "9"],
        ] {
            let args = [&["--format", &format], key, more, &[&path]].concat();
            assert_eq!(dedup(&args, b"").text(), expected, "{args:?}");
        }
    }
}

#[test]
fn records_are_counted_without_their_frame() {
    let directory = tempfile::tempdir().unwrap();
    let [dropped, rejects, tags] =
        ["dropped", "rejects", "tags"].map(|name| file(directory.path(), name, b""));
    let input = "{\"Records\":[{\"id\":1},\n{\"x\":2},{\"id\":1}, {\"id\":} ]}\n";
    let args = [
        "dedup",
        "-m",
        "64k",
        "--format",
        "json:container=Records",
        "-k",
        "id",
    ];
    let side = [
        "--duplicates",
        &dropped,
        "--rejects",
        &rejects,
        "--tag-file",
        &tags,
    ];
    let run = echoless(
        &[&args[..], &side, &["--summary=line"]].concat(),
        input.as_bytes(),
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr
            .contains(": 1 fresh, 1 duplicate (25.00 %), 2 rejected"),
        "{}",
        run.stderr
    );
    // With the file of tags, every record passes.
    assert_eq!(
        String::from_utf8(run.stdout).unwrap(),
        "{\"Records\":[{\"id\":1},{\"id\":1} ]}\n"
    );
    assert_eq!(
        fs::read_to_string(&dropped).unwrap(),
        "{\"Records\":[{\"id\":1} ]}\n"
    );
    assert_eq!(
        fs::read_to_string(&rejects).unwrap(),
        "{\"x\":2}\n{\"id\":}\n"
    );
    assert_eq!(fs::read_to_string(&tags).unwrap(), "fresh\nduplicate\n");
}

#[test]
fn an_output_that_ends_early_is_closed() {
    let faulty = "{\"a\":{\"Records\":[{\"id\":1},{\"id\":1},\n{\"n\":2},{\"id\":3}]}}";
    let run = dedup(
        &["--format", "json:container=a.Records", "-k", "id"],
        faulty.as_bytes(),
    );
    assert_eq!(
        run.error(),
        "standard input, line 1: `id` of the key is missing (--missing skip or empty allows that)"
    );
    assert_eq!(
        String::from_utf8(run.stdout).unwrap(),
        "{\"a\":{\"Records\":[{\"id\":1}]}}\n"
    );
    for (input, problem) in [
        (
            "[{\"id\":1},{\"id\":2}",
            "the input ends inside of the value that this is a part of",
        ),
        (
            "[{\"id\":1},{\"id\":2},]",
            "expected a record of the array: byte 1 of the record at byte offset 18",
        ),
        (
            "[{\"id\":1},{\"id\":2} {}]",
            "expected a comma or ] behind a record",
        ),
    ] {
        let run = dedup(
            &["--format", "json:container=.", "-k", "id"],
            input.as_bytes(),
        );
        assert!(run.error().contains(problem), "{}", run.error());
        assert_eq!(
            String::from_utf8(run.stdout).unwrap(),
            "[{\"id\":1},{\"id\":2}]\n"
        );
    }
}

#[test]
fn the_format_that_reads_records_inside_of_one_is_named() {
    for (format, key, input, option) in [
        ("json", "eventID", TRAIL, "json:container=Records"),
        ("jsonl", "eventID", TRAIL, "json:container=Records"),
        ("json", "id", ARRAY, "json:container=."),
        ("jsonl", "id", "[{\"id\":1}]\n", "json:container=."),
    ] {
        let run = dedup(&["--format", format, "-k", key], input.as_bytes());
        assert_eq!(
            run.error(),
            format!(
                "standard input, line 1: `{key}` of the key is missing: --format {option} reads the \
                 records inside of this one"
            )
        );
    }
    // Another record lacks its key.
    let run = dedup(
        &["--format", "json", "-k", "id"],
        b"{\"a\":\"some text\",\"items\":[{}]}",
    );
    assert!(
        run.error()
            .ends_with("(--missing skip or empty allows that)"),
        "{}",
        run.error()
    );
    let args = [
        "dedup",
        "-m",
        "64k",
        "--format",
        "json:container=records",
        "--summary=line",
    ];
    let run = echoless(&args, TRAIL.as_bytes());
    assert_eq!(run.stdout, TRAIL.as_bytes());
    assert!(
        run.stderr
            .contains("has no array on the path of json:container"),
        "{}",
        run.stderr
    );
    assert_errors(
        |args| dedup(args, b""),
        &[
            "--format json:Records | invalid --format=json:Records: expected json or json:container=PATH",
            "--format json:container=a[0] | expected container=PATH with names",
            "--format json:container= | expected container=PATH with names",
            "--format json:container=a --tag | expected fields with delimiters",
            "--format json:container=a --state s | expected a format of records that are not inside",
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every output is what a plain model leaves of the values, whichever records are kept.
    #[test]
    fn outputs_are_valid_json_of_the_records_that_belong_to_them(
        documents in vec((vec(0_u32..6, 0..12), any::<bool>(), 0_usize..3), 1..4),
        size in 1_usize..40,
        threads in 1_usize..4,
        keep in prop::sample::select(vec!["first", "last", "none"]),
    ) {
        let mut input = String::new();
        for (keys, pretty, more) in &documents {
            let records = keys.iter().map(|key| json!({"k": key, "l": [1, {"Records": [1]}]}));
            let value = json!({"Records": records.collect::<Vec<_>>(), "n": vec![0; *more]});
            input += &if *pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
        }
        let all: Vec<u32> = documents.iter().flat_map(|(keys, ..)| keys.clone()).collect();
        let mut seen = HashSet::new();
        let kept: Vec<bool> = all.iter().enumerate().map(|(at, key)| match keep {
            "first" => seen.insert(*key),
            "last" => !all[at + 1..].contains(key),
            _ => all.iter().filter(|other| *other == key).count() == 1,
        }).collect();
        let expected = |wanted: bool| {
            let mut verdicts = kept.iter();
            documents.iter().map(|(keys, _, more)| {
                let keys = keys.iter().filter(|_| verdicts.next() == Some(&wanted));
                let records = keys.map(|key| json!({"k": key, "l": [1, {"Records": [1]}]}));
                json!({"Records": records.collect::<Vec<_>>(), "n": vec![0; *more]})
            }).collect::<Vec<Value>>()
        };
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), "input", input.as_bytes());
        let dropped = file(directory.path(), "dropped", b"");
        let (size, threads) = (size.to_string(), threads.to_string());
        let args = ["--format", "json:container=Records", "-k", "k", "--keep", keep];
        let more = ["--read-bytes", &size, "--threads", &threads, "--duplicates", &dropped, &path];
        let run = dedup(&[&args[..], &more].concat(), b"").bytes();
        for (bytes, wanted) in [(run, true), (fs::read(&dropped).unwrap(), false)] {
            let values = Deserializer::from_slice(&bytes).into_iter::<Value>();
            let values: Result<Vec<Value>, _> = values.collect();
            prop_assert_eq!(values.unwrap(), expected(wanted));
        }
    }
}
