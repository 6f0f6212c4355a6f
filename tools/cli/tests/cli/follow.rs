//! `--follow`: inputs that grow, are rotated and truncated while a run reads them.

#![cfg(unix)]

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::process::Child;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::run::{Run, command, dedup, file, run, send};

/// How often a test looks before it gives up: some minutes, in which a run only has to read a few
/// lines.
const LOOKS: usize = 6000;

/// A folder with a log, a state and an output.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        File::create(place.path("log")).unwrap();
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn append(&self, name: &str, content: &str) {
        let path = self.path(name);
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(content.as_bytes()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn output(&self) -> String {
        fs::read_to_string(self.path("out")).unwrap_or_default()
    }

    /// Waits until the state has all of the log.
    fn waits_for_commit(&self) {
        let bytes = fs::metadata(self.path("log")).unwrap().len();
        for _ in 0..LOOKS {
            // A file of the state may be removed while it is read.
            let shown = run(command(&["state", "show", "--json", &self.path("state")]));
            let shown: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
            let inputs = shown["run"]["inputs"].as_array();
            let last = inputs.and_then(|inputs| inputs.last());
            if last.is_some_and(|input| input["position"]["bytes"] == bytes) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no commit of {bytes} bytes");
    }

    /// Waits until the state has an input.
    fn waits_for_input(&self) {
        for _ in 0..LOOKS {
            let shown = run(command(&["state", "show", "--json", &self.path("state")]));
            let shown: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
            let inputs = shown["run"]["inputs"].as_array();
            if inputs.is_some_and(|inputs| !inputs.is_empty()) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no input");
    }

    /// Reads the log once, to its end.
    fn run_to_end(&self) {
        let (out, log, state) = (self.path("out"), self.path("log"), self.path("state"));
        let args = [
            "dedup", "-q", "-m", "64KiB", "--state", &state, "-o", &out, &log,
        ];
        run(command(&args)).text();
    }

    /// Starts a run that follows the log.
    fn follow(&self, options: &[&str]) -> Follower<'_> {
        let (out, log) = (self.path("out"), self.path("log"));
        let start = [
            "dedup",
            "-m",
            "64KiB",
            "--summary",
            "line",
            "--follow",
            "-o",
            &out,
        ];
        let args = [&start[..], options, &[&log]].concat();
        Follower {
            place: self,
            child: Some(command(&args).spawn().unwrap()),
        }
    }

    /// The same with a state that commits often.
    fn follow_with_state(&self, options: &[&str]) -> Follower<'_> {
        let state = self.path("state");
        let args = [&["--state", &state, "--commit-interval", "0s"], options].concat();
        self.follow(&args)
    }
}

/// A run that goes on until it is ended.
struct Follower<'a> {
    place: &'a Place,
    child: Option<Child>,
}

impl Follower<'_> {
    /// Waits for an output.
    #[track_caller]
    fn writes(&self, expected: &str) {
        for _ in 0..LOOKS {
            if self.place.output() == expected {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("{:?}, and not {expected:?}", self.place.output());
    }

    /// Ends the run with a signal, and returns what it says in front of its summary.
    fn end(mut self, signal: &str, code: i32) -> String {
        let child = self.child.take().unwrap();
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{told}");
        let (notes, summary) = told.trim_end().rsplit_once('\n').unwrap_or(("", &told));
        assert!(summary.contains(" fresh, "), "{told}");
        notes.to_owned()
    }

    /// Ends a quiet run, and returns what it says.
    fn end_quietly(mut self) -> String {
        let child = self.child.take().unwrap();
        send(&child, "-TERM");
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }

    fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
    }
}

