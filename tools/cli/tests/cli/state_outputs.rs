//! Outputs that a state knows: what a run does with each of them, after one that has ended and
//! after one that was killed. The table is that of the guide.

#![cfg(unix)]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::run::{Run, command, run, send};

/// What a run finds in place of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Same,
    Moved,
    Copied,
    Edited,
    Longer,
    Shorter,
    Gone,
    /// Removed, and another file is there, which may get the same number.
    Replaced,
    Empty,
    OtherDevice,
}

/// What the run does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    /// The output is that of one run, without a break.
    GoesOn,
    /// The new records are behind what was there.
    Appended,
    /// The output has the header and the new records.
    Anew,
    /// An error, and the file is as it was.
    Refused(&'static str),
}

const SHORTER: Done = Done::Refused("that the state has written: move it away");
const LONGER: Done = Done::Refused(", and the state has written ");
const OTHER: Done = Done::Refused("has other content than the state has written: move it away");

/// The table of the guide: what is found, and what is done if the run before has ended, and if it
/// was killed.
const TABLE: [(Found, Done, Done); 10] = [
    (Found::Same, Done::GoesOn, Done::GoesOn),
    (Found::Moved, Done::GoesOn, Done::GoesOn),
    (Found::Copied, Done::GoesOn, Done::GoesOn),
    (Found::OtherDevice, Done::GoesOn, Done::GoesOn),
    (Found::Edited, Done::Appended, OTHER),
    (Found::Longer, LONGER, Done::GoesOn),
    (Found::Shorter, SHORTER, SHORTER),
    (Found::Replaced, SHORTER, SHORTER),
    (Found::Gone, Done::Anew, Done::Anew),
    (Found::Empty, Done::Anew, Done::Anew),
];

/// A folder with a state, inputs and outputs.
struct Place {
    folder: tempfile::TempDir,
    compress: &'static [&'static str],
}

const HEADER: &str = "id,name\n";

/// Records with these numbers.
fn records(numbers: std::ops::Range<u32>) -> String {
    numbers
        .map(|number| format!("{number},name {number}\n"))
        .collect()
}

impl Place {
    fn new(compress: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, compress }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// A run from this output on, in the folder.
    fn run(&self, output: &str, input: &str) -> Run {
        self.run_in(self.folder.path(), output, input)
    }

    fn run_in(&self, folder: &Path, output: &str, input: &str) -> Run {
        let args = [
            "dedup", "-q", "-m", "64KiB", "--csv", "--header", "-k", "name",
        ];
        let files = ["--state", "state", "-o", output, input];
        let mut command = command([&args[..], self.compress, &files].concat());
        command.current_dir(folder);
        run(command)
    }

    fn decode(&self, bytes: &[u8]) -> String {
        let bytes = match self.compress {
            [] => bytes.to_vec(),
            _ => zstd::decode_all(bytes).unwrap(),
        };
        String::from_utf8(bytes).unwrap()
    }

