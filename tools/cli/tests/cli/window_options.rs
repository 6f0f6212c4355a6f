//! The options beside `--window`: the filter in a file, its form and kernel, and what is rejected.

use crate::run::{Folder, assert_errors, echoless};

#[test]
fn a_file_names_the_filter_of_a_window() {
    let spec = "filter = \"stamped\"\nmemory = \"1MiB\"\n";
    let folder = Folder::with(&[
        ("in", "0,a\n9,a\n18,a\n".to_owned()),
        ("fits.toml", format!("{spec}window = 2000\nrefresh = true")),
        ("differs.toml", format!("{spec}window = 10")),
    ]);
    let args = "-k 2 --time-field 1 --window 10s in --filter";
    folder.assert_runs(&[
        &format!("{args} fits.toml | 0,a\n"),
        &format!(
            "{args} differs.toml | !! window=10: expected window=2000, the ticks of --window 10s"
        ),
    ]);
}

#[test]
fn invalid_windows_are_rejected() {
    let run = |args: &[&str]| echoless([&["dedup"], args].concat(), "1,a\n");
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
        "--window 1m --time-field t --header | invalid --time-field=`t`: expected one of the header's names",
    ];
    assert_errors(run, &cases);
}

#[test]
fn dense_lines_and_the_kernel_are_selected_with_a_window_too() {
    let folder = Folder::with(&[("in", "a\nb\na\nc\nd\na\n")]);
    let filter = "clocked:window=3,refresh=false,bits=16,dense=true,memory=8KiB";
    for kernel in ["scalar", "portable"] {
        let args = format!("--window 3 --dense -m 8KiB --fpr 1e-3 --stats stats --kernel {kernel}");
        folder.assert_runs(&[&format!("{args} in | a\nb\nc\nd\na\n")]);
        let stats = folder.json("stats");
        assert_eq!(
            (&stats["kernel"], &stats["filter"]),
            (&kernel.into(), &filter.into())
        );
    }
}
