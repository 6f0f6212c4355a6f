//! What stands around a state: its own files, the places where it is exported to, and what a later
//! run is told.

use std::fs;
use std::path::Path;

use crate::run::{Run, command, echoless, file, run};

/// A folder with a state, and an input that it has read.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        file(place.0.path(), "one", b"a\nb\na\n");
        place.dedup(&["-o", "@out", "@one"]).text();
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn paths(&self, args: &[&str]) -> Vec<String> {
        let path = |arg: &&str| match arg.split_once('@') {
            Some((option, name)) => format!("{option}{}", self.path(name)),
            None => (*arg).to_owned(),
        };
        args.iter().map(path).collect()
    }

    /// A run with the state; what follows an `@` is a file in the folder.
    fn dedup(&self, args: &[&str]) -> Run {
        let all = [
            &["dedup", "-q", "-m", "64KiB", "--state", "@state"][..],
            args,
        ];
        self.run(&all.concat())
    }

    fn run(&self, args: &[&str]) -> Run {
        let args = self.paths(args);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(command(&args))
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The names and the bytes of the files of the state.
    fn state(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.path("state")).unwrap();
        let file = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        };
        let mut files: Vec<_> = entries.map(|entry| file(entry.unwrap())).collect();
        files.sort_unstable();
        files
    }
}

#[test]
fn files_of_the_state_are_no_outputs() {
    let place = Place::new();
    file(place.0.path(), "two", b"a\nc\n");
    let before = place.state();
    let segment = "state/segment-0000000001";
    let mut names = vec![
        segment,
        "state/segment-0000000002",
        "state/lock",
        "state/../state/lock",
    ];
    names.push("state/segment-0000000001.new");
    #[cfg(unix)]
    {
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(place.path(target), place.path(name)).unwrap();
        };
        link(segment, "link");
        link("state", "folder");
        names.extend(["link", "folder/lock"]);
    }
    for name in &names {
        let named = format!("@{name}");
        let expected = format!(
            "{}: is also a file of the state {}",
            place.path(name),
            place.path("state")
        );
        let [explained, with] =
            ["--explain=", "--tag-file="].map(|option| option.to_owned() + &named);
        for outputs in [
            &["-o", &named][..],
            &["-o", "@new", "--duplicates", &named],
            &["-o", "@new", &explained],
            &["-o", "@new", "--stats", &named],
            &["-o", "@new", &with],
            &["-o", "@new", "--rejects", &named, "-k", "1"],
        ] {
            let failed = place.dedup(&[outputs, &["@two"]].concat());
            let error = failed.error();
            // Options that the state was not made with are refused, too.
            let is_refused = error == expected || error.contains("as in the state");
            assert!(is_refused, "{outputs:?}: {error}");
            assert!(place.state() == before, "{outputs:?}");
        }
        let failed = place.run(&["state", "export", "@state", "-o", &named]);
        assert_eq!(failed.error(), expected);
        assert!(place.state() == before, "{name}");
    }
    // Another name for the bytes of a segment.
    fs::hard_link(place.path(segment), place.path("same")).unwrap();
    assert!(
        place
            .dedup(&["-o", "@same", "@two"])
            .error()
            .contains("is also a file of the state")
    );
    assert!(place.state() == before);
    place.run(&["state", "verify", "@state"]).text();
    place.dedup(&["-o", "@out", "@two"]).text();
    assert_eq!(place.read("out"), b"a\nb\nc\n");
}

