//! `--known-state`: filters of other runs whose keys count as seen.

use std::collections::HashSet;

use serde_json::Value;

use crate::run::Folder;

/// Saves the filter of a run over these records under a name.
fn save(folder: &Folder, name: &str, options: &str, records: &str) {
    folder.write(&format!("{name}.in"), records);
    let files = format!("--state {name}.state -o /dev/null {name}.in");
    folder.dedup(format!("{options} {files}")).text();
    folder
        .echoless(format!("state export {name}.state -o {name}"))
        .text();
}

fn lines(numbers: impl IntoIterator<Item = u64>) -> String {
    numbers
        .into_iter()
        .map(|number| format!("call {number}\n"))
        .collect()
}

/// The lines that an exact program passes on.
fn exact(input: &str, mut seen: HashSet<String>) -> String {
    let is_fresh = |line: &&str| seen.insert((*line).to_owned());
    let fresh: Vec<&str> = input.split_inclusive('\n').filter(is_fresh).collect();
    fresh.concat()
}

fn set(input: &str) -> HashSet<String> {
    input.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn keys_of_the_filters_are_dropped_with_any_number_of_threads() {
    let folder = Folder::new();
    let known = lines((0..20_000).map(|number| 3 * number));
    let more = lines(200_000..210_000);
    save(&folder, "saved", "", &known);
    save(&folder, "other", "-m 256KiB", &more);
    let input = lines((0..150_000).map(|number| number * 7 % 90_000 + number / 2));
    folder.write("input", &input);
    for (states, seen) in [
        ("--known-state saved", set(&known)),
        (
            "--known-state saved --known-state other",
            &set(&known) | &set(&more),
        ),
    ] {
        let expected = exact(&input, seen.clone());
        for threads in ["1", "3"] {
            let args = format!("-m 4MiB --threads {threads} --stats stats {states} input");
            let run = folder.dedup(args);
            assert!(run.text() == expected, "{threads} threads, {states}");
            let found = folder.json("stats");
            let known = input.split_inclusive('\n');
            let known = known.filter(|line| seen.contains(*line)).count();
            assert_eq!(found["known_state_duplicates"], known);
            assert_eq!(found["fresh"], expected.lines().count());
            // The audit has seen none of these keys for the first time as a duplicate.
            assert_eq!(found["estimated_false_duplicates"], 0);
            assert_eq!(found["evictions"], 0);
            assert!(found["known_state_fpr"].as_f64().unwrap() < 1e-7);
        }
    }
}

#[test]
fn the_filter_of_the_run_does_not_get_known_keys() {
    let folder = Folder::new();
    save(&folder, "saved", "-m 1MiB", &lines(0..30_000));
    folder.write("first", lines((0..30_000).chain(50_000..50_100)));
    folder.write("second", lines((29_000..31_000).chain(50_000..50_200)));
    // Its memory is enough for the others alone.
    for input in ["first", "second", "second --again"] {
        let args = format!("-m 16KiB --known-state saved --state state -o out {input}");
        folder.dedup(args).text();
    }
    let expected = lines((50_000..50_100).chain(30_000..31_000).chain(50_100..50_200));
    assert_eq!(folder.read("out"), expected);
    let shown = folder.echoless("state show --json state").text();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let counts = ["fresh", "observed", "evictions"].map(|name| shown[name].as_u64().unwrap());
    assert_eq!(counts, [1200, 100 + 2 * 1200, 0]);
}

#[test]
fn other_options_take_its_duplicates_as_any_others() {
    let folder = Folder::with(&[("in", "a call1\nb call3\nc call3\nd call1\n")]);
    save(&folder, "saved", "-k 2 -d ' '", "x call1\ny call2\n");
    for (options, expected) in [
        ("", "b call3\n"),
        ("--invert", "a call1\nc call3\nd call1\n"),
        ("--count", "1\n"),
        ("--repeated", "a call1\nc call3\n"),
        (
            "--tag",
            "a call1 duplicate\nb call3 fresh\nc call3 duplicate\nd call1 duplicate\n",
        ),
    ] {
        let args = format!("-k 2 -d ' ' --known-state saved {options} in");
        folder.assert_runs(&[&format!("{args} | {expected}")]);
    }
    let args = "dedup -m 1MiB --summary line -k 2 -d ' ' --known-state saved in";
    let summary = folder.echoless(args).stderr;
    assert!(
        summary.contains("3 duplicates (75.00 %), 2 by --known-state"),
        "{summary}"
    );
}

#[test]
fn its_false_duplicates_are_among_those_that_are_expected() {
    let folder = Folder::with(&[("in", lines(1_000_000..1_200_000))]);
    save(&folder, "saved", "-m 8KiB --fpr 0.02", &lines(0..20_000));
    let run = folder.dedup("-m 16MiB --known-state saved --stats stats in");
    let mistaken = 200_000 - run.text().lines().count() as u64;
    let found = folder.json("stats");
    assert_eq!(found["known_state_duplicates"], mistaken);
    let rate = found["known_state_fpr"].as_f64().unwrap();
    let expected = found["expected_false_duplicates_high"].as_f64().unwrap();
    assert!(rate > 1e-4 && rate <= 0.02, "{rate}");
    let deviation = (mistaken as f64 - expected).abs() / expected.sqrt();
    assert!(deviation < 5.0, "{mistaken} and {expected}");
    assert!((expected / (200_000.0 * rate) - 1.0).abs() < 0.01);
    let [low, estimated, high] = ["_low", "", "_high"].map(|bound| {
        let name = format!("estimated_false_duplicates{bound}");
        found[name].as_u64().unwrap()
    });
    assert!(low <= mistaken && mistaken <= high, "{low} to {high}");
    assert!((estimated as f64 - expected).abs() < 1.0, "{estimated}");
    // That of a new key at the end of the run has both filters.
    let joined = found["expected_fpr"].as_f64().unwrap();
    assert!(joined > rate && joined < rate * 1.01, "{joined}");
}

#[test]
fn what_is_no_filter_of_these_keys_is_rejected() {
    let folder = Folder::with(&[
        ("in", "a\nc\n"),
        (
            "secret",
            "6465616462656566000102030405060708090a0b0c0d0e0f\n",
        ),
        ("secret_key", "00112233445566778899aabbccddeeff\n"),
        ("other_key", "ff112233445566778899aabbccddeeff\n"),
        ("empty", ""),
    ]);
    save(&folder, "saved", "--csv -k 2", "1,a\n2,b\n");
    save(&folder, "plain", "", "a\nb\n");
    save(&folder, "windowed", "--window 100", "a\nb\n");
    save(&folder, "keyed", "--hash-key secret_key", "a\n");
    let bytes = folder.bytes("plain");
    folder.write("truncated", &bytes[..bytes.len() - 1]);
    folder.write("longer", [&bytes[..], b"x"].concat());
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    folder.write("flipped", damaged);
    for (state, expected) in [
        ("missing", "No such file or directory"),
        ("plain.state", "expected a file of echoless state export"),
        ("/dev/null", "expected a file of echoless state export"),
        ("empty", "empty: cannot read the saved state"),
        ("secret", "secret: cannot read the saved state"),
        ("truncated", "truncated: cannot read the saved state"),
        ("longer", "longer: cannot read the saved state"),
        ("flipped", "flipped: cannot read the saved state"),
        (
            "plain.state/segment-0000000001",
            "segment-0000000001: cannot read the saved state",
        ),
        ("windowed", "expected a filter without a window"),
        (
            "plain --seed 7",
            "invalid --seed: expected that of the keys in ",
        ),
        (
            "plain --hash-key other_key",
            "invalid --hash-key: expected none: ",
        ),
        ("keyed", "missing --hash-key: "),
        (
            "keyed --hash-key other_key",
            "invalid --hash-key: expected the secret key of ",
        ),
        ("plain -k 2", "invalid --key=2: expected no --key, as in "),
        ("saved --csv", "missing --key: expected --key=2, as in "),
        ("saved -k 2", "missing --csv"),
        (
            "saved --csv -k 2 --trim",
            "invalid --trim: expected no --trim, as in ",
        ),
        (
            "plain --duplicates plain",
            "is also a file that an option reads",
        ),
        ("plain --window 5", "cannot be used with"),
        ("plain --keep last", "'--keep"),
    ] {
        folder
            .dedup(format!("-o out in --known-state {state}"))
            .fails(expected);
        assert!(!folder.has("out"), "{state}");
    }
    // Options that change no key may differ.
    folder.assert_runs(&["--hash-key secret_key --known-state keyed in | c\n"]);
    folder.write("in", "id,v\n1,a\n3,c\n");
    let args = "--csv -k 2 --header --max-record 100 --known-state saved in";
    folder.assert_runs(&[&format!("{args} | id,v\n3,c\n")]);
}
