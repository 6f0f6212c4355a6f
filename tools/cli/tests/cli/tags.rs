//! Verdicts in the records, and in a file beside them.

use std::fs;

use serde_json::Value;

use crate::run::{assert_errors, dedup, echoless, file};

#[test]
fn a_last_field_has_the_verdict() {
    assert_eq!(
        dedup(&["--tag"], b"a\nb\na\n").text(),
        "a,fresh\nb,fresh\na,duplicate\n"
    );
    assert_eq!(
        dedup(&["--tag", "-d", ";"], b"a\r\na\r").text(),
        "a\r;fresh\na\r;duplicate"
    );
    assert_eq!(
        dedup(&["--tag", "-z"], b"a\0\0a").text(),
        "a,fresh\0,fresh\0a,duplicate"
    );
    let args = ["--csv", "-k", "2", "--missing", "skip", "--tag"];
    let input = b"\"1\n\",x\r\n2\r\n3,x\r\n";
    assert_eq!(
        dedup(&args, input).text(),
        "\"1\n\",x,fresh\r\n2,unjudged\r\n3,x,duplicate\r\n"
    );
}

#[test]
fn the_header_gets_the_name() {
    let args = ["--header", "-k", "id", "--tag"];
    let input = b"\xef\xbb\xbfid\n1\n1\n";
    assert_eq!(
        dedup(&args, input).text(),
        "\u{feff}id,verdict\n1,fresh\n1,duplicate\n"
    );
    let args = ["--header", "-k", "id", "--tag=seen"];
    assert_eq!(dedup(&args, b"id\n1").text(), "id,seen\n1,fresh");
    // The file of duplicates has them as they came.
    let directory = tempfile::tempdir().unwrap();
    let dropped = file(directory.path(), "dropped", b"");
    let args = ["--header", "--tag", "--duplicates", &dropped];
    assert_eq!(
        dedup(&args, b"id\n1\n1\n").text(),
        "id,verdict\n1,fresh\n1,duplicate\n"
    );
    assert_eq!(fs::read(dropped).unwrap(), b"id\n1\n");
}

#[test]
fn a_header_with_the_name_of_the_tag_is_rejected() {
    let input = b"id,verdict\n1,a\n1,b\n";
    for (tag, name) in [("--tag", "verdict"), ("--tag=id", "id")] {
        let run = dedup(&["--csv", "--header", "-k", "id", tag], input);
        assert_eq!(
            run.error(),
            format!(
                "invalid --tag={name}: expected --tag=NAME with a name that no field of the header has"
            )
        );
        assert_eq!(run.stdout, b"");
    }
    let tagged = dedup(&["-q", "--csv", "--header", "-k", "id", "--tag=v"], input);
    assert_eq!(tagged.text(), "id,verdict,v\n1,a,fresh\n1,b,duplicate\n");
}

#[test]
fn a_blank_line_gets_no_fields() {
    let args = ["-q", "--csv", "--header", "-k", "id", "--tag"];
    let tagged = dedup(&args, b"id,name\n1,a\n\n1,b\n").text();
    assert_eq!(tagged, "id,name,verdict\n1,a,fresh\n\n1,b,duplicate\n");
}

#[test]
fn a_blank_line_behind_a_byte_order_mark_stays_blank() {
    let args = ["--csv", "-k", "1", "--tag"];
    let input = "\u{feff}\n1,2\n";
    assert_eq!(
        dedup(&args, input.as_bytes()).text(),
        "\u{feff}\n1,2,fresh\n"
    );
}

