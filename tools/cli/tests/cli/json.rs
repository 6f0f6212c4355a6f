//! `--format jsonl`: values on paths, compared by value.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{dedup, echoless, file, split_seen};

pub(crate) const JSON: [&str; 3] = ["--format", "jsonl", "-k"];

fn json(key: &str, input: &str) -> String {
    dedup(&[&JSON[..], &[key]].concat(), input.as_bytes()).text()
}

#[test]
fn json_is_compared_by_value() {
    let input = concat!(
        "{\"id\":1,\"user\":{\"name\":\"A\"}}\n",
        "{ \"user\": {\"name\" : \"\\u0041\"}, \"more\": [1], \"id\": 1.0 }\r\n",
        "{\"id\":\"1\",\"user\":{\"name\":\"A\"}}\n",
        "{\"id\":null,\"user\":{\"name\":\"A\"}}\n",
        "{\"id\":9007199254740992,\"user\":{\"name\":\"A\"}}\n",
        "{\"id\":9007199254740993,\"user\":{\"name\":\"A\"}}\n",
        "{\"id\":2,\"id\":1,\"user\":{\"name\":\"A\"}}",
    );
    let lines: Vec<&str> = input.split_inclusive('\n').collect();
    let expected = [lines[0], lines[2], lines[3], lines[4], lines[5]].concat();
    assert_eq!(json("id,user.name", input), expected);
    assert_eq!(json("user", input), lines[0]);
    assert_eq!(
        json("[1].\"a.b\"", "[0,{\"a.b\":1}]\n[1,{\"a.b\":1}]\n"),
        "[0,{\"a.b\":1}]\n"
    );
    assert_eq!(json(".", "[1,{}]\n [ 1.0, { } ]\n[1]\n"), "[1,{}]\n[1]\n");
    // Without a key, lines are compared as they are written, and are not parsed.
    let plain = dedup(&["--format", "jsonl"], b"{}\n{ }\n{}\nno json\n");
    assert_eq!(plain.text(), "{}\n{ }\nno json\n");
    let marked = "\u{feff}{\"a\":1}\n{\"a\":1}\n";
    assert_eq!(json("a", marked), "\u{feff}{\"a\":1}\n");
}

#[test]
fn all_of_a_value_but_some_paths_decides() {
    let input = concat!(
        "{\"@timestamp\":1,\"m\":{\"x\":1,\"t\":5}}\n",
        "{\"m\":{\"t\":6,\"x\":1.0},\"@timestamp\":2}\n",
        "{\"m\":{\"t\":6,\"x\":1}}\n",
        "{\"@timestamp\":2,\"m\":{\"x\":2}}\n",
        "{\"@timestamp\":2,\"m\":{\"x\":1},\"n\":null}\n",
        "{\"\\u0040timestamp\":7,\"m\":{\"x\":1,\"t\":5}}\n",
        "[1]\n[1.0]\n",
    );
    let lines: Vec<&str> = input.split_inclusive('\n').collect();
    let whole = [lines[0], lines[1], lines[3], lines[4], lines[6]].concat();
    assert_eq!(json("!@timestamp", input), whole);
    let some = [lines[0], lines[3], lines[4], lines[6]].concat();
    assert_eq!(json("!@timestamp,!m.t", input), some);
    assert_eq!(json(".,!m.t,!@timestamp", input), some);
    let of_member = "{\"m\":{\"x\":1,\"t\":5},\"n\":1}\n{\"m\":{\"t\":6,\"x\":1},\"n\":2}\n";
    let first = of_member.split_inclusive('\n').next().unwrap();
    assert_eq!(json("m,!m.t", of_member), first);
    // A member whose name begins with the mark is a JSON string.
    assert_eq!(
        json("\"!a\"", "{\"!a\":1}\n{\"!a\":1,\"b\":2}\n"),
        "{\"!a\":1}\n"
    );
    let run = dedup(&[&JSON[..], &["m,!n"]].concat(), b"");
    let expected = "invalid --key=`!n`: expected a path to a value in one that is compared, such as user,!user.seen";
    assert_eq!(run.error(), expected);
}

