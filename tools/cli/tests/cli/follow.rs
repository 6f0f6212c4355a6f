//! `--follow`: inputs that grow, are rotated and truncated while a run reads them.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::thread;
use std::time::Duration;

use crate::codecs::compress;
use crate::following::{Follower, has_input, shown, wait_for_commit, wait_until};
use crate::run::Folder;

/// The options of a run that keeps a state and commits often.
const STATE: &str = "--state state --commit-interval 0s";

/// A folder with an empty log.
fn with_log() -> Folder {
    Folder::with(&[("log", "")])
}

/// Starts a run that follows the log.
fn follow<'a>(folder: &'a Folder, options: &str) -> Follower<'a> {
    let args = format!("dedup -m 64KiB --summary line --follow -o out {options} log");
    Follower::new(folder, folder.command(args))
}

/// The log goes on under another name.
fn renamed(folder: &Folder) {
    folder.rename("log", "log.1");
}

/// The log goes on compressed.
fn compressed(folder: &Folder) {
    let text = folder.read("log");
    folder.write("log.1.gz", compress("gzip", text.as_bytes()));
    fs::remove_file(folder.path("log")).unwrap();
}

/// The log is copied, and goes on empty.
fn truncated(folder: &Folder) {
    fs::copy(folder.path("log"), folder.path("log.1")).unwrap();
    folder.write("log", "");
}

/// Ends a run with a signal, and returns what it has written in front of its summary.
#[track_caller]
fn end(follower: Follower, signal: &str, code: i32) -> String {
    follower.signal(signal);
    let told = follower.ended(Some(code));
    let (notes, summary) = told.trim_end().rsplit_once('\n').unwrap_or(("", &told));
    assert!(summary.contains(" fresh, "), "{told}");
    notes.to_owned()
}

#[test]
fn a_growing_file_is_read_as_it_grows_and_a_signal_ends_the_run() {
    for threads in ["1", "3"] {
        let folder = Folder::with(&[("log", ""), ("before", "x\ny\n")]);
        let follower = follow(&folder, &format!("--threads {threads} before"));
        follower.writes("x\ny\n");
        folder.append("log", "a\nx\nb");
        follower.writes("x\ny\na\n");
        folder.append("log", "c\na\n");
        follower.writes("x\ny\na\nbc\n");
        for number in 0..2000 {
            folder.append("log", format!("{}\n", number % 500));
        }
        let numbers: String = (0..500).map(|number| format!("{number}\n")).collect();
        let expected = format!("x\ny\na\nbc\n{numbers}");
        follower.writes(&expected);
        assert_eq!(end(follower, "-TERM", 143), "");
        assert_eq!(folder.read("out"), expected);
    }
}

#[test]
fn a_rotated_file_is_read_to_its_end_and_the_next_one_from_its_start() {
    for threads in ["1", "3"] {
        let folder = with_log();
        let follower = follow(
            &folder,
            &format!("--threads {threads} --csv --header -k id"),
        );
        folder.append("log", "id,v\n1,a\n");
        follower.writes("id,v\n1,a\n");
        folder.rename("log", "log.1");
        // The writer has the old file open, also when the new one exists.
        folder.append("log.1", "2,b\n");
        follower.writes("id,v\n1,a\n2,b\n");
        folder.write("log", "");
        folder.append("log.1", "3,c");
        folder.append("log.1", "\n4,d");
        folder.append("log", "id,v\n1,x\n5,e\n");
        let expected = "id,v\n1,a\n2,b\n3,c\n4,d\n5,e\n";
        follower.writes(expected);
        // Truncation, and the same name again.
        folder.write("log", "");
        folder.append("log", "id,v\n6,f\n");
        follower.writes(&format!("{expected}6,f\n"));
        assert_eq!(
            end(follower, "-INT", 130),
            "echoless: log: was replaced, and goes on in the new file\n\
             echoless: log: was truncated, and is read from its start"
        );
    }
}

