//! What stands around a state: its own files, the places where it is exported to, and what a later
//! run is told.

use std::fs;
use std::path::Path;

use crate::run::{Folder, Run};

/// A folder with a state, and an input that it has read.
fn with_state() -> Folder {
    let folder = Folder::with(&[("one", "a\nb\na\n")]);
    dedup(&folder, "-o out one").text();
    folder
}

/// A run with the state.
fn dedup(folder: &Folder, args: &str) -> Run {
    folder.echoless(format!("dedup -q -m 64KiB --state state {args}"))
}

/// The names and the bytes of the files of the state.
fn state(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder.path("state")).unwrap();
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    let mut files: Vec<_> = entries.map(|entry| file(entry.unwrap())).collect();
    files.sort_unstable();
    files
}

#[test]
fn an_export_may_lose_its_reader() {
    let folder = with_state();
    let mut export = folder.command("state export state -o -").spawn().unwrap();
    drop(export.stdout.take());
    let ended = export.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(ended.stderr, b"");
}

#[test]
fn files_of_the_state_are_no_outputs() {
    let folder = with_state();
    folder.write("two", "a\nc\n");
    let before = state(&folder);
    let segment = "state/segment-0000000001";
    let mut names = vec![
        segment,
        "state/segment-0000000001.new",
        "state/segment-0000000002",
        "state/lock",
        "state/../state/lock",
    ];
    {
        for (target, name) in [(segment, "link"), ("state", "folder")] {
            std::os::unix::fs::symlink(folder.path(target), folder.path(name)).unwrap();
        }
        names.extend(["link", "folder/lock"]);
    }
    for name in &names {
        let expected = format!("{name}: is also a file of the state state");
        for outputs in [
            "-o NAME",
            "-o new --duplicates NAME",
            "-o new --explain=NAME",
            "-o new --stats NAME",
            "-o new --tag-file=NAME",
            "-o new --rejects NAME -k 1",
        ] {
            let failed = dedup(&folder, &format!("{} two", outputs.replace("NAME", name)));
            let error = failed.error();
            // Options that the state was not made with are refused, too.
            let is_refused = error == expected || error.contains("as in the state");
            assert!(is_refused, "{outputs}: {error}");
            assert!(state(&folder) == before, "{outputs}");
        }
        let failed = folder.echoless(format!("state export state -o {name}"));
        assert_eq!(failed.error(), expected);
        assert!(state(&folder) == before, "{name}");
    }
    // Another name for the bytes of a segment.
    fs::hard_link(folder.path(segment), folder.path("same")).unwrap();
    dedup(&folder, "-o same two").fails("is also a file of the state");
    assert!(state(&folder) == before);
    folder.echoless("state verify state").text();
    dedup(&folder, "-o out two").text();
    assert_eq!(folder.read("out"), "a\nb\nc\n");
}

#[test]
fn a_link_to_no_file_creates_none_in_the_state() {
    use std::os::unix::fs::symlink;

    let folder = with_state();
    let before = state(&folder);
    // The name of a segment that is not there.
    symlink("state/segment-7777777777", folder.path("link")).unwrap();
    symlink("link", folder.path("twice")).unwrap();
    for output in ["link", "twice"] {
        let failed = dedup(&folder, &format!("-o {output} one"));
        let expected = format!("{output}: is also a file of the state state");
        assert_eq!(failed.error(), expected);
        assert!(state(&folder) == before, "{output}");
    }
}

#[test]
fn an_export_replaces_regular_files_alone_and_no_killed_one_blocks_it() {
    let folder = with_state();
    let export = |name: &str| folder.echoless(format!("state export state -o {name}"));
    // As earlier versions left it.
    folder.write("ex.new", "half of a state");
    export("ex").text();
    let state = folder.bytes("ex");
    assert_eq!(folder.read("ex.new"), "half of a state");
    assert!(export("-").bytes() == state);
    fs::create_dir(folder.path("folder")).unwrap();
    export("folder").fails("folder: is a folder: expected a file");
    // A failed export leaves the old file.
    let failed = folder.echoless("state export none -o ex");
    assert!(failed.error().starts_with("none"), "{}", failed.stderr);
    assert!(folder.bytes("ex") == state);
}

#[test]
fn missing_segments_are_an_error() {
    let folder = with_state();
    fs::remove_file(folder.path("state/segment-0000000001")).unwrap();
    let expected = "state: it had segments, which are missing: remove its file lock to begin anew";
    assert_eq!(dedup(&folder, "-o out one").error(), expected);
    assert_eq!(folder.read("out"), "a\nb\n");
}

