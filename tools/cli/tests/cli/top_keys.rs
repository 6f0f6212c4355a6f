//! `--top-keys`: the keys with the most duplicates.

use std::collections::HashMap;
use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::run::Folder;

/// The lines of the list that a run with these options in the folder writes.
#[track_caller]
fn listed(folder: &Folder, options: &str) -> Vec<Value> {
    let run = |threads: u32| {
        let args = format!("{options} --threads {threads} --top-keys list");
        folder.dedup(args).bytes();
        folder.read("list")
    };
    let list = run(1);
    assert_eq!(list, run(3));
    let lines = list.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The same of this input.
#[track_caller]
fn top_keys(options: &str, input: impl AsRef<[u8]>) -> Vec<Value> {
    listed(&Folder::with(&[("in", input)]), &format!("{options} in"))
}

fn line(duplicates: u64, key: &[&str]) -> Value {
    json!({ "duplicates_low": duplicates, "duplicates_high": duplicates, "key": key })
}

#[test]
fn the_most_frequent_keys_come_first_with_exact_counts() {
    let input = "a\nb\na\nc\nb\na\n";
    assert_eq!(top_keys("", input), [line(2, &["a"]), line(1, &["b"])]);
    assert_eq!(top_keys("--top 1 --invert", input), [line(2, &["a"])]);
    assert_eq!(top_keys("", ""), [] as [Value; 0]);
    assert_eq!(top_keys("", "a\nb\n"), [] as [Value; 0]);
    // Fields by name, as the first duplicate has them; a record without a key has none.
    let csv = b"\xef\xbb\xbft,k,v\n1,x,A\n2,\"x\",a\n3\n3\n4,x,A\n5,\xff\t,z\n6,\xff\t,z\n";
    let found = top_keys("--csv --header -k v,k -i --missing skip", csv);
    assert_eq!(found, [line(2, &["x", "a"]), line(1, &["\\xff\t", "z"])]);
    let json = "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"\\u0078\",\"a\":1.0}\n";
    let found = top_keys("--format jsonl -k a,b", json);
    assert_eq!(found, [line(1, &["1", "\"x\""])]);
    let json = "{\"l\":[1,{\"k\":\"v\"}]}\n{\"l\": [1, {\"k\": \"v\"}]}\n";
    let found = top_keys("--format jsonl -k l", json);
    assert_eq!(found, [line(1, &["[1,{\"k\":\"v\"}]"])]);
    let long = "y".repeat(1000);
    let cut = top_keys("", format!("{long}\n{long}"));
    let key = json!(["y".repeat(256)]);
    assert_eq!((&cut[0]["cut"], &cut[0]["key"]), (&true.into(), &key));
}

#[test]
fn all_selections_count_what_they_call_duplicates() {
    let folder = Folder::with(&[("in", "a\nb\na\nc\nb\na\n"), ("known", "c\nc\nc\n")]);
    for (options, expected) in [
        ("--keep last", &[line(2, &["a"]), line(1, &["b"])][..]),
        ("--unique", &[line(3, &["a"]), line(2, &["b"])]),
        ("--repeated", &[line(2, &["a"]), line(1, &["b"])]),
        (
            "--known known",
            &[line(2, &["a"]), line(1, &["b"]), line(1, &["c"])],
        ),
        // `a` is forgotten before its last record, and `b` before its second one.
        ("--window 2 --filter stamped:bits=64", &[line(1, &["a"])]),
    ] {
        assert_eq!(
            listed(&folder, &format!("{options} in")),
            expected,
            "{options}"
        );
    }
}

#[test]
fn contradictions_are_errors() {
    let folder = Folder::with(&[("in", "a\na\n")]);
    folder.assert_runs(&[
        "--top 5 | !! --top-keys",
        "--top-keys f --top 0 | !! invalid --top=0: expected a whole number from 1 to 10000",
        "--top-keys f --top 10001 | !! invalid --top=10001: expected",
        "--top-keys f --top-keys g | !! cannot be used multiple times",
        "--top-keys in in | !! in: is also an input",
    ]);
    assert_eq!(folder.read("in"), "a\na\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn counts_are_those_of_a_map_or_bounds_of_them(
        hot in vec(0_u64..40, 0..4000),
        cold in prop_oneof![Just(0_u64), 5000_u64..16_000],
        most_lines in 1_usize..60,
    ) {
        // Cold keys come twice; more than 10,000 of them do not fit in the table.
        let mut input = String::new();
        for index in 0..(hot.len() as u64).max(cold) {
            if let Some(key) = hot.get(index as usize) {
                let _ = writeln!(input, "h{}", key * key / 40);
            }
            if index < cold {
                let _ = write!(input, "c{index}\nc{index}\n");
            }
        }
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for key in input.lines() {
            *counts.entry(key).or_default() += 1;
        }
        counts.retain(|_, count| *count > 1);
        let folder = Folder::with(&[("in", &input)]);
        let lines = listed(&folder, &format!("--top {most_lines} --stats stats in"));
        prop_assert_eq!(lines.len(), counts.len().min(most_lines));
        let stats = folder.json("stats");
        let unlisted = stats["unlisted_duplicates_high"].as_u64().unwrap();
        let number = |line: &Value, field: &str| line[field].as_u64().unwrap();
        let exact = counts.len() <= 10_000;
        for line in &lines {
            let key = line["key"][0].as_str().unwrap();
            let (low, high) = (number(line, "duplicates_low"), number(line, "duplicates_high"));
            let count = counts.remove(key).map_or(0, |count| count - 1);
            prop_assert!((low..=high).contains(&count), "{}: {} to {}, not {}", key, low, high, count);
            prop_assert!(!exact || low == high);
        }
        let highs: Vec<u64> = lines.iter().map(|line| number(line, "duplicates_high")).collect();
        prop_assert!(highs.is_sorted_by(|one, next| one >= next));
        let most = counts.values().map(|count| count - 1).max().unwrap_or(0);
        prop_assert!(most <= unlisted, "{} <= {}", most, unlisted);
        prop_assert!(!exact || most == unlisted);
    }
}