#[test]
fn invalid_json_and_missing_members_end_the_run() {
    for (line, message) in [
        ("{\"a\":1", "invalid JSON at column 7: expected `,` or `}`"),
        ("{\"a\":tru}", "invalid JSON at column 6: expected a value"),
        ("x", "invalid JSON at column 1: expected a value"),
        (
            "{\"a\":1}}",
            "invalid JSON at column 8: expected the end of the record after its value",
        ),
        (
            "{\"b\":1}",
            "`a` of the key is missing (--missing skip or empty allows that)",
        ),
    ] {
        let input = format!("{{\"a\":0}}\n{line}\n{{\"a\":2}}\n{{\"a\":2}}\n");
        let run = dedup(&[&JSON[..], &["a"]].concat(), input.as_bytes());
        assert_eq!(run.error(), format!("standard input, line 2: {message}"));
        assert_eq!(run.stdout, b"{\"a\":0}\n");
        let skip = [&JSON[..], &["a", "--missing", "skip"]].concat();
        let expected = format!("{{\"a\":0}}\n{line}\n{{\"a\":2}}\n");
        assert_eq!(dedup(&skip, input.as_bytes()).text(), expected);
    }
    // A missing member equals only another missing one; a record that is not JSON stays an error.
    let empty = [&JSON[..], &["a,b", "--missing", "empty"]].concat();
    let input = "{\"b\":1}\n{\"a\":null,\"b\":1}\n{\"a\":\"\",\"b\":1}\n{\"b\":1.0}\n{\"a\":1}\n";
    let expected = input.replace("{\"b\":1.0}\n", "");
    assert_eq!(dedup(&empty, input.as_bytes()).text(), expected);
    assert!(dedup(&empty, b"{").error().contains("column 2"));
}

#[test]
fn blank_lines_are_no_json() {
    let input = "{\"id\":1}\n\n \t\r\n{\"id\":1}\n\n{\"id\":2}\n";
    let expected = "{\"id\":1}\n\n \t\r\n\n{\"id\":2}\n";
    assert_eq!(json("id", input), expected);
    let keep = [&JSON[..], &["id", "--blank-lines", "keep"]].concat();
    let run = dedup(&keep, input.as_bytes());
    assert!(
        run.error().contains("line 2: invalid JSON at column 1"),
        "{}",
        run.stderr
    );
    let error = [&JSON[..], &["id", "--blank-lines", "error"]].concat();
    let run = dedup(&error, input.as_bytes());
    assert!(
        run.error().contains("line 2: the line is blank"),
        "{}",
        run.stderr
    );
    // Without a key, lines are compared by their bytes.
    assert_eq!(dedup(&["--format", "jsonl"], b"\n{}\n\n").text(), "\n{}\n");
}

#[test]
fn joined_values_are_records() {
    let joined = "{\"id\":1}{\"id\":1.0} {\"id\":2}{\"id\":\n2}";
    let directory = tempfile::tempdir().unwrap();
    let first = file(directory.path(), "first", joined.as_bytes());
    let second = file(
        directory.path(),
        "second",
        b"{\"id\":3}\n{\"id\":1}\n{\"id\":4}",
    );
    let third = file(directory.path(), "third", b"{\"id\":5}\n");
    for threads in ["1", "3"] {
        for reads in ["1", "5", "100000"] {
            let args = [
                "--format",
                "jsonl",
                "-k",
                "id",
                "--threads",
                threads,
                "--read-bytes",
                reads,
            ];
            let run = dedup(&args, joined.as_bytes());
            assert_eq!(run.text(), "{\"id\":1}{\"id\":2}", "{reads}");
            // An input of lines stays one.
            let run = dedup(&[&args[..], &[&first, &second, &third]].concat(), b"");
            let expected = "{\"id\":1}{\"id\":2}{\"id\":3}\n{\"id\":4}\n{\"id\":5}\n";
            assert_eq!(run.text(), expected, "{reads}");
        }
    }
    // The limit is that of a value.
    let args = ["--format", "jsonl", "-k", "id", "--max-record", "20"];
    let many: String = (0..50_000)
        .map(|id| format!("{{\"id\":{}}}", id % 1000))
        .collect();
    let expected: String = (0..1000).map(|id| format!("{{\"id\":{id}}}")).collect();
    assert!(dedup(&args, many.as_bytes()).text() == expected);
    // A first line with one value makes the input lines, and so do records without a key.
    let run = dedup(&args, b"{\"id\":1}\n{\"id\":2}{\"id\":2}\n");
    assert!(
        run.error().contains("line 2: invalid JSON at column 9"),
        "{}",
        run.stderr
    );
    let plain = dedup(&["--format", "jsonl"], b"{}{}\n{}{}\n");
    assert_eq!(plain.text(), "{}{}\n");
    let run = dedup(&args, b"{\"id\":1}\n{\"id\":1}{\n");
    assert!(run.error().contains("line 2: "), "{}", run.stderr);
    // What is wrong is located by bytes: many values are on one line.
    let run = dedup(&args, b"{\"id\":1}{\"id\":1,}{\"id\":3}");
    assert_eq!(
        run.error(),
        "standard input, line 1: expected the name of a member in double quotes: byte 8 of the record at byte offset 8"
    );
    assert_eq!(run.stdout, b"{\"id\":1}");
}

