//! Signals that end a run while its input is open.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::run::{Folder, command, dedup, fifo, file, path, run, send, send_all};

/// Starts the command, feeds it, and waits for this first output.
fn started(args: &str, input: &str, answer: &str) -> (Child, ChildStdin) {
    let mut child = command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let mut output_bytes = vec![0; answer.len()];
    let stdout = child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut output_bytes).unwrap();
    assert_eq!(output_bytes, answer.as_bytes());
    (child, stdin)
}

#[test]
fn after_a_signal_the_run_completes() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"");
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let args = format!("dedup -m 64k --fail-on-duplicates --stats {stats}");
        // An incomplete record is dropped.
        let (child, _stdin) = started(&args, "a\na\nb\nhalf of a rec", "a\nb\n");
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stdout, b"");
        assert_eq!(output.status.code(), Some(code), "{signal}");
        let summary = String::from_utf8(output.stderr).unwrap();
        assert!(summary.contains("3 records"), "{summary}");
        let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert_eq!(stats["duplicates"], 1);
        assert_eq!(
            (&stats["complete"], &stats["reason"]),
            (&false.into(), &"signal".into())
        );
    }
}

/// `timeout` sends its signal to its child and then to the whole group.
#[test]
fn signals_that_come_together_are_one_and_a_later_one_ends_the_process() {
    let directory = tempfile::tempdir().unwrap();
    for second in ["-TERM", "-INT"] {
        let (child, _stdin) = started("dedup -m 64k", "a\na\nb\n", "a\nb\n");
        send_all(&child, &["-TERM", second]);
        let output = child.wait_with_output().unwrap();
        assert!([Some(143), Some(130)].contains(&output.status.code()));
        let summary = String::from_utf8(output.stderr).unwrap();
        assert!(summary.contains("3 records"), "{summary}");
    }
    // Nobody reads what it writes, so it cannot end by itself.
    let lines: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let input = file(directory.path(), "input", lines.as_bytes());
    let args = format!("dedup -m 64k {input}");
    let (mut child, _stdin) = started(&args, "", "0\n");
    while child.try_wait().unwrap().is_none() {
        send(&child, "-TERM");
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(15)
    );
}

/// They could not be read again.
#[test]
fn a_signal_ends_pipes_that_are_copied_and_what_came_is_judged() {
    let directory = tempfile::tempdir().unwrap();
    let stats = path(&directory, "stats");
    let state = path(&directory, "state");
    for (options, expected) in [
        ("--exact", "a\nb\n"),
        ("--keep last", "b\na\n"),
        ("-u", "b\n"),
        ("-D --threads 2", "a\na\n"),
        (&*format!("--exact --state {state}"), "a\nb\n"),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let output = path(&temp, "output");
        let file = path(&directory, "file");
        fs::write(&file, "never read\n").unwrap();
        let folder = temp.path().display();
        let args = format!("dedup --temp {folder} --stats {stats} -o {output} {options} - {file}");
        let mut child = command(&args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\nb\na\nhalf of a rec").unwrap();
        // The pipe is empty once the command has it, and catches signals before it reads.
        while rustix::io::ioctl_fionread(&stdin).unwrap() > 0 {
            std::thread::yield_now();
        }
        send_all(&child, &["-TERM", "-TERM"]);
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(143), "{options}: {told}");
        assert!(told.contains("3 records"), "{options}: {told}");
        assert_eq!(fs::read_to_string(&output).unwrap(), expected, "{options}");
        assert_eq!(statistics(&stats)["reason"], "signal", "{options}");
        drop(stdin);
    }
}