#[test]
fn an_export_replaces_regular_files_alone_and_no_killed_one_blocks_it() {
    let place = Place::new();
    // As earlier versions left it.
    file(place.0.path(), "ex.new", b"half of a state");
    place
        .run(&["state", "export", "@state", "-o", "@ex"])
        .text();
    let state = place.read("ex");
    assert_eq!(place.read("ex.new"), b"half of a state");
    let shown = place.run(&["state", "export", "@state", "-o", "-"]);
    assert!(shown.bytes() == state);
    fs::create_dir(place.path("folder")).unwrap();
    let failed = place.run(&["state", "export", "@state", "-o", "@folder"]);
    assert!(
        failed
            .error()
            .contains("folder: is a folder: expected a file"),
        "{}",
        failed.stderr
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
        use std::process::Command;

        let export =
            |name: &str| place.run(&["state", "export", "@state", "-o", &format!("@{name}")]);
        fs::set_permissions(place.path("ex"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("ex", place.path("link")).unwrap();
        symlink("new", place.path("dangling")).unwrap();
        for (link, target) in [("link", "ex"), ("dangling", "new")] {
            fs::write(place.path("ex"), "old").unwrap();
            export(link).text();
            assert_eq!(fs::read_link(place.path(link)).unwrap(), Path::new(target));
            assert!(place.read(target) == state || target == "new");
        }
        assert!(place.read("new") == state);
        let mode = fs::metadata(place.path("ex")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let pipe = place.path("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        export("pipe").text();
        assert!(reader.join().unwrap() == state);
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        let left = fs::read_dir(place.0.path()).unwrap();
        let is_left = |name: &str| name.starts_with(".echoless-");
        assert!(
            left.into_iter()
                .all(|entry| !is_left(entry.unwrap().file_name().to_str().unwrap()))
        );
    }
    // A failed export leaves the old file.
    let failed = place.run(&["state", "export", "@none", "-o", "@ex"]);
    assert!(
        failed.error().starts_with(&place.path("none")),
        "{}",
        failed.stderr
    );
    assert!(place.read("ex") != b"");
}

#[test]
fn missing_segments_are_an_error() {
    let place = Place::new();
    fs::remove_file(place.path("state/segment-0000000001")).unwrap();
    let failed = place.dedup(&["-o", "@out", "@one"]);
    let state = place.path("state");
    let expected = "it had segments, which are missing: remove its file lock to begin anew";
    assert_eq!(failed.error(), format!("{state}: {expected}"));
    assert_eq!(place.read("out"), b"a\nb\n");
}

/// The administrator reads any folder, so the run is that of another user.
#[cfg(unix)]
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
    let place = Place::new();
    let folder = place.0.path();
    file(folder, "good", b"1,a\n2,b\n");
    file(folder, "more", b"3,a\n4,c\n\n5\n");
    let with = |state: &str, args: &str| {
        let state = format!("--state=@{state}");
        let fixed = ["dedup", "-q", "-m", "64k", &state, "-o", "@of"];
        let args: Vec<&str> = fixed.into_iter().chain(args.split(' ')).collect();
        place.run(&args)
    };
    for (number, (one, other)) in [
        ("-k 1,2", "-k 1-2"),
        ("-k 2 --compress zstd", "-k 2 --compress zstd:3"),
        ("-k 2 -d ,", "-k 2"),
        ("-k 2 --csv", "-k 2 --format csv"),
        ("--window 1000", "--window 1k"),
        (
            "--window 1h --time-field 1 --time-format %s",
            "--window 60m --time-field 1 --time-format %s --lateness 1m",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let state = format!("state{number}");
        with(&state, &format!("{one} @good")).text();
        with(&state, &format!("{other} --again @good")).text();
        fs::remove_file(place.path("of")).unwrap();
    }
    // The run ends at a record without a key, and advises what to do.
    with("faulty", "-k 2 @good").text();
    let failed = with("faulty", "-k 2 @good @more");
    assert!(
        failed.error().contains("--missing skip"),
        "{}",
        failed.stderr
    );
    with("faulty", "-k 2 --missing skip @good @more").text();
    let left = with(
        "faulty",
        "-k 2 --missing empty --blank-lines skip @good @more",
    );
    assert_eq!(left.code, 0, "{}", left.stderr);
    assert_eq!(place.read("of"), b"1,a\n2,b\n4,c\n\n5\n");
    // Another meaning is still refused, in the words of both runs.
    let failed = with("faulty", "-k 1-2 @good");
    let state = place.path("faulty");
    let expected = format!("invalid --key=1-2: expected --key=2, as in the state {state}");
    assert_eq!(failed.error(), expected);
}

/// A terminal obeys control characters, and shows text in another order behind those of directions.
#[cfg(target_os = "linux")]
#[test]
fn names_reach_a_terminal_as_they_are() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let hostile = "\u{1b}]0;title\u{7}\u{9b}31m\r\n\u{7f}\u{202e}gpj\u{2066}\u{200f}\u{2028}";
    let place = Place::new();
    let folder = place.0.path();
    let [input, output, list] = ["in", "out", "list"].map(|name| format!("{name}{hostile}"));
    fs::write(folder.join(OsStr::from_bytes(input.as_bytes())), "c\nd\n").unwrap();
    let [named, to] = [&input, &output].map(|name| format!("@{name}"));
    let comment = "--comment=\u{1b}[31m\u{202e}";
    let shown = [
        place.run(&[
            "dedup", "--state", "@other", comment, "-k", "1", "-o", &to, &named,
        ]),
        place.run(&[
            "dedup", "--state", "@other", comment, "-k", "1", "-o", &to, &named,
        ]),
        place.run(&["dedup", "--state", "@other", "-k", "1", "-o", &to, &named]),
        place.run(&["state", "show", "@other"]),
        place.run(&["state", "show", "--json", "@other"]),
        place.run(&["state", "show", &named]),
        place.run(&["state", "export", "@other", "-o", "@none\u{202e}/ex"]),
        echoless(&["dedup", &format!("--{hostile}")], b""),
    ];
    // A list of another program has names as they are.
    let seen = folder.join(OsStr::from_bytes(list.as_bytes()));
    let skip = format!("--skip-seen-files=@{list}");
    place
        .run(&["dedup", "-q", &skip, "-o", "@new", "@one"])
        .text();
    let line = fs::read_to_string(&seen).unwrap();
    let name = hostile.replace('\n', "");
    fs::write(&seen, line.replace(&place.path("one"), &name)).unwrap();
    let skipped = place.run(&["dedup", &skip, "-o", "@new", "@one"]);
    assert!(
        skipped.stderr.contains("skipped, seen before as"),
        "{}",
        skipped.stderr
    );
    for run in shown.into_iter().chain([skipped]) {
        let all = String::from_utf8(run.stdout).unwrap() + &run.stderr;
        let shown = |character: char| character == '\n' || !echoless::message::acts(character);
        assert!(all.chars().all(shown), "{all:?}");
    }
    // JSON has the same names all the same.
    let json = place.run(&["state", "show", "--json", "@other"]).text();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["run"]["outputs"][0]["name"], place.path(&output));
}
