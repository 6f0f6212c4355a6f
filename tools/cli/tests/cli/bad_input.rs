//! Invalid options and unusable files end the run with one clear line, exit code 2 and no partial
//! record.

use std::fs::{self, File, OpenOptions};
use std::process::Stdio;

use crate::run::{Folder, assert_errors, assert_runs, command, dedup, echoless, run};

#[test]
fn invalid_options_of_dedup() {
    let run = |args: &[&str]| echoless([&["dedup"], args].concat(), "");
    let cases = [
        "-k 0 | invalid --key=`0`: expected field numbers from 1",
        "-k 7-5 | invalid --key=`7-5`: expected a range from a lower",
        "-k 2,,3 | invalid --key=``: expected",
        "-k -0 | invalid --key=`-0`: expected field numbers from 1",
        "-k name | names require --header",
        "-k 1 -d ,\\ | invalid --delimiter=,\\: expected one byte or more",
        "-k 1 -d \\x0a | invalid --delimiter=\\n: expected bytes that neither end nor quote",
        "--csv -d \" | invalid --delimiter=\\\": expected bytes that",
        "-k 1 -d '' | --delimiter: expected one byte",
        "-d ; | invalid --delimiter=;: expected no delimiter without --key, --time-field, --tag or --csv",
        "-m 12Q | invalid --memory=12Q: expected a whole number with",
        "-m 0 | invalid --memory=0: expected 1 byte or more",
        "-m -1G | invalid --memory=-1G: expected",
        "-m 63 | invalid --memory=63: expected at least 64 B (one line)",
        "-m 63 --filter rlbsbf:k=2,form=line | invalid --memory=63: expected 64 B (one line)",
        "-m 63 --dense | invalid --memory=63: expected at least 4096 B (one page)",
        "-m 9999G | invalid --memory=9999G: expected less memory, or a rate --fpr of at least 7.3e-8",
        "-m 9999G --dense | invalid --memory=9999G: expected less memory, or a rate --fpr of at least",
        "--filter rlbsbf:k=2,form=line,memory=63 | invalid memory=63 B: expected",
        "--csv -w -k 1 | invalid --whitespace: expected lines of fields, as fields of --csv are",
        "--max-record 0 | invalid --max-record=0: expected",
        "--fpr 0 | invalid --fpr=0: expected a rate between 0 and 1 (exclusive)",
        "--fpr 1 | invalid --fpr=1: expected",
        "--fpr -0.5 | invalid --fpr=-0.5: expected",
        "--fpr x | invalid --fpr=x: expected",
        "--fpr 1e-300 | invalid --fpr=1e-300: expected",
        "--replacement random | [possible values: fifo, lru, qqhtd]",
        "--kernel sse9 | possible values: auto, scalar",
        "--missing skip | --key",
        "-k 1 --missing drop | error, skip, empty",
        "--seed x | --seed",
        "--seed -1 | invalid --seed=-1: expected a whole number from 0 to 18446744073709551615",
        "--seed 18446744073709551616 | invalid --seed=18446744073709551616: expected a whole",
        "--threads 1.5 | invalid --threads=1.5: expected a whole number from 1 to 1024",
        "--threads -1 | invalid --threads=-1: expected a whole number from 1 to 1024",
        "-z --csv | --csv",
        "-z --crlf | --crlf",
        "--invert --duplicates x | --duplicates",
        "--no-such-flag | --no-such-flag",
        "--repeated --invert | cannot be used with",
        "--repeated --tag | cannot be used with",
        "--repeated --tag-file f | cannot be used with",
        "--tag --format fixed:2 | --tag-file FILE with any format",
        "--tag=a,b | a name of letters, digits",
        "--tag= | a name of letters, digits",
        "--tag --count | cannot be used with",
        "--tag --invert | cannot be used with",
        "--tag --tag-file x | cannot be used with",
        "--tag-file x --count | cannot be used with",
        "--rejects - | expected the name of a file",
        "--rejects /dev/null | expected the name of a file",
        "--rejects /no/such/position | /no/such/position",
        "--explain | --explain=FILE, or --duplicates FILE beside --explain",
        "--explain --duplicates - | expected the name of a file",
        "--explain --invert --duplicates x | cannot be used with",
    ];
    assert_errors(run, &cases);
}