#[test]
fn a_default_filter_is_large_enough_for_joined_values() {
    let directory = tempfile::tempdir().unwrap();
    for (format, values) in [("jsonl", 400_000), ("json", 400_000)] {
        let joined: String = (0..values).map(|id| format!("{{\"id\":{id}}}")).collect();
        let path = file(directory.path(), format, joined.as_bytes());
        let stats = file(directory.path(), "stats", b"");
        let args = [
            "dedup",
            "-q",
            "--format",
            format,
            "-k",
            "id",
            "--stats",
            &stats,
            "-o",
            "/dev/null",
            &path,
        ];
        assert_eq!(echoless(&args, b"").code, 0);
        let stats: Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
        assert_eq!(stats["records"], values, "{format}");
        assert_eq!(stats["evictions"], 0, "{format}");
    }
}

#[test]
fn values_may_have_newlines() {
    let pretty = "{\n  \"id\": 1,\n  \"l\": [\n    \"}\"\n  ]\n}\n{\n  \"id\": 1.0\n}\n\n{\"id\":2}\n7 \"x\" ";
    let args = ["--format", "json", "-k", "id", "--missing", "skip"];
    let kept = pretty.replace("{\n  \"id\": 1.0\n}\n", "");
    for reads in ["1", "3", "100000"] {
        let run = dedup(
            &[&args[..], &["--read-bytes", reads]].concat(),
            pretty.as_bytes(),
        );
        assert_eq!(run.text(), kept, "{reads}");
    }
    let tagged = [&args[..], &["--tag"]].concat();
    let expected = "{\n  \"id\": 1\n,\"verdict\":\"fresh\"}\n{\"id\":1,\"verdict\":\"duplicate\"}";
    let run = dedup(&tagged, b"{\n  \"id\": 1\n}\n{\"id\":1}");
    assert_eq!(run.text(), expected);
    // Without a key, values are compared as they are written.
    let bytes = b"{\n} {\n}\n{}[1]\n[1]";
    assert_eq!(dedup(&["--format", "json"], bytes).text(), "{\n} {}[1]\n");
    // Numbers at the ends of inputs do not run together.
    let directory = tempfile::tempdir().unwrap();
    let [one, two] = [("one", "1"), ("two", "2")]
        .map(|(name, text)| file(directory.path(), name, text.as_bytes()));
    assert_eq!(dedup(&["--format", "json", &one, &two], b"").text(), "1\n2");
    let run = dedup(&args[..4], b"{\"id\":1}\n{\"id\":\n[1}\n");
    assert!(run.error().contains("line 2: "), "{}", run.stderr);
    let rejects = file(directory.path(), "bad", b"");
    let run = dedup(
        &["--format", "json", "-k", "id", "--rejects", &rejects],
        b"{\"id\":1}} {\"id\":2}\n{\"id\":[3}",
    );
    assert_eq!(run.text(), "{\"id\":1}{\"id\":2}\n");
    assert_eq!(fs::read_to_string(&rejects).unwrap(), "} {\"id\":[3}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The model parses every line with serde_json. Its numbers are exact in floating point.
    #[test]
    fn json_output_equals_a_set_of_values(
        members in vec(
            (
                prop::sample::select(vec!["id", "\\u0069d", "x", "user"]),
                prop::sample::select(vec![
                    "1", "1.0", "\"1\"", "null", "true", "{\"name\":1}", "{\"name\":\"\\u0031\"}",
                    "[1,2]", "[1.0, 2e0]", "{}",
                ]),
            ),
            0..80,
        ),
        sizes in vec(0usize..4, 1..40),
    ) {
        let mut members = members.into_iter();
        let lines: Vec<String> = sizes
            .iter()
            .map(|size| {
                let members: Vec<String> = (&mut members)
                    .take(*size)
                    .map(|(name, value)| format!("\"{name}\": {value}"))
                    .collect();
                format!("{{{}}}\n", members.join(", "))
            })
            .collect();
        let records: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let key = |record: &[u8]| {
            let value: Value = serde_json::from_slice(record).unwrap();
            let by_value = |value: Option<&Value>| match value {
                None => "missing".to_owned(),
                Some(value) => value.to_string().replace("1.0", "1").replace("2.0", "2"),
            };
            (by_value(value.get("id")), by_value(value.pointer("/user/name")))
        };
        let (fresh, _) = split_seen(&records, key);
        let args = [&JSON[..], &["id,user.name", "--missing", "empty"]].concat();
        prop_assert_eq!(dedup(&args, lines.concat().as_bytes()).bytes(), fresh);
    }
}
