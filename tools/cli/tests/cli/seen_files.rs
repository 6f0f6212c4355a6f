//! `--skip-seen-files`: files whose content an earlier run has read are not read again.

use serde_json::Value;

use crate::codecs::compress;
use crate::packets_support::numbered;
use crate::run::{Folder, Run};

/// Runs `dedup` with the list `seen`.
fn listed(folder: &Folder, args: &str) -> Run {
    folder.dedup(format!("--skip-seen-files seen {args}"))
}

/// The lines of the list.
fn lines(folder: &Folder) -> Vec<String> {
    folder.read("seen").lines().map(str::to_owned).collect()
}

#[test]
fn a_file_is_read_by_one_run() {
    let folder = Folder::with(&[("one", "a\nb\n"), ("copy", "a\nb\n"), ("two", "b\nc\n")]);
    assert_eq!(listed(&folder, "one").text(), "a\nb\n");
    let expected = format!("{} 4 one", blake3::hash(b"a\nb\n"));
    assert_eq!(lines(&folder), [expected.as_str()]);
    // The content counts, not the name; the filter of a run starts empty.
    assert_eq!(listed(&folder, "copy two one").text(), "b\nc\n");
    assert_eq!(lines(&folder).len(), 2);
    assert_eq!(lines(&folder)[0], expected);
    assert_eq!(listed(&folder, "one two copy").text(), "");
    // A file that has changed is another.
    folder.write("one", "a\nb\nd\n");
    assert_eq!(listed(&folder, "one two").text(), "a\nb\nd\n");
    // So is a compressed one.
    folder.write("zipped", compress("gzip", b"a\nb\n"));
    assert_eq!(listed(&folder, "zipped").text(), "a\nb\n");
    assert_eq!(lines(&folder).len(), 4);
    assert_eq!(folder.names(), ["copy", "one", "seen", "two", "zipped"]);
}

#[test]
fn the_second_of_two_equal_inputs_is_skipped() {
    let folder = Folder::with(&[("one", "a\na\n"), ("copy", "a\na\n")]);
    let args = "dedup --skip-seen-files seen --stats stats one copy";
    let run = folder.echoless(args);
    assert_eq!((run.code, run.stdout.as_slice()), (0, &b"a\n"[..]));
    let told: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(told[0], "echoless: copy: skipped, seen before as one");
    assert!(told[1].contains("2 records (4 B)"), "{}", told[1]);
    let skipped = "echoless: 1 of 2 files skipped: their content was seen before";
    assert_eq!(told[2], skipped);
    let stats = folder.json("stats");
    assert_eq!(
        (&stats["skipped_files"], &stats["bytes_in"]),
        (&1.into(), &4.into())
    );
    assert_eq!(lines(&folder).len(), 1);
    let line = folder.echoless(format!("{args} --summary=line -o /dev/null"));
    let last = line.stderr.lines().last().unwrap();
    assert!(
        last.ends_with("0 duplicates (0.00 %); 2 of 2 files skipped"),
        "{last}"
    );
    // Without the option there is no such field.
    let run = folder.dedup("--stats - -o /dev/null one");
    let stats: Value = serde_json::from_slice(&run.bytes()).unwrap();
    assert_eq!(stats.get("skipped_files"), None);
}

#[test]
fn a_run_that_does_not_end_well_leaves_the_list_as_it_is() {
    let cut = compress("zstd", b"c\n");
    let folder = Folder::with(&[
        ("good", &b"a,1\n"[..]),
        ("bad", b"b,1\nno field\n"),
        ("cut", &cut[..cut.len() - 2]),
        ("twice", b"d\nd\n"),
    ]);
    // One that fails leaves no new list, either.
    let missing = "bad, line 2: field 2 of the key is missing: the record has 1 (--missing skip or \
                   empty allows that)";
    listed(&folder, "-k 2 bad").fails_with(missing);
    listed(&folder, "-o seen good").fails_with("seen: is also a file that an option reads");
    assert!(!folder.has("seen"));
    assert_eq!(listed(&folder, "good").text(), "a,1\n");
    let before = lines(&folder);
    listed(&folder, "-k 2 bad").fails_with(missing);
    listed(&folder, "cut").fails("cut or damaged");
    assert_eq!(lines(&folder), before);
    // Duplicates are no failure.
    let run = listed(&folder, "--fail-on-duplicates twice");
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert_eq!(lines(&folder).len(), 2);
    assert_eq!(folder.names(), ["bad", "cut", "good", "seen", "twice"]);
}

#[test]
fn a_closed_pipe_adds_nothing_to_the_list() {
    let lines: String = (0..200_000).map(|line| format!("{line}\n")).collect();
    let folder = Folder::with(&[("in", lines)]);
    let mut command = folder.command("dedup -q --skip-seen-files seen in");
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(!folder.has("seen"));
}

#[test]
fn what_cannot_be_listed_or_written_is_rejected() {
    let folder = Folder::with(&[("one", "a\n"), ("two", "b\n")]);
    let seen = folder.path("seen").display().to_string();
    for (args, name) in [
        ("", "standard input"),
        ("-", "standard input"),
        ("one -", "standard input"),
        ("/dev/null", "/dev/null"),
    ] {
        let run = listed(&folder, args);
        run.fails_with(&format!(
            "invalid --skip-seen-files={seen}: expected inputs that are regular files, and {name} \
             is none"
        ));
        assert_eq!(run.stdout, b"");
    }
    assert_eq!(listed(&folder, "one").text(), "a\n");
    let list = folder.read("seen");
    for (args, error) in [
        ("-o one one", "one: is also an input"),
        ("-o seen two", "seen: is also a file that an option reads"),
        ("seen", &format!("{seen}: is also an input")),
    ] {
        listed(&folder, args).fails_with(error);
        assert_eq!(
            (folder.read("one"), folder.read("seen")),
            ("a\n".into(), list.clone())
        );
    }
    folder
        .dedup("--skip-seen-files no/list one")
        .fails_with("no/list: No such file or directory (os error 2)");
}

#[test]
fn a_damaged_list_is_rejected_with_its_line() {
    let folder = Folder::with(&[("one", "a\n")]);
    assert_eq!(listed(&folder, "one").text(), "a\n");
    let good = folder.read("seen");
    let no_entry = |line: u32| {
        format!("seen, line {line}: expected a hash of 64 hexadecimal digits, a length and a name")
    };
    for (damaged, line) in [
        (format!("{good}\n"), 2),
        (format!("x{good}"), 1),
        (format!("{good}{}", &good[..70]).replace(" 2 ", " 2x "), 1),
        (format!("{good}{good}{}", &good[..40]), 3),
    ] {
        folder.write("seen", &damaged);
        listed(&folder, "one").fails_with(&no_entry(line));
        assert_eq!(folder.read("seen"), damaged);
    }
    folder.write("seen", b"\xff\xfe\n");
    listed(&folder, "one").fails_with(&no_entry(1));
    // An empty one stays when a run fails.
    folder.write("seen", "");
    listed(&folder, "-k 2 one").fails_with(
        "one, line 1: field 2 of the key is missing: the record has 1 (--missing skip or empty \
         allows that)",
    );
    assert_eq!(folder.read("seen"), "");
}

#[test]
fn captures_are_skipped_as_well() {
    let capture = numbered(&[1, 2]);
    let folder = Folder::with(&[("one", &capture), ("copy", &capture)]);
    let args = "packets -q --skip-seen-files seen one copy";
    assert_eq!(folder.echoless(args).bytes(), capture);
    assert_eq!(folder.echoless(args).bytes(), b"");
}
