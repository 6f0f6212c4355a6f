//! `dedup --state`: which files the inputs are, after these were changed, copied, replaced and
//! compressed between runs. Files have a long common start, and often the same end.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use crate::codecs::compress;
use crate::run::Folder;

/// Lines that each file begins with: more than any sample of it.
fn common() -> String {
    (0..300)
        .map(|number| format!("acct{number:05},open\n"))
        .collect()
}

/// Runs `dedup --exact` with the state of the folder.
#[track_caller]
fn pass(folder: &Folder, args: &str) -> String {
    let run = folder.echoless(format!(
        "dedup -m 64KiB --exact --state state -o out {args}"
    ));
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stderr
}

/// A file in the place of another one: it has a number of its own.
fn replace(folder: &Folder, name: &str, content: impl AsRef<[u8]>) {
    folder.write("new", content);
    folder.rename("new", name);
}

#[test]
fn a_line_that_changed_in_the_middle_is_found() {
    let (before, after) = (common(), common().replace("00149,open", "00149,shut"));
    type Change = fn(&Folder, &str);
    let changes: [(&str, Change); 4] = [
        ("log", |folder, after| replace(folder, "log", after)),
        ("log", |folder, after| folder.write("log", after)),
        ("log", |folder, after| {
            replace(folder, "log", after.to_owned() + "more\n");
        }),
        ("sub/other", |folder, after| {
            fs::remove_file(folder.path("log")).unwrap();
            fs::create_dir(folder.path("sub")).unwrap();
            folder.write("sub/other", after);
        }),
    ];
    for (number, (name, change)) in changes.into_iter().enumerate() {
        let folder = Folder::with(&[("log", &before)]);
        pass(&folder, "log");
        change(&folder, &after);
        let told = pass(&folder, name);
        assert!(
            folder.read("out").contains("00149,shut\n"),
            "{number}: {told}"
        );
        // Again, there is nothing new.
        let written = folder.read("out");
        assert!(pass(&folder, name).contains("skipped, read before"));
        assert_eq!(folder.read("out"), written);
    }
}

#[test]
fn a_copy_is_known_once_another_file_has_the_number_of_the_original() {
    for options in ["", "--window 10s --time-field 1 -k 2 -d ,"] {
        let folder = Folder::with(&[("log", "100,a\n101,b\n")]);
        pass(&folder, &format!("{options} log"));
        fs::copy(folder.path("log"), folder.path("log.1")).unwrap();
        folder.write("log", "200,c\n201,d\n");
        pass(&folder, &format!("{options} log"));
        let told = pass(&folder, &format!("{options} log.1 log"));
        assert_eq!(folder.read("out"), "100,a\n101,b\n200,c\n201,d\n", "{told}");
        assert_eq!(told.matches("skipped, read before").count(), 2, "{told}");
    }
}

#[test]
fn a_file_of_the_same_length_and_time_is_not_read_again() {
    let (before, after) = (common(), common().replace("00149,open", "00149,shut"));
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    let set_time = |folder: &Folder, time| {
        let file = File::options().append(true).open(folder.path("log"));
        file.unwrap().set_modified(time).unwrap();
    };
    for (time, is_found) in [
        (long_ago, false),
        (long_ago + Duration::from_nanos(1), true),
    ] {
        let folder = Folder::with(&[("log", &before)]);
        set_time(&folder, long_ago);
        pass(&folder, "log");
        folder.write("log", &after);
        set_time(&folder, time);
        let told = pass(&folder, "log");
        assert_eq!(told.contains("skipped, read before"), !is_found, "{told}");
        assert_eq!(folder.read("out").contains("shut"), is_found);
    }
}

#[test]
fn the_second_input_that_a_file_may_be_is_found_too() {
    for codec in [None, Some("gzip")] {
        let content = |text: &str| match codec {
            Some(codec) => compress(codec, text.as_bytes()),
            None => text.as_bytes().to_vec(),
        };
        let first = content(&common());
        let second = content(&common().replace("00149,open", "00149,shut"));
        let folder = Folder::with(&[("log", &first)]);
        pass(&folder, "log");
        folder.write("log", &second);
        pass(&folder, "log");
        replace(&folder, "log", &first);
        let told = pass(&folder, "log");
        assert!(told.contains("skipped, read before"), "{codec:?}: {told}");
    }
}

