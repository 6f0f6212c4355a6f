//! Verdicts in the records, and in a file beside them.

use serde_json::Value;

use crate::run::{Folder, assert_runs, dedup};

#[test]
fn a_last_field_has_the_verdict() {
    assert_runs(&[
        "--tag | a\nb\na\n | a,fresh\nb,fresh\na,duplicate\n",
        "--tag -d ; | a\r\na\r | a\r;fresh\na\r;duplicate",
        "--tag -z | a\0\0a | a,fresh\0,fresh\0a,duplicate",
        "--csv -k 2 --missing skip --tag | \"1\n\",x\r\n2\r\n3,x\r\n | \"1\n\",x,fresh\r\n2,unjudged\r\n3,x,duplicate\r\n",
        // Blank lines get no fields.
        "--csv --header -k id --tag | id,name\n1,a\n\n1,b\n | id,name,verdict\n1,a,fresh\n\n1,b,duplicate\n",
        "--csv -k 1 --tag | \u{feff}\n1,2\n | \u{feff}\n1,2,fresh\n",
        // The header gets the name.
        "--header -k id --tag | \u{feff}id\n1\n1\n | \u{feff}id,verdict\n1,fresh\n1,duplicate\n",
        "--header -k id --tag=seen | id\n1 | id,seen\n1,fresh",
        // One that has it is rejected.
        "--csv --header -k id --tag | id,verdict\n1,a\n | !! invalid --tag=verdict: expected --tag=NAME with a name that no field of the header has",
        "--csv --header -k id --tag=id | id,verdict\n1,a\n | !! invalid --tag=id: expected --tag=NAME with a name that no field of the header has",
        "--csv --header -k id --tag=v | id,verdict\n1,a\n1,b\n | id,verdict,v\n1,a,fresh\n1,b,duplicate\n",
    ]);
    // The file of duplicates has records as they came.
    let folder = Folder::with(&[("in", "id\n1\n1\n")]);
    let case = "--header --tag --duplicates dropped in | id,verdict\n1,fresh\n1,duplicate\n";
    folder.assert_runs(&[case]);
    assert_eq!(folder.read("dropped"), "id\n1\n");
}

#[test]
fn a_last_member_has_the_verdict() {
    let input = "{}\n {\"a\":[1]} \n{ \"a\" : [1] }\r\n{ }\n";
    let tagged = dedup("--format jsonl -k a --missing skip --tag", input).text();
    let expected = concat!(
        "{\"verdict\":\"unjudged\"}\n",
        " {\"a\":[1],\"verdict\":\"fresh\"} \n",
        "{ \"a\" : [1] ,\"verdict\":\"duplicate\"}\r\n",
        "{ \"verdict\":\"unjudged\"}\n",
    );
    assert_eq!(tagged, expected);
    for (line, tagged) in input.lines().zip(tagged.lines()) {
        let mut value: Value = serde_json::from_str(tagged).unwrap();
        assert!(value.as_object_mut().unwrap().remove("verdict").is_some());
        assert_eq!(value, serde_json::from_str::<Value>(line).unwrap());
    }
}

#[test]
fn json_without_a_verdict_needs_no_room_for_it() {
    let folder = Folder::with(&[("in", "{\"a\":1}\n\n\r\nx}\n[1]\n{\"b\":2}\n{\"a\":1}\n")]);
    let args = "--format jsonl -k a --missing skip --tag";
    let expected = concat!(
        "{\"a\":1,\"verdict\":\"fresh\"}\n\n\r\nx}\n[1]\n",
        "{\"b\":2,\"verdict\":\"unjudged\"}\n",
        "{\"a\":1,\"verdict\":\"duplicate\"}\n",
    );
    folder.assert_runs(&[
        &format!("{args} in | {expected}"),
        // With a file for them, they are set aside as ever. Blank lines are no records.
        &format!(
            "{args} --rejects bad in | {}",
            expected.replace("x}\n[1]\n", "")
        ),
    ]);
    assert_eq!(folder.read("bad"), "x}\n[1]\n");
    // Its own member would be taken for a verdict.
    dedup(args, "{\"verdict\":1}\n").fails("a member with the name");
}

#[test]
fn json_without_room_for_a_member_is_faulty() {
    for (line, message) in [
        ("[1]", "the value is no object"),
        ("{\"a\":1} {}", "invalid JSON at column 9"),
        ("x}", "invalid JSON at column 1"),
        ("{\"verdict\":1}", "a member with the name of --tag"),
        ("{\"v\\u0065rdict\":1}", "a member with the name of --tag"),
    ] {
        let input = format!("{{\"a\":1}}\n{line}\n{{\"a\":1}}\n{{\"a\":2}}\n");
        let folder = Folder::with(&[("in", input)]);
        let run = folder.dedup("--format jsonl --tag in");
        run.fails(message);
        run.fails("line 2");
        let expected = concat!(
            "{\"a\":1,\"verdict\":\"fresh\"}\n",
            "{\"a\":1,\"verdict\":\"duplicate\"}\n",
            "{\"a\":2,\"verdict\":\"fresh\"}\n",
        );
        folder.assert_runs(&[&format!(
            "--format jsonl --tag --rejects bad in | {expected}"
        )]);
        assert_eq!(folder.read("bad"), format!("{line}\n"));
    }
}

#[test]
fn a_file_of_verdicts_serves_every_format() {
    let folder = Folder::with(&[("tags", "the old content, which is longer")]);
    let three = "fresh\nduplicate\nfresh\n";
    for (args, input, expected) in [
        ("--format fixed:1", "aab", three),
        ("--format prefixed:u8", "\x01a\x01a\x01b", three),
        ("", "a\na\nb", three),
        ("--format jsonl", "a\na\nb\n", three),
        ("-k 2 --rejects bad", "1,a\n2\n3,a\n", "fresh\nduplicate\n"),
    ] {
        folder.write("in", input);
        let passed = folder.dedup(format!("{args} --tag-file tags in")).text();
        assert_eq!(passed, input.replace("2\n", ""), "{args}");
        assert_eq!(folder.read("tags"), expected, "{args}");
    }
}