    /// A state whose run has ended, or one that was cut short behind uncommitted records.
    fn with_state(compress: &'static [&'static str], was_killed: bool) -> Self {
        let place = Self::new(compress);
        place.write("one", &format!("{HEADER}{}", records(0..200)));
        place.run("out", "one").text();
        place.write("two", &format!("{HEADER}{}", records(200..400)));
        if was_killed {
            place.kill_at("two", fs::metadata(place.path("out")).unwrap().len());
        }
        place
    }

    /// Begins to read an input, and kills the run behind the commit of its begin. A plain output has
    /// more than `before` bytes then.
    fn kill_at(&self, input: &str, before: u64) {
        let follower = self.follow_input(input, &["--commit-interval", "1h"]);
        self.waits_until(|| {
            let begun = &self.shown()["run"]["outputs"][0];
            let out = fs::metadata(self.path("out"));
            let is_written = out.is_ok_and(|out| out.len() > before);
            let has_begun = begun.is_object() && begun["closed"].is_null();
            has_begun && (is_written || !self.compress.is_empty())
        });
        follower.end(true);
    }

    /// Puts something in the place of the output. Returns the folder and the output of the next run,
    /// if there is such a place.
    fn find(&self, found: Found) -> Option<(PathBuf, &'static str)> {
        let out = self.path("out");
        let folder = self.folder.path().to_owned();
        let length = fs::metadata(&out).unwrap().len();
        let file = || OpenOptions::new().write(true).open(&out).unwrap();
        match found {
            Found::Same => {}
            Found::Moved => {
                fs::rename(&out, self.path("moved")).unwrap();
                return Some((folder, "moved"));
            }
            Found::Copied => {
                fs::copy(&out, self.path("copy")).unwrap();
                fs::rename(self.path("copy"), &out).unwrap();
            }
            Found::Edited => {
                let mut bytes = fs::read(&out).unwrap();
                bytes[20] ^= 1;
                fs::write(self.path("copy"), bytes).unwrap();
                fs::rename(self.path("copy"), &out).unwrap();
            }
            Found::Longer => {
                let mut file = OpenOptions::new().append(true).open(&out).unwrap();
                file.write_all(b"# a note\n").unwrap();
            }
            Found::Shorter => file().set_len(length / 4).unwrap(),
            Found::Gone => fs::remove_file(&out).unwrap(),
            Found::Replaced => {
                fs::remove_file(&out).unwrap();
                self.write("out", "# a note\n");
            }
            Found::Empty => file().set_len(0).unwrap(),
            Found::OtherDevice => {
                let other = fs::metadata("/dev/shm").ok()?;
                if other.dev() == fs::metadata(&folder).unwrap().dev() {
                    return None;
                }
                let other = tempfile::tempdir_in("/dev/shm").unwrap().keep();
                let copied = std::process::Command::new("cp")
                    .arg("-a")
                    .args(["state", "out", "two"].map(|name| self.path(name)))
                    .arg(&other)
                    .status();
                assert!(copied.unwrap().success());
                return Some((other, "out"));
            }
        }
        Some((folder, "out"))
    }
}

