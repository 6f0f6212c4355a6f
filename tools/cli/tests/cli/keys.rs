//! The key of a record: fields, quoting, headers, missing fields.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{Folder, assert_runs, dedup, split_seen};

/// Checks the output for each key.
#[track_caller]
fn assert_keys(args: &str, input: &str, cases: &[(&str, &str)]) {
    for (key, expected) in cases {
        assert_runs(&[&format!("{args} -k {key} | {input} | {expected}")]);
    }
}

#[test]
fn chosen_fields_decide() {
    assert_keys(
        "",
        "1,a,x\n2,a,y\n3,b,x\n1,a,z\n",
        &[
            ("2", "1,a,x\n3,b,x\n"),
            ("1-2", "1,a,x\n2,a,y\n3,b,x\n"),
            ("2,1", "1,a,x\n2,a,y\n3,b,x\n"),
            ("2-", "1,a,x\n2,a,y\n3,b,x\n1,a,z\n"),
            ("3", "1,a,x\n2,a,y\n1,a,z\n"),
        ],
    );
    assert_runs(&[
        "--key 3 | 1,a,x\n2,a,x\n3,b,y\n | 1,a,x\n3,b,y\n",
        // Fields do not merge.
        "-k 1,2 | ab,c\na,bc\n,abc\nabc,\n | ab,c\na,bc\n,abc\nabc,\n",
        // An open range distinguishes numbers of fields.
        "-k 2- | k,a\nk,a,\nk,a,,\nk,a\n | k,a\nk,a,\nk,a,,\n",
    ]);
}

#[test]
fn all_fields_but_some_decide() {
    for key in ["!1,!4", "!4,!1", "2-,!4", "!1,!4-4", "2-3,5"] {
        let lines = "1,x,y,2,z\n3,x,y,4,z\n3,x,w,4,z\n | 1,x,y,2,z\n3,x,w,4,z\n";
        assert_runs(&[&format!("-k {key} | {lines}")]);
    }
    assert_runs(&[
        "--csv --header -k !t | t,a,b\n1,x,y\n2,x,y\n3,\"x\",y\n3,x,z\n3,x\n4,x\n | t,a,b\n1,x,y\n3,x,z\n3,x\n",
        "--format tsv -k !1 | 1\tx\n2\tx\n | 1\tx\n",
        "-w -k !1 | 1  x y\n2 x  y\n | 1  x y\n",
        // The time is in a field that is not compared.
        "-k !1 --window 5s --time-field 1 | 1,x\n2,x\n99,x\n | 1,x\n99,x\n",
        "-k 1,!1 | 1,x\n | !! expected a key with at least one field",
        "-k !name | 1,x\n | !! names require --header",
        "-k ! | 1,x\n | !! names require --header",
    ]);
}

#[test]
fn the_last_fields_decide() {
    let cases = [
        ("-3--2", "1,a,b,c\n"),
        ("-2", "1,a,b,c\n"),
        ("2--2", "1,a,b,c\na,b,d\n"),
        ("1,-1", "1,a,b,c\na,b,d\n2,a,b,e\n"),
        ("!-1,!1", "1,a,b,c\na,b,d\n"),
    ];
    assert_keys("", "1,a,b,c\na,b,d\n2,a,b,e\n", &cases);
    assert_runs(&[
        "-d / -k -1 | x/y/f1\nz/f1\nq/f2\nf1\n | x/y/f1\nq/f2\n",
        "-d/ -k-1 | x/y/f1\nz/f1\nq/f2\nf1\n | x/y/f1\nq/f2\n",
        "--csv -k -1 | a,\"x,1\"\nb,c,\"x,1\"\n | a,\"x,1\"\n",
        "-i -k -1 | a,X\nx\n | a,X\n",
        // A record without the field.
        "-k -2 | a,b\nb\n | a,b\n!! standard input, line 2: field -2 of the key is missing: the record has 1 (--missing skip or empty allows that)",
        "-k -2 --missing skip | a,b\nb\nb\n | a,b\nb\nb\n",
        "-k 1,-2 --missing empty | a,b\nb\nb\n | a,b\nb\n",
        "-k -0 |  | !! invalid --key=`-0",
        "-k -1-2 |  | !! invalid --key=`-",
        "-k -1--2 |  | !! invalid --key=`-",
        "-k -1000001 |  | !! invalid --key=`-",
    ]);
}

