//! Outputs that a state knows, while a run follows its input: other programs truncate, replace and
//! append to them, and a kill leaves frames that are not complete.

use std::fs::{self, File};
use std::ops::Range;

use crate::following::{Follower, wait_for_commit};
use crate::run::run;
use crate::state_outputs::{HEADER, Place, content, records};

/// A place with a log that has no records yet.
fn with_log(compress: &'static str) -> Place {
    let place = Place::new(compress);
    place.folder.write("log", HEADER);
    place
}

impl Place {
    /// A run that follows the log.
    fn follow(&self, options: &str) -> Follower<'_> {
        self.follow_input("log", &format!("--commit-interval 0s {options}"))
    }

    /// Appends records to the log, and waits until they are committed.
    #[track_caller]
    fn passes(&self, numbers: Range<u32>) {
        self.folder.append("log", records(numbers));
        wait_for_commit(&self.folder);
    }
}

/// Ends a run with a kill, or with a signal that it catches.
#[track_caller]
fn end(follower: Follower, is_killed: bool) {
    match is_killed {
        true => follower.kill(),
        false => drop(follower.end()),
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
            let place = with_log("");
            let follower = place.follow("");
            place.passes(0..10);
            let first = content(0..10);
            assert_eq!(place.read("out"), first);
            let kept = match meanwhile {
                Truncated => {
                    place.folder.write("out", "");
                    HEADER.to_owned()
                }
                Removed => {
                    fs::remove_file(place.folder.path("out")).unwrap();
                    HEADER.to_owned()
                }
                Renamed => {
                    place.folder.rename("out", "out.1");
                    HEADER.to_owned()
                }
                Edited => {
                    let edited = first.replace("name 3", "NAME 3");
                    place.folder.write("copy", &edited);
                    place.folder.rename("copy", "out");
                    edited
                }
                Appended => {
                    place.folder.append("out", "# a note\n");
                    format!("{first}# a note\n")
                }
            };
            place.passes(10..20);
            end(follower, is_killed);
            let expected = format!("{kept}{}", records(10..20));
            assert_eq!(place.read("out"), expected, "{told}");
            if let Renamed = meanwhile {
                assert_eq!(place.read("out.1"), first);
            }
            // And so does the next run.
            let follower = place.follow("");
            place.passes(20..30);
            follower.end();
            let expected = format!("{expected}{}", records(20..30));
            assert_eq!(place.read("out"), expected, "{told}");
        }
    }
}

/// A record may be in two frames, so what is appended between them would be inside of it.
#[test]
fn a_compressed_output_that_is_appended_to_while_it_is_written_is_an_error_and_not_cut() {
    let note = zstd::encode_all(&b"# a note\n"[..], 3).unwrap();
    // Before a frame is written, between two of them, and behind the last one.
    for numbers in [10..20, 10..90_000, 10..10] {
        let place = with_log("--compress zstd");
        let follower = place.follow("");
        place.passes(0..10);
        if numbers.end > 20 {
            place.passes(100_000..170_000);
        }
        let before = place.length("out");
        place.folder.append("out", &note);
        if numbers.is_empty() {
            follower.signal("-TERM");
        } else {
            place.folder.append("log", records(numbers.clone()));
        }
        let told = follower.ended(Some(2));
        assert!(told.contains("out: was appended to while"), "{told}");
        let found = place.folder.bytes("out");
        let refused = place.run("out", "log");
        let expected = format!(
            "out: has {} bytes, and the state has written {before}",
            found.len()
        );
        assert!(refused.error().starts_with(&expected), "{}", refused.stderr);
        assert!(place.folder.bytes("out") == found);
        place.folder.rename("out", "away");
        place.run("out", "log").text();
        let away = place.read("away").replacen("# a note\n", "", 1);
        let both = away + place.read("out").strip_prefix(HEADER).unwrap();
        assert!(both == place.folder.read("log"), "{numbers:?}");
    }
}

/// Frames that are not complete are only in the state: a kill and a lost file lose none of their
/// records, and a signal, which completes them, repeats none.
#[test]
fn compressed_outputs_that_are_removed_or_renamed_lose_and_repeat_nothing() {
    for is_killed in [false, true] {
        let place = with_log("--compress zstd");
        let follower = place.follow("");
        place.passes(0..10);
        // A run completes the frame before it follows the name.
        place.folder.rename("out", "out.1");
        place.passes(10..20);
        assert_eq!(place.read("out.1"), content(0..10));
        end(follower, is_killed);
        if !is_killed {
            assert_eq!(place.read("out"), content(10..20));
        }
        fs::remove_file(place.folder.path("out")).unwrap();
        let follower = place.follow("");
        place.passes(20..30);
        follower.end();
        let first = if is_killed { 10 } else { 20 };
        assert_eq!(place.read("out"), content(first..30));
    }
}

#[test]
fn a_compressed_output_that_is_cut_while_it_is_written_is_an_error() {
    let place = Place::with_state("--compress zstd", false);
    place.folder.write("log", HEADER);
    let follower = place.follow("");
    place.passes(400..410);
    File::options()
        .write(true)
        .open(place.folder.path("out"))
        .unwrap()
        .set_len(9)
        .unwrap();
    place.folder.append("log", records(410..420));
    let told = follower.ended(Some(2));
    let expected = "out: was cut while it was written: move it away to begin another one";
    assert!(told.contains(expected), "{told}");
    place.folder.rename("out", "away");
    let follower = place.follow("");
    place.passes(420..430);
    follower.end();
    assert_eq!(place.read("out"), content(400..430));
}

/// A killed run leaves records that are only in its state: they are in the output that comes next,
/// under any name, and once.
#[test]
fn open_frames_of_a_killed_run_go_to_the_next_output_under_any_name() {
    let place = with_log("--compress zstd");
    let follower = place.follow("--duplicates dropped");
    place.passes(0..10);
    place.folder.append("log", "10,name 3\n");
    place.passes(11..12);
    follower.kill();
    // Without the option, its output waits.
    place.run("other", "log").text();
    let others = content(0..10) + &records(11..12);
    assert_eq!(place.read("other"), others);
    place.folder.append("log", "12,name 5\n");
    run(place.command("--duplicates again -o out log")).text();
    assert_eq!(
        place.read("again"),
        format!("{HEADER}10,name 3\n12,name 5\n")
    );
    // They are taken over once.
    assert_eq!(place.read("out"), HEADER);
}

#[test]
fn a_file_that_was_refused_while_a_run_went_on_is_not_adopted_at_its_end() {
    // The second has all that the state knows of the output, and what later runs would write.
    for other in [
        "of another program\n".to_owned(),
        content(0..150) + "# a note\n",
    ] {
        let place = with_log("");
        let follower = place.follow("");
        place.passes(0..100);
        place.folder.write("other", &other);
        place.folder.rename("other", "out");
        follower.signal("-TERM");
        let told = follower.ended(Some(2));
        assert!(told.contains("is another file"), "{told}");
        assert_eq!(place.read("out"), other);
        place.folder.append("log", records(100..150));
        let again = place.run("out", "log");
        assert_eq!(again.code, 2, "{}", again.stderr);
        assert_eq!(place.read("out"), other);
    }
}
