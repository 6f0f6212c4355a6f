//! The times of a window: which fields hold them, in which format, and records without one.

use crate::run::assert_runs;
use crate::windows::{EXACT, windowed};

#[test]
fn a_record_without_a_readable_time_follows_missing() {
    for (missing, input, expected) in [
        ("skip", "1,a\nx,b\nx,a\n,c\n2,a\n", "1,a\nx,b\nx,a\n,c\n"),
        ("empty", "1,a\nx,b\nx,a\n,c\n2,a\n", "1,a\nx,b\n,c\n"),
        // Before the first time, the clock stands still.
        ("empty", "x,a\nx,a\n5,b\n16,a\n", "x,a\n5,b\n16,a\n"),
    ] {
        let options = format!("{EXACT} --window 10s --missing {missing}");
        assert_eq!(windowed(&options, input), expected, "{missing}");
    }
    assert_runs(&[
        "-k 1 --window 10s --time-field 1 | 1\nx\n | 1\n!! line 2: field 1 is not a time of --time-format auto: `x` (--missing skip",
        "-k 1 --window 10s --time-field 1 | 1\n20000000000\n | 1\n!! line 2: field 1 is a time outside of the years 1678 to 2261: `20000000000` (--missing",
        "-k 1 --window 10s --time-field 2 | a,1\nb\n | a,1\n!! line 2: field 2, the time, is missing: the record has 1",
        "-k 1 --window 10s --time-field 3 | a,1,2\nb\n | a,1,2\n!! line 2: field 3, the time, is missing: the record has 1",
    ]);
}

#[test]
fn the_time_may_be_in_the_key_beside_it_or_apart() {
    let input = "a,1,x\na,2,x\na,2,y\nb,13,x\na,13,x\n";
    for (key, expected) in [
        ("-k 1", "a,1,x\nb,13,x\na,13,x\n"),
        ("-k 1,3", "a,1,x\na,2,y\nb,13,x\na,13,x\n"),
        ("-k 1-2", "a,1,x\na,2,x\nb,13,x\na,13,x\n"),
        ("-k 2-", "a,1,x\na,2,x\na,2,y\nb,13,x\n"),
        ("-k 1-", input),
        ("", input),
    ] {
        let args = format!("--window 10s {EXACT} {key} --time-field");
        assert_runs(&[
            &format!("{args} 2 | {input} | {expected}"),
            &format!("{args} t --header | k,t,v\n{input} | k,t,v\n{expected}"),
        ]);
    }
}

#[test]
fn an_open_key_lacks_no_more_than_its_own_fields() {
    let args = format!("{EXACT} --window 10s --time-field 4 -k 2-");
    let input = "1,a,b,1\n2,a\n3,a\n4,a,\n";
    assert_runs(&[
        &format!("{args} --missing empty | {input} | 1,a,b,1\n2,a\n4,a,\n"),
        &format!("{args} | {input} | 1,a,b,1\n!! line 2: field 4, the time, is missing"),
    ]);
}

#[test]
fn the_time_may_be_quoted() {
    let options = format!("{EXACT} --csv --window 10s --time-format s");
    let found = windowed(&options, "0,a\n\"10\",a\n11,a\n");
    assert_eq!(found, "0,a\n11,a\n");
}
