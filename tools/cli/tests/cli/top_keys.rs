//! `--top-keys`: the keys with the most duplicates.

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

#[test]
fn keys_that_are_not_listed_are_bounded() {
    let cold: String = (0..12_000).map(|key| format!("c{key}\nc{key}\n")).collect();
    let many = format!("{cold}{}", "hot\n".repeat(100));
    let folder = Folder::with(&[("in", "a\nb\na\nc\nb\na\nc\nb\na\nd\n"), ("many", &many)]);
    let unlisted = || {
        folder.json("stats")["unlisted_duplicates_high"]
            .as_u64()
            .unwrap()
    };
    let lines = listed(&folder, "--top 2 --stats stats in");
    assert_eq!(
        (lines, unlisted()),
        (vec![line(3, &["a"]), line(2, &["b"])], 1)
    );
    // More keys than entries of the table.
    let lines = listed(&folder, "--top 1 --stats stats many");
    let count = |name: &str| lines[0][name].as_u64().unwrap();
    assert_eq!(lines[0]["key"][0], "hot");
    assert!((count("duplicates_low")..=count("duplicates_high")).contains(&99));
    assert!((1..99).contains(&unlisted()), "{}", unlisted());
}