#[test]
fn an_unended_record_that_was_ended_leaves_the_file_known() {
    for options in ["", "--threads 3"] {
        let folder = Folder::with(&[("log", common() + "abc"), ("other", "y\n".into())]);
        pass(&folder, &format!("{options} log other"));
        folder.append("log", "\n".to_owned() + &common().replace("open", "next"));
        let told = pass(&folder, &format!("{options} log other"));
        assert!(told.contains("log: goes on behind byte"), "{told}");
        let told = pass(&folder, &format!("{options} log other"));
        assert_eq!(told.matches("skipped, read before").count(), 2, "{told}");
        // In part, it is another record.
        folder.append("log", "de");
        pass(&folder, &format!("{options} log other"));
        folder.append("log", "f\n".to_owned() + &common().replace("open", "last"));
        let told = pass(&folder, &format!("{options} log other"));
        assert!(told.contains("has grown: it is read again"), "{told}");
        let told = pass(&folder, &format!("{options} log other"));
        assert_eq!(told.matches("skipped, read before").count(), 2, "{told}");
        assert!(folder.read("out").contains("\ndef\n"));
    }
}

#[test]
fn the_end_of_a_known_file_is_not_left() {
    let folder = Folder::with(&[("known", "a\nb"), ("log", "")]);
    for more in ["", "b\nc\n"] {
        folder.append("log", more);
        pass(&folder, "--known known --stats stats log");
        assert_eq!(folder.json("stats")["bytes_in"], more.len());
    }
    assert_eq!(folder.read("out"), "c\n");
}

type Bytes = &'static [u8];

/// Options, an input that ends inside of a record, what follows there, and the records of both.
const BROKEN: [(&str, Bytes, Bytes, Bytes); 6] = [
    (
        "--format fixed:4",
        b"aaaabbbbcc",
        b"ccdddd",
        b"aaaabbbbccccdddd",
    ),
    (
        "--format prefixed:u8 -k 0",
        b"\x03abc\x03x",
        b"yz\x03q12",
        b"\x03abc\x03xyz\x03q12",
    ),
    (
        "--format lines:2",
        b"a\nb\nc\n",
        b"d\na\nb\ne\nf\n",
        b"a\nb\nc\nd\ne\nf\n",
    ),
    (
        "--csv -k 1",
        b"1,a\n2,\"x\n",
        b"y\"\n3,b\n",
        b"1,a\n2,\"x\ny\"\n3,b\n",
    ),
    (
        "--format json -k a",
        b"{\"a\":1}\n{\"a\":2,\n",
        b"\"b\":3}\n{\"a\":4}\n",
        b"{\"a\":1}\n{\"a\":2,\n\"b\":3}\n{\"a\":4}\n",
    ),
    (
        "--format ber -k 0x80",
        b"\xa0\x03\x80\x01\x01\xa0\x03\x80",
        b"\x01\x02\xa0\x03\x80\x01\x03",
        b"\xa0\x03\x80\x01\x01\xa0\x03\x80\x01\x02\xa0\x03\x80\x01\x03",
    ),
];

/// Runs `dedup` with the state of the folder.
#[track_caller]
fn run(folder: &Folder, args: &str) -> String {
    let run = folder.echoless(format!("dedup -m 64KiB -q --state state -o out {args}"));
    assert_eq!(run.code, 0, "{args}: {}", run.stderr);
    run.stderr
}

#[test]
fn a_record_that_more_may_follow_is_not_set_aside() {
    for (options, first, more, expected) in BROKEN {
        let args = format!("{options} --rejects rejects log");
        let folder = Folder::with(&[("log", first)]);
        let told = run(&folder, &args);
        assert!(told.contains("left to the next run"), "{options}: {told}");
        folder.append("log", more);
        assert_eq!(run(&folder, &args), "");
        assert_eq!(folder.bytes("out"), expected, "{options}");
        assert_eq!(folder.bytes("rejects"), b"", "{options}");
        // Nothing follows: the next run sets it aside, and more makes it a record all the same.
        let folder = Folder::with(&[("log", first)]);
        run(&folder, &args);
        run(&folder, &args);
        check_read_again(&folder, &args, more, expected);
    }
}

/// What follows a record that was set aside makes it one that is read again.
#[track_caller]
fn check_read_again(folder: &Folder, args: &str, more: &[u8], expected: &[u8]) {
    assert_ne!(folder.bytes("rejects"), b"", "{args}");
    folder.append("log", more);
    let told = run(folder, args);
    let says = "has grown: it is read again";
    assert!(told.contains(says), "{args}: {told}");
    assert_eq!(folder.bytes("out"), expected, "{args}");
}

