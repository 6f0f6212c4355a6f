//! What of a record is compared: letters of either case, fields between blanks or several bytes,
//! and the parts that `uniq` skips.

use std::collections::HashSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{Words, assert_errors, assert_runs, command, dedup, run_on};

#[test]
fn letters_of_either_case_are_equal() {
    assert_runs(&[
        "-i | a,B\nA,b\nc,B\n\u{c4}\n\u{e4}\n | a,B\nc,B\n\u{c4}\n\u{e4}\n",
        "--ignore-case -k 2 --missing skip | a,B\nc,b\nx\nX\n | a,B\nx\nX\n",
        // Fields do not merge, and quoted ones have their content.
        "-i --csv -k 1,2 | ab,C\nA,bC\n\"AB\",\"c\"\n | ab,C\nA,bC\n",
        // Lines of JSON are compared by their bytes without a key.
        "-i --format jsonl | {\"a\":1}\n{\"A\":1}\n | {\"a\":1}\n",
        // All languages, if that is asked for.
        "--ignore-case=unicode | Äa\näA\nSTRASSE\nstraße\nΣΑΣ\nσας\n | Äa\nSTRASSE\nΣΑΣ\n",
        "-i=unicode | Äa\näA\nSTRASSE\nstraße\nΣΑΣ\nσας\n | Äa\nSTRASSE\nΣΑΣ\n",
        "-i | Äa\näA\nSTRASSE\nstraße\nΣΑΣ\nσας\n | Äa\näA\nSTRASSE\nstraße\nΣΑΣ\nσας\n",
        // A value is never the next word or the next flag.
        "-iw -k 1 | A x\na  y\n | A x\n",
        // Beside times.
        "-i --window 5s --filter stamped:bits=64 -k 2 --time-field 1 | 1,a\n2,A\n9,a\n | 1,a\n9,a\n",
        "-i --window 5s --filter stamped:bits=64 -k 2- --time-field 1 | 1,a\n2,A\n9,a\n | 1,a\n9,a\n",
        "-i --window 5s --filter stamped:bits=64 --time-field 1 --missing empty | 1,a\n1,A\n | 1,a\n",
    ]);
}

#[test]
fn strings_of_json_are_compared_without_case_and_names_are_not() {
    let input = concat!(
        "{\"e\":\"A@x.org\"}\n",
        "{\"e\":\"a@X.org\"}\n",
        "{\"E\":\"a@x.org\",\"e\":1}\n",
        "{\"e\":[\"\\u0041\"]}\n",
        "{\"e\":[\"a\"]}\n",
        "{\"e\":{\"A\":1}}\n",
        "{\"e\":{\"a\":1}}\n",
        "{\"e\":\" a@x.org\"}\n",
    );
    let lines: Vec<&str> = input.split_inclusive('\n').collect();
    let expected = [lines[0], lines[2], lines[3], lines[5], lines[6], lines[7]].concat();
    let trimmed = [lines[0], lines[2], lines[3], lines[5], lines[6]].concat();
    assert_runs(&[
        &format!("-i --format jsonl -k e | {input} | {expected}"),
        &format!("-i --trim --format jsonl -k e | {input} | {trimmed}"),
    ]);
}

#[test]
fn white_space_at_the_ends_is_trimmed() {
    assert_runs(&[
        "--trim |  a b\na b\r\n\ta b \na  b\n |  a b\na  b\n",
        "--trim -k 2 | 1, a ,x\n2,a,x\n3,\"a \",x\n4,a b,x\n | 1, a ,x\n3,\"a \",x\n4,a b,x\n",
        "--trim --csv -k 2 | 1, a ,x\n2,a,x\n3,\"a \",x\n4,a b,x\n | 1, a ,x\n4,a b,x\n",
        "--trim --max-chars 1 |  a\na\n |  a\n",
    ]);
}

#[test]
fn white_space_separates_fields_as_in_awk() {
    assert_runs(&[
        "-w -k 2 --missing skip |   a  1\nb\t \t1  \na 2\n\n \na\r 1\n |   a  1\na 2\n\n \n",
        "-k -2- --missing empty | alice\nbob\n,bob\nbob,\n | alice\nbob\nbob,\n",
        "-d , -k -2,-1 --missing empty | alice\nalice,\n,alice\n | alice\nalice,\n",
        "--whitespace -k 1 --missing empty |   a  1\nb\t \t1  \na 2\n\n \na\r 1\n |   a  1\nb\t \t1  \n\na\r 1\n",
        "-w -k 1 | a\n \n | a\n!! line 2: field 1 of the key is missing: the record has 0 (--missing skip or empty allows that)",
        "-w --header -k id --tag |  n  id\n1 a\n2\ta\n |  n  id verdict\n1 a fresh\n2\ta duplicate\n",
        // A newline is a blank where it does not end records.
        "-z -w -k 2 | a\nb\0c b\0 | a\nb\0",
    ]);
}

#[test]
fn several_bytes_separate_fields() {
    assert_runs(&[
        "-d || -k 2 --missing skip | 1||a|b\n2||a|b\n3||a\n4|a|b\n | 1||a|b\n3||a\n4|a|b\n",
        "-d \\t\\x7c -k 2 --tag=v | 1\t|a\n2\t|a\n | 1\t|a\t|fresh\n2\t|a\t|duplicate\n",
        "-d \u{b7} -k 2 | 1\u{b7}a\n2\u{b7}a\n | 1\u{b7}a\n",
        // Of two that overlap, the first counts: 1, | and empty.
        "-d || -k 3 | 1|||||\n1||||\n | 1|||||\n1||||\n",
    ]);
}

