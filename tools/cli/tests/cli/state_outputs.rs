//! Outputs that a state knows: what a run does with each of them, after one that has ended and
//! after one that was killed. The table is that of the guide.

use std::fs::{self, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::following::{Follower, shown, wait_until};
use crate::run::{Folder, Run, run};

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

/// The arguments of all runs.
const ARGS: &str = "dedup -q -m 64KiB --csv --header -k name --state state";

pub(crate) const HEADER: &str = "id,name\n";

/// Records with these numbers.
pub(crate) fn records(numbers: Range<u32>) -> String {
    numbers
        .map(|number| format!("{number},name {number}\n"))
        .collect()
}

/// The header, and records with these numbers.
pub(crate) fn content(numbers: Range<u32>) -> String {
    format!("{HEADER}{}", records(numbers))
}

/// A folder with a state, inputs and outputs.
pub(crate) struct Place {
    pub(crate) folder: Folder,
    /// The option `--compress zstd`, or nothing.
    compress: &'static str,
}

impl Place {
    pub(crate) fn new(compress: &'static str) -> Self {
        let folder = Folder::new();
        Self { folder, compress }
    }

    /// A state whose run has ended, or one that was cut short behind uncommitted records.
    pub(crate) fn with_state(compress: &'static str, was_killed: bool) -> Self {
        let place = Self::new(compress);
        place.folder.write("one", content(0..200));
        place.run("out", "one").text();
        place.folder.write("two", content(200..400));
        if was_killed {
            place.kill_at("two", place.length("out"));
        }
        place
    }

    /// The command with the state and these further arguments.
    pub(crate) fn command(&self, args: &str) -> Command {
        let compress = self.compress;
        self.folder.command(format!("{ARGS} {compress} {args}"))
    }

    /// A run from this output on.
    pub(crate) fn run(&self, output: &str, input: &str) -> Run {
        run(self.command(&format!("-o {output} {input}")))
    }

    /// A run that follows the input.
    pub(crate) fn follow_input(&self, input: &str, options: &str) -> Follower<'_> {
        let args = format!("--follow {options} -o out {input}");
        Follower::new(&self.folder, self.command(&args))
    }

    /// Begins to read an input, and kills the run behind the commit of its begin. A plain output has
    /// more than `before` bytes then.
    fn kill_at(&self, input: &str, before: u64) {
        let follower = self.follow_input(input, "--commit-interval 1h");
        wait_until(|| {
            let begun = &shown(&self.folder)["run"]["outputs"][0];
            let out = fs::metadata(self.folder.path("out"));
            let is_written = out.is_ok_and(|out| out.len() > before);
            let has_begun = begun.is_object() && begun["closed"].is_null();
            has_begun && (is_written || !self.compress.is_empty())
        });
        follower.kill();
    }

    /// The length of a file.
    pub(crate) fn length(&self, name: &str) -> u64 {
        fs::metadata(self.folder.path(name)).unwrap().len()
    }

    /// The content of an output.
    pub(crate) fn read(&self, name: &str) -> String {
        self.decode(&self.folder.bytes(name))
    }

    fn decode(&self, bytes: &[u8]) -> String {
        let bytes = match self.compress {
            "" => bytes.to_vec(),
            _ => zstd::decode_all(bytes).unwrap(),
        };
        String::from_utf8(bytes).unwrap()
    }

    /// Puts something in the place of the output. Returns the folder and the output of the next run,
    /// if there is such a place.
    fn find(&self, found: Found) -> Option<(PathBuf, &'static str)> {
        let out = self.folder.path("out");
        let folder = self.folder.path("");
        let file = || OpenOptions::new().write(true).open(&out).unwrap();
        match found {
            Found::Same => {}
            Found::Moved => {
                self.folder.rename("out", "moved");
                return Some((folder, "moved"));
            }
            Found::Copied => {
                fs::copy(&out, self.folder.path("copy")).unwrap();
                self.folder.rename("copy", "out");
            }
            Found::Edited => {
                let mut bytes = self.folder.bytes("out");
                bytes[20] ^= 1;
                self.folder.write("copy", bytes);
                self.folder.rename("copy", "out");
            }
            Found::Longer => self.folder.append("out", "# a note\n"),
            Found::Shorter => file().set_len(self.length("out") / 4).unwrap(),
            Found::Gone => fs::remove_file(&out).unwrap(),
            Found::Replaced => {
                fs::remove_file(&out).unwrap();
                self.folder.write("out", "# a note\n");
            }
            Found::Empty => file().set_len(0).unwrap(),
            Found::OtherDevice => {
                let other = fs::metadata("/dev/shm").ok()?;
                if other.dev() == fs::metadata(&folder).unwrap().dev() {
                    return None;
                }
                let other = tempfile::tempdir_in("/dev/shm").unwrap().keep();
                copy_all(&folder, &["state", "out", "two"], &other);
                return Some((other, "out"));
            }
        }
        Some((folder, "out"))
    }
}