/// A signal to a whole pipeline ends the producer as well, which closes the pipe.
#[test]
fn an_input_that_ends_right_after_a_signal_ends_by_the_signal() {
    // The wait also ends if the command is gone.
    let script = "{ printf 'a\\npart'
            until [ -s out ] || { [ -s pid ] && ! kill -0 \"$(cat pid)\"; }; do :; done
            kill -TERM \"$(cat pid)\"; } |
        sh -c 'echo $$ > pid; exec \"$0\" dedup -q -m 64k --threads 1 -o out' \"$0\"";
    for round in 0..30 {
        let folder = Folder::new();
        let code = run(folder.shell(script)).code;
        assert_eq!((code, &*folder.read("out")), (143, "a\n"), "{round}");
    }
}

#[test]
fn a_signal_ends_a_count() {
    let directory = tempfile::tempdir().unwrap();
    let dropped = directory.path().join("dropped");
    if !fifo(&dropped) {
        return;
    }
    let dropped = dropped.to_str().unwrap();
    let args = format!("dedup -q -m 64k --count --duplicates {dropped}");
    let mut child = command(&args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\nb\na\n").unwrap();
    let mut duplicates = fs::File::open(dropped).unwrap();
    duplicates.read_exact(&mut [0; 2]).unwrap();
    send(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stdout),
        (Some(130), b"2\n".to_vec())
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_was_ignored_before_stays_ignored() {
    let script = "trap '' HUP; exec \"$0\" dedup -q -m 64k";
    let mut child = Folder::new().shell(script).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    for record in [b"a\n", b"b\n"] {
        stdin.write_all(record).unwrap();
        let mut output_bytes = [0; 2];
        stdout.read_exact(&mut output_bytes).unwrap();
        assert_eq!(&output_bytes, record);
        send(&child, "-HUP");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_signal_ends_the_wait_for_the_writer_of_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = path(&directory, "pipe");
    if !fifo(&pipe) {
        return;
    }
    // The record of the first input shows that the second is open.
    let first = file(directory.path(), "first", b"a\na\n");
    let args = format!("dedup -q -m 64k {first} {pipe}");
    let (child, _) = started(&args, "", "a\n");
    send(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));

    // A pipe whose writer comes late is read.
    let (child, _) = started(&args, "", "a\n");
    fs::write(&pipe, "a\nb\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"b\n");
    assert!(output.status.success());
}

#[test]
fn a_non_blocking_output_is_waited_for() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let lines: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    for compress in [&[][..], &["--compress", "gzip:1"]] {
        let (mut here, there) = UnixStream::pair().unwrap();
        there.set_nonblocking(true).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let input = file(directory.path(), "input", lines.as_bytes());
        let args = [&["dedup", "-q", "-m", "8MiB", &input][..], compress].concat();
        let mut command = command(&args);
        command.stdout(Stdio::from(OwnedFd::from(there)));
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut output_bytes = Vec::new();
        here.read_to_end(&mut output_bytes).unwrap();
        assert!(child.wait().unwrap().success());
        let plain = dedup("", &output_bytes).bytes();
        assert!(plain == lines.as_bytes());
    }
}

#[test]
fn a_non_blocking_input_is_waited_for() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let (mut here, there) = UnixStream::pair().unwrap();
    there.set_nonblocking(true).unwrap();
    let mut command = command("dedup -q -m 64k");
    command.stdin(Stdio::from(OwnedFd::from(there)));
    let mut child = command.spawn().unwrap();
    // Closes this process's copy of the child's end.
    drop(command);
    let mut stdout = child.stdout.take().unwrap();
    for record in [b"a\n", b"b\n"] {
        here.write_all(record).unwrap();
        let mut output_bytes = [0; 2];
        stdout.read_exact(&mut output_bytes).unwrap();
        assert_eq!(&output_bytes, record);
    }
    drop(here);
    assert!(child.wait().unwrap().success());
}

/// The statistics in a file.
fn statistics(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_run_that_goes_on_reports_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"");
    for threads in ["1", "2"] {
        let args = format!("dedup -m 64k --threads {threads} --stats {stats}");
        let (mut child, mut stdin) = started(&args, "a\na\nb\n", "a\nb\n");
        send(&child, "-USR1");
        // The line ends the report that the signal requests.
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        assert!(line.starts_with("echoless: 3 records (6 B) in "), "{line}");
        stdin.write_all(b"c\n").unwrap();
        drop(stdin);
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        assert!(rest.starts_with("echoless: 4 records"), "{rest}");
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(statistics(&stats)["records"], 4);
    }
}

#[test]
fn statistics_are_written_while_a_run_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"");
    let args = format!("dedup -q -m 64k --stats {stats} --stats-every 1ms");
    let (mut child, stdin) = started(&args, "a\na\nb\n", "a\nb\n");
    // It is replaced in one step, so it is whole whenever it is read; at first it is empty.
    let so_far = (0..20_000).find_map(|_| {
        let text = fs::read(&stats).unwrap();
        let so_far: Value = serde_json::from_slice(&text).unwrap_or_default();
        std::thread::sleep(Duration::from_millis(1));
        (so_far["records"] == 3).then_some(so_far)
    });
    let so_far = so_far.expect("statistics of three records");
    assert_eq!(so_far["complete"], false);
    assert_eq!(so_far["reason"], "running");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(statistics(&stats)["complete"], true);
}

#[test]
fn statistics_of_an_earlier_run_are_replaced_before_the_input_arrives() {
    let directory = tempfile::tempdir().unwrap();
    let earlier = dedup("-q -o /dev/null --stats -", b"a\n").bytes();
    // What is no statistics is left alone as long as the run may be rejected.
    for (name, content, replaced) in [
        ("new", None, true),
        ("earlier", Some(&earlier[..]), true),
        ("other", Some(&b"precious"[..]), false),
    ] {
        let path = directory.path().join(name);
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let path = path.to_str().unwrap();
        let args = format!("dedup -k name --header --csv --stats {path}");
        let mut child = command(&args).spawn().unwrap();
        let started = (0..20_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let text = fs::read(path).unwrap_or_default();
            let stats: Value = serde_json::from_slice(&text).unwrap_or_default();
            !replaced || stats["complete"] == false && stats["records"] == 0
        });
        assert!(started, "{name}");
        child.kill().unwrap();
        child.wait().unwrap();
        if !replaced {
            assert_eq!(fs::read(path).unwrap(), content.unwrap());
        }
    }
}

#[test]
fn a_stream_of_statistics_gets_only_the_final_ones() {
    let script = "(echo a; sleep 0.3; echo a) | \"$0\" dedup -q -m 64k --stats-every 1ms \
                  --stats /dev/stderr -o /dev/null";
    let run = run(Folder::new().shell(script));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let stats: Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(
        (&stats["records"], &stats["complete"]),
        (&2.into(), &true.into())
    );
}
