//! `--format json:container=PATH`: records inside of arrays.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Deserializer, Value, json};

use crate::run::{Folder, assert_errors, assert_runs, dedup, echoless};

const TRAIL: &str = "{\"Records\":[{\"eventID\":\"a1\",\"n\":1},{\"eventID\":\"a2\",\"n\":2},\
    {\"eventID\":\"a1\",\"n\":3}]}\n";

const ARRAY: &str = "[\n{\"id\":1},\n{\"id\":1},\n{\"id\":2}\n]\n";

#[test]
fn records_in_arrays_are_compared_and_what_is_around_them_stays() {
    let once = "[\n{\"id\":1},\n{\"id\":2}\n]\n";
    let folder = Folder::new();
    for (options, input, expected) in [
        (
            "Records -k eventID",
            TRAIL,
            "{\"Records\":[{\"eventID\":\"a1\",\"n\":1},{\"eventID\":\"a2\",\"n\":2}]}\n",
        ),
        (". -k id", ARRAY, once),
        (".", ARRAY, once),
        // The first record that is written has no comma.
        (". -k id --invert", ARRAY, "[\n{\"id\":1}\n]\n"),
        (". -k id --keep last", ARRAY, once),
        (". -k id --keep none", ARRAY, "[\n{\"id\":2}\n]\n"),
        (". --repeated", ARRAY, "[\n{\"id\":1}\n]\n"),
        (
            ". -k id",
            "[] [ ]\n[{\"id\":1}][{\"id\":1}\n,{\"id\":2}]",
            "[] [ ]\n[{\"id\":1}][\n{\"id\":2}]",
        ),
        (
            "a.b -k .",
            "{\"n\":[1,1],\"a\":{\"b\":[1,1.0, 2 ,2],\"c\":[1,1]}}",
            "{\"n\":[1,1],\"a\":{\"b\":[1, 2],\"c\":[1,1]}}",
        ),
        (
            ". -k id --missing skip",
            "\u{feff}[{\"id\":1},{},{\"id\":1}]",
            "\u{feff}[{\"id\":1},{}]",
        ),
    ] {
        folder.write("in", input);
        for more in ["", "--read-bytes 1", "--threads 3 --read-bytes 9"] {
            let args = format!("--format json:container={options} {more} in");
            assert_eq!(folder.dedup(&args).text(), expected, "{args}");
        }
    }
}

#[test]
fn records_are_counted_without_their_frame() {
    let input = "{\"Records\":[{\"id\":1},\n{\"x\":2},{\"id\":1}, {\"id\":} ]}\n";
    let folder = Folder::with(&[("in", input)]);
    let run = folder.echoless(
        "dedup -m 64k --format json:container=Records -k id --duplicates dropped \
         --rejects rejects --tag-file tags --summary=line -o out in",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let counts = ": 1 fresh, 1 duplicate (25.00 %), 2 rejected";
    assert!(run.stderr.contains(counts), "{}", run.stderr);
    for (name, expected) in [
        // With the file of tags, every record passes.
        ("out", "{\"Records\":[{\"id\":1},{\"id\":1} ]}\n"),
        ("dropped", "{\"Records\":[{\"id\":1} ]}\n"),
        ("rejects", "{\"x\":2}\n{\"id\":}\n"),
        ("tags", "fresh\nduplicate\n"),
    ] {
        assert_eq!(folder.read(name), expected, "{name}");
    }
}

#[test]
fn an_output_that_ends_early_is_closed() {
    let run = "--format json:container=. -k id |";
    assert_runs(&[
        "--format json:container=a.Records -k id | {\"a\":{\"Records\":[{\"id\":1},{\"id\":1},\n{\"n\":2},{\"id\":3}]}} | {\"a\":{\"Records\":[{\"id\":1}]}}\n!! standard input, line 1: `id` of the key is missing (--missing skip or empty allows that)",
        &format!(
            "{run} [{{\"id\":1}},{{\"id\":2}} | [{{\"id\":1}},{{\"id\":2}}]\n!! the input ends inside of the value that this is a part of"
        ),
        &format!(
            "{run} [{{\"id\":1}},{{\"id\":2}},] | [{{\"id\":1}},{{\"id\":2}}]\n!! expected a record of the array: byte 1 of the record at byte offset 18"
        ),
        &format!(
            "{run} [{{\"id\":1}},{{\"id\":2}} {{}}] | [{{\"id\":1}},{{\"id\":2}}]\n!! expected a comma or ] behind a record"
        ),
    ]);
}

#[test]
fn the_format_that_reads_records_inside_of_one_is_named() {
    for (format, key, input, option) in [
        ("json", "eventID", TRAIL, "json:container=Records"),
        ("jsonl", "eventID", TRAIL, "json:container=Records"),
        ("json", "id", ARRAY, "json:container=."),
        ("jsonl", "id", "[{\"id\":1}]\n", "json:container=."),
    ] {
        let run = dedup(format!("--format {format} -k {key}"), input);
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
        "--format json -k id",
        "{\"a\":\"some text\",\"items\":[{}]}",
    );
    run.fails("(--missing skip or empty allows that)");
    let args = "dedup -m 64k --format json:container=records --summary=line";
    let run = echoless(args, TRAIL);
    assert_eq!(run.stdout, TRAIL.as_bytes());
    let lacks = "has no array on the path of json:container";
    assert!(run.stderr.contains(lacks), "{}", run.stderr);
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
        let folder = Folder::with(&[("in", input)]);
        let args = format!("--format json:container=Records -k k --keep {keep} --threads {threads}");
        let run = folder.dedup(format!("{args} --read-bytes {size} --duplicates dropped in"));
        for (bytes, wanted) in [(run.bytes(), true), (folder.bytes("dropped"), false)] {
            let values = Deserializer::from_slice(&bytes).into_iter::<Value>();
            let values: Result<Vec<Value>, _> = values.collect();
            prop_assert_eq!(values.unwrap(), expected(wanted));
        }
    }
}
