//! `--skip-seen-files`: files whose content an earlier run has read are not read again.

use std::fs;

use serde_json::Value;

use crate::codecs::compress;
use crate::packets_support::{numbered, packets};
use crate::run::{Run, command, dedup, echoless, file, path};

/// A folder with a list that does not exist yet.
struct Folder {
    directory: tempfile::TempDir,
    list: String,
}

impl Folder {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let list = path(&directory, "seen");
        Self { directory, list }
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        file(self.directory.path(), name, content)
    }

    fn dedup(&self, args: &[&str]) -> Run {
        dedup(&[&["--skip-seen-files", &self.list], args].concat(), b"")
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.list).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The names of all files in the folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_file_is_read_by_one_run() {
    let folder = Folder::new();
    let one = folder.file("one", b"a\nb\n");
    let two = folder.file("two", b"b\nc\n");
    assert_eq!(folder.dedup(&[&one]).text(), "a\nb\n");
    let expected = format!("{} 4 {one}", blake3::hash(b"a\nb\n"));
    assert_eq!(folder.lines(), [expected.as_str()]);
    // The content counts, not the name; the filter of a run starts empty.
    let copy = folder.file("copy", b"a\nb\n");
    assert_eq!(folder.dedup(&[&copy, &two, &one]).text(), "b\nc\n");
    assert_eq!(folder.lines().len(), 2);
    assert_eq!(folder.lines()[0], expected);
    assert_eq!(folder.dedup(&[&one, &two, &copy]).text(), "");
    // A file that has changed is another.
    let one = folder.file("one", b"a\nb\nd\n");
    assert_eq!(folder.dedup(&[&one, &two]).text(), "a\nb\nd\n");
    // So is a compressed one.
    let zipped = folder.file("zipped", &compress("gzip", b"a\nb\n"));
    assert_eq!(folder.dedup(&[&zipped]).text(), "a\nb\n");
    assert_eq!(folder.lines().len(), 4);
    assert_eq!(folder.names(), ["copy", "one", "seen", "two", "zipped"]);
}

#[test]
fn the_second_of_two_equal_inputs_is_skipped() {
    let folder = Folder::new();
    let one = folder.file("one", b"a\na\n");
    let copy = folder.file("copy", b"a\na\n");
    let stats = folder.file("stats", b"");
    let args = [
        "dedup",
        "--skip-seen-files",
        &folder.list,
        "--stats",
        &stats,
        &one,
        &copy,
    ];
    let run = echoless(&args, b"");
    assert_eq!((run.code, run.stdout.as_slice()), (0, &b"a\n"[..]));
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(
        lines[0],
        format!("echoless: {copy}: skipped, seen before as {one}")
    );
    assert!(lines[1].contains("2 records (4 B)"), "{}", lines[1]);
    assert_eq!(
        lines[2],
        "echoless: 1 of 2 files skipped: their content was seen before"
    );
    let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(stats["skipped_files"], 1);
    assert_eq!(stats["bytes_in"], 4);
    assert_eq!(folder.lines().len(), 1);
    let line = echoless(
        &[&args[..], &["--summary=line", "-o", "/dev/null"]].concat(),
        b"",
    );
    let last = line.stderr.lines().last().unwrap();
    assert!(
        last.ends_with("0 duplicates (0.00 %); 2 of 2 files skipped"),
        "{last}"
    );
    // Without the option there is no such field.
    let run = dedup(&["--stats", "-", "-o", "/dev/null", &one], b"");
    let stats: Value = serde_json::from_slice(&run.bytes()).unwrap();
    assert_eq!(stats.get("skipped_files"), None);
}