#[test]
fn a_broken_record_of_several_inputs_is_set_aside_and_read_again_once_it_has_grown() {
    for (options, first, more, expected) in BROKEN {
        let folder = Folder::with(&[("log", first), ("other", b"")]);
        let args = format!("{options} --rejects rejects log other");
        assert_eq!(run(&folder, &args), "");
        check_read_again(&folder, &args, more, expected);
    }
}

#[test]
fn the_blank_line_behind_a_paragraph_may_come_later() {
    for first in ["a\n\nc\n", "a\n\nc"] {
        let folder = Folder::with(&[("log", first), ("other", "z\n\n")]);
        let args = "--format paragraphs --duplicates duplicates log other";
        run(&folder, args);
        folder.append("log", &"c\n\nd\n\n"[first.len() - 3..]);
        run(&folder, args);
        assert_eq!(folder.read("duplicates"), "", "{first:?}");
        assert_eq!(folder.read("out"), "a\n\nc\n\nz\n\nd\n\n", "{first:?}");
    }
}

/// What happens to the files `log` and `log.gz`, and to what they have.
#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    /// Another value in a line, in the same file or in another one of its name.
    Change {
        line: prop::sample::Index,
        replaces: bool,
    },
    /// All lines, or those behind the common ones, are others.
    Renew(bool),
    /// Under another name, which is passed once more; the log goes on with the common lines.
    Rename,
    CopyAndTruncate,
    Touch,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_usize..40).prop_map(Step::Append),
        2 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(line, replaces)| Step::Change { line, replaces }),
        1 => any::<bool>().prop_map(Step::Renew),
        1 => Just(Step::Rename),
        1 => Just(Step::CopyAndTruncate),
        1 => Just(Step::Touch),
    ];
    prop::collection::vec(step, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_record_of_any_file_is_lost_or_comes_twice(
        steps in steps(),
        is_compressed: bool,
        codec in prop::sample::select(vec!["gzip", "zstd", "xz"]),
    ) {
        let folder = Folder::new();
        let name = if is_compressed { "log.z" } else { "log" };
        let mut lines: Vec<String> = common().lines().map(str::to_owned).collect();
        let mut next = 0;
        // As long as the common ones.
        let mut line = || {
            next += 1;
            format!("acct{next:05},next")
        };
        let mut inputs = vec![name.to_owned()];
        let mut all = BTreeSet::new();
        for step in [Step::Touch].into_iter().chain(steps) {
            let mut replaces = false;
            match step {
                Step::Append(count) => lines.extend((0..count).map(|_| line())),
                Step::Change { line: at, replaces: by_another } => {
                    *at.get_mut(&mut lines) = line();
                    replaces = by_another;
                }
                Step::Renew(is_whole) => {
                    lines.truncate(if is_whole { 0 } else { 200 });
                    lines.extend((0..50).map(|_| line()));
                }
                Step::Rename => {
                    let other = format!("{name}.{}", inputs.len());
                    folder.rename(name, &other);
                    inputs.insert(0, other);
                    lines.truncate(250);
                }
                Step::CopyAndTruncate => {
                    let other = format!("{name}.{}", inputs.len());
                    fs::copy(folder.path(name), folder.path(&other)).unwrap();
                    inputs.insert(0, other);
                    lines.truncate(250);
                }
                Step::Touch => {}
            }
            let text = lines.join("\n") + "\n";
            let content = match is_compressed {
                true => compress(codec, text.as_bytes()),
                false => text.into_bytes(),
            };
            match replaces {
                true => replace(&folder, name, content),
                false => folder.write(name, content),
            }
            all.extend(lines.iter().cloned());
            let told = pass(&folder, &inputs.join(" "));
            let written = folder.read("out");
            let written: Vec<&str> = written.lines().collect();
            prop_assert_eq!(written.len(), all.len(), "{}", told);
            prop_assert!(written.iter().all(|line| all.contains(*line)), "{}", told);
            // All of them are recognised, and what has grown then goes on.
            let told = pass(&folder, &inputs.join(" "));
            prop_assert_eq!(told.matches("skipped, read before").count(), inputs.len(), "{}", told);
            if !is_compressed {
                lines.extend((0..50).map(|_| line()));
                all.extend(lines.iter().cloned());
                folder.write(name, lines.join("\n") + "\n");
                let told = pass(&folder, &inputs.join(" "));
                prop_assert!(told.contains(&format!("{name}: goes on behind")), "{}", told);
            }
        }
    }
}