#[test]
fn delimiters() {
    for (option, byte) in [
        (";", ';'),
        ("\\t", '\t'),
        ("tab", '\t'),
        ("' '", ' '),
        ("-", '-'),
    ] {
        let input = format!("1{byte}a\n2{byte}a\n1,x{byte}b\n");
        let expected = format!("1{byte}a\n1,x{byte}b\n");
        assert_runs(&[&format!("-d {option} -k 2 | {input} | {expected}")]);
    }
    let run = dedup("-d \\xff -k 2", b"1\xff\xc3\n2\xff\xc3\n3\xff\xc4\n");
    assert_eq!(run.bytes(), b"1\xff\xc3\n3\xff\xc4\n");
    assert_runs(&[
        "-z -d '\n' -k 2 | 1\na\0 2\na\0 3\nb\0 | 1\na\0 3\nb\0",
        "--csv -d ; -k 2 | 1;\"a;b\"\n2;\"a;b\"\n3;a,b\n | 1;\"a;b\"\n3;a,b\n",
    ]);
}

#[test]
fn quoted_fields_are_compared_by_their_content() {
    assert_runs(&[
        "--csv -k 2 | 1,a\n2,\"a\"\n3,\"a\"\"b\"\n4,\"a\"\"b\"\n5,a\"b\n6,\"a,b\"\n7,a,b\n | 1,a\n3,\"a\"\"b\"\n6,\"a,b\"\n",
        "--csv -k 2 | 1,\"x\ny\"\n2,\"x\ny\"\n3,x\n\"\n\",\"\n\"\n4,\"\n\"\n | 1,\"x\ny\"\n3,x\n\"\n\",\"\n\"\n",
        // Whole records are compared as they are written.
        "--csv | a,\"b\nc\"\na,\"b\nc\"\n\"a\",\"b\nc\"\n | a,\"b\nc\"\n\"a\",\"b\nc\"\n",
        "--csv -k 1- | a,\"b\nc\"\na,\"b\nc\"\n\"a\",\"b\nc\"\n | a,\"b\nc\"\n",
    ]);
}

#[test]
fn a_header_passes_and_names_fields() {
    let input = "id,name\n1,a\nid,name\n2,a\nid,name\n";
    let expected = "id,name\n1,a\nid,name\n";
    assert_keys("--header", input, &[("name", expected), ("2", expected)]);
    assert_runs(&[
        "--csv --header -k 'the \"id\"' | \u{feff}\"the \"\"id\"\"\",\"na\nme\"\r\n1,a\r\n1,b\r\n | \u{feff}\"the \"\"id\"\"\",\"na\nme\"\r\n1,a\r\n",
        // Alone it passes, too.
        "--header -k b | a,b | a,b",
        "--header | a,b\n | a,b\n",
    ]);
}

#[test]
fn a_byte_order_mark_without_a_record_behind_it_is_no_fault_of_its_own() {
    let folder = Folder::with(&[("good", "a,1\nb,2\n"), ("open", "\u{feff}\"a,b\n")]);
    for threads in ["1", "2"] {
        assert_runs(&[&format!("--threads {threads} | \u{feff} | \u{feff}")]);
        let run = format!("--csv --threads {threads} good open | a,1\nb,2\n!! quote");
        folder.assert_runs(&[&run]);
    }
}