/// Copies files and folders with their times.
fn copy_all(folder: &Path, names: &[&str], to: &Path) {
    let mut command = Command::new("cp");
    let copied = command.arg("-a").args(names).arg(to).current_dir(folder);
    assert!(copied.status().unwrap().success());
}

#[test]
fn what_is_found_in_place_of_an_output_is_never_cut_unless_it_is_the_state_s() {
    for compress in ["", "--compress zstd"] {
        for was_killed in [false, true] {
            for (found, ended, killed) in TABLE {
                let expected = if was_killed { killed } else { ended };
                let told = format!("{compress:?}, {found:?}, killed: {was_killed}");
                let place = Place::with_state(compress, was_killed);
                let Some((folder, output)) = place.find(found) else {
                    eprintln!("skipped: {told}: /dev/shm is not another device");
                    continue;
                };
                let path = folder.join(output);
                let before = fs::read(&path).unwrap_or_default();
                let run_again = || {
                    let mut command = place.command(&format!("-o {output} two"));
                    command.current_dir(&folder);
                    run(command)
                };
                let done = run_again();
                let after = fs::read(&path).unwrap();
                if let Done::Refused(reason) = expected {
                    assert!(done.error().contains(reason), "{told}: {}", done.stderr);
                    assert!(done.error().starts_with("out: "), "{told}: {}", done.stderr);
                    assert!(after == before, "{told}");
                    // Moved away, it makes room for another one.
                    fs::rename(&path, folder.join("away")).unwrap();
                    run_again().text();
                    let anew = place.decode(&fs::read(&path).unwrap());
                    assert_eq!(anew, content(200..400), "{told}");
                    continue;
                }
                assert_eq!((done.code, &*done.stderr), (0, ""), "{told}");
                match expected {
                    Done::GoesOn => {
                        assert_eq!(place.decode(&after), content(0..400), "{told}");
                    }
                    Done::Appended => {
                        let (kept, rest) = after.split_at(before.len());
                        assert!(kept == before, "{told}");
                        assert_eq!(place.decode(rest), records(200..400), "{told}");
                    }
                    Done::Anew => {
                        assert_eq!(place.decode(&after), content(200..400), "{told}");
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
    let place = Place::new("");
    place.folder.write("one", content(0..9));
    place.folder.write("two", content(0..19));
    let refused = "other: has 9 bytes that the state has not written: move it away to begin \
                   another one";
    // A new state, and one whose output has another name.
    for _ in 0..2 {
        place.folder.write("other", "# a note\n");
        let failed = place.run("other", "two");
        assert_eq!(failed.error(), refused);
        assert_eq!(place.folder.bytes("other"), b"# a note\n");
        place.run("out", "one").text();
    }
    // An empty one is.
    place.folder.write("other", "");
    place.run("other", "two").text();
    assert_eq!(place.read("other"), content(9..19));
}

/// An older state beside a newer output: what is behind it is not cut in any case.
#[test]
fn an_older_state_cuts_nothing_of_a_newer_output() {
    let place = Place::with_state("", false);
    copy_all(&place.folder.path(""), &["state"], Path::new("older"));
    place.run("out", "two").text();
    fs::remove_dir_all(place.folder.path("state")).unwrap();
    place.folder.rename("older", "state");
    let before = place.folder.bytes("out");
    place.folder.write("three", content(400..410));
    place.run("out", "three").fails("the state has written");
    assert_eq!(place.folder.bytes("out"), before);
}

/// The commit "running" is on the disk before the first byte of an output: all that was written
/// behind it is cut if it is in the file that the state has begun, and in no other one.
#[test]
fn a_run_that_is_killed_before_its_first_commit_has_begun_its_outputs() {
    for is_replaced in [false, true] {
        let place = Place::new("");
        place.folder.write("one", content(0..200));
        place.kill_at("one", HEADER.len() as u64);
        let written = place.folder.bytes("out");
        assert!(written.starts_with(HEADER.as_bytes()));
        if is_replaced {
            // The number may be given again, and the content may be anything.
            fs::remove_file(place.folder.path("out")).unwrap();
            place.folder.write("out", &written[..20]);
            place.run("out", "one").fails("has other content");
            assert_eq!(place.folder.bytes("out"), written[..20]);
        } else {
            place.run("out", "one").text();
            assert_eq!(place.read("out"), content(0..200));
        }
    }
}

/// The position of a killed run is not kept beside that of the same file under another name.
#[test]
fn an_output_under_two_names_is_one() {
    for other in ["./out", "link"] {
        let place = Place::with_state("", true);
        symlink("out", place.folder.path("link")).unwrap();
        place.run(other, "two").text();
        place.folder.write("three", content(400..410));
        place.run("out", "three").text();
        assert_eq!(place.read("out"), content(0..410), "{other}");
    }
}
