//! The options beside `--window`: the filter in a file, its form and kernel, and what is rejected.

use serde_json::Value;

use crate::run::{assert_errors, dedup, echoless, file};
use crate::windows::windowed;

#[test]
fn a_file_names_the_filter_of_a_window() {
    let directory = tempfile::tempdir().unwrap();
    let spec = |text: &str| file(directory.path(), "filter.toml", text.as_bytes());
    let args = ["--window", "10s", "--filter"];
    let path = spec("filter = \"stamped\"\nwindow = 2000\nrefresh = true\nmemory = \"1MiB\"");
    assert_eq!(
        windowed(&[&args[..], &[&path]].concat(), "0,a\n9,a\n18,a\n"),
        "0,a\n"
    );
    let path = spec("filter = \"stamped\"\nwindow = 10\nmemory = \"1MiB\"");
    let run = echoless(
        &[
            "dedup",
            "--time-field",
            "1",
            "--window",
            "10s",
            "--filter",
            &path,
        ],
        b"",
    );
    assert!(
        run.error()
            .contains("window=10: expected window=2000, the ticks of --window 10s"),
        "{}",
        run.stderr
    );
}

#[test]
fn invalid_windows_are_rejected() {
    let run = |args: &[&str]| echoless(&[&["dedup"], args].concat(), b"1,a\n");
    let cases = [
        "--window 0 | invalid --window=0: expected a time such as 500ms",
        "--window -5m | invalid --window=-5m: expected",
        "--window 1.5ns | invalid --window=1.5ns: expected",
        "--window 10min | invalid --window=10min: expected",
        "--window 200000d | invalid --window=200000d: expected",
        "--window 10m | --time-field: expected the field with the time",
        "--window 100 --time-field 1 | invalid --time-field=1: expected no field of times",
        "--window 1m --time-field 1-2 | invalid --time-field=`1-2`: expected one field",
        "--window 1m --time-field 0 | invalid --time-field=`0`: expected field numbers",
        "--window 1m --time-field t | names require --header",
        "--window 1m --time-field 1 --time-format x | there is no %",
        "--window 1m --time-field 1 --time-format %M:%S | invalid --time-format=%M:%S: expected",
        "--window 1m --time-field 1 --lateness 5 | invalid --lateness=5: expected a time",
        "--window 1000 --refresh --filter tree:levels=2/stamped -m 1MiB | invalid --filter=tree:",
        "--window 1000 --refresh --filter stamped:refresh=false -m 1MiB | invalid --filter=stamped:",
        "--window 1000 --filter gbf:q=31 -m 1MiB | invalid q=31: expected",
        "--window 1000 --filter apbf:k=60,l=10 -m 1MiB | invalid ",
        "--window 1m --time-field 1 --late drop | possible values: pass, judge, reject",
        "--window 1m --time-field 1 --replacement lru | --replacement",
        "--window 9 --dense -m 4095 | invalid --memory=4095: expected at least 4096 B (one page)",
        "--window 1m --time-field 1 --fpr 1e-18 | invalid --fpr=1e-18: expected",
        "--window 1m --time-field 1 --filter rlbsbf | invalid --filter=rlbsbf: expected a filter with a window",
        "--window 5 --filter dense | invalid --filter=dense: expected a filter with a window in ticks (clocked,",
        "--window 5 --filter tree:levels=2/bloom | invalid --filter=tree:levels=2/bloom: expected a",
        "--window 5 --filter bloom:window=5 | invalid option=window: expected one of",
        "--window 1m --time-field 1 --time-format %F:%T:%Q | %z reads an offset",
        "--window 1m --time-field 1 --time-format %F:%I:%M | need %p",
        "--window 1m --time-field 1 --filter stamped:window=7 | expected window=3000, the ticks of",
        "--filter stamped:window=7 | --window: expected the time or the records of the window",
        "--time-field 1 | --window",
        "--refresh | --window",
        "--lateness 1m | --window",
        "--late pass | --window",
        "--time-format s | --window",
        "--window 5 --late pass | invalid --late=pass: expected a window of time beside it, such as",
        "--window 5 --lateness 1m | invalid --lateness=1m: expected a window of time",
        "--window 5 --time-format s | invalid --time-format=s: expected a window of time",
        "--window 1m --late pass | missing --time-field: expected the field with the time",
        "--window 1m --time-field 2-1 | invalid --time-field=`2-1`: expected one field, a number",
        "--window 1m --time-field x | invalid --time-field=`x`: expected one field, a number from 1",
        "--window 5 -m 1 | invalid --memory=1: expected at least 64 B (one line)",
        "--window 5 -m 9999G | invalid --memory=9999G: expected less memory, or a rate --fpr of",
        "--missing skip | --key",
    ];
    assert_errors(run, &cases);
    let run = echoless(
        &["dedup", "--window", "1m", "--time-field", "t", "--header"],
        b"a,b\n",
    );
    assert!(
        run.error()
            .starts_with("invalid --time-field=`t`: expected one of the header's names"),
        "{}",
        run.stderr
    );
}

#[test]
fn dense_lines_and_the_kernel_are_selected_with_a_window_too() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"{}");
    for kernel in ["scalar", "portable"] {
        let args = "--window 3 --dense -m 8KiB --fpr 1e-3 --stats";
        let args: Vec<&str> = args
            .split(' ')
            .chain([&*stats, "--kernel", kernel])
            .collect();
        assert_eq!(
            dedup(&args, b"a\nb\na\nc\nd\na\n").text(),
            "a\nb\nc\nd\na\n"
        );
        let json: Value = serde_json::from_slice(&std::fs::read(&stats).unwrap()).unwrap();
        assert_eq!(json["kernel"], kernel);
        assert_eq!(
            json["filter"],
            "clocked:window=3,refresh=false,bits=16,dense=true,memory=8KiB"
        );
    }
}
