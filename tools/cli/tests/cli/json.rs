//! `--format jsonl`: values on paths, compared by value.

use crate::run::{Folder, assert_runs, assert_runs_with, dedup};

fn json(key: &str, input: &str) -> String {
    dedup(format!("--format jsonl -k {key}"), input).text()
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
    assert_runs(&[
        "--format jsonl -k [1].\"a.b\" | [0,{\"a.b\":1}]\n[1,{\"a.b\":1}]\n | [0,{\"a.b\":1}]\n",
        "--format jsonl -k . | [1,{}]\n [ 1.0, { } ]\n[1]\n | [1,{}]\n[1]\n",
        "--format jsonl -k a | \u{feff}{\"a\":1}\n{\"a\":1}\n | \u{feff}{\"a\":1}\n",
        // Without a key, lines are compared as they are written, and are not parsed.
        "--format jsonl | {}\n{ }\n{}\nno json\n | {}\n{ }\nno json\n",
    ]);
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
    assert_runs(&[
        // A member whose name begins with the mark is a JSON string.
        "--format jsonl -k \"!a\" | {\"!a\":1}\n{\"!a\":1,\"b\":2}\n | {\"!a\":1}\n",
        "--format jsonl -k m,!n |  | !! invalid --key=`!n`: expected a path to a value in one that is compared, such as user,!user.seen",
    ]);
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
        let (first, last) = ("{\"a\":0}\n", "{\"a\":2}\n");
        let case = format!("| {first}{line}\n{last}{last} | {first}");
        assert_runs(&[
            &format!("--format jsonl -k a {case}!! standard input, line 2: {message}"),
            &format!("--format jsonl -k a --missing skip {case}{line}\n{last}"),
        ]);
    }
    // A missing member equals only another missing one; a record that is not JSON stays an error.
    let input = "{\"b\":1}\n{\"a\":null,\"b\":1}\n{\"a\":\"\",\"b\":1}\n{\"b\":1.0}\n{\"a\":1}\n";
    let expected = input.replace("{\"b\":1.0}\n", "");
    assert_runs(&[
        &format!("--format jsonl -k a,b --missing empty | {input} | {expected}"),
        "--format jsonl -k a,b --missing empty | { | !! column 2",
    ]);
}

#[test]
fn blank_lines_are_no_json() {
    let input = "{\"id\":1}\n\n \t\r\n{\"id\":1}\n\n{\"id\":2}\n";
    let args = "--format jsonl -k id";
    assert_runs(&[
        &format!("{args} | {input} | {{\"id\":1}}\n\n \t\r\n\n{{\"id\":2}}\n"),
        &format!(
            "{args} --blank-lines keep | {input} | {{\"id\":1}}\n!! line 2: invalid JSON at column 1"
        ),
        &format!(
            "{args} --blank-lines error | {input} | {{\"id\":1}}\n!! line 2: the line is blank"
        ),
        // Without a key, lines are compared by their bytes.
        "--format jsonl | \n{}\n\n | \n{}\n",
        // Between values that may have many lines, they never are records.
        "--format json | {}\n\n[]\n\n{}\n | {}\n\n[]\n\n",
    ]);
}

#[test]
fn joined_values_are_records() {
    let joined = "{\"id\":1}{\"id\":1.0} {\"id\":2}{\"id\":\n2}";
    let folder = Folder::with(&[
        ("first", joined),
        ("second", "{\"id\":3}\n{\"id\":1}\n{\"id\":4}"),
        ("third", "{\"id\":5}\n"),
    ]);
    let args = "--format jsonl -k id";
    for threads in ["1", "3"] {
        for reads in ["1", "5", "100000"] {
            let args = format!("{args} --threads {threads} --read-bytes {reads}");
            folder.assert_runs(&[
                &format!("{args} first | {{\"id\":1}}{{\"id\":2}}"),
                // An input of lines stays one.
                &format!("{args} first second third | {{\"id\":1}}{{\"id\":2}}{{\"id\":3}}\n{{\"id\":4}}\n{{\"id\":5}}\n"),
            ]);
        }
    }
    // The limit is that of a value.
    let many: String = (0..50_000)
        .map(|id| format!("{{\"id\":{}}}", id % 1000))
        .collect();
    let expected: String = (0..1000).map(|id| format!("{{\"id\":{id}}}")).collect();
    assert!(dedup(format!("{args} --max-record 20"), many).text() == expected);
    assert_runs(&[
        // A first line with one value makes the input lines, and so do records without a key.
        "--format jsonl -k id | {\"id\":1}\n{\"id\":2}{\"id\":2}\n | {\"id\":1}\n!! line 2: invalid JSON at column 9",
        "--format jsonl | {}{}\n{}{}\n | {}{}\n",
        "--format jsonl -k id | {\"id\":1}\n{\"id\":1}{\n | {\"id\":1}\n!! line 2: ",
        // What is wrong is located by bytes: many values are on one line.
        "--format jsonl -k id | {\"id\":1}{\"id\":1,}{\"id\":3} | {\"id\":1}!! standard input, line 1: expected the name of a member in double quotes: byte 8 of the record at byte offset 8",
    ]);
}

#[test]
fn a_default_filter_is_large_enough_for_joined_values() {
    let values = 400_000;
    let joined: String = (0..values).map(|id| format!("{{\"id\":{id}}}")).collect();
    let folder = Folder::with(&[("in", joined)]);
    for format in ["jsonl", "json"] {
        let args = format!("dedup -q --format {format} -k id --stats stats -o /dev/null in");
        assert_eq!(folder.echoless(args).code, 0);
        let stats = folder.json("stats");
        assert_eq!(stats["records"], values, "{format}");
        assert_eq!(stats["evictions"], 0, "{format}");
    }
}

#[test]
fn values_may_have_newlines() {
    let pretty = "{\n  \"id\": 1,\n  \"l\": [\n    \"}\"\n  ]\n}\n{\n  \"id\": 1.0\n}\n\n{\"id\":2}\n7 \"x\" ";
    let kept = pretty.replace("{\n  \"id\": 1.0\n}\n", "");
    assert_runs_with(
        &["--read-bytes 1", "--read-bytes 3", ""],
        &[&format!(
            "--format json -k id --missing skip | {pretty} | {kept}"
        )],
    );
    assert_runs(&[
        "--format json -k id --tag | {\n  \"id\": 1\n}\n{\"id\":1} | {\n  \"id\": 1\n,\"verdict\":\"fresh\"}\n{\"id\":1,\"verdict\":\"duplicate\"}",
        // Without a key, values are compared as they are written.
        "--format json | {\n} {\n}\n{}[1]\n[1] | {\n} {}[1]\n",
        "--format json -k id | {\"id\":1}\n{\"id\":\n[1}\n | {\"id\":1}\n!! line 2: ",
    ]);
    let folder = Folder::with(&[
        ("one", "1"),
        ("two", "2"),
        ("bad", "{\"id\":1}} {\"id\":2}\n{\"id\":[3}"),
    ]);
    folder.assert_runs(&[
        // Numbers at the ends of inputs do not run together.
        "--format json one two | 1\n2",
        "--format json -k id --rejects rejects bad | {\"id\":1}{\"id\":2}\n",
    ]);
    assert_eq!(folder.read("rejects"), "} {\"id\":[3}");
}
