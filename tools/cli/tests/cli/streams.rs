//! Pipes and several inputs: slow producers, readers that close their pipes, inputs as one stream.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::process::{Command, Stdio};
use std::thread;

use crate::packets_support::numbered;
use crate::run::{Folder, command, dedup, echoless, file, path, run};

#[test]
fn a_partly_read_file_as_standard_input_goes_on_from_there() {
    // So long that its records are estimated from parts of it, before it is read.
    let lines: Vec<u8> = (0..60_000)
        .flat_map(|line| format!("{line:09}\n").into_bytes())
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "input", &lines);
    for threads in ["1", "2"] {
        let mut input = File::open(&path).unwrap();
        input.seek(SeekFrom::Start(200_000)).unwrap();
        let mut command = command(["dedup", "-q", "--threads", threads]);
        command.stdin(Stdio::from(input));
        assert!(run(command).bytes() == lines[200_000..]);
    }
}

#[test]
fn records_of_a_slow_producer_are_written_at_once() {
    let mut child = command(["dedup", "-q", "-m", "64k"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    for (sent, expected) in [
        ("a\n", "a\n"),
        ("a\nb\npart", "b\n"),
        ("ial\na\n", "partial\n"),
        ("c\nd\n", "c\nd\n"),
    ] {
        // Blocks forever if the command buffers a whole record.
        stdin.write_all(sent.as_bytes()).unwrap();
        let mut output = vec![0; expected.len()];
        stdout.read_exact(&mut output).unwrap();
        assert_eq!(output, expected.as_bytes());
    }
    stdin.write_all(b"a\nlast").unwrap();
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "last");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_slow_producer_of_quoted_fields_after_a_mark() {
    let mut child = command(["dedup", "-q", "-m", "64k", "--csv", "-k", "1,2"])
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdin.write_all(b"\xef").unwrap();
    stdin.write_all(b"\xbb").unwrap();
    for byte in b"\xbf\"a\"\"\nb\",1\n\"a\"\"\nb\",1\nthe,end\n" {
        stdin.write_all(&[*byte]).unwrap();
    }
    for expected in ["\u{feff}\"a\"\"\n", "b\",1\n", "the,end\n"] {
        line.clear();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_closes_the_pipe_ends_the_run_quietly() {
    for args in [
        &["dedup", "-q", "-m", "64k"][..],
        &["gen", "keys", "-n", "100000000"],
        &["gen", "packets", "-n", "100000000"],
    ] {
        let mut child = command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // Writes until the command ends.
        let producer = thread::spawn(move || {
            let mut line = 0u64;
            while writeln!(stdin, "{line}").is_ok() {
                line += 1;
            }
        });
        let mut some = [0; 4];
        stdout.read_exact(&mut some).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        producer.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn a_reader_of_packets_that_closes_the_pipe_ends_the_run_quietly() {
    let mut generator = command(["gen", "packets", "-n", "100000000"])
        .spawn()
        .unwrap();
    let mut packets = command(["packets", "-q", "-m", "1MiB"]);
    packets.stdin(generator.stdout.take().unwrap());
    let mut child = packets.spawn().unwrap();
    // The command still has the end of the pipe that the generator's packets are read from.
    drop(packets);
    let mut stdout = child.stdout.take().unwrap();
    let mut some = [0; 1000];
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(generator.wait().unwrap().code(), Some(0));
}

#[test]
fn a_closed_standard_error_changes_nothing() {
    let mut child = command(["dedup", "-m", "64k"]).spawn().unwrap();
    drop(child.stderr.take());
    child.stdin.take().unwrap().write_all(b"a\na\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stdout),
        (Some(0), b"a\n".to_vec())
    );
}

#[test]
fn several_inputs_are_one_stream() {
    let directory = tempfile::tempdir().unwrap();
    let one = file(directory.path(), "one", b"a\nb\n");
    let empty = file(directory.path(), "empty", b"");
    let two = file(directory.path(), "two", b"b\nc\n");
    let args = [one.as_str(), &empty, "-", &two, &one];
    assert_eq!(dedup(args, b"c\nd\na\n").text(), "a\nb\nc\nd\n");
    assert_eq!(dedup(["-"], b"a\na\n").text(), "a\n");
}

#[test]
fn there_may_be_more_inputs_than_a_process_can_open() {
    let directory = tempfile::tempdir().unwrap();
    let record = |number: usize| format!("{}\n", number % 150);
    let inputs: Vec<String> = (0..200)
        .map(|number| {
            file(
                directory.path(),
                &number.to_string(),
                record(number).as_bytes(),
            )
        })
        .collect();
    let output = path(&directory, "output");
    let script = "ulimit -n 64 && exec \"$0\" dedup -q -o \"$@\"";
    for threads in ["1", "4"] {
        let mut limited = Command::new("sh");
        limited.args(["-c", script, env!("CARGO_BIN_EXE_echoless"), &output]);
        limited.args(["--threads", threads]).args(&inputs);
        assert_eq!(run(limited).bytes(), b"");
        let expected: String = (0..150).map(record).collect();
        assert_eq!(std::fs::read_to_string(&output).unwrap(), expected);
    }
    // Each of them is still protected.
    let last = inputs.last().unwrap();
    let mut arguments = vec!["-o", last];
    arguments.extend(inputs.iter().map(String::as_str));
    let error = dedup(&arguments, b"").error().to_owned();
    assert!(error.contains("an input"), "{error}");
}

#[test]
fn records_of_different_inputs_do_not_merge() {
    let directory = tempfile::tempdir().unwrap();
    let one = file(directory.path(), "one", b"a\nb");
    let two = file(directory.path(), "two", b"c");
    let again = file(directory.path(), "again", b"a");
    let duplicates = file(directory.path(), "duplicates", b"");
    assert_eq!(dedup([&one, &two], b"").text(), "a\nb\nc");
    assert_eq!(dedup([&one, &two, &again], b"").text(), "a\nb\nc");
    let crlf = file(directory.path(), "crlf", b"d\r\ne");
    for framing in ["--crlf", "--csv"] {
        // The terminator is that of the record before, although that was dropped.
        assert_eq!(dedup([framing, &one, &two], b"").text(), "a\nb\nc");
        let args = [framing, &crlf, &two, &one];
        assert_eq!(dedup(args, b"").text(), "d\r\ne\r\nc\r\na\nb");
    }
    assert_eq!(dedup(["--crlf", &two, &again], b"").text(), "c\r\na");
    assert_eq!(dedup(["-z", &two, &again], b"").text(), "c\0a");
    let args = ["--duplicates", &duplicates, &again, &again, &two, &two];
    assert_eq!(dedup(args, b"").text(), "a\nc");
    assert_eq!(std::fs::read(&duplicates).unwrap(), b"a\nc");
}

#[test]
fn an_input_without_terminator_equals_one_with() {
    let directory = tempfile::tempdir().unwrap();
    let one = file(directory.path(), "one", b"x\na");
    let two = file(directory.path(), "two", b"a\nb\n");
    assert_eq!(dedup([&one, &two], b"").text(), "x\na\nb\n");
}

#[test]
fn a_file_as_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "input", b"a\na\nb\n");
    let mut command = command(["dedup", "-q", "-m", "64k"]);
    command.stdin(Stdio::from(File::open(path).unwrap()));
    assert_eq!(run(command).text(), "a\nb\n");
}

#[cfg(target_os = "linux")]
#[test]
fn closed_standard_streams_are_errors_and_not_empty_files() {
    let folder = Folder::new();
    let shell = |redirection: &str, args: &str| {
        let run = run(folder.shell(&format!("\"$0\" {args} {redirection}")));
        (Some(run.code), run.stderr)
    };
    let closed = |stream: &str| (Some(2), format!("echoless: {stream}: it is closed\n"));
    assert_eq!(shell(">&-", "dedup -q -m 64k"), closed("standard output"));
    assert_eq!(shell(">&-", "gen cdr -n 1"), closed("standard output"));
    assert_eq!(shell(">&-", "--help"), closed("standard output"));
    assert_eq!(shell("<&-", "dedup -q -m 64k"), closed("standard input"));
    // A stream that is not used may be closed.
    let unused = shell(">&- <&-", "dedup -q -m 64k -o /dev/null /dev/null");
    assert_eq!(unused, (Some(0), String::new()));
}

#[test]
fn a_capture_read_as_text_draws_a_warning() {
    let dedup = |args: &[&str], input: &[u8]| {
        let run = echoless(
            [&["dedup", "-m", "64k", "--summary=line"], args].concat(),
            input,
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stderr
    };
    let pcap = numbered(&[1, 2]);
    let mut pcapng = b"\n\r\r\n".to_vec();
    pcapng.extend([28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, b'\n']);
    for input in [&pcap, &pcapng] {
        let warning = "echoless: standard input is a capture file, and its bytes are read as text: \
                       echoless packets removes duplicate packets\n";
        assert!(dedup(&[], input).starts_with(warning));
        assert!(!dedup(&["-q"], input).contains("capture"));
        assert!(!dedup(&["--format", "fixed:1"], input).contains("capture"));
    }
    assert!(!dedup(&[], b"\n\r\r\na\n").contains("capture"));
}