/// The administrator reads any folder, so the run is that of another user.
#[test]
fn the_folder_around_a_state_need_not_be_readable() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let program = folder.path().join("echoless");
    fs::copy(env!("CARGO_BIN_EXE_echoless"), &program).unwrap();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(folder.path(), 0o755);
    // As that of another user in which this one may create files.
    open(&inner, 0o733);
    let nobody = 65534;
    let is_root = chown(&program, Some(0), None).is_ok();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &nobody.to_string(), "--clear-groups"]);
    if !is_root
        || !command
            .arg("true")
            .status()
            .is_ok_and(|status| status.success())
    {
        eprintln!("SKIPPED: no right to be another user");
        return;
    }
    let script = "umask 022; seq 5 >a && $0 dedup -q -m 64k --state s -o out a && \
                  $0 dedup -q -m 64k --state s -o out a 2>/dev/null && \
                  $0 state export s -o ex && $0 state export \"$PWD\"/s -o ex && cat out";
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid",
        &nobody.to_string(),
        "--clear-groups",
        "sh",
        "-c",
        script,
    ]);
    let shown = command.arg(&program).current_dir(&inner).output().unwrap();
    let (out, said) = (
        shown.stdout,
        String::from_utf8_lossy(&shown.stderr).into_owned(),
    );
    open(&inner, 0o755);
    assert_eq!(
        (said.as_str(), out.as_slice()),
        ("", &b"1\n2\n3\n4\n5\n"[..])
    );
}

#[test]
fn options_may_be_written_in_another_way_and_advice_is_taken() {
    let folder = Folder::with(&[("good", "1,a\n2,b\n"), ("more", "3,a\n4,c\n\n5\n")]);
    let with = |state: &str, args: &str| {
        folder.echoless(format!("dedup -q -m 64k --state={state} -o of {args}"))
    };
    for (one, other) in [
        ("-k 1,2", "-k 1-2"),
        (
            "--window 1h --time-field 1 --time-format %s",
            "--window 60m --time-field 1 --time-format %s --lateness 1m",
        ),
    ] {
        with("same", &format!("{one} good")).text();
        with("same", &format!("{other} --again good")).text();
        fs::remove_file(folder.path("of")).unwrap();
        fs::remove_dir_all(folder.path("same")).unwrap();
    }
    // The run ends at a record without a key, and advises what to do.
    with("faulty", "-k 2 good").text();
    with("faulty", "-k 2 good more").fails("--missing skip");
    with("faulty", "-k 2 --missing skip good more").text();
    let left = with(
        "faulty",
        "-k 2 --missing empty --blank-lines skip good more",
    );
    assert_eq!(left.code, 0, "{}", left.stderr);
    assert_eq!(folder.read("of"), "1,a\n2,b\n4,c\n\n5\n");
    // Another meaning is still refused, in the words of both runs.
    let failed = with("faulty", "-k 1-2 good");
    let expected = "invalid --key=1-2: expected --key=2, as in the state faulty";
    assert_eq!(failed.error(), expected);
}

/// A terminal obeys control characters, and shows text in another order behind those of directions.
#[cfg(target_os = "linux")]
#[test]
fn names_reach_a_terminal_as_they_are() {
    let hostile = "\u{1b}]0;title\u{7}\u{9b}31m\r\n\u{7f}\u{202e}gpj\u{2066}\u{200f}\u{2028}";
    let [input, output, list] = ["in", "out", "list"].map(|name| format!("{name}{hostile}"));
    let folder = Folder::with(&[(&*input, "c\nd\n"), ("one", "a\nb\na\n")]);
    let comment = "--comment=\u{1b}[31m\u{202e}";
    let mut shown: Vec<Run> = [
        format!("dedup --state other {comment} -k 1 -o {output} {input}"),
        format!("dedup --state other {comment} -k 1 -o {output} {input}"),
        format!("dedup --state other -k 1 -o {output} {input}"),
        "state show other".into(),
        "state show --json other".into(),
        format!("state show {input}"),
        "state export other -o none\u{202e}/ex".into(),
        format!("dedup --{hostile}"),
    ]
    .into_iter()
    .map(|args| folder.echoless(args))
    .collect();
    // A list of another program has names as they are.
    folder
        .dedup(format!("--skip-seen-files={list} -o new one"))
        .text();
    let seen = folder.read(&list);
    folder.write(&list, seen.replace("one", &hostile.replace('\n', "")));
    let skipped = folder.echoless(format!("dedup --skip-seen-files={list} -o new one"));
    let says = "skipped, seen before as";
    assert!(skipped.stderr.contains(says), "{}", skipped.stderr);
    shown.push(skipped);
    for run in shown {
        let all = String::from_utf8(run.stdout).unwrap() + &run.stderr;
        let shown = |character: char| character == '\n' || !echoless::message::acts(character);
        assert!(all.chars().all(shown), "{all:?}");
    }
    // JSON has the same names all the same.
    let json = folder.echoless("state show --json other").text();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["run"]["outputs"][0]["name"], output);
}
