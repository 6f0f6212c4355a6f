//! `--format jsonl`: values on paths, compared by value.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{dedup, split_seen};

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
fn invalid_json_and_missing_members_end_the_run() {
    for (line, message) in [
        ("{\"a\":1", "invalid JSON at column 7: expected `,` or `}`"),
        ("{\"a\":tru}", "invalid JSON at column 6: expected a value"),
        ("", "invalid JSON at column 1: expected a value"),
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
