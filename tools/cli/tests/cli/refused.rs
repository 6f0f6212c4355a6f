//! Options of similar programs that fixed memory excludes.

use crate::run::{assert_errors, dedup, echoless};

#[test]
fn what_a_stream_cannot_do_is_refused_with_the_reason() {
    assert_errors(
        |args| dedup(args, b"a\nb\na\n"),
        &[
            "-c | -c is not possible: an exact count for each key takes memory for each key",
            "-c | use sort FILE | uniq -c, --top-keys FILE for",
        ],
    );
}

#[test]
fn two_keys_or_outputs_are_rejected() {
    assert_errors(
        |args| dedup(args, b"a,1\nb,1\n"),
        &[
            "-k 1 -k 2 | the argument '--key <FIELDS>' cannot be used multiple times",
            "-k 1 --key=1 | the argument '--key <FIELDS>' cannot be used multiple times",
            "-q -q -o a -o b | the argument '--output <FILE>' cannot be used multiple times",
            "--stats a --stats b | the argument '--stats <FILE>' cannot be used multiple times",
        ],
    );
}

#[test]
fn standard_input_is_read_once() {
    let allowed = "expected a file, since standard input can be read only once";
    assert_errors(
        |args| dedup(args, b"a\n"),
        &[
            &format!("- - | invalid input=-: {allowed}"),
            &format!("--known - - | invalid --known=-: {allowed}"),
            &format!("--known - | invalid --known=-: {allowed}"),
        ],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn standard_input_is_read_once_under_another_name_too() {
    let allowed = "expected a file, since standard input can be read only once";
    assert_errors(
        |args| dedup(args, b"a\n"),
        &[
            &format!("--known /dev/stdin | invalid --known=/dev/stdin: {allowed}"),
            &format!("- /dev/fd/0 | invalid input=-: {allowed}"),
        ],
    );
    // Once is enough, and a device is the same for every reader.
    assert_eq!(dedup(["/dev/stdin"], b"a\na\n").text(), "a\n");
    assert_eq!(dedup(["--known", "/dev/null", "-"], b"a\n").text(), "a\n");
}

#[test]
fn the_first_is_what_is_kept_anyway() {
    assert_eq!(dedup(["--keep", "first"], b"a\nb\na\n").text(), "a\nb\n");
}

#[test]
fn options_of_similar_programs_are_answered_with_ours() {
    assert_errors(
        |args| dedup(args, b"a\nb\na\n"),
        &[
            "-f 1 | --skip-fields N is the -f of uniq",
            "-s3 | --skip-chars N is the -s of uniq",
            "-w 5 | expected no delimiter without --key, --time-field, --tag or --csv (--max-chars N",
            "-d file | tag or --csv (--repeated is the -d of uniq)",
            "-d | a value is required for '--delimiter <BYTES>' but none was supplied; dedup --repeated",
            "--check-chars=5 | --max-chars N is the same",
            "-t , | -d BYTES sets the delimiter",
            "--repeated --with-count | --top-keys FILE counts the most frequent",
            "-Z | unexpected argument '-Z' found; --help lists the options",
        ],
    );
    assert_errors(
        |args| echoless([&["packets"], args].concat(), b""),
        &[
            "-d | --window-packets 4 compares with as many packets as -d of editcap",
            "-D 100 in out | --window-packets N compares with the N packets before",
            "-w 0.1 in out | -o FILE is the -w of tcpdump, and --window TIME that of editcap",
            "-w out | -o FILE is the -w of tcpdump",
            "-I 14 in out | --from network, the default",
            "--skip-radiotap-header -d in out | --from network, the default",
            "-a 1:comment in out | --tag marks each duplicate",
            "-r in | files stand without an option: echoless packets FILE",
            "-u | --invert writes only the duplicates",
            "-c 10 | --count writes only the number of packets",
            "-nr in | --window-packets N is a window",
        ],
    );
}

#[test]
fn a_file_that_begins_with_a_dash_is_named_if_it_exists() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("-Z"), "a\n").unwrap();
    let mut command = crate::run::command(["dedup", "-q", "-Z"]);
    command.current_dir(directory.path());
    let expected = "unexpected argument '-Z' found; tip: for the file of this name, use './-Z'";
    assert_eq!(crate::run::run(command).error(), expected);
}

#[test]
fn help_does_not_offer_them() {
    let help = echoless(["dedup", "--help"], b"").text();
    for option in ["--last", "-c,"] {
        assert!(!help.contains(option), "{option}");
    }
}
