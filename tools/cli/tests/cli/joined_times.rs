//! Times in several fields, such as a date and a time of day: judged as the same time in one field.

use std::fmt::Write as _;

use crate::run::{assert_errors, assert_runs, dedup};

/// Lines of number, time of day, key and date, and the same with one time in front.
fn calls() -> (String, String) {
    let (mut apart, mut whole) = (String::new(), String::new());
    for number in 0..3000_u64 {
        // Two days of calls, some of them late.
        let second = number * 57 - number % 5 * 100 % (number + 1);
        let date = format!("{:02}.11.2026", 1 + second / 86400);
        let (hour, minute) = (second / 3600 % 24, second / 60 % 60);
        let time = format!("{hour:02}:{minute:02}:{:02}", second % 60);
        let key = number % 13 * (number % 7);
        let _ = writeln!(apart, "{number},{time},{key},{date}");
        let _ = writeln!(whole, "{number},{date} {time},{key},{date}");
    }
    (apart, whole)
}

/// The numbers of the records in an output.
fn numbers(output: &str) -> Vec<&str> {
    let lines = output.lines();
    lines.map(|line| line.split(',').next().unwrap()).collect()
}

#[test]
fn joined_fields_are_one_time() {
    let (apart, whole) = calls();
    let format = "%d.%m.%Y %H:%M:%S";
    for window in ["10m", "1h", "1d"] {
        // Without the time, with it, and an open range.
        for key in ["3", "1-3", "3-"] {
            let window = format!("--window {window} -k {key} --late pass");
            let time = format!("--time-field 2 --time-format '{format}'");
            let expected = dedup(format!("{window} {time}"), &whole).text();
            let fresh = numbers(&expected).len();
            assert_eq!(fresh == 3000, key == "1-3", "{window}");
            for (fields, format) in [("4,2", format), ("2,4", "%H:%M:%S %d.%m.%Y")] {
                for threads in ["1", "3"] {
                    let time = format!("--time-field {fields} --time-format '{format}'");
                    let args = format!("{window} {time} --threads {threads}");
                    let run = dedup(&args, &apart).text();
                    assert_eq!(numbers(&run), numbers(&expected), "{args}");
                }
            }
        }
    }
}

#[test]
fn fields_are_joined_by_name_in_every_format() {
    assert_runs(&[
        "--window 10s --csv --header -k id --time-field day,at | id,day,at\n1,2026-11-01,\" 12:00:00 \"\n1,2026-11-01,12:00:09\n1,2026-11-02,12:00:09\n | id,day,at\n1,2026-11-01,\" 12:00:00 \"\n1,2026-11-02,12:00:09\n",
        "--window 10s --format fixed:16 -k 0 --time-field 8-15,1-6 --time-format '%Y%m%d %H%M%S' | a120000k20261101a120009k20261101a120009k20261102 | a120000k20261101a120009k20261102",
        // Without a key, whole records are compared.
        "--window 10s -w --time-field 2,1 | 12:00 2026-11-01\n12:00 2026-11-01\n12:00 2026-11-01\n | 12:00 2026-11-01\n",
    ]);
    let json = concat!(
        "{\"k\":1,\"at\":{\"d\":\"2026-11-01\",\"t\":\"12:00:00\"}}\n",
        "{\"at\":{\"t\":\"12:00:09\",\"d\":\"2026-11-01\"},\"k\":1}\n",
        "{\"k\":1,\"at\":{\"d\":\"2026-11-02\",\"t\":\"12:00:09\"}}\n",
    );
    let lines: Vec<&str> = json.split_inclusive('\n').collect();
    let run = dedup(
        "--window 10s --format jsonl -k k --time-field at.d,at.t",
        json,
    );
    assert_eq!(run.text(), [lines[0], lines[2]].concat());
}

#[test]
fn a_record_without_one_of_the_fields_has_no_time() {
    let args = "-k 1 --window 10s --time-field 3,2";
    let lines = [
        "a,12:00:00,2026-11-01\n",
        "a,12:00:01\n",
        "a,12:00:02,2026-11-01\n",
    ];
    let (input, first) = (lines.concat(), lines[0]);
    assert_runs(&[
        &format!(
            "{args} | {input} | {first}!!= standard input, line 2: field 3, the time, is missing: the record has 2 (--missing skip or empty allows that)"
        ),
        &format!("{args} --missing skip | {input} | {first}{}", lines[1]),
        &format!("{args} --missing empty | {input} | {first}"),
        &format!(
            "{args} | a,noon,2026-11-01\n | !!= standard input, line 1: field 3, joined with 1 more, is not a time of --time-format auto: `2026-11-01 noon` (--missing skip or empty allows that)"
        ),
    ]);
}

#[test]
fn fields_that_cannot_be_joined() {
    let cases = [
        "--window 1m --time-field 1,2-3 |= invalid --time-field=`1,2-3`: expected one field, a number from 1, or several such as 2,3 (names require --header)",
        "--window 1m --time-field 1, |= invalid --time-field=``: expected one field, a number from 1, or several such as 2,3 (names require --header)",
        "--window 1m --time-field 1,2 --time-format bcd |= invalid --time-field=1,2: expected one field beside --time-format bcd",
        "--window 1m --header --time-field b,c |= invalid --time-field=`b`: expected one of the header's names: \"1\", \"a\"",
        "--window 9 --time-field 1,2 |= invalid --time-field=1,2: expected no field of times, since --window counts records",
        "--format fixed:4 --window 1m --time-field 0-1,4 |= invalid --time-field=`4`: expected bytes from 0 to 3, the last of a record, and ranges such as 0-15,24-",
        "--format ber -k 0x80 --window 1m --time-field 0x81,0x82 |= invalid --time-field=`0x81,0x82`: expected tags in hexadecimal identifier bytes, one inside the other: 0x80 or 0xA3/0xBF1F",
    ];
    assert_errors(|args| dedup(args, "1,a\n"), &cases);
}
