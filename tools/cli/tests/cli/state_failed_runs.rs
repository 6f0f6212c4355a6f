//! Runs with a state that fail, or whose reader leaves: what their outputs and the next run have.

use std::fs::{self, File};
use std::process::Stdio;

use crate::run::{Folder, run};
use crate::state_outputs::{HEADER, Place, content, records};

#[test]
fn a_run_whose_statistics_cannot_be_written_has_closed_its_outputs() {
    let place = Place::new("");
    place.folder.write("one", content(0..9));
    let failed = run(place.command("--stats /dev/full -o out one"));
    assert!(
        failed.error().starts_with("/dev/full: "),
        "{}",
        failed.stderr
    );
    place.folder.append("out", "# a note\n");
    let before = place.folder.bytes("out");
    place.folder.write("two", content(9..19));
    place.run("out", "two").fails("the state has written");
    assert_eq!(place.folder.bytes("out"), before);
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
    for compress in ["", "--compress zstd"] {
        for failing in [Failing::Fault, Failing::LaterFault, Failing::Unreadable] {
            for is_appended in [false, true] {
                let told = format!("{compress:?}, {failing:?}, appended: {is_appended}");
                let place = Place::with_state(compress, false);
                let two = place.folder.read("two");
                let mut command = place.command("-o out two");
                let reason = match failing {
                    Failing::Fault => {
                        place.folder.append("two", "400\n");
                        "two, line 202"
                    }
                    Failing::LaterFault => {
                        place.folder.write("three", format!("{HEADER}400\n"));
                        command.arg("three");
                        "three, line 2"
                    }
                    Failing::Unreadable => {
                        fs::create_dir(place.folder.path("folder")).unwrap();
                        command.arg("folder");
                        "folder: "
                    }
                };
                let failed = run(command);
                assert!(failed.error().contains(reason), "{told}: {}", failed.stderr);
                place.folder.write("two", &two);
                if is_appended {
                    place.folder.append("out", "# a note\n");
                    let before = place.folder.bytes("out");
                    let refused = place.run("out", "two");
                    let reason = ", and the state has written ";
                    assert!(
                        refused.error().contains(reason),
                        "{told}: {}",
                        refused.stderr
                    );
                    assert!(place.folder.bytes("out") == before, "{told}");
                } else {
                    place.run("out", "two").text();
                    assert_eq!(place.read("out"), content(0..400), "{told}");
                }
            }
        }
    }
}

/// The main output ends early, in the first chunk; what others append to the others stays.
#[test]
fn nothing_is_cut_behind_a_run_whose_reader_left_or_whose_disk_is_full() {
    for compress in ["", "--compress zstd"] {
        for is_full in [false, true] {
            for is_appended in [false, true] {
                let told = format!("{compress:?}, full: {is_full}, appended: {is_appended}");
                let place = Place::new(compress);
                place.folder.write("in", content(0..99) + &records(0..99));
                let to = |output: Stdio| {
                    let mut command = place.command("--duplicates dropped in");
                    command.stdout(output).output().unwrap()
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
                let first = place.folder.bytes("dropped");
                if is_appended {
                    place.folder.append("dropped", "# a note\n");
                    let refused = to(Stdio::null());
                    let reason = String::from_utf8(refused.stderr).unwrap();
                    assert!(
                        reason.contains(", and the state has written "),
                        "{told}: {reason}"
                    );
                    let dropped = [&first[..], b"# a note\n"].concat();
                    assert_eq!(place.folder.bytes("dropped"), dropped, "{told}");
                } else {
                    let out = File::create(place.folder.path("out")).unwrap();
                    assert_eq!(to(out.into()).status.code(), Some(0), "{told}");
                    assert_eq!(place.read("dropped"), content(0..99), "{told}");
                    assert_eq!(place.read("out"), content(0..99), "{told}");
                }
            }
        }
    }
}

/// What is in front of the first record is written once the first chunk has no fault.
#[test]
fn a_fault_in_the_first_chunk_begins_no_output() {
    let folder = Folder::new();
    for (options, faulty, mended) in [
        ("--csv -k 2", "\u{feff}a\n", "\u{feff}a,1\nb,1\n"),
        ("--csv --header -k y", "x,y\na\n", "y,x\n1,a\n1,b\n"),
    ] {
        let dedup = |args: &str| folder.echoless(format!("dedup -q -m 64KiB {options} {args}"));
        let with_state = "--state state -o out in";
        folder.write("in", faulty);
        assert_eq!(dedup(with_state).code, 2);
        folder.write("in", mended);
        let plain = dedup("in").text();
        dedup(with_state).text();
        assert_eq!(folder.read("out"), plain, "{options}");
        fs::remove_dir_all(folder.path("state")).unwrap();
        fs::remove_file(folder.path("out")).unwrap();
    }
}