#[test]
fn invalid_options_of_gen() {
    let run = |args: &[&str]| echoless([&["gen"], args].concat(), "");
    let cases = [
        " | <KIND>",
        "words | possible values: cdr, keys, lines",
        "keys -n -1 | invalid --count=-1: expected 0, or a whole number above 0, alone or with k",
        "keys --seed -1 | invalid --seed=-1: expected a whole number from 0 to",
        "packets --snap -1 | invalid --snap=-1: expected a whole number from 0 to 4294967295",
        "keys --gap -1 --duplicates .1 | invalid --gap=-1: expected a whole number",
        "lines --record-bytes -1 | invalid --record-bytes=-1: expected a whole number",
        "keys --duplicates 1 | invalid --duplicates=1: expected a fraction from 0 to 0.999",
        "keys --duplicates -0.1 | invalid --duplicates=-0.1: expected",
        "keys --distribution normal --duplicates .1 | invalid --distribution=normal: expected",
        "keys --distribution zipf:0 --duplicates .1 | invalid --distribution=zipf:0: expected",
        "keys --gap 0 --duplicates .1 | invalid --gap=0: expected a whole number above 0",
        "keys --gap 5 --distribution zipf --duplicates .1 | --distribution",
        "keys --gap 5 | arguments were not provided: --duplicates",
        "packets --copies ttl | arguments were not provided: --duplicates",
        "keys --record-bytes 50 | invalid --record-bytes=50: expected no length except for `lines`",
        "keys --header | invalid KIND=keys: expected cdr with --header",
        "lines --record-bytes 1 | invalid --record-bytes=1: expected",
        "keys -o /no/such/directory/file | /no/such/directory/file: ",
    ];
    assert_errors(run, &cases);
}

#[test]
fn no_subcommand() {
    echoless("", "").fails("subcommand");
    echoless("undo", "").fails("undo");
}

#[test]
fn unreadable_inputs_end_the_run_before_it_writes() {
    let folder = Folder::with(&[("good", "a\n"), ("output", "precious")]);
    fs::create_dir(folder.path("folder")).unwrap();
    for (args, reason) in [
        ("good folder -o output", "folder: Is a directory"),
        ("good absent -o output", "absent: No such file"),
        ("good -o folder", "folder: "),
        // Control characters in messages are escaped.
        ("no\nsuch\tfile\x1b[2J", "no\\nsuch\\tfile\\u{1b}[2J: "),
    ] {
        let error = folder.dedup(args).error().to_lowercase();
        assert!(error.starts_with(&reason.to_lowercase()), "{args}: {error}");
        assert_eq!(folder.read("output"), "precious");
    }
    let long = "x".repeat(100_000);
    let run = dedup(format!("--key {long} --time-field {long}"), "");
    assert!(run.error().len() < 5000, "{}", run.error().len());
}

#[test]
fn a_file_without_read_permission() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::with(&[("secret", "a\n")]);
    let path = folder.path("secret");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        eprintln!("skipped: this user can read every file");
        return;
    }
    folder.dedup("secret").fails("ermission");
}

#[test]
fn a_directory_as_standard_input() {
    let mut command = command("dedup -q -m 64k");
    command.stdin(Stdio::from(File::open(std::env::temp_dir()).unwrap()));
    run(command).fails("standard input: ");
}

#[test]
fn a_file_is_never_read_and_written_or_written_twice() {
    let folder = Folder::with(&[("data", "a\na\n"), ("fresh", "precious")]);
    for (args, error) in [
        ("data -o ./data", "./data: is also an input"),
        ("data --duplicates ./data", "./data: is also an input"),
        ("data --stats ./data", "./data: is also an input"),
        (
            "-o output --duplicates output",
            "output: is also another output",
        ),
        ("-o fresh --stats fresh", "fresh: is also another output"),
        ("--stats -", "standard output: is also another output"),
    ] {
        assert_eq!(folder.dedup(args).error(), error, "{args}");
        assert_eq!(folder.read("data"), "a\na\n");
        assert_eq!(folder.read("fresh"), "precious");
    }
    let mut appending = folder.command("dedup -q -m 64k data");
    let data = OpenOptions::new().append(true).open(folder.path("data"));
    appending.stdout(Stdio::from(data.unwrap()));
    assert_eq!(run(appending).error(), "standard output: is also an input");
    assert_eq!(folder.read("data"), "a\na\n");
    if !fs::exists("/dev/null").unwrap() {
        eprintln!("skipped: /dev/null is missing");
        return;
    }
    assert_runs(&["/dev/null -o /dev/null --duplicates /dev/null --stats /dev/null |  | "]);
}

#[test]
fn an_open_quote_is_an_error_after_the_records_before_it() {
    assert_runs(&[
        "--csv | a,1\n\"b\nc\",2\na,1\nd,\"3\ne,4\n | a,1\n\"b\nc\",2\n!! standard input, line 5: a quoted field that begins in this record does not end",
        "--csv --header -k 1 | \" | !! standard input, line 1: a quoted field that begins in this record does not end",
        "--csv --header -k a | \"a,b\nx | !! standard input, line 1: a quoted field that begins in this record does not end",
        // Lines of CSV may end in CR LF.
        "--csv --crlf | a\r\na\n\"b\nb\"\n | a\r\n\"b\nb\"\n",
    ]);
}