#[test]
fn what_is_found_in_place_of_an_output_is_never_cut_unless_it_is_the_state_s() {
    for compress in [&[][..], &["--compress", "zstd"]] {
        for was_killed in [false, true] {
            for (found, ended, killed) in TABLE {
                let expected = if was_killed { killed } else { ended };
                let told = format!("{compress:?} {found:?}, killed: {was_killed}");
                let place = Place::with_state(compress, was_killed);
                let Some((folder, output)) = place.find(found) else {
                    eprintln!("skipped: {told}: /dev/shm is not another device");
                    continue;
                };
                let path = folder.join(output);
                let before = fs::read(&path).unwrap_or_default();
                let done = place.run_in(&folder, output, "two");
                let after = fs::read(&path).unwrap();
                if let Done::Refused(reason) = expected {
                    assert!(done.error().contains(reason), "{told}: {}", done.stderr);
                    assert!(done.error().starts_with("out: "), "{told}: {}", done.stderr);
                    assert!(after == before, "{told}");
                    // Moved away, it makes room for another one.
                    fs::rename(&path, folder.join("away")).unwrap();
                    place.run_in(&folder, output, "two").text();
                    let anew = place.decode(&fs::read(&path).unwrap());
                    assert_eq!(anew, format!("{HEADER}{}", records(200..400)), "{told}");
                    continue;
                }
                assert_eq!((done.code, &*done.stderr), (0, ""), "{told}");
                match expected {
                    Done::GoesOn => {
                        let whole = format!("{HEADER}{}", records(0..400));
                        assert_eq!(place.decode(&after), whole, "{told}");
                    }
                    Done::Appended => {
                        let (kept, rest) = after.split_at(before.len());
                        assert!(kept == before, "{told}");
                        assert_eq!(place.decode(rest), records(200..400), "{told}");
                    }
                    Done::Anew => {
                        let anew = format!("{HEADER}{}", records(200..400));
                        assert_eq!(place.decode(&after), anew, "{told}");
                    }
                    Done::Refused(_) => unreachable!(),
                }
                if found == Found::OtherDevice {
                    fs::remove_dir_all(folder).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_file_that_a_state_has_not_written_is_no_output_of_it() {
    let place = Place::new(&[]);
    place.write("one", &format!("{HEADER}{}", records(0..9)));
    place.write("two", &format!("{HEADER}{}", records(0..19)));
    let refused = "other: has 9 bytes that the state has not written: move it away to begin \
                   another one";
    // A new state, and one whose output has another name.
    for _ in 0..2 {
        place.write("other", "# a note\n");
        let failed = place.run("other", "two");
        assert_eq!(failed.error(), refused);
        assert_eq!(fs::read(place.path("other")).unwrap(), b"# a note\n");
        place.run("out", "one").text();
    }
    // An empty one is.
    place.write("other", "");
    place.run("other", "two").text();
    let other = fs::read_to_string(place.path("other")).unwrap();
    assert_eq!(other, format!("{HEADER}{}", records(9..19)));
}

/// An older state beside a newer output: what is behind it is not cut, whatever it is.
#[test]
fn an_older_state_cuts_nothing_of_a_newer_output() {
    let place = Place::with_state(&[], false);
    let copied = std::process::Command::new("cp")
        .args(["-a", "state", "older"])
        .current_dir(place.folder.path())
        .status();
    assert!(copied.unwrap().success());
    place.run("out", "two").text();
    fs::remove_dir_all(place.path("state")).unwrap();
    fs::rename(place.path("older"), place.path("state")).unwrap();
    let before = fs::read(place.path("out")).unwrap();
    place.write("three", &format!("{HEADER}{}", records(400..410)));
    let failed = place.run("out", "three");
    assert!(failed.error().contains("the state has written"));
    assert_eq!(fs::read(place.path("out")).unwrap(), before);
}

/// The commit "running" is on the disk before the first byte of an output: whatever was written
/// behind it is cut if it is in the file that the state has begun, and in no other one.
#[test]
fn a_run_that_is_killed_before_its_first_commit_has_begun_its_outputs() {
    for is_replaced in [false, true] {
        let place = Place::new(&[]);
        place.write("one", &format!("{HEADER}{}", records(0..200)));
        place.kill_at("one", HEADER.len() as u64);
        let written = fs::read(place.path("out")).unwrap();
        assert!(written.starts_with(HEADER.as_bytes()));
        if is_replaced {
            // The number may be given again, and the content may be anything.
            fs::remove_file(place.path("out")).unwrap();
            fs::write(place.path("out"), &written[..20]).unwrap();
            let failed = place.run("out", "one");
            assert!(failed.error().contains("has other content"));
            assert_eq!(fs::read(place.path("out")).unwrap(), written[..20]);
        } else {
            place.run("out", "one").text();
            let out = fs::read_to_string(place.path("out")).unwrap();
            assert_eq!(out, format!("{HEADER}{}", records(0..200)));
        }
    }
}

#[test]
fn counts_are_those_of_the_run_beside_the_totals_of_the_state() {
    for compress in [&[][..], &["--compress", "zstd"]] {
        let place = Place::new(compress);
        let stats = |input: &str, numbers: std::ops::Range<u32>| -> Value {
            place.write(input, &format!("{HEADER}{}", records(numbers)));
            let before = fs::metadata(place.path("out")).map_or(0, |out| out.len());
            let args = [
                "dedup", "-q", "-m", "64KiB", "--csv", "--header", "-k", "name",
            ];
            let files = ["--state", "state", "--stats", "st", "-o", "out", input];
            let mut command = command([&args[..], place.compress, &files].concat());
            command.current_dir(place.folder.path());
            run(command).text();
            let text = fs::read_to_string(place.path("st")).unwrap();
            let stats: Value = serde_json::from_str(&text).unwrap();
            let after = fs::metadata(place.path("out")).unwrap().len();
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

/// How often a test looks before it gives up: some minutes, in which a run only has to read a few
/// lines.
const LOOKS: usize = 6000;

/// A run that follows a log, and ends with its test.
struct Follower(Child);

impl Place {
    fn follow(&self, options: &[&str]) -> Follower {
        self.follow_input("log", &[&["--commit-interval", "0s"], options].concat())
    }

    fn follow_input(&self, input: &str, options: &[&str]) -> Follower {
        let args = [
            "dedup", "-q", "-m", "64KiB", "--follow", "--csv", "--header", "-k", "name",
        ];
        let files = ["--state", "state", "-o", "out", input];
        let mut command = command([&args[..], options, self.compress, &files].concat());
        command.current_dir(self.folder.path());
        Follower(command.spawn().unwrap())
    }

    fn append(&self, name: &str, content: &str) {
        let path = self.path(name);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(content.as_bytes()).unwrap();
    }

    /// Waits until this holds.
    #[track_caller]
    fn waits_until(&self, holds: impl Fn() -> bool) {
        for _ in 0..LOOKS {
            if holds() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("never so");
    }

    /// What is told of the state; nothing if a file of it was removed meanwhile.
    fn shown(&self) -> Value {
        let mut command = command(["state", "show", "--json", "state"]);
        command.current_dir(self.folder.path());
        serde_json::from_slice(&run(command).stdout).unwrap_or_default()
    }

    /// Whether the last commit has so many bytes of the log.
    fn has_committed(&self, bytes: u64) -> bool {
        let shown = self.shown();
        let inputs = shown["run"]["inputs"].as_array();
        inputs
            .is_some_and(|inputs| (inputs.iter()).any(|input| input["position"]["bytes"] == bytes))
    }

    /// Appends records to the log, and waits until they are committed.
    #[track_caller]
    fn passes(&self, numbers: std::ops::Range<u32>) {
        self.append("log", &records(numbers));
        let bytes = fs::metadata(self.path("log")).unwrap().len();
        self.waits_until(|| self.has_committed(bytes));
    }
}

impl Follower {
    /// Ends the run with a signal that it catches, or with a kill.
    fn end(mut self, is_killed: bool) -> String {
        if is_killed {
            self.0.kill().unwrap();
        } else {
            send(&self.0, "-TERM");
        }
        self.ended(if is_killed { None } else { Some(143) })
    }

    /// Waits for the end of the run. Returns what it has told.
    fn ended(mut self, code: Option<i32>) -> String {
        let mut stderr = self.0.stderr.take().unwrap();
        assert_eq!(self.0.wait().unwrap().code(), code);
        let mut told = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut told).unwrap();
        told
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What another program does to an output while a run writes it.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    /// As `copytruncate` of `logrotate`.
    Truncated,
    Removed,
    Renamed,
    /// As `sed -i`: a copy of the same length takes the name.
    Edited,
    Appended,
}

#[test]
fn an_output_that_changes_under_a_following_run_goes_on_without_loss() {
    use Meanwhile::{Appended, Edited, Removed, Renamed, Truncated};
    for meanwhile in [Truncated, Removed, Renamed, Edited, Appended] {
        for is_killed in [false, true] {
            let told = format!("{meanwhile:?}, killed: {is_killed}");
            let place = Place::new(&[]);
            place.write("log", HEADER);
            let follower = place.follow(&[]);
            place.passes(0..10);
            let out = place.path("out");
            let first = format!("{HEADER}{}", records(0..10));
            assert_eq!(fs::read_to_string(&out).unwrap(), first);
            let kept = match meanwhile {
                Truncated => {
                    File::options()
                        .write(true)
                        .truncate(true)
                        .open(&out)
                        .unwrap();
                    HEADER.to_owned()
                }
                Removed => {
                    fs::remove_file(&out).unwrap();
                    HEADER.to_owned()
                }
                Renamed => {
                    fs::rename(&out, place.path("out.1")).unwrap();
                    HEADER.to_owned()
                }
                Edited => {
                    let edited = first.replace("name 3", "NAME 3");
                    place.write("copy", &edited);
                    fs::rename(place.path("copy"), &out).unwrap();
                    edited
                }
                Appended => {
                    place.append("out", "# a note\n");
                    format!("{first}# a note\n")
                }
            };
            place.passes(10..20);
            follower.end(is_killed);
            let expected = format!("{kept}{}", records(10..20));
            assert_eq!(fs::read_to_string(&out).unwrap(), expected, "{told}");
            if let Renamed = meanwhile {
                assert_eq!(fs::read_to_string(place.path("out.1")).unwrap(), first);
            }
            // And so does the next run.
            let follower = place.follow(&[]);
            place.passes(20..30);
            follower.end(false);
            let expected = format!("{expected}{}", records(20..30));
            assert_eq!(fs::read_to_string(&out).unwrap(), expected, "{told}");
        }
    }
}

/// A record may be in two frames, so what is appended between them would be inside of it.
#[test]
fn a_compressed_output_that_is_appended_to_while_it_is_written_is_an_error_and_not_cut() {
    let note = zstd::encode_all(&b"# a note\n"[..], 3).unwrap();
    // Before a frame is written, between two of them, and behind the last one.
    for numbers in [10..20, 10..90_000, 10..10] {
        let place = Place::new(&["--compress", "zstd"]);
        place.write("log", HEADER);
        let follower = place.follow(&[]);
        place.passes(0..10);
        if numbers.end > 20 {
            place.passes(100_000..170_000);
        }
        let before = fs::metadata(place.path("out")).unwrap().len();
        let mut out = File::options()
            .append(true)
            .open(place.path("out"))
            .unwrap();
        out.write_all(&note).unwrap();
        if numbers.is_empty() {
            send(&follower.0, "-TERM");
        } else {
            place.append("log", &records(numbers.clone()));
        }
        let told = follower.ended(Some(2));
        assert!(told.contains("out: was appended to while"), "{told}");
        let found = fs::read(place.path("out")).unwrap();
        let refused = place.run("out", "log");
        let expected = format!(
            "out: has {} bytes, and the state has written {before}",
            found.len()
        );
        assert!(refused.error().starts_with(&expected), "{}", refused.stderr);
        assert!(fs::read(place.path("out")).unwrap() == found);
        fs::rename(place.path("out"), place.path("away")).unwrap();
        place.run("out", "log").text();
        let read = |name: &str| place.decode(&fs::read(place.path(name)).unwrap());
        let away = read("away").replacen("# a note\n", "", 1);
        let both = away + read("out").strip_prefix(HEADER).unwrap();
        let log = fs::read_to_string(place.path("log")).unwrap();
        assert!(both == log, "{numbers:?}");
    }
}

/// Frames that are not complete are only in the state: a kill and a lost file lose none of their
/// records, and a signal, which completes them, repeats none.
#[test]
fn compressed_outputs_that_are_removed_or_renamed_lose_and_repeat_nothing() {
    for is_killed in [false, true] {
        let place = Place::new(&["--compress", "zstd"]);
        place.write("log", HEADER);
        let follower = place.follow(&[]);
        place.passes(0..10);
        // A run completes the frame before it follows the name.
        fs::rename(place.path("out"), place.path("out.1")).unwrap();
        place.passes(10..20);
        let read = |name: &str| place.decode(&fs::read(place.path(name)).unwrap());
        assert_eq!(read("out.1"), format!("{HEADER}{}", records(0..10)));
        follower.end(is_killed);
        if !is_killed {
            assert_eq!(read("out"), format!("{HEADER}{}", records(10..20)));
        }
        fs::remove_file(place.path("out")).unwrap();
        let follower = place.follow(&[]);
        place.passes(20..30);
        follower.end(false);
        let first = if is_killed { 10 } else { 20 };
        assert_eq!(read("out"), format!("{HEADER}{}", records(first..30)));
    }
}

#[test]
fn a_compressed_output_that_is_cut_while_it_is_written_is_an_error() {
    let place = Place::with_state(&["--compress", "zstd"], false);
    place.write("log", HEADER);
    let follower = place.follow(&[]);
    place.passes(400..410);
    File::options()
        .write(true)
        .open(place.path("out"))
        .unwrap()
        .set_len(9)
        .unwrap();
    place.append("log", &records(410..420));
    let told = follower.ended(Some(2));
    let expected = "out: was cut while it was written: move it away to begin another one";
    assert!(told.contains(expected), "{told}");
    fs::rename(place.path("out"), place.path("away")).unwrap();
    let follower = place.follow(&[]);
    place.passes(420..430);
    follower.end(false);
    let out = place.decode(&fs::read(place.path("out")).unwrap());
    assert_eq!(out, format!("{HEADER}{}", records(400..430)));
}

/// A killed run leaves records that are only in its state: they are in the output that comes next,
/// under any name, and once.
#[test]
fn open_frames_of_a_killed_run_go_to_the_next_output_whatever_its_name() {
    let place = Place::new(&["--compress", "zstd"]);
    place.write("log", HEADER);
    let follower = place.follow(&["--duplicates", "dropped"]);
    place.passes(0..10);
    place.append("log", "10,name 3\n");
    place.passes(11..12);
    follower.end(true);
    // Without the option, its output waits.
    place.run("other", "log").text();
    let read = |name: &str| place.decode(&fs::read(place.path(name)).unwrap());
    let others = [records(0..10), records(11..12)].concat();
    assert_eq!(read("other"), format!("{HEADER}{others}"));
    place.append("log", "12,name 5\n");
    let args = [
        "dedup", "-q", "-m", "64KiB", "--csv", "--header", "-k", "name",
    ];
    let files = [
        "--compress",
        "zstd",
        "--state",
        "state",
        "--duplicates",
        "again",
        "-o",
        "out",
        "log",
    ];
    let mut command = command([&args[..], &files].concat());
    command.current_dir(place.folder.path());
    run(command).text();
    assert_eq!(read("again"), format!("{HEADER}10,name 3\n12,name 5\n"));
    // They are taken over once.
    assert_eq!(read("out"), HEADER);
}

/// The position of a killed run is not kept beside that of the same file under another name.
#[test]
fn an_output_under_two_names_is_one() {
    for other in ["./out", "link"] {
        let place = Place::with_state(&[], true);
        std::os::unix::fs::symlink("out", place.path("link")).unwrap();
        place.run(other, "two").text();
        place.write("three", &format!("{HEADER}{}", records(400..410)));
        place.run("out", "three").text();
        let out = fs::read_to_string(place.path("out")).unwrap();
        assert_eq!(out, format!("{HEADER}{}", records(0..410)), "{other}");
    }
}

#[test]
fn a_run_whose_statistics_cannot_be_written_has_closed_its_outputs() {
    let place = Place::new(&[]);
    place.write("one", &format!("{HEADER}{}", records(0..9)));
    let args = [
        "dedup", "-q", "-m", "64KiB", "--csv", "--header", "-k", "name",
    ];
    let files = [
        "--state",
        "state",
        "--stats",
        "/dev/full",
        "-o",
        "out",
        "one",
    ];
    let mut command = command([&args[..], &files].concat());
    command.current_dir(place.folder.path());
    let failed = run(command);
    assert!(
        failed.error().starts_with("/dev/full: "),
        "{}",
        failed.stderr
    );
    place.append("out", "# a note\n");
    let before = fs::read(place.path("out")).unwrap();
    place.write("two", &format!("{HEADER}{}", records(9..19)));
    let refused = place.run("out", "two");
    assert!(refused.error().contains("the state has written"));
    assert_eq!(fs::read(place.path("out")).unwrap(), before);
}

/// Ways in which a run fails whose outputs are closed in order.
#[derive(Debug, Clone, Copy)]
enum Failing {
    /// In its first chunk, behind which the run has committed nothing.
    Fault,
    /// Behind an input that was read to its end.
    LaterFault,
    /// An input that cannot be read.
    Unreadable,
}

#[test]
fn nothing_is_cut_behind_a_run_that_has_failed_and_closed_its_outputs() {
    for compress in [&[][..], &["--compress", "zstd"]] {
        for failing in [Failing::Fault, Failing::LaterFault, Failing::Unreadable] {
            for is_appended in [false, true] {
                let told = format!("{compress:?} {failing:?}, appended: {is_appended}");
                let place = Place::with_state(compress, false);
                let two = fs::read_to_string(place.path("two")).unwrap();
                let args = [
                    "dedup", "-q", "-m", "64KiB", "--csv", "--header", "-k", "name",
                ];
                let files = ["--state", "state", "-o", "out", "two"];
                let mut command = command([&args[..], compress, &files].concat());
                command.current_dir(place.folder.path());
                let reason = match failing {
                    Failing::Fault => {
                        place.write("two", &format!("{two}400\n"));
                        "two, line 202"
                    }
                    Failing::LaterFault => {
                        place.write("three", &format!("{HEADER}400\n"));
                        command.arg("three");
                        "three, line 2"
                    }
                    Failing::Unreadable => {
                        fs::create_dir(place.path("folder")).unwrap();
                        command.arg("folder");
                        "folder: "
                    }
                };
                let failed = run(command);
                assert!(failed.error().contains(reason), "{told}: {}", failed.stderr);
                place.write("two", &two);
                if is_appended {
                    place.append("out", "# a note\n");
                    let before = fs::read(place.path("out")).unwrap();
                    let refused = place.run("out", "two");
                    let reason = ", and the state has written ";
                    assert!(
                        refused.error().contains(reason),
                        "{told}: {}",
                        refused.stderr
                    );
                    assert!(fs::read(place.path("out")).unwrap() == before, "{told}");
                } else {
                    place.run("out", "two").text();
                    let whole = format!("{HEADER}{}", records(0..400));
                    let out = place.decode(&fs::read(place.path("out")).unwrap());
                    assert_eq!(out, whole, "{told}");
                }
            }
        }
    }
}

/// The main output ends early, in the first chunk; what others append to the others stays.
#[test]
fn nothing_is_cut_behind_a_run_whose_reader_left_or_whose_disk_is_full() {
    for compress in [&[][..], &["--compress", "zstd"]] {
        for is_full in [false, true] {
            for is_appended in [false, true] {
                let told = format!("{compress:?}, full: {is_full}, appended: {is_appended}");
                let place = Place::new(compress);
                place.write("in", &[HEADER, &records(0..99), &records(0..99)].concat());
                let to = |output: Stdio| {
                    let args = [
                        "dedup", "-q", "-m", "64KiB", "--csv", "--header", "-k", "name",
                    ];
                    let files = ["--state", "state", "--duplicates", "dropped", "in"];
                    let mut command = command([&args[..], compress, &files].concat());
                    command.current_dir(place.folder.path()).stdout(output);
                    command.output().unwrap()
                };
                let ended = match is_full {
                    true => to(File::options()
                        .write(true)
                        .open("/dev/full")
                        .unwrap()
                        .into()),
                    false => {
                        let (reader, writer) = std::io::pipe().unwrap();
                        drop(reader);
                        to(writer.into())
                    }
                };
                let code = if is_full { 2 } else { 0 };
                assert_eq!(ended.status.code(), Some(code), "{told}: {ended:?}");
                let dropped = || fs::read(place.path("dropped")).unwrap();
                let first = dropped();
                if is_appended {
                    place.append("dropped", "# a note\n");
                    let refused = to(Stdio::null());
                    let reason = String::from_utf8(refused.stderr).unwrap();
                    assert!(
                        reason.contains(", and the state has written "),
                        "{told}: {reason}"
                    );
                    assert_eq!(dropped(), [&first[..], b"# a note\n"].concat(), "{told}");
                } else {
                    let out = File::create(place.path("out")).unwrap();
                    assert_eq!(to(out.into()).status.code(), Some(0), "{told}");
                    let expected = format!("{HEADER}{}", records(0..99));
                    assert_eq!(place.decode(&dropped()), expected, "{told}");
                    let out = fs::read(place.path("out")).unwrap();
                    assert_eq!(place.decode(&out), expected, "{told}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_was_refused_while_a_run_went_on_is_not_adopted_at_its_end() {
    let place = Place::new(&[]);
    place.write("log", HEADER);
    let follower = place.follow(&[]);
    place.passes(0..100);
    place.write("other", "of another program\n");
    fs::rename(place.path("other"), place.path("out")).unwrap();
    send(&follower.0, "-TERM");
    let told = follower.ended(Some(2));
    assert!(told.contains("is another file"), "{told}");
    let again = place.run("out", "log");
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert_eq!(
        fs::read_to_string(place.path("out")).unwrap(),
        "of another program\n"
    );
}

/// What is in front of the first record is written once the first chunk has no fault.
#[test]
fn a_fault_in_the_first_chunk_begins_no_output() {
    let folder = tempfile::tempdir().unwrap();
    for (options, faulty, mended) in [
        (
            &["--csv", "-k", "2"][..],
            "\u{feff}a\n",
            "\u{feff}a,1\nb,1\n",
        ),
        (
            &["--csv", "--header", "-k", "y"],
            "x,y\na\n",
            "y,x\n1,a\n1,b\n",
        ),
    ] {
        let in_folder = |args: &[&str]| {
            let mut command = command([&["dedup", "-q", "-m", "64KiB"], options, args].concat());
            command.current_dir(folder.path());
            run(command)
        };
        let with_state = ["--state", "state", "-o", "out", "in"];
        fs::write(folder.path().join("in"), faulty).unwrap();
        assert_eq!(in_folder(&with_state).code, 2);
        fs::write(folder.path().join("in"), mended).unwrap();
        let plain = in_folder(&["in"]).text();
        in_folder(&with_state).text();
        let out = fs::read_to_string(folder.path().join("out")).unwrap();
        assert_eq!(out, plain, "{options:?}");
        fs::remove_dir_all(folder.path().join("state")).unwrap();
        fs::remove_file(folder.path().join("out")).unwrap();
    }
}

#[test]
fn a_link_to_no_file_creates_none_in_the_state() {
    let place = Place::new(&[]);
    place.write("one", &format!("{HEADER}{}", records(0..9)));
    place.run("out", "one").text();
    let files = || fs::read_dir(place.path("state")).unwrap().count();
    let before = files();
    // A name of a journal that is not there.
    let mut names = fs::read_dir(place.path("state")).unwrap();
    let name = names.find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.contains(|digit: char| digit.is_ascii_digit())
            .then_some(name)
    });
    let name = name
        .unwrap()
        .replace(|digit: char| digit.is_ascii_digit(), "7");
    std::os::unix::fs::symlink(format!("state/{name}"), place.path("link")).unwrap();
    std::os::unix::fs::symlink("link", place.path("twice")).unwrap();
    for output in ["link", "twice"] {
        let failed = place.run(output, "one");
        assert!(
            failed.error().contains("a file of the state"),
            "{}",
            failed.stderr
        );
        assert_eq!(files(), before);
    }
}