#[test]
fn a_delimiter_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    for delimiter in [&b"\xff"[..], b"\xff\xfe"] {
        let mut command = command("dedup -q -m 64k -k 2 -d");
        command.arg(OsStr::from_bytes(delimiter));
        let record = |first: &[u8]| [first, delimiter, b"a\n"].concat();
        let input = [record(b"1"), record(b"2")].concat();
        assert_eq!(run_on(command, &input).bytes(), record(b"1"));
    }
}

#[test]
fn fields_and_characters_are_skipped() {
    assert_runs(&[
        "--skip-fields 1 | x  a b\ny  a c\nz a b\n | x  a b\ny  a c\nz a b\n",
        "--skip-fields 1 --max-chars 3 | x  a b\ny  a c\nz a b\n | x  a b\nz a b\n",
        "--max-chars 0 | a\nb\n | a\n",
    ]);
    // Characters are code points, or single bytes that belong to none.
    let input = b"\xc3\xa4b\n\xe2\x82\xacb\n\xffb\n\xc3b\nbb\nbc\n";
    assert_eq!(dedup("--skip-chars 1", input).bytes(), b"\xc3\xa4b\nbc\n");
    let one = dedup("--max-chars 1", input).bytes();
    assert_eq!(one, input[..input.len() - 3]);
}

#[test]
fn contradictions_are_errors() {
    assert_errors(
        |args| dedup(args, b"a\n"),
        &[
            "-w -d ; -k 1 | cannot be used with",
            "-w | invalid --whitespace: expected no delimiter without --key",
            "-w --csv -k 1 | invalid --whitespace: expected lines of fields",
            "-w --format tsv -k 1 | invalid --whitespace: expected no other delimiter",
            "-w --format jsonl -k a | invalid --whitespace: expected no delimiter with",
            "--csv -d || -k 1 | invalid --delimiter=||: expected one byte with --csv",
            "-d a\\n -k 1 | invalid --delimiter=a\\n: expected one byte or more",
            "-d a\\x0a -k 1 | invalid --delimiter=a\\n: expected bytes that neither end",
            "-i --format fixed:2 | invalid --ignore-case: expected records of text",
            "--trim --format ber -k 0x80 | invalid --trim: expected records of text",
            "--max-chars 3 --format prefixed:u8 | invalid --max-chars: expected records",
            "--ignore-case=greek | invalid value 'greek'",
            "--skip-fields 1 -k 1 | cannot be used with",
            "--skip-chars 1 -k 1 | cannot be used with",
            "--max-chars 1 -k 1 | cannot be used with",
            "--max-chars x | invalid --max-chars=x: expected a whole number from 0 to",
            "--skip-chars -1 | invalid --skip-chars=-1: expected a whole number from 0 to",
        ],
    );
}

/// What another program writes, in the C locale; `None` if it is not installed.
fn peer(program: &str, args: &str, input: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new(program)
        .args(args.words())
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let output = thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{program} {args}");
    Some(output.stdout)
}

/// The lines of a text.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Records with blanks, letters of both cases and few distinct values.
fn records() -> impl Strategy<Value = Vec<u8>> {
    vec("[abAB]{0,2}[ \t]{0,2}[aA]{0,2}[ \t]{0,1}[bB]{0,1}", 0..60).prop_map(|records| {
        records
            .iter()
            .flat_map(|record| format!("{record}\n").into_bytes())
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Adjacent records that are equal to `uniq` are equal here, and no others: with a window of
    /// one record, both drop the same ones.
    #[test]
    fn adjacent_records_are_those_of_uniq(
        input in records(),
        ignore_case: bool,
        skip_fields in prop::option::of(0_u32..4),
        skip_chars in prop::option::of(0_u32..4),
        max_chars in prop::option::of(0_u32..5),
    ) {
        let options = [
            ("-f", "--skip-fields", skip_fields),
            ("-s", "--skip-chars", skip_chars),
            ("-w", "--max-chars", max_chars),
        ];
        let case = if ignore_case { "-i" } else { "" };
        let mut theirs = String::from(case);
        let mut ours = format!("--window 1 --refresh --filter stamped:bits=64 {case}");
        for (their, our, value) in options {
            if let Some(value) = value {
                theirs += &format!(" {their} {value}");
                ours += &format!(" {our} {value}");
            }
        }
        let Some(expected) = peer("uniq", &theirs, &input) else {
            eprintln!("skipped: uniq is missing");
            return Ok(());
        };
        prop_assert_eq!(dedup(ours, &input).bytes(), expected);
    }

    #[test]
    fn distinct_records_are_those_of_sort(input in records()) {
        for (theirs, ours) in [("-u", ""), ("-u -f", "-i")] {
            let Some(expected) = peer("sort", theirs, &input) else {
                eprintln!("skipped: sort is missing");
                return Ok(());
            };
            let found = dedup(ours, &input).bytes();
            prop_assert_eq!(lines(&found).len(), lines(&expected).len());
            let folded = |text: &[u8]| -> HashSet<Vec<u8>> {
                lines(text).iter().map(|line| line.to_ascii_lowercase()).collect()
            };
            prop_assert_eq!(folded(&found), folded(&expected));
        }
    }

    #[test]
    fn fields_are_those_of_awk(input in records(), field in 1_usize..4) {
        // A record without the field has an empty one in awk.
        let program = format!("!seen[${field}]++");
        let Some(expected) = peer("awk", &program, &input) else {
            eprintln!("skipped: awk is missing");
            return Ok(());
        };
        let args = format!("-w -k {field} --missing empty");
        prop_assert_eq!(dedup(args, &input).bytes(), expected);
    }
}