#[test]
fn an_unknown_name_lists_the_names() {
    assert_runs(&[
        "--header -k nam | id,name\n1,a\n | !! invalid --key=`nam`: expected one of the header's names: \"id\", \"name\"",
        "--csv --header -k b | \n\na,b\n1,2\n | !! invalid --key=`b`: expected a header with names: the first record has none",
        "--header -k id | id,id\n1,a\n | !! only one field",
    ]);
}

#[test]
fn a_full_device_is_an_error() {
    if !fs::exists("/dev/full").unwrap() {
        eprintln!("skipped: /dev/full is missing");
        return;
    }
    for args in [
        "dedup -q -m 1MiB -o /dev/full",
        "dedup -q -m 1MiB --duplicates /dev/full",
        "dedup -q -m 1MiB --stats /dev/full",
        "gen keys -n 1 -o /dev/full",
    ] {
        echoless(args, "a\na\n").fails("/dev/full: ");
    }
}

/// The command of a shell that limits the length of files to this number of blocks, before the
/// arguments of `echoless`.
fn limited(folder: &Folder, blocks: u32, args: &str) -> std::process::Command {
    let limit = format!("trap '' XFSZ; ulimit -f {blocks} || exit 77");
    folder.shell(&format!("{limit}; exec \"$0\" {args}"))
}

/// A limit on the length of files stands in for a disk that fills up in the middle of a record.
#[test]
fn a_disk_that_fills_up_leaves_whole_records() {
    let lines: String = (0..1000).map(|i| format!("{i:098},\n")).collect();
    let folder = Folder::with(&[("input", &lines)]);
    for to_stdout in [false, true] {
        // 64 blocks are 32 or 64 KiB, which is not a multiple of 100 bytes.
        let mut command = match to_stdout {
            true => limited(&folder, 64, "dedup -q -m 64k --stats stats input"),
            false => limited(&folder, 64, "dedup -q -m 64k --stats stats input -o output"),
        };
        if to_stdout {
            command.stdout(File::create(folder.path("output")).unwrap());
        }
        let run = run(command);
        if run.code == 77 {
            eprintln!("skipped: this shell cannot limit the length of files");
            return;
        }
        run.fails("File too large");
        let written = folder.read("output");
        let length = written.len();
        assert!(length > 30_000 && length.is_multiple_of(100), "{length}");
        assert!(lines.starts_with(&written));
        let told = folder.json("stats");
        assert_eq!(told["bytes_out"], length);
        assert_eq!(told["complete"], false);
    }
    let generated = run(limited(&folder, 16, "gen keys -n 100k -o generated"));
    generated.fails("File too large");
}

#[test]
fn a_repeated_option_counts_as_its_last_value() {
    assert_runs(&["--fpr 2 --fpr 1e-6 | a\na\n | a\n", "-q -q | a\n | a\n"]);
}

#[test]
fn a_memory_beyond_all_memories_is_an_error() {
    let args = "plan -q -m 18446744073709551615 -n 10k --distinct 0.5";
    echoless(args, "").fails("memory");
}

#[test]
fn a_quote_that_swallows_records_is_named_once() {
    let swallowed = "b,2\n".repeat(1100);
    let input = format!("id,n\na,1\n\"x\",\"{swallowed}\",3\nc,\"{swallowed}\"\n");
    // With -q, there is no warning.
    assert_runs(&[&format!("--csv -k 1 | {input} | {input}")]);
    let run = echoless("dedup -m 64k --csv -k 1", &input);
    let lines = run.stderr.lines();
    let warnings: Vec<&str> = lines.filter(|line| line.contains("quote")).collect();
    assert_eq!(
        warnings,
        [
            "echoless: standard input, line 3: a quote opens a field here whose record has 1,101 lines \
          and 4,409 bytes: is a quote missing, or one too many?"
        ]
    );
    let long = "x".repeat(600_000);
    for (fields, warns) in [
        ("\n".repeat(1000), false),
        (format!("{long}{long}"), false),
        (format!("{long}\n{long}"), true),
    ] {
        // The header makes one line more than records in any case.
        let input = format!("id,text\na,\"{fields}\"\n");
        let run = echoless("dedup -m 64k --csv --header -k 1", input);
        assert_eq!(run.stderr.contains("quote"), warns, "{}", run.stderr);
    }
}

#[test]
fn a_value_that_is_not_utf8_is_named_with_its_option() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    for (words, named) in [
        (&[b"-k".as_slice(), b"\xff"][..], "-k \\xff"),
        (&[b"file", b"--memory=\xfe"], "--memory=\\xfe"),
        // A name of a file is valid, but the message cannot show which word is invalid.
        (&[b"-k", b"\xff", b"caf\xe9"], "-k \\xff, caf\\xe9"),
    ] {
        let mut given = command("dedup");
        given.args(words.iter().map(|word| OsStr::from_bytes(word)));
        assert_eq!(
            run(given).error(),
            format!("not UTF-8, as only delimiters and names of files may be: {named}")
        );
    }
}
