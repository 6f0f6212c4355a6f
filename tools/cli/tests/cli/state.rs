//! `dedup --state`: what a later run finds, and what it is told.

use std::fs;
use std::io::Write;
use std::path::Path;

use echoless::{FilterSpec, KeyHasher, SharedSpec};
use serde_json::Value;

use crate::run::{Run, command, echoless, file, run};

/// A folder with a state, inputs and outputs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn path(&self, name: &str) -> String {
        self.folder().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, content: &str) -> String {
        file(self.folder(), name, content.as_bytes())
    }

    fn append(&self, name: &str, content: &str) {
        let path = self.path(name);
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(content.as_bytes()).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A run with the state; arguments that begin with `@` are files in the folder.
    fn run(&self, args: &[&str]) -> Run {
        let path = |arg: &&str| match arg.strip_prefix('@') {
            Some(name) => self.path(name),
            None => (*arg).to_owned(),
        };
        let args: Vec<String> = args.iter().map(path).collect();
        let state = self.path("state");
        let mut all = vec![
            "dedup",
            "-m",
            "64KiB",
            "--summary",
            "line",
            "--state",
            &state,
        ];
        all.extend(args.iter().map(String::as_str));
        run(command(&all))
    }
}

/// What a run says in front of its summary.
fn notes(run: &Run) -> Vec<String> {
    let lines: Vec<&str> = run.stderr.lines().collect();
    let (_, notes) = lines.split_last().unwrap();
    notes.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn later_runs_know_the_records_of_earlier_ones() {
    let place = Place::new();
    place.file("monday", "a\nb\na\n");
    place.file("tuesday", "b\nc\nc\n");
    place.run(&["-q", "-o", "@monday.out", "@monday"]).text();
    place.run(&["-q", "-o", "@tuesday.out", "@tuesday"]).text();
    assert_eq!(place.read("monday.out"), "a\nb\n");
    assert_eq!(place.read("tuesday.out"), "c\n");
}

#[test]
fn inputs_that_were_read_are_skipped_with_a_note_or_read_again() {
    let place = Place::new();
    place.file("one", "a\nb\n");
    place.file("two", "c\n");
    place.run(&["-q", "-o", "@out", "@one"]).text();
    let second = place.run(&["-o", "@out", "@one", "@two"]);
    let one = place.path("one");
    assert_eq!(
        notes(&second),
        [format!(
            "echoless: {one}: skipped, read before (--again reads it again)"
        )]
    );
    assert_eq!(place.read("out"), "a\nb\nc\n");
    let again = place.run(&[
        "-q",
        "--again",
        "--duplicates",
        "@dup",
        "-o",
        "@out",
        "@one",
    ]);
    again.text();
    assert_eq!(place.read("dup"), "a\nb\n");
    assert_eq!(place.read("out"), "a\nb\nc\n");
}

#[test]
fn growing_rotated_and_replaced_inputs_are_recognised() {
    let place = Place::new();
    place.file("log", "a\nb\n");
    place.run(&["-q", "-o", "@out", "@log"]).text();
    place.append("log", "b\nc\n");
    let grown = place.run(&["-o", "@out", "@log"]);
    let log = place.path("log");
    assert_eq!(
        notes(&grown),
        [format!("echoless: {log}: goes on behind byte 4")]
    );
    assert_eq!(place.read("out"), "a\nb\nc\n");
    // Rotation: the old file grows once more under its new name, and there is another one.
    fs::rename(&log, place.path("log.1")).unwrap();
    place.append("log.1", "d\n");
    place.file("log", "d\ne\n");
    place.run(&["-q", "-o", "@out", "@log.1", "@log"]).text();
    assert_eq!(place.read("out"), "a\nb\nc\nd\ne\n");
    // Truncation, and other content of the same length.
    fs::write(&log, "x\ny\n").unwrap();
    let replaced = place.run(&["-o", "@out", "@log"]);
    assert!(notes(&replaced).is_empty(), "{}", replaced.stderr);
    assert_eq!(place.read("out"), "a\nb\nc\nd\ne\nx\ny\n");
}

#[test]
fn a_state_is_shown_with_its_age_options_inputs_and_outputs() {
    let place = Place::new();
    place.file("one", "a\nb\na\n");
    place.file("two", "c\n");
    let shown = |json: &[&str]| {
        let state = place.path("state");
        echoless(&[&["state", "show", &state], json].concat(), b"").text()
    };
    let times = || {
        let shown: serde_json::Value = serde_json::from_str(&shown(&["--json"])).unwrap();
        let time = |name: &str| shown["run"][name].as_u64().unwrap();
        (time("first_commit"), time("last_commit"))
    };
    place.run(&["-q", "--trim", "-o", "@out", "@one"]).text();
    let (first, last) = times();
    assert!(0 < first && first <= last, "{first} {last}");
    place.run(&["-q", "--trim", "-o", "@out", "@two"]).text();
    assert_eq!(times().0, first);
    assert!(times().1 >= last);
    let text = shown(&[]);
    let (one, out) = (place.path("one"), place.path("out"));
    for expected in [
        "memory     64KiB\n",
        "fill       ",
        "fresh      3 keys\n",
        "committed  first 2",
        "Z, last 2",
        "option     --trim\n",
        &format!("input      {one}: 6 bytes, to its end\n"),
        &format!("output     {out}: 6 bytes\n"),
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// Those that programs have written with the library, with their own bytes.
#[test]
fn states_of_other_programs_are_shown() {
    let place = Place::new();
    let hasher = KeyHasher::seeded(0);
    let (shared, lines) = (place.path("shared"), place.path("lines"));
    let spec: SharedSpec = "row4x16:memory=64KiB".parse().unwrap();
    let filter = spec.build().unwrap();
    filter.observe_one(hasher.hash("call 1\n"));
    let file = fs::File::create(&shared).unwrap();
    filter.save(&hasher, b"at 1", file).unwrap();
    let spec: FilterSpec = "fingerprint:memory=64KiB".parse().unwrap();
    let mut filters = [spec.build_lines().unwrap()];
    let file = fs::File::create(&lines).unwrap();
    spec.save(&mut filters, &hasher, b"at call 17", file)
        .unwrap();

    let show = |path: &str| echoless(&["state", "show", path], b"").text();
    let shown = show(&shared);
    let begin = "shared     row4x16:memory=64KiB\nmemory     64KiB\nfill       0.0 %\n";
    assert!(shown.starts_with(begin), "{shown}");
    assert!(shown.contains("\nfresh      1 keys\n"), "{shown}");
    assert!(!shown.contains("observed"), "{shown}");
    assert!(shown.contains("\ndata       4 bytes of another program\n"));
    assert!(show(&lines).contains("\ndata       10 bytes of another program\n"));
    let json = echoless(&["state", "show", "--json", &shared], b"").text();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["spec"], "row4x16:memory=64KiB");
    assert_eq!(json["observed"], Value::Null);
    assert_eq!(
        (&json["caller"], &json["run"]),
        (&"at 1".into(), &Value::Null)
    );
    for path in [&shared, &lines] {
        assert_eq!(echoless(&["state", "verify", path], b"").text(), "");
    }
    let bytes = fs::read(&shared).unwrap();
    fs::write(&shared, &bytes[..bytes.len() - 1]).unwrap();
    let run = echoless(&["state", "verify", &shared], b"");
    assert!(
        run.error().contains("it ends in the end"),
        "{}",
        run.error()
    );
    fs::write(&shared, &bytes).unwrap();
    for args in [
        &["state", "import", &shared, &place.path("folder")][..],
        &["dedup", "--known-state", &shared],
    ] {
        let run = echoless(args, b"");
        let text = "invalid state with a shared filter: expected a filter in lines";
        assert!(run.error().contains(text), "{}", run.error());
    }
}

#[test]
fn the_header_is_remembered_and_new_outputs_begin_with_it() {
    let place = Place::new();
    place.file("one", "id,name\n1,a\n2,b\n");
    let args = ["-q", "--csv", "--header", "-k", "name"];
    let with = |more: &[&'static str]| place.run(&[&args[..], more].concat()).text();
    with(&["-o", "@out", "@one"]);
    place.append("one", "3,b\n4,c\n");
    place.file("two", "id,name\n5,c\n6,d\n");
    with(&["-o", "@out", "--duplicates", "@dup", "@one", "@two"]);
    assert_eq!(place.read("out"), "id,name\n1,a\n2,b\n4,c\n6,d\n");
    assert_eq!(place.read("dup"), "id,name\n3,b\n5,c\n");
    place.file("three", "name,id\na,1\n");
    let three = place.path("three");
    let failed = place.run(&[&args[..], &["-o", "@out", "@three"]].concat());
    assert_eq!(
        failed.error(),
        format!("{three}, line 1: the header differs from that of the state")
    );
    assert_eq!(place.read("out"), "id,name\n1,a\n2,b\n4,c\n6,d\n");
}

#[test]
fn options_that_would_change_keys_or_verdicts_are_rejected_by_name() {
    let place = Place::new();
    place.file("one", "1,a\n2,b\n");
    let state = place.path("state");
    let first = ["-q", "--csv", "-k", "2", "-o", "@out", "@one"];
    place.run(&first).text();
    let cases: [(&[&str], String); 5] = [
        (
            &["--csv", "-k", "1"],
            format!("invalid --key=1: expected --key=2, as in the state {state}"),
        ),
        (
            &["--csv"],
            format!("missing --key: expected --key=2, as in the state {state}"),
        ),
        (
            &["--csv", "-k", "2", "--trim"],
            format!("invalid --trim: expected no --trim, as in the state {state}"),
        ),
        (
            &["--csv", "-k", "2", "--compress", "gzip"],
            format!("invalid --compress=gzip: expected no --compress, as in the state {state}"),
        ),
        (
            &["--csv", "-k", "2", "--keep", "last"],
            "the argument '--state <DIR>' cannot be used with '--keep <first|last|none>'".into(),
        ),
    ];
    for (args, expected) in cases {
        let failed = place.run(&[args, &["-o", "@other", "@one"]].concat());
        assert_eq!(failed.error(), expected);
        assert!(!Path::new(&place.path("other")).exists());
    }
    for (args, expected) in [
        (
            &["-m", "128KiB"][..],
            "invalid --memory=128KiB: expected --memory=64KiB, as in",
        ),
        (
            &["--seed", "1"],
            "invalid --seed: expected that of the keys in",
        ),
        (&["--replacement", "fifo"], "invalid --filter="),
        (&["--dense", "-m", "64KiB"], "invalid --filter="),
        // With the ticks of the window, the filter differs, too.
        (
            &["--window", "1h", "--time-field", "1"],
            "invalid --window=1h: expected no --window, as in",
        ),
    ] {
        let failed = place.run(&[&["--csv", "-k", "2"], args, &["-o", "@other", "@one"]].concat());
        let error = failed.error();
        assert!(error.starts_with(expected), "{error}");
        assert!(error.ends_with(&format!("the state {state}")), "{error}");
    }
    place.run(&first).text();
    assert_eq!(place.read("out"), "1,a\n2,b\n");
}

#[test]
fn what_cannot_have_a_state_is_rejected_before_anything_is_written() {
    let place = Place::new();
    place.file("one", "a\n");
    for (args, expected) in [
        (
            &["--filter", "sbf"][..],
            "expected a filter in lines of its own, not sbf",
        ),
        (
            &["--filter", "rlbsbf:k=2,form=scattered"],
            "expected a filter in lines of its own, not rlbsbf",
        ),
        (
            &["--format", "ber:container=0x61"],
            "expected a format of records that are not inside of other elements",
        ),
        (
            &["--commit-interval", "soon"],
            "invalid --commit-interval=soon",
        ),
    ] {
        let failed = place.run(&[args, &["-o", "@out", "@one"]].concat());
        assert!(failed.error().contains(expected), "{}", failed.stderr);
    }
    assert!(!Path::new(&place.path("out")).exists());
    assert!(!Path::new(&place.path("state")).exists());
}

#[test]
fn a_shorter_output_is_an_error_and_a_new_file_begins_anew() {
    let place = Place::new();
    place.file("one", "a\nb\n");
    place.run(&["-q", "-o", "@out", "@one"]).text();
    place.file("two", "c\n");
    let out = place.path("out");
    fs::OpenOptions::new()
        .write(true)
        .open(&out)
        .unwrap()
        .set_len(1)
        .unwrap();
    let failed = place.run(&["-q", "-o", "@out", "@two"]);
    assert_eq!(
        failed.error(),
        format!(
            "{out}: has 1 bytes, of the 4 that the state has written: move it away to begin \
             another one"
        )
    );
    fs::rename(&out, place.path("out.1")).unwrap();
    place.run(&["-q", "-o", "@out", "@two"]).text();
    assert_eq!(place.read("out"), "c\n");
}

#[test]
fn outputs_of_earlier_runs_go_on_when_they_are_written_again() {
    let place = Place::new();
    place.file("one", "a\na\n");
    place.file("two", "b\nb\n");
    place.file("three", "c\nc\n");
    place
        .run(&["-q", "-o", "@out", "--duplicates", "@dup", "@one"])
        .text();
    place.run(&["-q", "-o", "@other", "@two"]).text();
    place
        .run(&["-q", "-o", "@out", "--duplicates", "@dup", "@three"])
        .text();
    assert_eq!(place.read("out"), "a\nc\n");
    assert_eq!(place.read("dup"), "a\nc\n");
    assert_eq!(place.read("other"), "b\n");
    let (dup, out) = (place.path("dup"), place.path("out"));
    let failed = place.run(&["-q", "-o", "@dup", "--duplicates", "@out", "@three"]);
    assert_eq!(
        failed.error(),
        format!("{dup}: is also the file of --duplicates in the state")
    );
    assert_eq!(fs::read(out).unwrap(), b"a\nc\n");
}

#[test]
fn inputs_are_read_again_once_although_the_run_is_started_twice() {
    let place = Place::new();
    place.file("one", "a\n");
    place.run(&["-q", "-o", "@out", "@one"]).text();
    // A fault ends the run behind the first input.
    place.file("two", "x,y\n");
    place.file("three", "\"never ends\n");
    let again = [
        "-q",
        "--commit-interval",
        "0s",
        "--read-bytes",
        "1",
        "--again",
        "--csv",
    ];
    let fresh = Place::new();
    let args = |place: &Place| {
        let files = ["@one", "@two", "@three"];
        place.run(&[&again[..], &["-o", "@out", "--duplicates", "@dup"], &files].concat())
    };
    for name in ["one", "two", "three"] {
        fresh.file(name, &place.read(name));
    }
    assert!(args(&fresh).error().contains("three"), "a fault");
    let before = fresh.read("dup");
    assert!(args(&fresh).error().contains("three"), "a fault");
    assert_eq!(fresh.read("dup"), before);
    assert_eq!(fresh.read("out"), "a\nx,y\n");
}

#[test]
fn a_header_behind_comment_lines_is_a_header_after_any_stop() {
    for lines in 11..40 {
        let place = Place::new();
        let comments: String = (0..lines)
            .map(|line| format!("# comment {line:100}\n"))
            .collect();
        place.file("one", &format!("{comments}id,name\n1,a\n2,a\n3\n"));
        let args = ["-q", "--csv", "--header", "--comment", "#", "-k", "name"];
        let slow = [
            "--commit-interval",
            "0s",
            "--read-bytes",
            "3",
            "-o",
            "@out",
            "@one",
        ];
        // The last record lacks the key.
        let failed = place.run(&[&args[..], &slow].concat());
        assert!(failed.error().contains("line"), "{}", failed.stderr);
        let path = place.path("one");
        let mended = fs::read_to_string(&path).unwrap() + ",b\n";
        fs::write(&path, mended.replace("3\n,b", "3,b")).unwrap();
        place
            .run(&[&args[..], &["-o", "@out", "@one"]].concat())
            .text();
        let expected = format!("{comments}id,name\n1,a\n3,b\n");
        assert_eq!(place.read("out"), expected, "{lines}");
    }
}

#[test]
fn an_input_is_given_once() {
    let place = Place::new();
    let one = place.file("one", "a\n");
    place.file("two", "b\n");
    let failed = place.run(&["-o", "@out", "@one", "@two", "@one"]);
    assert_eq!(
        failed.error(),
        format!("{one}: is also an input before it, and a state reads each once")
    );
}

#[test]
fn a_second_process_is_rejected() {
    let place = Place::new();
    let state = place.path("state");
    let args = ["dedup", "-q", "-m", "64KiB", "--state", &state];
    let mut first = command(&args).spawn().unwrap();
    let mut stdin = first.stdin.take().unwrap();
    // Until the first one has the lock, the second one could get it.
    while !Path::new(&state).exists() || fs::read_dir(&state).unwrap().count() < 2 {
        std::thread::yield_now();
    }
    let second = echoless(&args, b"a\n");
    assert!(second.error().contains("in use"), "{}", second.stderr);
    stdin.write_all(b"a\n").unwrap();
    drop(stdin);
    assert_eq!(first.wait_with_output().unwrap().stdout, b"a\n");
    assert_eq!(echoless(&args, b"a\nb\n").text(), "b\n");
}

#[test]
fn estimates_and_counts_are_those_of_the_run() {
    let place = Place::new();
    let lines = |from: u64| {
        (from..from + 1000)
            .map(|id| format!("{id}\n"))
            .collect::<String>()
    };
    place.file("one", &lines(0));
    place.file("two", &lines(500));
    place.run(&["-q", "-o", "@out", "@one"]).text();
    place
        .run(&["-q", "--stats", "@stats", "-o", "@out", "@two"])
        .text();
    let stats: serde_json::Value = serde_json::from_str(&place.read("stats")).unwrap();
    assert_eq!(
        (&stats["records"], &stats["duplicates"]),
        (&1000.into(), &500.into())
    );
}

#[test]
fn records_of_files_without_a_last_newline_do_not_run_together() {
    let cases: [(&[&str], [&str; 4], &str); 6] = [
        (&[], ["1", "2", "3", "4"], "1\n2\n3\n4"),
        (&[], ["1\n2", "3\n4", "5", "1"], "1\n2\n3\n4\n5"),
        (&["--crlf"], ["1", "2\r\n3", "3", "4"], "1\r\n2\r\n3\r\n4"),
        (&["-z"], ["1", "2", "3\0", "4"], "1\x002\x003\x004"),
        (
            &["--csv", "-k", "1"],
            ["1,a", "2,\"b\"", "1,c", "4"],
            "1,a\n2,\"b\"\n4",
        ),
        (
            &["--csv", "--header", "-k", "id"],
            ["id,t", "id,t\n1,2", "id,t", "id,t\n3,4\n"],
            "id,t\n1,2\n3,4\n",
        ),
    ];
    for (options, files, expected) in cases {
        for is_compressed in [false, true] {
            let place = Place::new();
            let mut args = [&["-q", "-o", "@out"], options].concat();
            for (name, content) in ["a", "b", "c", "d"].iter().zip(files) {
                let bytes = if is_compressed {
                    zstd::encode_all(content.as_bytes(), 1).unwrap()
                } else {
                    content.as_bytes().to_vec()
                };
                file(place.folder(), name, &bytes);
            }
            args.extend(["@a", "@b", "@c", "@d"]);
            place.run(&args).text();
            // A later terminator of the stream serves the records behind it alone.
            assert_eq!(place.read("out"), expected, "{options:?}, {is_compressed}");
            place.file("e", files[0]);
            let has_header = options.contains(&"--header");
            place.file("f", if has_header { "id,t\n9,9" } else { "9" });
            place.run(&[&args[..], &["@e", "@f"]].concat());
            let lines = |text: &str| {
                text.split(['\n', '\0'])
                    .filter(|line| !line.is_empty())
                    .count()
            };
            assert_eq!(
                lines(&place.read("out")),
                lines(expected) + 1,
                "{options:?}"
            );
        }
    }
}

/// A file that is read as it grows: what each run finds in it, and what is written in the end.
#[test]
fn an_unfinished_last_record_is_one_record() {
    let cases: [(&[&str], &[&str], &str); 9] = [
        (&[], &["x\nabc", "\nfoo\n"], "x\nabc\nfoo\n"),
        (&[], &["x\nab", "c\nfoo\n"], "x\nabc\nfoo\n"),
        (&[], &["abc", "d\nabc\n"], "abcd\nabc\n"),
        (&[], &["x\na", "b", "c", "\n"], "x\nabc\n"),
        (&[], &["x\nabc", "", "\nfoo\n"], "x\nabc\nfoo\n"),
        (
            &["--crlf"],
            &["x\r\nabc", "\r\nfoo\r\n"],
            "x\r\nabc\r\nfoo\r\n",
        ),
        (
            &["--crlf"],
            &["x\r\nabc\r", "\nfoo\r\n"],
            "x\r\nabc\r\nfoo\r\n",
        ),
        (&["-z"], &["x\0a\nb", "\nc\0"], "x\0a\nb\nc\0"),
        (
            &["--csv", "--header", "-k", "id"],
            &["id,t\n1,\"a", "\nb\"\n2,", "c\n"],
            "id,t\n1,\"a\nb\"\n2,c\n",
        ),
    ];
    for (options, parts, expected) in cases {
        let place = Place::new();
        let log = place.file("log", "");
        for (number, part) in parts.iter().enumerate() {
            place.append("log", part);
            let run = place.run(&[&["-q", "-o", "@out"], options, &["@log"]].concat());
            let told = run.stderr;
            assert_eq!(run.code, 0, "{told}");
            let is_last = number + 1 == parts.len();
            let says = ["has no newline yet, and is", "have no newline yet, and are"]
                .iter()
                .any(|words| told.contains(&format!("{words} left to the next run")));
            assert_eq!(
                says,
                !is_last && !part.is_empty(),
                "{options:?} {parts:?}: {told}"
            );
            assert!(told.is_empty() || told.starts_with(&format!("echoless: {log}:")));
        }
        assert_eq!(place.read("out"), expected, "{options:?} {parts:?}");
    }
    // It does not change: it is finished.
    let place = Place::new();
    place.file("log", "x\nabc");
    for expected in ["x\n", "x\nabc", "x\nabc"] {
        place.run(&["-q", "-o", "@out", "@log"]);
        assert_eq!(place.read("out"), expected);
    }
    // Among several inputs it was finished, and has more all the same.
    for (more, expected, warns) in [
        ("\nfoo\n", "x\nabc\ny\nfoo\n", false),
        ("d\nfoo\n", "x\nabc\ny\nabcd\nfoo\n", true),
    ] {
        let place = Place::new();
        place.file("log", "x\nabc");
        place.file("other", "y\n");
        place.run(&["-q", "-o", "@out", "@log", "@other"]).text();
        place.append("log", more);
        let run = place.run(&["-q", "-o", "@out", "@log", "@other"]);
        let told = run.stderr;
        assert_eq!(place.read("out"), expected);
        assert_eq!(
            told.contains("has grown: it is read again"),
            warns,
            "{told}"
        );
    }
}

#[test]
fn more_inputs_than_a_state_knows_are_read_once_in_a_run_that_goes_on() {
    let place = Place::new();
    let count = 10_200;
    let names: Vec<String> = (0..count).map(|number| format!("@{number}")).collect();
    for number in 0..count {
        place.file(&number.to_string(), &format!("{}\n", number / 2));
    }
    place.file("faulty", "\"never ends\n");
    let mut args = vec!["-q", "--csv", "--commit-interval", "1s"];
    args.extend(["--duplicates", "@dup", "-o", "@out"]);
    args.extend(names.iter().map(String::as_str));
    args.push("@faulty");
    assert!(place.run(&args).error().contains("faulty"), "a fault");
    place.file("faulty", "ends\n");
    place.run(&args).text();
    let lines = |name: &str| place.read(name).matches('\n').count();
    assert_eq!((lines("out"), lines("dup")), (count / 2 + 1, count / 2));
}

#[test]
fn files_with_the_same_content_are_different_inputs() {
    let place = Place::new();
    for name in ["a", "b"] {
        place.file(name, "1\n");
    }
    let run = |more: &[&'static str]| {
        let args = ["-q", "-o", "@out", "--duplicates", "@dup"];
        place.run(&[&args[..], more].concat()).text();
        place.read("dup").matches('\n').count()
    };
    assert_eq!(run(&["@a", "@b"]), 1);
    assert_eq!(run(&["@a", "@b"]), 1);
    // Another file is another input while both are there.
    place.file("c", "1\n");
    assert_eq!(run(&["@a", "@b", "@c"]), 2);
    // Copies under the same names are the same inputs.
    for name in ["a", "b", "c"] {
        fs::copy(place.path(name), place.path("copy")).unwrap();
        fs::rename(place.path("copy"), place.path(name)).unwrap();
    }
    assert_eq!(run(&["@a", "@b", "@c"]), 2);
    place.append("b", "2\n");
    assert_eq!(run(&["@a", "@b", "@c"]), 2);
    assert_eq!(place.read("out"), "1\n2\n");
}