#[test]
fn json_without_a_verdict_needs_no_room_for_it() {
    let input = "{\"a\":1}\n\n\r\nx}\n[1]\n{\"b\":2}\n{\"a\":1}\n";
    let args = ["--format", "jsonl", "-k", "a", "--missing", "skip", "--tag"];
    let expected = concat!(
        "{\"a\":1,\"verdict\":\"fresh\"}\n\n\r\nx}\n[1]\n",
        "{\"b\":2,\"verdict\":\"unjudged\"}\n",
        "{\"a\":1,\"verdict\":\"duplicate\"}\n",
    );
    assert_eq!(dedup(&args, input.as_bytes()).text(), expected);
    // With a file for them, they are set aside as ever.
    let directory = tempfile::tempdir().unwrap();
    let bad = file(directory.path(), "bad", b"");
    let rejecting = [&args[..], &["--rejects", &bad]].concat();
    let passed = dedup(&rejecting, input.as_bytes()).text();
    // Blank lines are no records.
    assert_eq!(passed, expected.replace("x}\n[1]\n", ""));
    assert_eq!(fs::read_to_string(bad).unwrap(), "x}\n[1]\n");
    // Its own member would be taken for a verdict.
    let run = dedup(&args, b"{\"verdict\":1}\n");
    assert!(
        run.error().contains("a member with the name"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_last_member_has_the_verdict() {
    let input = "{}\n {\"a\":[1]} \n{ \"a\" : [1] }\r\n{ }\n";
    let args = ["--format", "jsonl", "-k", "a", "--missing", "skip", "--tag"];
    let tagged = dedup(&args, input.as_bytes()).text();
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
fn json_without_room_for_a_member_is_faulty() {
    for (line, message) in [
        ("[1]", "the value is no object"),
        ("{\"a\":1} {}", "invalid JSON at column 9"),
        ("x}", "invalid JSON at column 1"),
        ("{\"verdict\":1}", "a member with the name of --tag"),
        ("{\"v\\u0065rdict\":1}", "a member with the name of --tag"),
    ] {
        let input = format!("{{\"a\":1}}\n{line}\n{{\"a\":1}}\n{{\"a\":2}}\n");
        let args = ["--format", "jsonl", "--tag"];
        let run = dedup(&args, input.as_bytes());
        assert!(run.error().contains(message), "{}", run.error());
        assert!(run.error().contains("line 2"), "{}", run.error());
        let directory = tempfile::tempdir().unwrap();
        let bad = file(directory.path(), "bad", b"");
        let passed = dedup(
            &[&args[..], &["--rejects", &bad]].concat(),
            input.as_bytes(),
        );
        let expected = concat!(
            "{\"a\":1,\"verdict\":\"fresh\"}\n",
            "{\"a\":1,\"verdict\":\"duplicate\"}\n",
            "{\"a\":2,\"verdict\":\"fresh\"}\n",
        );
        assert_eq!(passed.text(), expected);
        assert_eq!(fs::read_to_string(bad).unwrap(), format!("{line}\n"));
    }
}

#[test]
fn a_file_of_verdicts_serves_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let tags = file(
        directory.path(),
        "tags",
        b"the old content, which is longer",
    );
    for (args, input) in [
        (&["--format", "fixed:1"][..], &b"aab"[..]),
        (&["--format", "prefixed:u8"], b"\x01a\x01a\x01b"),
        (&[], b"a\na\nb"),
        (&["--format", "jsonl"], b"a\na\nb\n"),
    ] {
        let args = [args, &["--tag-file", &tags]].concat();
        assert_eq!(dedup(&args, input).bytes(), input);
        assert_eq!(
            fs::read_to_string(&tags).unwrap(),
            "fresh\nduplicate\nfresh\n"
        );
    }
    let bad = file(directory.path(), "bad", b"");
    let args = ["-k", "2", "--tag-file", &tags, "--rejects", &bad];
    assert_eq!(dedup(&args, b"1,a\n2\n3,a\n").text(), "1,a\n3,a\n");
    assert_eq!(fs::read_to_string(&tags).unwrap(), "fresh\nduplicate\n");
}

#[test]
fn tags_do_not_depend_on_threads() {
    let lines = |index: u32| format!("{{\"id\":{}}}\n", index * 7919 % 100_003);
    let input: String = (0..300_000).map(lines).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "in", input.as_bytes());
    let run = |threads| {
        let args = [
            "--format",
            "jsonl",
            "-k",
            "id",
            "--tag",
            "--threads",
            threads,
            &path,
        ];
        echoless(&[&["dedup", "-q", "-m", "8MiB"], &args[..]].concat(), b"").bytes()
    };
    let one = run("1");
    let tagged = String::from_utf8(one.clone()).unwrap();
    let fresh = tagged.lines().filter(|line| line.contains("\"fresh\""));
    assert_eq!(fresh.count(), 100_003);
    assert_eq!(
        tagged
            .replace(",\"verdict\":\"fresh\"", "")
            .replace(",\"verdict\":\"duplicate\"", ""),
        input
    );
    for threads in ["2", "3", "8"] {
        assert!(run(threads) == one, "{threads}");
    }
}

#[test]
fn bad_combinations() {
    assert_errors(
        |args| dedup(args, b""),
        &[
            "--tag --format fixed:2 | --tag-file FILE with any format",
            "--tag=a,b | a name of letters, digits",
            "--tag= | a name of letters, digits",
            "--tag --count | cannot be used with",
            "--tag --invert | cannot be used with",
            "--tag --tag-file x | cannot be used with",
            "--tag-file x --count | cannot be used with",
            "-d ; | --key, --time-field, --tag or --csv",
        ],
    );
}