#[test]
fn a_growing_file_is_read_as_it_grows_and_a_signal_ends_the_run() {
    for threads in ["1", "3"] {
        let place = Place::new();
        let before = file(place.0.path(), "before", b"x\ny\n");
        let follower = place.follow(&["--threads", threads, &before]);
        follower.writes("x\ny\n");
        place.append("log", "a\nx\nb");
        follower.writes("x\ny\na\n");
        place.append("log", "c\na\n");
        follower.writes("x\ny\na\nbc\n");
        for number in 0..2000 {
            place.append("log", &format!("{}\n", number % 500));
        }
        let numbers: String = (0..500).map(|number| format!("{number}\n")).collect();
        let expected = format!("x\ny\na\nbc\n{numbers}");
        follower.writes(&expected);
        assert_eq!(follower.end("-TERM", 143), "");
        assert_eq!(place.output(), expected);
    }
}

#[test]
fn a_rotated_file_is_read_to_its_end_and_the_next_one_from_its_start() {
    for threads in ["1", "3"] {
        let place = Place::new();
        let log = place.path("log");
        let follower = place.follow(&["--threads", threads, "--csv", "--header", "-k", "id"]);
        place.append("log", "id,v\n1,a\n");
        follower.writes("id,v\n1,a\n");
        place.rename("log", "log.1");
        // The writer has the old file open, also when the new one exists.
        place.append("log.1", "2,b\n");
        follower.writes("id,v\n1,a\n2,b\n");
        File::create(&log).unwrap();
        place.append("log.1", "3,c");
        place.append("log.1", "\n4,d");
        place.append("log", "id,v\n1,x\n5,e\n");
        let expected = "id,v\n1,a\n2,b\n3,c\n4,d\n5,e\n";
        follower.writes(expected);
        // Truncation, and the same name again.
        fs::write(&log, "").unwrap();
        place.append("log", "id,v\n6,f\n");
        follower.writes(&format!("{expected}6,f\n"));
        let notes = follower.end("-INT", 130);
        let told = [
            format!("echoless: {log}: was replaced, and goes on in the new file"),
            format!("echoless: {log}: was truncated, and is read from its start"),
        ];
        assert_eq!(notes, told.join("\n"));
    }
}