#[test]
fn a_byte_order_mark_alone_has_no_records_and_before_a_header_it_is_dropped() {
    let good = "id,at\n1,5\n2,6\n1,7\n";
    let folder = Folder::with(&[("mark", "\u{feff}"), ("good", good)]);
    for options in [
        "--csv --header -k id",
        "--csv --header -k 1",
        "--header -k id",
        "--header -k id --window 1m --time-field at",
    ] {
        for threads in ["1", "3"] {
            let args = format!("{options} --threads {threads} --stats stats");
            folder.assert_runs(&[&format!("{args} mark | ")]);
            let stats = folder.json("stats");
            assert_eq!(
                (&stats["records"], &stats["bytes_in"]),
                (&0.into(), &3.into())
            );
            for files in ["mark good", "good mark"] {
                folder.assert_runs(&[&format!("{args} {files} | id,at\n1,5\n2,6\n")]);
            }
        }
    }
    assert_runs(&[
        "--csv -k 2 | \u{feff} | \u{feff}",
        "--format jsonl -k id | \u{feff} | \u{feff}",
        "--window 1m --time-field 1 | \u{feff} | \u{feff}",
    ]);
}

#[test]
fn a_byte_order_mark_is_not_part_of_any_field() {
    let folder = Folder::with(&[
        ("marked", "\u{feff}\"a\nb\",1\n\"a\nb\",2\n"),
        ("plain", "\"a\nb\",3\nc,4\n"),
        ("marked-header", "\u{feff}\"i\nd\",n\n1,a\n"),
        ("header", "\"i\nd\",n\n1,b\n2,b\n"),
    ]);
    folder.assert_runs(&[
        "--csv -k 1 marked plain | \u{feff}\"a\nb\",1\nc,4\n",
        "--csv -k 1 plain marked | \"a\nb\",3\nc,4\n",
        "--csv --header -k 'i\nd' marked-header header | \u{feff}\"i\nd\",n\n1,a\n2,b\n",
        "--csv --header -k 'i\nd' header marked-header | \"i\nd\",n\n1,b\n2,b\n",
    ]);
}

#[test]
fn the_header_of_later_inputs_is_dropped_if_it_is_the_same() {
    let folder = Folder::with(&[
        ("first", "id,name\n1,a\n"),
        ("second", "id,name\r\n2,b\n1,a\n"),
        ("third", "name,id\n2,c\n"),
    ]);
    folder.assert_runs(&[
        "--header --crlf first second | id,name\n1,a\n2,b\n",
        "--header first third | id,name\n1,a\n!! third, line 1: the header differs from that of first",
        "--header --known second first | !! first, line 1: the header differs from that of second by a CR at its end (--crlf and --csv allow that)",
    ]);
}

