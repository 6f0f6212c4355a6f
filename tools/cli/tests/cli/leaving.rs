//! Readers that close their pipes, and rejected runs: no loss goes unreported, and no file is
//! destroyed in vain.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread;

use serde_json::Value;

use crate::run::fifo;
use crate::run::{Folder, Run, command, run};

/// More records than a pipe can hold.
fn long_stream() -> String {
    (0..200_000).map(|i| format!("{i}\n{i}\n")).collect()
}

#[test]
fn a_side_output_whose_reader_closes_the_pipe_is_an_error() {
    let folder = Folder::with(&[("in", long_stream())]);
    let pipe = folder.path("pipe");
    if !fifo(&pipe) {
        return;
    }
    for args in ["-o /dev/null --duplicates pipe in", "-o pipe in"] {
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || File::open(pipe).unwrap().read_exact(&mut [0; 10]).unwrap()
        });
        let run = folder.dedup(args);
        reader.join().unwrap();
        let error = "pipe: the reader closed the pipe before the output was complete";
        assert_eq!(run.error(), error);
    }
}

#[test]
fn the_report_covers_the_records_read_when_the_reader_closes_the_pipe() {
    let folder = Folder::with(&[("stats", "old")]);
    for (more, code) in [("", 0), ("--fail-on-duplicates", 1)] {
        let mut command = folder.command(format!("dedup -m 1MiB --stats stats {more}"));
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let lines = long_stream();
        let producer = thread::spawn(move || while stdin.write_all(lines.as_bytes()).is_ok() {});
        stdout.read_exact(&mut [0; 10]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        producer.join().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let summary = String::from_utf8(output.stderr).unwrap();
        assert!(summary.contains(" duplicates ("), "{summary}");
        let stats = folder.json("stats");
        assert!(stats["duplicates"].as_u64().unwrap() > 0);
        assert_eq!(stats["complete"], false);
        assert_eq!(stats["reason"], "reader left");
    }
}

/// Checks that the statistics are those of a run that failed with this error.
#[track_caller]
fn assert_failed(folder: &Folder, run: &Run, case: &str) -> Value {
    let stats = folder.json("stats");
    let found = ["complete", "reason", "error"].map(|name| &stats[name]);
    let expected: [Value; 3] = [false.into(), "error".into(), run.error().into()];
    assert_eq!(found, expected.each_ref(), "{case}");
    assert_eq!(stats["schema_version"], 1, "{case}");
    stats
}

#[test]
fn a_failed_run_replaces_the_statistics_of_the_one_before() {
    let folder = Folder::with(&[("bad", "a,b\n1,2\n")]);
    // After the first record, before it, and before any input is open.
    for (args, message, records) in [
        ("-k 2", "field 2 of the key is missing", 1),
        ("-k c --header bad", "", 0),
        ("/no/such/file", "/no/such/file: No such file", 0),
    ] {
        for threads in ["1", "3"] {
            let yesterday = "statistics of yesterday, of a run that was complete";
            folder.write("stats", yesterday);
            let args = format!("{args} --threads {threads} --stats stats");
            let run = folder.dedup_on(&args, "1,a\n2\n");
            run.fails(message);
            let stats = assert_failed(&folder, &run, &args);
            assert!(stats["records"].as_u64().unwrap() >= records);
            assert_eq!(stats["memory_bytes"], 1 << 20);
        }
    }
}

#[test]
fn a_rejected_command_line_keeps_a_file_that_holds_no_statistics() {
    let folder = Folder::with(&[("stats", "old")]);
    for args in [
        "--fpr 2",
        "--filter no",
        "-o stats",
        "--duplicates stats",
        "stats",
        "/no/such/file -o stats",
        "/no/such/file stats",
    ] {
        let run = folder.dedup_on(format!("{args} --stats stats"), "a\n");
        assert_eq!(run.code, 2, "{args}");
        assert_eq!(folder.read("stats"), "old", "{args}");
    }
}

#[test]
fn old_statistics_do_not_survive_options_that_are_rejected() {
    let folder = Folder::with(&[("key", "no key"), ("in", "a\n")]);
    let whole_run = || folder.dedup("--stats stats in").text();
    for args in [
        "--fpr 2",
        "--filter no",
        "-m 0",
        "--hash-key key",
        "-o in in",
        // The parser rejects these.
        "--tag --invert",
        "--late pass",
        "-k 1 -k 2",
    ] {
        whole_run();
        let run = folder.echoless_on(format!("dedup -q {args} --stats stats"), "a\n");
        assert_failed(&folder, &run, args);
    }
    // So are those of the variable.
    let mut command = folder.command("dedup -q --stats stats");
    command.env("ECHOLESS_OPTS", "a file");
    whole_run();
    assert_eq!(run(command).code, 2);
    assert_eq!(folder.json("stats")["complete"], false);
    // An input is never replaced.
    whole_run();
    let before = folder.bytes("stats");
    for args in ["--fpr 2", "--tag --invert", "--late nosuch", "--nosuch -q"] {
        let run = folder.echoless(format!("dedup -q --stats stats {args} stats"));
        assert_eq!(run.code, 2);
        assert_eq!(folder.bytes("stats"), before);
    }
}

#[test]
fn old_statistics_do_not_survive_options_that_cannot_be_read() {
    let folder = Folder::new();
    let whole_run = || folder.dedup_on("--stats stats", "a\n").text();
    for args in [
        "--hash-key /no/such/file",
        "--filter /no/such/file.toml",
        "--format ber:profile=/no/such/file",
    ] {
        whole_run();
        let args = format!("dedup -q {args} --stats stats");
        let run = || folder.echoless_on(&args, "a\n");
        let failed = run();
        assert!(
            failed.error().starts_with("/no/such/file"),
            "{}",
            failed.stderr
        );
        assert_failed(&folder, &failed, &args);
        // An input is left alone, even if it holds statistics.
        whole_run();
        let of_whole_run = folder.bytes("stats");
        folder.echoless(format!("{args} stats")).error();
        assert_eq!(folder.bytes("stats"), of_whole_run);
        // What is not a file of statistics may be anything, and no file appears.
        folder.write("stats", "{\"schema\": \"of another program\"}");
        run().error();
        assert!(folder.read("stats").contains("another"));
        fs::remove_file(folder.path("stats")).unwrap();
        run().error();
        assert_eq!(folder.names(), [""; 0]);
    }
}

/// The file behind a link is another one with the same mode: a process that has the old one open
/// still reads that.
#[test]
fn replaced_files_keep_links_and_permissions() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    for (args, before) in [
        ("dedup -q -m 64k --stats link one", "old"),
        ("dedup -q -m 64k --skip-seen-files link one", ""),
        ("dedup -q -m 64k --in-place link", "a\na\n"),
        ("state export state -o link", "old"),
    ] {
        let folder = Folder::with(&[("one", "a\n"), ("target", before)]);
        folder.dedup("--state state one").text();
        let target = folder.path("target");
        symlink("target", folder.path("link")).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        // As long as it is open, no other file has its number.
        let old = File::open(&target).unwrap();
        assert_eq!(folder.echoless(args).code, 0, "{args}");
        let new = fs::metadata(&target).unwrap();
        assert_eq!(new.permissions().mode() & 0o777, 0o640, "{args}");
        assert_ne!(new.ino(), old.metadata().unwrap().ino(), "{args}");
        assert!(folder.bytes("target") != before.as_bytes(), "{args}");
        let link = fs::symlink_metadata(folder.path("link")).unwrap();
        assert!(link.is_symlink(), "{args}");
        assert_eq!(folder.names(), ["link", "one", "state", "target"], "{args}");
    }
}

