//! `dedup --state`: what a later run finds, and what it is told.

use std::fs;
use std::io::Write;
use std::ops::Range;

use echoless::{FilterSpec, KeyHasher, SharedSpec};
use serde_json::Value;

use crate::run::{Folder, Run, assert_errors, run_on};

/// Runs `dedup` with the state of the folder.
fn dedup(folder: &Folder, args: &str) -> Run {
    folder.echoless(format!(
        "dedup -m 64KiB --summary line --state state {args}"
    ))
}

/// What a run says in front of its summary.
fn notes(run: &Run) -> Vec<String> {
    let lines: Vec<&str> = run.stderr.lines().collect();
    let (_, notes) = lines.split_last().unwrap();
    notes.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn later_runs_know_the_records_of_earlier_ones() {
    let folder = Folder::new();
    folder.write("monday", "a\nb\na\n");
    folder.write("tuesday", "b\nc\nc\n");
    dedup(&folder, "-q -o monday.out monday").text();
    dedup(&folder, "-q -o tuesday.out tuesday").text();
    assert_eq!(folder.read("monday.out"), "a\nb\n");
    assert_eq!(folder.read("tuesday.out"), "c\n");
}

#[test]
fn inputs_that_were_read_are_skipped_with_a_note_or_read_again() {
    let folder = Folder::with(&[("one", "a\nb\n"), ("two", "c\n")]);
    dedup(&folder, "-q -o out one").text();
    let second = dedup(&folder, "-o out one two");
    let skipped = "echoless: one: skipped, read before (--again reads it again)";
    assert_eq!(notes(&second), [skipped]);
    assert_eq!(folder.read("out"), "a\nb\nc\n");
    dedup(&folder, "-q --again --duplicates dup -o out one").text();
    assert_eq!(folder.read("dup"), "a\nb\n");
    assert_eq!(folder.read("out"), "a\nb\nc\n");
}

#[test]
fn a_state_is_shown_with_its_age_options_inputs_and_outputs() {
    let folder = Folder::with(&[("one", "a\nb\na\n"), ("two", "c\n")]);
    let times = || {
        let shown = folder.echoless("state show state --json").text();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let time = |name: &str| shown["run"][name].as_u64().unwrap();
        (time("first_commit"), time("last_commit"))
    };
    dedup(&folder, "-q --trim -o out one").text();
    let (first, last) = times();
    assert!(0 < first && first <= last, "{first} {last}");
    dedup(&folder, "-q --trim -o out two").text();
    assert_eq!(times().0, first);
    assert!(times().1 >= last);
    let text = folder.echoless("state show state").text();
    for expected in [
        "memory     64KiB\n",
        "fill       ",
        "fresh      3 keys\n",
        "committed  first 2",
        "Z, last 2",
        "option     --trim\n",
        "one: 6 bytes, to its end\n",
        "out: 6 bytes\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// Those that programs have written with the library, with their own bytes.
#[test]
fn states_of_other_programs_are_shown() {
    let folder = Folder::new();
    let hasher = KeyHasher::seeded(0);
    let spec: SharedSpec = "row4x16:memory=64KiB".parse().unwrap();
    let filter = spec.build().unwrap();
    filter.observe_one(hasher.hash("call 1\n"));
    let file = fs::File::create(folder.path("shared")).unwrap();
    filter.save(&hasher, b"at 1", file).unwrap();
    let spec: FilterSpec = "fingerprint:memory=64KiB".parse().unwrap();
    let mut filters = [spec.build_lines().unwrap()];
    let file = fs::File::create(folder.path("lines")).unwrap();
    spec.save(&mut filters, &hasher, b"at call 17", file)
        .unwrap();

    let run = |args: &str| folder.echoless(args).text();
    let shown = run("state show shared");
    let begin = "shared     row4x16:memory=64KiB\nmemory     64KiB\nfill       0.0 %\n";
    assert!(shown.starts_with(begin), "{shown}");
    assert!(shown.contains("\nfresh      1 keys\n"), "{shown}");
    assert!(!shown.contains("observed"), "{shown}");
    assert!(shown.contains("\ndata       4 bytes of another program\n"));
    assert!(run("state show lines").contains("\ndata       10 bytes of another program\n"));
    run("state import lines other");
    let text = "other: another program has written it";
    folder.echoless("dedup --state other -m 64KiB").fails(text);
    let json: Value = serde_json::from_str(&run("state show --json shared")).unwrap();
    let found = ["spec", "observed", "caller", "run"].map(|name| &json[name]);
    let expected = [
        "row4x16:memory=64KiB".into(),
        Value::Null,
        "at 1".into(),
        Value::Null,
    ];
    assert_eq!(found, expected.each_ref());
    assert_eq!(run("state verify shared") + &run("state verify lines"), "");
    let bytes = folder.bytes("shared");
    folder.write("cut", &bytes[..bytes.len() - 1]);
    folder
        .echoless("state verify cut")
        .fails("it ends in the end");
    for args in ["state import shared imported", "dedup --known-state shared"] {
        let text = "invalid state with a shared filter: expected a filter in lines";
        folder.echoless(args).fails(text);
    }
}

#[test]
fn the_header_is_remembered_and_new_outputs_begin_with_it() {
    let folder = Folder::with(&[("one", "id,name\n1,a\n2,b\n")]);
    let run = |files: &str| dedup(&folder, &format!("-q --csv --header -k name {files}"));
    run("-o out one").text();
    folder.append("one", "3,b\n4,c\n");
    folder.write("two", "id,name\n5,c\n6,d\n");
    run("-o out --duplicates dup one two").text();
    folder.write("three", "name,id\na,1\n");
    let differs = "three, line 1: the header differs from that of the state";
    assert_eq!(run("-o out three").error(), differs);
    assert_eq!(folder.read("out"), "id,name\n1,a\n2,b\n4,c\n6,d\n");
    assert_eq!(folder.read("dup"), "id,name\n3,b\n5,c\n");
}

#[test]
fn options_that_would_change_keys_or_verdicts_are_rejected_by_name() {
    let folder = Folder::with(&[("one", "1,a\n2,b\n")]);
    let first = "-q --csv -k 2 -o out one";
    dedup(&folder, first).text();
    let run = |args: &[&str]| {
        let failed = dedup(&folder, &format!("{} -o other one", args.join(" ")));
        assert!(!folder.has("other"), "{args:?}");
        failed
    };
    let cases = [
        "--csv -k 1 |= invalid --key=1: expected --key=2, as in the state state",
        "--csv |= missing --key: expected --key=2, as in the state state",
        "--csv -k 2 --trim |= invalid --trim: expected no --trim, as in the state state",
        "--csv -k 2 --compress gzip |= invalid --compress=gzip: expected no --compress, as in the state state",
        "--csv -k 2 -m 128KiB |= invalid --memory=128KiB: expected --memory=64KiB, as in the state state",
        "--csv -k 2 --seed 1 |= invalid --seed: expected that of the keys in the state state",
        "--csv -k 2 --replacement fifo | expected --filter=rowlru:slots=16,bits=32,rows=packed,form=line,memory=64KiB, as in the state state",
        "--csv -k 2 --dense -m 64KiB | expected --filter=rowlru:slots=16,bits=32,rows=packed,form=line,memory=64KiB, as in the state state",
        // With the ticks of the window, the filter differs, too.
        "--csv -k 2 --window 1h --time-field 1 |= invalid --window=1h: expected no --window, as in the state state",
        "--csv -k 2 --keep last |= the argument '--state <DIR>' cannot be used with '--keep <first|last|none>'",
    ];
    assert_errors(run, &cases);
    dedup(&folder, first).text();
    assert_eq!(folder.read("out"), "1,a\n2,b\n");
}

#[test]
fn what_cannot_have_a_state_is_rejected_before_anything_is_written() {
    let folder = Folder::with(&[("one", "a\n")]);
    for (args, expected) in [
        (
            "--filter sbf",
            "expected a filter in lines of its own, not sbf",
        ),
        (
            "--filter rlbsbf:k=2,form=scattered",
            "expected a filter in lines of its own, not rlbsbf",
        ),
        (
            "--format ber:container=0x61",
            "expected a format of records that are not inside of other elements",
        ),
        ("--commit-interval soon", "invalid --commit-interval=soon"),
    ] {
        dedup(&folder, &format!("{args} -o out one")).fails(expected);
        assert!(!folder.has("out") && !folder.has("state"), "{args}");
    }
    let twice = dedup(&folder, "-o out one one");
    assert_eq!(
        twice.error(),
        "one: is also an input before it, and a state reads each once"
    );
}

#[test]
fn a_shorter_output_is_an_error_and_a_new_file_begins_anew() {
    let folder = Folder::with(&[("one", "a\nb\n"), ("two", "c\n")]);
    dedup(&folder, "-q -o out one").text();
    folder.write("out", "a");
    let failed = dedup(&folder, "-q -o out two");
    assert_eq!(
        failed.error(),
        "out: has 1 bytes, of the 4 that the state has written: move it away to begin another one"
    );
    folder.rename("out", "out.1");
    dedup(&folder, "-q -o out two").text();
    assert_eq!(folder.read("out"), "c\n");
}

#[test]
fn outputs_of_earlier_runs_go_on_when_they_are_written_again() {
    let folder = Folder::with(&[("one", "a\na\n"), ("two", "b\nb\n"), ("three", "c\nc\n")]);
    dedup(&folder, "-q -o out --duplicates dup one").text();
    dedup(&folder, "-q -o other two").text();
    dedup(&folder, "-q -o out --duplicates dup three").text();
    for (name, expected) in [("out", "a\nc\n"), ("dup", "a\nc\n"), ("other", "b\n")] {
        assert_eq!(folder.read(name), expected, "{name}");
    }
    let failed = dedup(&folder, "-q -o dup --duplicates out three");
    assert_eq!(
        failed.error(),
        "dup: is also the file of --duplicates in the state"
    );
    assert_eq!(folder.read("out"), "a\nc\n");
}

#[test]
fn inputs_are_read_again_once_although_the_run_is_started_twice() {
    // A fault ends the run behind the first input.
    let folder = Folder::with(&[
        ("one", "a\n"),
        ("two", "x,y\n"),
        ("three", "\"never ends\n"),
    ]);
    let options = "-q --commit-interval 0s --read-bytes 1 --again --csv";
    let args = format!("{options} -o out --duplicates dup one two three");
    dedup(&folder, &args).fails("three");
    let before = folder.read("dup");
    dedup(&folder, &args).fails("three");
    assert_eq!(folder.read("dup"), before);
    assert_eq!(folder.read("out"), "a\nx,y\n");
}

#[test]
fn a_header_behind_comment_lines_is_a_header_after_any_stop() {
    for lines in 11..40 {
        let comments: String = (0..lines)
            .map(|line| format!("# comment {line:100}\n"))
            .collect();
        let records = format!("{comments}id,name\n1,a\n2,a\n3");
        let folder = Folder::with(&[("one", format!("{records}\n"))]);
        let args = "-q --csv --header --comment # -k name -o out one";
        // The last record lacks the key.
        let slow = format!("{args} --commit-interval 0s --read-bytes 3");
        dedup(&folder, &slow).fails("line");
        folder.write("one", format!("{records},b\n"));
        dedup(&folder, args).text();
        let expected = format!("{comments}id,name\n1,a\n3,b\n");
        assert_eq!(folder.read("out"), expected, "{lines}");
    }
}

#[test]
fn a_second_process_is_rejected() {
    let folder = Folder::new();
    let args = "dedup -q -m 64KiB --state state";
    let mut first = folder.command(args).spawn().unwrap();
    let mut stdin = first.stdin.take().unwrap();
    // Until the first one has the lock, the second one could get it.
    while !fs::read_dir(folder.path("state")).is_ok_and(|files| files.count() >= 2) {
        std::thread::yield_now();
    }
    run_on(folder.command(args), b"a\n").fails("in use");
    stdin.write_all(b"a\n").unwrap();
    drop(stdin);
    assert_eq!(first.wait_with_output().unwrap().stdout, b"a\n");
    assert_eq!(run_on(folder.command(args), b"a\nb\n").text(), "b\n");
}

#[test]
fn counts_are_those_of_the_run_beside_the_totals_of_the_state() {
    for compress in ["", "--compress zstd"] {
        let folder = Folder::new();
        let stats = |input: &str, numbers: Range<u32>| -> Value {
            let record = |number: u32| format!("{number},name {number}\n");
            let records: String = numbers.map(record).collect();
            folder.write(input, format!("id,name\n{records}"));
            let length = || fs::metadata(folder.path("out")).map_or(0, |out| out.len());
            let before = length();
            let args = format!("{compress} --csv --header -k name --stats stats -o out {input}");
            dedup(&folder, &format!("-q {args}")).text();
            let (stats, after) = (folder.json("stats"), length());
            assert_eq!(stats["bytes_out"], after - before, "{compress:?}");
            assert_eq!(stats["state_bytes_out"], after, "{compress:?}");
            stats
        };
        let first = stats("one", 0..100);
        assert_eq!(
            (&first["records"], &first["state_records"]),
            (&100.into(), &100.into())
        );
        let second = stats("two", 50..120);
        assert_eq!(
            (&second["records"], &second["state_records"]),
            (&70.into(), &170.into())
        );
        assert_eq!(second["duplicates"], 50);
        assert_eq!(second["state_duplicates"], 50);
        // Nothing new.
        let third = stats("two", 50..120);
        for count in ["records", "fresh", "duplicates", "bytes_in", "bytes_out"] {
            assert_eq!(third[count], 0, "{count}");
        }
        assert_eq!(third["state_records"], 170);
        assert_eq!(third["state_bytes_in"], second["state_bytes_in"]);
    }
}

#[test]
fn records_of_files_without_a_last_newline_do_not_run_together() {
    for (options, files, expected) in [
        ("", ["1", "2", "3", "4"], "1\n2\n3\n4"),
        ("", ["1\n2", "3\n4", "5", "1"], "1\n2\n3\n4\n5"),
        ("--crlf", ["1", "2\r\n3", "3", "4"], "1\r\n2\r\n3\r\n4"),
        ("-z", ["1", "2", "3\0", "4"], "1\x002\x003\x004"),
        (
            "--csv -k 1",
            ["1,a", "2,\"b\"", "1,c", "4"],
            "1,a\n2,\"b\"\n4",
        ),
        (
            "--csv --header -k id",
            ["id,t", "id,t\n1,2", "id,t", "id,t\n3,4\n"],
            "id,t\n1,2\n3,4\n",
        ),
    ] {
        for is_compressed in [false, true] {
            let folder = Folder::new();
            for (name, content) in ["a", "b", "c", "d"].iter().zip(files) {
                match is_compressed {
                    true => folder.write(name, zstd::encode_all(content.as_bytes(), 1).unwrap()),
                    false => folder.write(name, content),
                }
            }
            let args = format!("-q -o out {options} a b c d");
            dedup(&folder, &args).text();
            // A later terminator of the stream serves the records behind it alone.
            assert_eq!(folder.read("out"), expected, "{options}, {is_compressed}");
            folder.write("e", files[0]);
            let has_header = options.contains("--header");
            folder.write("f", if has_header { "id,t\n9,9" } else { "9" });
            dedup(&folder, &format!("{args} e f"));
            let lines = |text: &str| -> usize {
                let lines = text.split(['\n', '\0']);
                lines.filter(|line| !line.is_empty()).count()
            };
            assert_eq!(lines(&folder.read("out")), lines(expected) + 1, "{options}");
        }
    }
}

/// A run ends in front of a value that is not complete, and the next one reads it from there on.
#[test]
fn a_value_that_grows_is_one_record() {
    for options in ["--format json", "--format json --exact"] {
        let folder = Folder::with(&[("in", "")]);
        let parts = ["{\n", "\"a\":1}\n[{\n", "}]\n\"b\n", "\\\"\"\n", "7\n"];
        for (number, part) in parts.iter().enumerate() {
            folder.append("in", part);
            let run = dedup(&folder, &format!("-q -o out {options} in"));
            let ends_inside = number < 3;
            assert_eq!(run.code, if ends_inside { 2 } else { 0 }, "{}", run.stderr);
            let problem = "the input ends inside of a value";
            assert_eq!(run.stderr.contains(problem), ends_inside, "{}", run.stderr);
        }
        assert_eq!(folder.read("out"), parts.concat(), "{options}");
    }
}

#[test]
fn half_of_a_header_is_left_to_the_next_run() {
    for options in ["-d , --header -k id", "--csv --header -k 1 --exact"] {
        let folder = Folder::with(&[("in", "")]);
        for (part, expected) in [
            ("i", ""),
            ("d,t", ""),
            ("ime\n1,a", "id,time\n"),
            ("b\n1,c\n2,d\n", "id,time\n1,ab\n2,d\n"),
        ] {
            folder.append("in", part);
            let run = dedup(&folder, &format!("-q -o out {options} in"));
            assert_eq!(run.code, 0, "{options} {part}: {}", run.stderr);
            assert_eq!(folder.read("out"), expected, "{options} {part}");
            let says = run.stderr.contains("no header ends in its");
            assert_eq!(says, expected.is_empty(), "{}", run.stderr);
        }
    }
}

/// A file that is read as it grows: what each run finds in it, and what is written in the end.
#[test]
fn an_unfinished_last_record_is_one_record() {
    let cases: [(&str, &[&str], &str); 9] = [
        ("", &["x\nabc", "\nfoo\n"], "x\nabc\nfoo\n"),
        ("", &["x\nab", "c\nfoo\n"], "x\nabc\nfoo\n"),
        ("", &["abc", "d\nabc\n"], "abcd\nabc\n"),
        ("", &["x\na", "b", "c", "\n"], "x\nabc\n"),
        ("", &["x\nabc", "", "\nfoo\n"], "x\nabc\nfoo\n"),
        (
            "--crlf",
            &["x\r\nabc", "\r\nfoo\r\n"],
            "x\r\nabc\r\nfoo\r\n",
        ),
        (
            "--crlf",
            &["x\r\nabc\r", "\nfoo\r\n"],
            "x\r\nabc\r\nfoo\r\n",
        ),
        ("-z", &["x\0a\nb", "\nc\0"], "x\0a\nb\nc\0"),
        (
            "--csv --header -k id",
            &["id,t\n1,\"a", "\nb\"\n2,", "c\n"],
            "id,t\n1,\"a\nb\"\n2,c\n",
        ),
    ];
    for (options, parts, expected) in cases {
        let folder = Folder::with(&[("log", "")]);
        for (number, part) in parts.iter().enumerate() {
            folder.append("log", part);
            let run = dedup(&folder, &format!("-q -o out --stats stats {options} log"));
            let told = run.stderr;
            assert_eq!(run.code, 0, "{told}");
            let is_last = number + 1 == parts.len();
            let says = [
                "has no end of a record yet, and is",
                "have no end of a record yet, and are",
            ]
            .iter()
            .any(|words| told.contains(&format!("{words} left to the next run")));
            assert_eq!(
                says,
                !is_last && !part.is_empty(),
                "{options} {parts:?}: {told}"
            );
            assert!(
                told.is_empty() || told.starts_with("echoless: log:"),
                "{told}"
            );
        }
        assert_eq!(folder.read("out"), expected, "{options} {parts:?}");
        // What was left was counted once, by the run that has passed it on; the newline behind a
        // record that was passed on without one is skipped.
        let skipped = parts.iter().filter(|part| part.is_empty()).count();
        let read = (parts.concat().len() - skipped) as u64;
        let stats = folder.json("stats");
        assert_eq!(stats["state_bytes_in"], read, "{options} {parts:?}");
    }
    // It does not change: it is finished.
    let folder = Folder::with(&[("log", "x\nabc")]);
    for expected in ["x\n", "x\nabc", "x\nabc"] {
        dedup(&folder, "-q -o out log");
        assert_eq!(folder.read("out"), expected);
    }
    // Among several inputs it was finished, and has more all the same.
    for (more, expected, warns) in [
        ("\nfoo\n", "x\nabc\ny\nfoo\n", false),
        ("d\nfoo\n", "x\nabc\ny\nabcd\nfoo\n", true),
    ] {
        let folder = Folder::with(&[("log", "x\nabc"), ("other", "y\n")]);
        dedup(&folder, "-q -o out log other").text();
        folder.append("log", more);
        let told = dedup(&folder, "-q -o out log other").stderr;
        assert_eq!(folder.read("out"), expected);
        assert_eq!(
            told.contains("has grown: it is read again"),
            warns,
            "{told}"
        );
    }
}

#[test]
fn more_inputs_than_a_state_knows_are_read_once_in_a_run_that_goes_on() {
    let count = 10_200;
    let folder = Folder::with(&[("faulty", "\"never ends\n")]);
    let mut names = String::new();
    for number in 0..count {
        folder.write(&number.to_string(), format!("{}\n", number / 2));
        names += &format!(" {number}");
    }
    let args = format!("-q --csv --commit-interval 1s --duplicates dup -o out {names} faulty");
    dedup(&folder, &args).fails("faulty");
    folder.write("faulty", "ends\n");
    dedup(&folder, &args).text();
    let lines = |name: &str| folder.read(name).matches('\n').count();
    assert_eq!((lines("out"), lines("dup")), (count / 2 + 1, count / 2));
}

#[test]
fn files_with_the_same_content_are_different_inputs() {
    let folder = Folder::with(&[("a", "1\n"), ("b", "1\n")]);
    let run = |files: &str| {
        dedup(&folder, &format!("-q -o out --duplicates dup {files}")).text();
        folder.read("dup").matches('\n').count()
    };
    assert_eq!([run("a b"), run("a b")], [1, 1]);
    // Another file is another input while both are there.
    folder.write("c", "1\n");
    assert_eq!(run("a b c"), 2);
    // Copies under the same names are the same inputs.
    for name in ["a", "b", "c"] {
        fs::copy(folder.path(name), folder.path("copy")).unwrap();
        folder.rename("copy", name);
    }
    assert_eq!(run("a b c"), 2);
    folder.append("b", "2\n");
    assert_eq!(run("a b c"), 2);
    assert_eq!(folder.read("out"), "1\n2\n");
}