#[test]
fn a_run_that_does_not_end_well_leaves_the_list_as_it_is() {
    let folder = Folder::new();
    let good = folder.file("good", b"a,1\n");
    assert_eq!(folder.dedup(&[&good]).text(), "a,1\n");
    let before = folder.lines();
    let bad = folder.file("bad", b"b,1\nno field\n");
    assert!(folder.dedup(&["-k", "2", &bad]).error().contains("line 2"));
    let cut = compress("zstd", b"c\n");
    let cut = folder.file("cut", &cut[..cut.len() - 2]);
    assert!(folder.dedup(&[&cut]).error().contains("cut or damaged"));
    assert_eq!(folder.lines(), before);
    // Duplicates are no failure.
    let twice = folder.file("twice", b"d\nd\n");
    let run = folder.dedup(&["--fail-on-duplicates", &twice]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert_eq!(folder.lines().len(), 2);
    assert_eq!(folder.names(), ["bad", "cut", "good", "seen", "twice"]);
}

#[test]
fn a_closed_pipe_adds_nothing_to_the_list() {
    let folder = Folder::new();
    let lines: String = (0..200_000).map(|line| format!("{line}\n")).collect();
    let input = folder.file("input", lines.as_bytes());
    let args = ["dedup", "-q", "--skip-seen-files", &folder.list, &input];
    let mut child = command(&args).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(!std::path::Path::new(&folder.list).exists());
}

#[test]
fn standard_input_and_pipes_are_rejected() {
    let folder = Folder::new();
    let one = folder.file("one", b"a\n");
    for args in [&[][..], &["-"], &[&one, "-"]] {
        let expected = format!(
            "invalid --skip-seen-files={}: expected inputs that are regular files, and standard input is none",
            folder.list
        );
        let run = folder.dedup(args);
        assert_eq!(run.error(), expected);
        assert_eq!(run.stdout, b"");
    }
    let null = folder.dedup(&["/dev/null"]);
    assert!(
        null.error().ends_with("and /dev/null is none"),
        "{}",
        null.error()
    );
}

#[test]
fn a_damaged_list_is_rejected_with_its_line() {
    let folder = Folder::new();
    let one = folder.file("one", b"a\n");
    assert_eq!(folder.dedup(&[&one]).text(), "a\n");
    let good = fs::read_to_string(&folder.list).unwrap();
    for (damaged, line) in [
        (format!("{good}\n"), 2),
        (format!("x{good}"), 1),
        (format!("{good}{}", &good[..70]).replace(" 2 ", " 2x "), 1),
        (format!("{good}{good}{}", &good[..40]), 3),
    ] {
        fs::write(&folder.list, &damaged).unwrap();
        let run = folder.dedup(&[&one]);
        let expected = format!(
            "{}, line {line}: expected a hash of 64 hexadecimal digits, a length and a name",
            folder.list
        );
        assert_eq!(run.error(), expected);
        assert_eq!(fs::read_to_string(&folder.list).unwrap(), damaged);
    }
    fs::write(&folder.list, b"\xff\xfe\n").unwrap();
    assert!(folder.dedup(&[&one]).error().contains(", line 1: "));
}

#[test]
fn a_run_that_fails_leaves_no_new_list() {
    let folder = Folder::new();
    let one = folder.file("one", b"a\n");
    assert!(folder.dedup(&["-k", "2", &one]).error().contains("field 2"));
    assert!(
        folder
            .dedup(&["-o", &folder.list, &one])
            .error()
            .contains("is also")
    );
    assert!(!std::path::Path::new(&folder.list).exists());
    // One that was there stays.
    fs::write(&folder.list, b"").unwrap();
    assert!(folder.dedup(&["-k", "2", &one]).error().contains("field 2"));
    assert_eq!(fs::read(&folder.list).unwrap(), b"");
}

#[test]
fn the_list_and_skipped_files_are_never_outputs() {
    let folder = Folder::new();
    let one = folder.file("one", b"a\n");
    assert_eq!(folder.dedup(&[&one]).text(), "a\n");
    let run = folder.dedup(&["-o", &one, &one]);
    assert_eq!(run.error(), format!("{one}: is also an input"));
    assert_eq!(fs::read(&one).unwrap(), b"a\n");
    let two = folder.file("two", b"b\n");
    let run = folder.dedup(&["-o", &folder.list, &two]);
    let expected = format!("{}: is also a file that an option reads", folder.list);
    assert_eq!(run.error(), expected);
    let run = folder.dedup(&[&folder.list.clone()]);
    assert!(
        run.error().ends_with(": is also an input"),
        "{}",
        run.error()
    );
    assert_eq!(folder.lines().len(), 1);
    let missing = folder.directory.path().join("no/list");
    let run = dedup(&["--skip-seen-files", missing.to_str().unwrap(), &one], b"");
    assert!(run.error().contains("No such file"), "{}", run.error());
}

#[cfg(unix)]
#[test]
fn the_list_keeps_its_permissions_and_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new();
    let one = folder.file("one", b"a\n");
    let target = folder.file("target", b"");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&target, &folder.list).unwrap();
    assert_eq!(folder.dedup(&[&one]).text(), "a\n");
    assert!(fs::symlink_metadata(&folder.list).unwrap().is_symlink());
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(fs::read_to_string(&target).unwrap().lines().count(), 1);
}

#[test]
fn captures_are_skipped_as_well() {
    let folder = Folder::new();
    let one = folder.file("one", &numbered(&[1, 2]));
    let copy = folder.file("copy", &numbered(&[1, 2]));
    let args = ["--skip-seen-files", &folder.list, &one, &copy];
    assert_eq!(packets(&args, b"").bytes(), numbered(&[1, 2]));
    assert_eq!(packets(&args, b"").bytes(), b"");
}