#[test]
fn files_that_were_rotated_in_between_are_read_oldest_first() {
    let place = Place::new();
    place.append("log", "a\n");
    let follower = place.follow(&["-q"]);
    follower.writes("a\n");
    fs::write(place.path("log.2.gz"), gzip("b\n")).unwrap();
    place.append("log.1", "c\n");
    place.append("log-other", "x\n");
    place.rename("log", "log.3");
    place.append("log", "d\n");
    follower.writes("a\nb\nc\nd\n");
    assert_eq!(follower.end_quietly(), "");
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// What happens to a followed log while no run reads it, after its first lines were read or not.
#[test]
fn a_state_reads_what_was_rotated_while_no_run_read_it() {
    type Rotation = fn(&Place);
    let cases: [(&str, Rotation, &str); 9] = [
        (
            "renamed",
            |place| place.rename("log", "log.1"),
            "a\nrest\nnew\n",
        ),
        (
            "twice",
            |place| {
                place.rename("log", "log.2");
                place.append("log.1", "b\n");
            },
            "a\nrest\nb\nnew\n",
        ),
        (
            "by date",
            |place| {
                place.rename("log", "log-20251125");
                place.append("log-20251127", "c\n");
                place.append("log-20251126", "b\n");
                place.append("log-20251124", "old\n");
            },
            "a\nrest\nb\nc\nnew\n",
        ),
        (
            "compressed in between",
            |place| {
                place.rename("log", "log.3");
                fs::write(place.path("log.2.gz"), gzip("b\n")).unwrap();
                place.append("log.1", "c\n");
            },
            "a\nrest\nb\nc\nnew\n",
        ),
        (
            "compressed itself",
            |place| {
                let text = fs::read_to_string(place.path("log")).unwrap();
                fs::write(place.path("log.1.gz"), gzip(&text)).unwrap();
                fs::remove_file(place.path("log")).unwrap();
            },
            "a\nrest\nnew\n",
        ),
        (
            "copied and truncated",
            |place| {
                fs::copy(place.path("log"), place.path("log.1")).unwrap();
                fs::write(place.path("log"), "").unwrap();
            },
            "a\nrest\nnew\n",
        ),
        (
            "copied with another number",
            |place| {
                fs::copy(place.path("log"), place.path("log.1")).unwrap();
                fs::remove_file(place.path("log")).unwrap();
            },
            "a\nrest\nnew\n",
        ),
        (
            "under a name of its own",
            |place| place.rename("log", "log.old"),
            "a\nrest\nnew\n",
        ),
        (
            "with an older writer",
            |place| {
                place.rename("log", "log.2");
                place.append("log.1", "b\n");
                place.append("log.2", "late\n");
            },
            "a\nrest\nlate\nb\nnew\n",
        ),
    ];
    // How much of it was read before: nothing of an empty file, half a line, a line.
    for before in ["", "hal", "a\n"] {
        for follows_first in [true, false] {
            for (name, rotate, expected) in &cases {
                let place = Place::new();
                place.append("log", before);
                let read = if before == "a\n" { before } else { "" };
                if follows_first {
                    let follower = place.follow_with_state(&["-q"]);
                    follower.writes(read);
                    place.waits_for_input();
                    follower.kill();
                } else {
                    if before == "hal" {
                        continue;
                    }
                    place.run_to_end();
                }
                let expected = match before {
                    "hal" => expected.replacen("a\n", "half\n", 1),
                    _ => (*expected).to_owned(),
                };
                place.append(
                    "log",
                    match before {
                        "" => "a\nrest\n",
                        "hal" => "f\nrest\n",
                        _ => "rest\n",
                    },
                );
                // An empty file has nothing to be known by, but its number.
                if before.is_empty() && name.starts_with("co") && !name.ends_with("between") {
                    continue;
                }
                rotate(&place);
                place.append("log", "new\n");
                let follower = place.follow_with_state(&["-q"]);
                let told = format!("{name}, {before:?}, {follows_first}");
                eprintln!("{told}");
                follower.writes(&expected);
                assert_eq!(follower.end_quietly(), "", "{told}");
                // Once.
                let follower = place.follow_with_state(&["-q"]);
                place.append("log", "more\n");
                follower.writes(&format!("{expected}more\n"));
                assert_eq!(follower.end_quietly(), "", "{told}");
            }
        }
    }
}

#[test]
fn a_first_line_that_all_files_have_does_not_hide_a_rotation() {
    type Rotation = fn(&Place);
    let cases: [(&str, Rotation); 3] = [
        ("compressed", |place| {
            let text = fs::read_to_string(place.path("log")).unwrap();
            fs::write(place.path("log.1.gz"), gzip(&text)).unwrap();
            fs::remove_file(place.path("log")).unwrap();
        }),
        ("copied and truncated", |place| {
            fs::copy(place.path("log"), place.path("log.1")).unwrap();
            fs::write(place.path("log"), "").unwrap();
        }),
        ("renamed", |place| place.rename("log", "log.1")),
    ];
    for (name, rotate) in cases {
        eprintln!("{name}");
        let place = Place::new();
        place.append("log", "# banner\n");
        let follower = place.follow_with_state(&["-q"]);
        follower.writes("# banner\n");
        place.waits_for_commit();
        follower.kill();
        place.append("log", "rest\n");
        rotate(&place);
        place.append("log", "# banner\nnew\n");
        let follower = place.follow_with_state(&["-q"]);
        follower.writes("# banner\nrest\nnew\n");
        assert_eq!(follower.end_quietly(), "", "{name}");
        let follower = place.follow_with_state(&["-q"]);
        place.append("log", "more\n");
        follower.writes("# banner\nrest\nnew\nmore\n");
        assert_eq!(follower.end_quietly(), "", "{name}");
    }
}

#[test]
fn a_file_that_was_made_later_was_rotated_later() {
    let place = Place::new();
    place.append("log", "a\n");
    let follower = place.follow_with_state(&["-q"]);
    follower.writes("a\n");
    place.waits_for_commit();
    follower.kill();
    place.append("log", "b\n");
    place.rename("log", "old");
    place.append("log.1", "c\n");
    place.append("log", "d\n");
    let time = fs::metadata(place.path("old")).unwrap().modified().unwrap();
    let set = |name: &str, time| {
        let file = OpenOptions::new().append(true).open(place.path(name));
        file.unwrap().set_modified(time).unwrap();
    };
    // Made later, and changed before.
    set("log.1", time - Duration::from_secs(9));
    let follower = place.follow_with_state(&["-q"]);
    follower.writes("a\nb\nc\nd\n");
    assert_eq!(follower.end_quietly(), "");
}

#[test]
fn a_name_that_is_not_there_yet_is_waited_for() {
    for threads in ["1", "3"] {
        let place = Place::new();
        let log = place.path("log");
        fs::remove_file(&log).unwrap();
        let before = file(place.0.path(), "before", b"x\n");
        let follower = place.follow_with_state(&["--threads", threads, &before]);
        follower.writes("x\n");
        place.append("log", "a\nx\n");
        follower.writes("x\na\n");
        let told = follower.end("-TERM", 143);
        // The file may be there before the run looks for it.
        let waits = format!("echoless: {log}: does not exist, and is waited for");
        assert!(told.is_empty() || told == waits, "{told}");
    }
}

#[test]
fn a_state_goes_on_with_what_was_appended_and_rotated_meanwhile() {
    let place = Place::new();
    let log = place.path("log");
    let follower = place.follow_with_state(&[]);
    place.append("log", "a\nb\n");
    follower.writes("a\nb\n");
    assert_eq!(follower.end("-TERM", 143), "");
    // It grows while nothing runs.
    place.append("log", "b\nc\n");
    let follower = place.follow_with_state(&[]);
    follower.writes("a\nb\nc\n");
    let notes = follower.end("-TERM", 143);
    assert_eq!(notes, format!("echoless: {log}: goes on behind byte 4"));
    // It is rotated, and the new one is still empty: the old one may grow.
    place.append("log", "d\n");
    place.rename("log", "log.1");
    File::create(&log).unwrap();
    let follower = place.follow_with_state(&[]);
    follower.writes("a\nb\nc\nd\n");
    place.append("log.1", "e\n");
    follower.writes("a\nb\nc\nd\ne\n");
    place.append("log", "a\nf\n");
    follower.writes("a\nb\nc\nd\ne\nf\n");
    let old = place.path("log.1");
    let notes = follower.end("-TERM", 143);
    let told = [
        format!("echoless: {log}: goes on behind byte 8 of {old}, as it is called now"),
        format!("echoless: {log}: was replaced, and goes on in the new file"),
    ];
    assert_eq!(notes, told.join("\n"));
    // The new one was read in part.
    place.append("log", "g\n");
    let follower = place.follow_with_state(&[]);
    follower.writes("a\nb\nc\nd\ne\nf\ng\n");
    follower.end("-TERM", 143);
}

#[test]
fn what_cannot_be_found_after_a_restart_is_said() {
    let place = Place::new();
    let log = place.path("log");
    let restart = |expected: &str| {
        let follower = place.follow_with_state(&["-q"]);
        follower.writes(expected);
        follower.end_quietly()
    };
    place.append("log", "a\n");
    assert_eq!(restart("a\n"), "");
    // Removed.
    place.append("log", "e\n");
    place.append("new", "f\n");
    place.rename("new", "log");
    let told = restart("a\nf\n");
    let expected =
        format!("echoless: {log}: is another file than the one that was read up to byte 2");
    assert!(told.starts_with(&expected), "{told}");
    // Written anew.
    fs::write(&log, "g\nh\n").unwrap();
    let told = restart("a\nf\ng\nh\n");
    let expected = format!("echoless: {log}: was truncated or written anew since it was read");
    assert!(told.starts_with(&expected), "{told}");
}

#[test]
fn killed_and_rotated_at_any_instant_nothing_is_lost_or_doubled() {
    let mut drawn = 1_u64;
    let mut draw = |bound: u64| {
        drawn = drawn.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        (drawn >> 33) % bound
    };
    for threads in ["1", "3"] {
        let place = Place::new();
        let (mut all, mut rotations, mut number) = (String::new(), 0, 0);
        for _ in 0..16 {
            let follower = place.follow_with_state(&["-q", "--threads", threads]);
            // Before, it knows no file.
            place.waits_for_input();
            let steps = draw(12);
            for step in 0..=steps {
                let mut lines = String::new();
                for _ in 0..draw(200) {
                    number += 1;
                    lines += &format!("line {}\n", number - draw(number.min(300)));
                }
                place.append("log", &lines);
                all += &lines;
                if draw(4) == 0 && step < steps {
                    rotations += 1;
                    for number in (1..rotations).rev() {
                        let [from, to] = [number, number + 1].map(|number| format!("log.{number}"));
                        place.rename(&from, &to);
                    }
                    place.rename("log", "log.1");
                    let first = format!("first {rotations}\n");
                    place.append("log", &first);
                    all += &first;
                    if draw(2) == 0 {
                        break;
                    }
                }
                thread::sleep(Duration::from_micros(draw(3000)));
            }
            follower.kill();
        }
        let follower = place.follow_with_state(&["-q"]);
        follower.writes(&exact(&all));
        assert_eq!(follower.end_quietly(), "");
        assert!(rotations > 3, "{rotations}");
    }
}

/// The lines that an exact program passes on.
fn exact(all: &str) -> String {
    let mut seen = HashSet::new();
    all.split_inclusive('\n')
        .filter(|line| seen.insert(*line))
        .collect()
}

#[test]
fn what_cannot_be_followed_is_rejected() {
    let place = Place::new();
    place.append("log", "a\n");
    let log = place.path("log");
    let folder = place.0.path().to_str().unwrap().to_owned();
    let zipped = place.path("zipped");
    fs::write(&zipped, zstd::encode_all(&b"a\n"[..], 1).unwrap()).unwrap();
    let missing = place.path("missing");
    let no_folder = place.path("missing/log");
    for (args, expected) in [
        (
            &["--follow"][..],
            "invalid --follow: expected the name of a regular file as the last input, not standard input",
        ),
        (&["--follow", &log, "-"], "not standard input"),
        (
            &["--follow", &folder],
            "invalid --follow: expected a regular file as the last input, not ",
        ),
        (&["--follow", "/dev/null"], "not /dev/null"),
        (&["--follow", &zipped], "zipped is compressed"),
        (&["--follow", &no_folder], "No such file or directory"),
        (&["--follow", "--keep", "last", &log], "cannot be used with"),
        (&["--follow", "--in-place", &log], "cannot be used with"),
        (
            &["--follow", "--skip-seen-files", &missing, &log],
            "cannot be used with",
        ),
    ] {
        let run: Run = dedup(args, b"");
        assert!(run.error().contains(expected), "{args:?}: {}", run.error());
    }
    // A file that follows is checked when it comes.
    let state = place.path("state");
    let args = [
        "dedup",
        "-q",
        "-m",
        "64KiB",
        "--follow",
        "--state",
        &state,
        "-o",
        &place.path("out"),
        &log,
    ];
    let child = command(&args).spawn().unwrap();
    let follower = Follower {
        place: &place,
        child: Some(child),
    };
    follower.writes("a\n");
    place.rename("log", "log.1");
    place.rename("zipped", "log");
    let mut follower = follower;
    let output = follower.child.take().unwrap().wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("log: is compressed, and --follow reads plain files alone"),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(2));
}