/// What happens to a followed log while no run reads it, after its first lines were read or not.
#[test]
fn a_state_reads_what_was_rotated_while_no_run_read_it() {
    type Rotation = Box<dyn Fn(&Folder)>;
    let moved = |to: &'static str, appended: &'static [(&str, &str)]| -> Rotation {
        Box::new(move |folder| {
            folder.rename("log", to);
            for (name, text) in appended {
                folder.append(name, text);
            }
        })
    };
    let compressed_between = |folder: &Folder| {
        folder.rename("log", "log.3");
        folder.write("log.2.gz", compress("gzip", b"b\n"));
        folder.append("log.1", "c\n");
    };
    let copied = |folder: &Folder| {
        fs::copy(folder.path("log"), folder.path("log.1")).unwrap();
        fs::remove_file(folder.path("log")).unwrap();
    };
    let dated = &[
        ("log-20251127", "c\n"),
        ("log-20251126", "b\n"),
        ("log-20251124", "old\n"),
    ];
    let cases: [(&str, Rotation, &str); 9] = [
        ("renamed", Box::new(renamed), "new\n"),
        ("twice", moved("log.2", &[("log.1", "b\n")]), "b\nnew\n"),
        ("compressed itself", Box::new(compressed), "new\n"),
        ("copied and truncated", Box::new(truncated), "new\n"),
        ("by date", moved("log-20251125", dated), "b\nc\nnew\n"),
        (
            "compressed in between",
            Box::new(compressed_between),
            "b\nc\nnew\n",
        ),
        ("copied with another number", Box::new(copied), "new\n"),
        ("under a name of its own", moved("log.old", &[]), "new\n"),
        (
            "with an older writer",
            moved("log.2", &[("log.1", "b\n"), ("log.2", "late\n")]),
            "late\nb\nnew\n",
        ),
    ];
    // How much of it was read before: nothing of an empty file, half a line, a line.
    for before in ["", "hal", "a\n"] {
        for follows_first in [true, false] {
            // The names of the rotated file matter in one of these.
            let is_whole = before == "a\n" && follows_first;
            for (name, rotate, expected) in &cases[..if is_whole { 9 } else { 4 }] {
                let folder = with_log();
                folder.append("log", before);
                let read = if before == "a\n" { before } else { "" };
                if follows_first {
                    let follower = follow(&folder, &format!("{STATE} -q"));
                    follower.writes(read);
                    wait_until(|| has_input(&folder));
                    follower.kill();
                } else {
                    if before == "hal" {
                        continue;
                    }
                    let args = "dedup -q -m 64KiB --state state -o out log";
                    folder.echoless(args).text();
                }
                let first = if before == "hal" { "half" } else { "a" };
                let expected = format!("{first}\nrest\n{expected}");
                folder.append(
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
                rotate(&folder);
                folder.append("log", "new\n");
                let follower = follow(&folder, &format!("{STATE} -q"));
                let told = format!("{name}, {before:?}, {follows_first}");
                eprintln!("{told}");
                follower.writes(&expected);
                assert_eq!(follower.end(), "", "{told}");
                // Once.
                let follower = follow(&folder, &format!("{STATE} -q"));
                folder.append("log", "more\n");
                follower.writes(&format!("{expected}more\n"));
                assert_eq!(follower.end(), "", "{told}");
            }
        }
    }
}

#[test]
fn a_first_line_that_all_files_have_does_not_hide_a_rotation() {
    type Rotation = fn(&Folder);
    let cases: [(&str, Rotation); 3] = [
        ("compressed", compressed),
        ("copied and truncated", truncated),
        ("renamed", renamed),
    ];
    for (name, rotate) in cases {
        eprintln!("{name}");
        let folder = with_log();
        folder.append("log", "# banner\n");
        let follower = follow(&folder, &format!("{STATE} -q"));
        follower.writes("# banner\n");
        wait_for_commit(&folder);
        follower.kill();
        folder.append("log", "rest\n");
        rotate(&folder);
        folder.append("log", "# banner\nnew\n");
        let follower = follow(&folder, &format!("{STATE} -q"));
        follower.writes("# banner\nrest\nnew\n");
        assert_eq!(follower.end(), "", "{name}");
        let follower = follow(&folder, &format!("{STATE} -q"));
        folder.append("log", "more\n");
        follower.writes("# banner\nrest\nnew\nmore\n");
        assert_eq!(follower.end(), "", "{name}");
    }
}

/// The header is longer than the prefix of a file that is compared first.
#[test]
fn a_long_header_that_all_files_have_does_not_hide_a_compressed_one() {
    let header = "h".repeat(1500) + "\n";
    let file = |lines: &str| format!("{header}{lines}");
    let folder = Folder::with(&[("log", file("a\n"))]);
    let follower = follow(&folder, STATE);
    follower.writes(&file("a\n"));
    end(follower, "-TERM", 143);
    for (name, lines) in [("log.2.gz", "a\n"), ("log.1.gz", "b\n")] {
        folder.write(name, compress("gzip", file(lines).as_bytes()));
    }
    folder.write("log", file("c\n"));
    let follower = follow(&folder, STATE);
    follower.writes(&file("a\nb\nc\n"));
    end(follower, "-TERM", 143);
}

#[test]
fn a_file_that_was_made_later_was_rotated_later() {
    let folder = with_log();
    folder.append("log", "a\n");
    let follower = follow(&folder, &format!("{STATE} -q"));
    follower.writes("a\n");
    wait_for_commit(&folder);
    follower.kill();
    folder.append("log", "b\n");
    folder.rename("log", "old");
    folder.append("log.1", "c\n");
    folder.append("log", "d\n");
    let time = fs::metadata(folder.path("old"))
        .unwrap()
        .modified()
        .unwrap();
    let set = |name: &str, time| {
        let file = OpenOptions::new().append(true).open(folder.path(name));
        file.unwrap().set_modified(time).unwrap();
    };
    // Made later, and changed before.
    set("log.1", time - Duration::from_secs(9));
    let follower = follow(&folder, &format!("{STATE} -q"));
    follower.writes("a\nb\nc\nd\n");
    assert_eq!(follower.end(), "");
}

#[test]
fn a_name_that_is_not_there_yet_is_waited_for() {
    for threads in ["1", "3"] {
        let folder = Folder::with(&[("before", "x\n")]);
        let follower = follow(&folder, &format!("{STATE} --threads {threads} before"));
        follower.writes("x\n");
        folder.append("log", "a\nx\n");
        follower.writes("x\na\n");
        let told = end(follower, "-TERM", 143);
        // The file may be there before the run looks for it.
        let waits = "echoless: log: does not exist, and is waited for";
        assert!(told.is_empty() || told == waits, "{told}");
    }
}

/// Rotates a log that was written once more, while no run polls it: it is compressed, and goes on
/// in two other files.
fn rotate_twice(folder: &Folder) {
    folder.append("log", "a\n");
    let text = folder.read("log");
    folder.write("log.3.gz", compress("gzip", text.as_bytes()));
    fs::remove_file(folder.path("log")).unwrap();
    folder.append("log.2", "b\n");
    folder.append("log.1", "c\n");
    folder.append("log", "d\n");
}

#[cfg(target_os = "linux")]
#[test]
fn all_that_is_rotated_between_two_polls_is_read() {
    for threads in ["1", "3"] {
        for options in ["", STATE] {
            for is_there in [false, true] {
                let folder = Folder::with(&[("before", "x\n"), ("log.1", "old\n")]);
                folder.write("log.2.gz", compress("gzip", b"older\n"));
                let mut expected = "x\n".to_owned();
                if is_there {
                    folder.write("log", "y\n");
                    expected += "y\n";
                }
                let options = format!("{options} -q --threads {threads} before");
                let follower = follow(&folder, &options);
                follower.writes(&expected);
                follower.signal("-STOP");
                // What was there before is not read under any name.
                folder.rename("log.2.gz", "log.5.gz");
                folder.write("log.4.gz", compress("gzip", b"old\n"));
                fs::remove_file(folder.path("log.1")).unwrap();
                rotate_twice(&folder);
                follower.signal("-CONT");
                follower.writes(&format!("{expected}a\nb\nc\nd\n"));
                assert_eq!(follower.end(), "");
            }
        }
    }
}

#[test]
fn an_awaited_file_that_is_rotated_while_no_run_awaits_it_is_read() {
    let folder = Folder::with(&[("log.1", "old\n")]);
    let wait = || {
        let follower = follow(&folder, &format!("{STATE} -q"));
        wait_until(|| !shown(&folder)["run"]["awaited"].is_null());
        follower.kill();
    };
    wait();
    folder.rename("log.1", "log.4");
    wait();
    rotate_twice(&folder);
    for more in ["", "more\n"] {
        let follower = follow(&folder, &format!("{STATE} -q"));
        folder.append("log", more);
        follower.writes(&format!("a\nb\nc\nd\n{more}"));
        assert_eq!(follower.end(), "");
        assert!(shown(&folder)["run"]["awaited"].is_null());
    }
}

#[test]
fn a_state_goes_on_with_what_was_appended_and_rotated_meanwhile() {
    let folder = with_log();
    let follower = follow(&folder, STATE);
    folder.append("log", "a\nb\n");
    follower.writes("a\nb\n");
    assert_eq!(end(follower, "-TERM", 143), "");
    // It grows while nothing runs.
    folder.append("log", "b\nc\n");
    let follower = follow(&folder, STATE);
    follower.writes("a\nb\nc\n");
    let notes = end(follower, "-TERM", 143);
    assert_eq!(notes, "echoless: log: goes on behind byte 4");
    // It is rotated, and the new one is still empty: the old one may grow.
    folder.append("log", "d\n");
    folder.rename("log", "log.1");
    folder.write("log", "");
    let follower = follow(&folder, STATE);
    follower.writes("a\nb\nc\nd\n");
    folder.append("log.1", "e\n");
    follower.writes("a\nb\nc\nd\ne\n");
    folder.append("log", "a\nf\n");
    follower.writes("a\nb\nc\nd\ne\nf\n");
    assert_eq!(
        end(follower, "-TERM", 143),
        "echoless: log: goes on behind byte 8 of log.1, as it is called now\n\
         echoless: log: was replaced, and goes on in the new file"
    );
    // The new one was read in part.
    folder.append("log", "g\n");
    let follower = follow(&folder, STATE);
    follower.writes("a\nb\nc\nd\ne\nf\ng\n");
    end(follower, "-TERM", 143);
}

#[test]
fn what_cannot_be_found_after_a_restart_is_said() {
    let folder = with_log();
    let restart = |expected: &str| {
        let follower = follow(&folder, &format!("{STATE} -q"));
        follower.writes(expected);
        follower.end()
    };
    folder.append("log", "a\n");
    assert_eq!(restart("a\n"), "");
    // Removed.
    folder.append("log", "e\n");
    folder.append("new", "f\n");
    folder.rename("new", "log");
    let told = restart("a\nf\n");
    let other = "echoless: log: is another file than the one that was read up to byte 2";
    assert!(told.starts_with(other), "{told}");
    // Written anew.
    folder.write("log", "g\nh\n");
    let told = restart("a\nf\ng\nh\n");
    let anew = "echoless: log: was truncated or written anew since it was read";
    assert!(told.starts_with(anew), "{told}");
}

#[test]
fn an_empty_file_that_is_compressed_later_may_be_the_oldest_that_is_found() {
    let folder = with_log();
    let follower = follow(&folder, &format!("{STATE} -q"));
    wait_until(|| has_input(&folder));
    follower.kill();
    rotate_twice(&folder);
    let follower = follow(&folder, &format!("{STATE} -q"));
    follower.writes("a\nb\nc\nd\n");
    assert_eq!(
        follower.end(),
        "echoless: log: is another file than the one that was empty when it was read: if that is \
         not log.3.gz now, which is read from its start, its records are lost\n"
    );
}

#[test]
fn killed_and_rotated_at_any_instant_nothing_is_lost_or_doubled() {
    let mut drawn = 1_u64;
    let mut draw = |bound: u64| {
        drawn = drawn.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        (drawn >> 33) % bound
    };
    for threads in ["1", "3"] {
        let folder = with_log();
        let (mut all, mut rotations, mut number) = (String::new(), 0, 0);
        for _ in 0..16 {
            let follower = follow(&folder, &format!("{STATE} -q --threads {threads}"));
            // Before, it knows no file.
            wait_until(|| has_input(&folder));
            let steps = draw(12);
            for step in 0..=steps {
                let mut lines = String::new();
                for _ in 0..draw(200) {
                    number += 1;
                    lines += &format!("line {}\n", number - draw(number.min(300)));
                }
                folder.append("log", &lines);
                all += &lines;
                if draw(4) == 0 && step < steps {
                    rotations += 1;
                    for number in (1..rotations).rev() {
                        let [from, to] = [number, number + 1].map(|number| format!("log.{number}"));
                        folder.rename(&from, &to);
                    }
                    folder.rename("log", "log.1");
                    let first = format!("first {rotations}\n");
                    folder.append("log", &first);
                    all += &first;
                    if draw(2) == 0 {
                        break;
                    }
                }
                thread::sleep(Duration::from_micros(draw(3000)));
            }
            follower.kill();
        }
        let follower = follow(&folder, &format!("{STATE} -q"));
        // Which only this run can write, so that it catches signals once it is there.
        folder.append("log", "last\n");
        all += "last\n";
        follower.writes(&exact(&all));
        assert_eq!(follower.end(), "");
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
    let zipped = zstd::encode_all(&b"a\n"[..], 1).unwrap();
    let folder = Folder::with(&[("log", &b"a\n"[..]), ("zipped", &zipped)]);
    folder.assert_runs(&[
        "--follow | !! invalid --follow: expected the name of a regular file as the last input, not standard input",
        "--follow log - | !! not standard input",
        "--follow . | !! invalid --follow: expected a regular file as the last input, not ",
        "--follow /dev/null | !! not /dev/null",
        "--follow zipped | !! zipped is compressed",
        "--follow missing/log | !! No such file or directory",
        "--follow --keep last log | !! cannot be used with",
        "--follow --in-place log | !! cannot be used with",
        "--follow --skip-seen-files missing log | !! cannot be used with",
    ]);
    // A file that follows is checked when it comes.
    let follower = follow(&folder, "-q --state state");
    follower.writes("a\n");
    folder.rename("log", "log.1");
    folder.rename("zipped", "log");
    let told = follower.ended(Some(2));
    let compressed = "log: is compressed, and --follow reads plain files alone";
    assert!(told.contains(compressed), "{told}");
}