#[test]
fn outputs_are_truncated_once_nothing_rejects_the_run() {
    let folder = Folder::with(&[
        ("in", "id,name\n1,a\n"),
        ("out", "precious"),
        ("dropped", "precious too"),
    ]);
    for args in [
        "-o out --duplicates dropped --header -k zz",
        "-o out --duplicates dropped --stats /no/such/directory/stats",
        "--header -k zz",
    ] {
        let run = folder.dedup(format!("in {args}"));
        assert_eq!((run.code, run.stdout.as_slice()), (2, &b""[..]), "{args}");
        assert_eq!(folder.read("out"), "precious", "{args}");
        assert_eq!(folder.read("dropped"), "precious too", "{args}");
    }
    // An empty stream has an empty output.
    folder.assert_runs(&["--header -o out | "]);
    assert_eq!(folder.read("out"), "");
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_by_another_name_is_still_appended_to() {
    let folder = Folder::with(&[("in", "a\na\nb\n")]);
    for name in ["/dev/stdout", "out"] {
        folder.write("out", "before\n");
        let mut command = folder.command(format!("dedup -q -m 64k -o {name} in"));
        let appending = OpenOptions::new().append(true).open(folder.path("out"));
        command.stdout(Stdio::from(appending.unwrap()));
        assert_eq!(run(command).text(), "");
        assert_eq!(folder.read("out"), "before\na\nb\n", "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn messages_that_cannot_be_written_change_nothing() {
    for (args, code) in [("dedup -m 64k", 0), ("dedup -k 0", 2)] {
        let mut command = command(args);
        command.stdin(Stdio::null());
        let full = OpenOptions::new().write(true).open("/dev/full");
        command.stderr(Stdio::from(full.unwrap()));
        assert_eq!(run(command).code, code, "{args}");
    }
}
