//! `--in-place`: a file is replaced as a whole or not at all.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::run::{assert_errors, dedup, file};

const INPUT: &[u8] = b"a\nb\na\nc\nb\na";

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_file_is_replaced_and_nothing_else_changes() {
    for (options, expected) in [
        (&[][..], &b"a\nb\nc\n"[..]),
        (&["--invert"], b"a\nb\na"),
        (&["--repeated"], b"a\nb\n"),
        (&["--threads", "3"], b"a\nb\nc\n"),
        (&["--header"], b"a\nb\na\nc\n"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let input = file(directory.path(), "input", INPUT);
        let args = [&["--in-place", &input], options].concat();
        assert_eq!(dedup(&args, b"").text(), "", "{options:?}");
        assert_eq!(fs::read(&input).unwrap(), expected, "{options:?}");
        assert_eq!(names(directory.path()), ["input"]);
    }
}

#[test]
fn other_outputs_are_written_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "input", INPUT);
    let known = file(directory.path(), "known", b"c\n");
    let args = ["--in-place", "--known", &known, "--duplicates", "-", &input];
    assert_eq!(dedup(&args, b"").text(), "a\nc\nb\na");
    assert_eq!(fs::read(&input).unwrap(), b"a\nb\n");
    assert_eq!(fs::read(&known).unwrap(), b"c\n");
}

#[cfg(unix)]
#[test]
fn mode_and_symbolic_links_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real");
    fs::create_dir(&real).unwrap();
    let input = file(&real, "input", INPUT);
    fs::set_permissions(&input, fs::Permissions::from_mode(0o604)).unwrap();
    let link = directory.path().join("link");
    symlink("real/input", &link).unwrap();
    assert_eq!(
        dedup(&["--in-place", link.to_str().unwrap()], b"").text(),
        ""
    );
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("real/input"));
    assert_eq!(fs::read(&input).unwrap(), b"a\nb\nc\n");
    let mode = fs::metadata(&input).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o604);
    assert_eq!(names(&real), ["input"]);
}

#[test]
fn a_failed_run_leaves_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let content = b"1,a\n2,b\n3\n4,d\n";
    let input = file(directory.path(), "input", content);
    for threads in ["1", "3"] {
        let args = ["--in-place", "-k", "2", "--threads", threads, &input];
        let run = dedup(&args, b"");
        assert!(run.error().contains("line 3: field 2"), "{}", run.error());
        assert_eq!(fs::read(&input).unwrap(), content);
        assert_eq!(names(directory.path()), ["input"]);
    }
}