#[test]
fn a_missing_field_ends_the_run_unless_an_option_allows_it() {
    let folder = Folder::with(&[
        ("first", "1,a\n2,b\n"),
        ("second", "h,h\n3,c\n1,a\n4\n5,d\n"),
    ]);
    folder.assert_runs(&[
        "-k 2 first second | 1,a\n2,b\nh,h\n3,c\n!! second, line 4: field 2 of the key is missing: the record has 1 (--missing skip or empty allows that)",
        "-k 2 first second --missing error | 1,a\n2,b\nh,h\n3,c\n!! second, line 4: field 2 of the key is missing: the record has 1 (--missing skip or empty allows that)",
    ]);
    assert_runs(&[
        // Merged ranges still require their fields.
        "-k 2-5,4- | a,b,c,d,e\na,b,c,d\n | a,b,c,d,e\n!! line 2: field 5 of the key is missing: the record has 4",
        "-k 2,3- --missing empty | 1\n2,\n3,,\n4,,,\n | 1\n4,,,\n",
        // Skipped records pass without a key; an empty field equals a missing one.
        "-k 2 --missing skip | 1,a\n2\n3,a\n2\n4,b\n | 1,a\n2\n2\n4,b\n",
        "-k 2 --missing skip --invert | 1,a\n2\n3,a\n2\n4,b\n | 3,a\n",
        "-k 2,4 --missing empty | 1,,x\n2\n3,\n4,a\n5,,x,y\n6,,,\n | 1,,x\n4,a\n5,,x,y\n",
        "-k 2- --missing empty | 1\n2,\n3,,\n | 1\n3,,\n",
        // Lines are counted where records are not lines.
        "--csv --header -k i | h,i\n\"a\nb\",1\n\"c\n\n\",2\nd\n | h,i\n\"a\nb\",1\n\"c\n\n\",2\n!! standard input, line 7: ",
        "-z -k 2 | a,b\0c\0 | a,b\0!! standard input, record 2: ",
    ]);
    let mut input: String = (0..100_000).map(|i| format!("{i},{i}\n")).collect();
    input.push_str("short\n");
    let run = dedup("-k 2", &input);
    assert!(run.error().starts_with("standard input, line 100001: "));
    assert_eq!(run.stdout, &input.as_bytes()[..input.len() - 6]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn keys_equal_those_of_a_split(
        lines in vec(vec("[ab]{0,2}", 1..5), 0..60),
        first in 1usize..4,
        more in 0usize..3,
    ) {
        let input: String = lines.iter().map(|fields| fields.join(",") + "\n").collect();
        let records: Vec<&[u8]> = input.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
        let key = |record: &[u8]| -> Vec<Vec<u8>> {
            let mut fields: Vec<_> = record[..record.len() - 1]
                .split(|byte| *byte == b',')
                .map(<[u8]>::to_vec)
                .collect();
            fields.resize(fields.len().max(first + more), Vec::new());
            fields[first - 1..first + more].to_vec()
        };
        let (fresh, _) = split_seen(&records, key);
        let range = format!("{first}-{}", first + more);
        let run = dedup(["-k", &range, "--missing", "empty"], input.as_bytes());
        prop_assert_eq!(run.bytes(), fresh);
    }
}

#[test]
fn blank_lines_of_csv_are_no_records() {
    let input = "1,a\n\n2,a\r\n\r\n\"\",b\n,c\n";
    assert_keys(
        "--csv",
        input,
        &[
            ("1", "1,a\n\n2,a\r\n\r\n\"\",b\n"),
            ("2", "1,a\n\n\r\n\"\",b\n,c\n"),
            (
                "2 --blank-lines error",
                "1,a\n!! standard input, line 2: the line is blank (--blank-lines skip or keep allows that)",
            ),
        ],
    );
    assert_keys(
        "--csv --blank-lines keep",
        input,
        &[
            ("1", "1,a\n\n2,a\r\n"),
            (
                "2",
                "1,a\n!! line 2: field 2 of the key is missing: the record has 1",
            ),
        ],
    );
    assert_runs(&[
        "--csv --window 10s --time-field 1 -k 2 | 1,a\n\n2,a\n\n | 1,a\n\n\n",
        // Without a key, and in other formats, a blank line is a record unless the option is given.
        "--csv | \na\n\n | \na\n",
        "-k 2 | \n | !! line 1",
        "--csv --blank-lines skip | \na\n\na\n | \na\n\n",
        // A record of CSV may be blanks.
        "--csv --blank-lines skip | a\n \n\n \n\n | a\n \n\n\n",
        "--csv --blank-lines skip | \"a\"\n \n\n \n\n | \"a\"\n \n\n\n",
    ]);
}

#[test]
fn blank_lines_are_kept_skipped_or_faulty() {
    let input = "a\n\n b\n\n \t\n\r\na\n \t\n";
    assert_runs(&[
        &format!("--blank-lines skip | {input} | a\n\n b\n\n \t\n\r\n \t\n"),
        &format!(" | {input} | a\n\n b\n \t\n\r\n"),
        &format!("--blank-lines keep | {input} | a\n\n b\n \t\n\r\n"),
        &format!("--blank-lines error | {input} | a\n!! line 2: the line is blank"),
        "--blank-lines skip -k 2 | 1,a\n\n2,a\n \n | 1,a\n\n \n",
        "--blank-lines skip --tag | a\n \na\n | a,fresh\n \na,duplicate\n",
        "--format fixed:2 --blank-lines skip |  | !! invalid --blank-lines: expected records of text, not binary ones",
    ]);
}
