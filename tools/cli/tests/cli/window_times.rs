//! The times of a window: which fields hold them, in which format, and records without one.

use crate::run::echoless;
use crate::windows::{EXACT, windowed};

#[test]
fn a_record_without_a_readable_time_follows_missing() {
    let input = "1,a\nx,b\nx,a\n,c\n2,a\n";
    let options = [&EXACT[..], &["--window", "10s"]].concat();
    let missing = |value: &str| windowed(&[&options[..], &["--missing", value]].concat(), input);
    assert_eq!(missing("skip"), "1,a\nx,b\nx,a\n,c\n");
    assert_eq!(missing("empty"), "1,a\nx,b\n,c\n");
    let args = ["dedup", "-q", "-k", "1", "--window", "10s", "--time-field"];
    for (field, input, expected) in [
        (
            "1",
            "1\nx\n",
            "line 2: field 1 is not a time of --time-format auto: `x` (--missing skip",
        ),
        (
            "1",
            "1\n20000000000\n",
            "line 2: field 1 is a time outside of the years 1678 to 2261: `20000000000` (--missing",
        ),
        (
            "2",
            "a,1\nb\n",
            "line 2: field 2, the time, is missing: the record has 1",
        ),
        (
            "3",
            "a,1,2\nb\n",
            "line 2: field 3, the time, is missing: the record has 1",
        ),
    ] {
        let run = echoless(&[&args[..], &[field]].concat(), input.as_bytes());
        assert!(run.error().contains(expected), "{}", run.stderr);
    }
    // Before the first time, the clock stands still.
    let early = "x,a\nx,a\n5,b\n16,a\n";
    assert_eq!(
        windowed(&[&options[..], &["--missing", "empty"]].concat(), early),
        "x,a\n5,b\n16,a\n"
    );
}

#[test]
fn digits_below_a_nanosecond_are_cut() {
    let input = "2025-01-01T00:00:00.0000000001Z,a\n2025-01-01T00:00:10.1234567899Z,a\n";
    let options = [&EXACT[..], &["--window", "10s"]].concat();
    assert_eq!(windowed(&options, input), input);
}

#[test]
fn the_time_may_be_in_the_key_beside_it_or_apart() {
    let input = "a,1,x\na,2,x\na,2,y\nb,13,x\na,13,x\n";
    for (key, expected) in [
        (&["-k", "1"][..], "a,1,x\nb,13,x\na,13,x\n"),
        (&["-k", "1,3"], "a,1,x\na,2,y\nb,13,x\na,13,x\n"),
        (&["-k", "1-2"], "a,1,x\na,2,x\nb,13,x\na,13,x\n"),
        (&["-k", "2-"], "a,1,x\na,2,x\na,2,y\nb,13,x\n"),
        (&["-k", "1-"], input),
        (&[], input),
    ] {
        for field in [
            &["--time-field", "2"][..],
            &["--header", "--time-field", "t"],
        ] {
            let header = if field.len() == 3 { "k,t,v\n" } else { "" };
            let options = ["dedup", "-q", "--window", "10s"];
            let args = [&options[..], &EXACT, key, field].concat();
            let run = echoless(&args, format!("{header}{input}").as_bytes());
            assert_eq!(
                run.text(),
                format!("{header}{expected}"),
                "{key:?} {field:?}"
            );
        }
    }
}

#[test]
fn an_open_key_lacks_no_more_than_its_own_fields() {
    let options = ["--window", "10s", "--time-field", "4", "-k", "2-"];
    let args = [&["dedup", "-q"], &EXACT[..], &options].concat();
    let empty = [&args[..], &["--missing", "empty"]].concat();
    let input = b"1,a,b,1\n2,a\n3,a\n4,a,\n";
    assert_eq!(echoless(&empty, input).text(), "1,a,b,1\n2,a\n4,a,\n");
    let run = echoless(&args, input);
    assert!(
        run.error()
            .contains("line 2: field 4, the time, is missing"),
        "{}",
        run.stderr
    );
}

#[test]
fn quoted_times_and_formats() {
    let times = |format: &str, input: &str| {
        let args = ["--csv", "--window", "10s", "--time-format", format];
        windowed(&[&EXACT[..], &args].concat(), input)
    };
    for (format, first, second, third) in [
        ("auto", "1700000000", "1700000010.0", "1700000011"),
        (
            "auto",
            "2025-01-01T00:00:00Z",
            "2025-01-01 00:00:10",
            "2025-01-01T01:00:11+01:00",
        ),
        ("s", "0", "\"10\"", "11"),
        ("ms", "0", "10000.9", "11000"),
        ("us", "0", "10000000", "11000000"),
        ("ns", "0", "10000000000", "11000000000"),
        (
            "rfc3339",
            "2025-01-01T00:00:59Z",
            "2025-01-01T00:01:09Z",
            "2025-01-01T00:01:10.5Z",
        ),
        (
            "%d.%m.%y %H:%M",
            "01.01.25 00:00",
            "01.01.25 00:00",
            "01.01.25 00:01",
        ),
    ] {
        let input = format!("{first},a\n{second},a\n{third},a\n");
        assert_eq!(
            times(format, &input),
            format!("{first},a\n{third},a\n"),
            "{format}"
        );
    }
}