/// A limit on the length of files stands in for a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_file() {
    use std::process::{Command, Stdio};

    let directory = tempfile::tempdir().unwrap();
    let lines: String = (0..1000).map(|number| format!("{number:098},\n")).collect();
    let input = file(directory.path(), "input", lines.as_bytes());
    let mut command = Command::new("sh");
    let script = "ulimit -f 64 || exit 77; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_echoless")]);
    command.args(["dedup", "-q", "-m", "64k", "--in-place", &input]);
    command.env_remove("ECHOLESS_OPTS").stderr(Stdio::piped());
    let run = crate::run::run(command);
    if run.code == 77 {
        eprintln!("skipped: this shell cannot limit the length of files");
        return;
    }
    assert!(run.error().contains("File too large"), "{}", run.error());
    assert_eq!(fs::read(&input).unwrap(), lines.as_bytes());
    assert_eq!(names(directory.path()), ["input"]);
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_the_file() {
    use std::process::Command;

    let directory = tempfile::tempdir().unwrap();
    let lines = "a record that occurs again\n".repeat(100_000);
    let input = file(directory.path(), "input", lines.as_bytes());
    let dropped = directory.path().join("dropped");
    let made = Command::new("mkfifo").arg(&dropped).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mkfifo is missing");
        return;
    }
    for signal in ["-INT", "-TERM", "-HUP"] {
        let path = dropped.to_str().unwrap();
        let args = ["dedup", "-q", "--in-place", "--duplicates", path, &input];
        let child = crate::run::command(&args).spawn().unwrap();
        // The pipe takes less than the duplicates, so the run is in its middle.
        let mut duplicates = fs::File::open(&dropped).unwrap();
        duplicates.read_exact(&mut [0; 2]).unwrap();
        crate::run::send(&child, signal);
        let mut rest = Vec::new();
        duplicates.read_to_end(&mut rest).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.code() > Some(128), "{:?}", output.status);
        let message = String::from_utf8(output.stderr).unwrap();
        let expected = format!("echoless: {input}: left as it was, as a signal ended the run\n");
        assert_eq!(message, expected);
        assert_eq!(fs::read(&input).unwrap(), lines.as_bytes());
        assert_eq!(names(directory.path()), ["dropped", "input"]);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_changes_meanwhile_is_left() {
    use std::process::Command;

    let directory = tempfile::tempdir().unwrap();
    let lines = "a record that occurs again\n".repeat(100_000);
    let input = file(directory.path(), "input", lines.as_bytes());
    let dropped = directory.path().join("dropped");
    let made = Command::new("mkfifo").arg(&dropped).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mkfifo is missing");
        return;
    }
    let path = dropped.to_str().unwrap();
    let args = ["dedup", "-q", "--in-place", "--duplicates", path, &input];
    let child = crate::run::command(&args).spawn().unwrap();
    // The pipe takes less than the duplicates, so the run is in its middle.
    let mut duplicates = fs::File::open(&dropped).unwrap();
    duplicates.read_exact(&mut [0; 2]).unwrap();
    let mut appending = fs::OpenOptions::new().append(true).open(&input).unwrap();
    appending.write_all(b"another\n").unwrap();
    duplicates.read_to_end(&mut Vec::new()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    let expected = format!("{input}: has changed meanwhile, and is left as it was");
    assert!(message.contains(&expected), "{message}");
    let after = fs::read_to_string(&input).unwrap();
    assert_eq!(after, format!("{lines}another\n"));
    assert_eq!(names(directory.path()), ["dropped", "input"]);
}

#[test]
fn compressed_files_stay_compressed() {
    let directory = tempfile::tempdir().unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(b"a\nb\na\nb\n").unwrap();
    let before = encoder.finish().unwrap();
    let input = file(directory.path(), "input.gz", &before);
    assert_errors(
        |args| dedup(&[args, &[&input]].concat(), b""),
        &[
            "--in-place | missing --compress: expected --compress gzip beside --in-place",
            "--in-place --compress zstd | invalid --compress=zstd: expected --compress gzip",
            "--in-place --compress zstd:19 | invalid --compress=zstd:19: expected --compress gzip",
            "--in-place --compress lz4 | invalid --compress=lz4: expected --compress gzip",
        ],
    );
    assert_eq!(fs::read(&input).unwrap(), before);
    let args = ["--in-place", "--compress", "gzip", &input];
    assert_eq!(dedup(&args, b"").text(), "");
    let mut plain = String::new();
    let packed = fs::File::open(&input).unwrap();
    GzDecoder::new(packed).read_to_string(&mut plain).unwrap();
    assert_eq!(plain, "a\nb\n");
    // Read as they are, the bytes are plain.
    assert_eq!(
        dedup(&["--in-place", "--no-decompress", &input], b"").text(),
        ""
    );
}

#[test]
fn what_cannot_be_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "input", INPUT);
    let other = file(directory.path(), "other", INPUT);
    let folder = directory.path().to_str().unwrap();
    let one = "invalid --in-place: expected one input, a regular file, not";
    let cases = [
        format!("--in-place {input} {other} | {one} 2 inputs"),
        format!("--in-place | {one} standard input"),
        format!("--in-place - | {one} standard input"),
        format!("--in-place {folder} | {one} {folder}"),
        format!("--in-place {input} -o {other} | cannot be used with"),
        format!("--in-place {input} --count | cannot be used with"),
        format!("--in-place {input} --skip-seen-files list | cannot be used with"),
        format!("--in-place {input} --known {input} | is also a file of --known"),
        format!("--in-place {input} --duplicates {input} | is also an input"),
        format!("--in-place {input} --stats {input} | is also an input"),
        format!("--in-place {input} --compress zstd | invalid --in-place: expected no --compress"),
        format!("--in-place {folder}/missing | No such file"),
    ];
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    assert_errors(|args| dedup(args, INPUT), &cases);
    assert_eq!(fs::read(&input).unwrap(), INPUT);
    assert_eq!(names(directory.path()), ["input", "other"]);
}
