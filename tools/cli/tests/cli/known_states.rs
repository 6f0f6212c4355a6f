//! `--known-state`: filters of other runs whose keys count as seen.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::{Run, echoless, file};

/// Runs with a state, and saved filters, in a folder.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, content: &str) -> String {
        file(self.0.path(), name, content.as_bytes())
    }

    /// Saves the filter of a run over these records under a name.
    fn save(&self, name: &str, options: &[&str], records: &str) -> String {
        let (state, input) = (
            self.path(&format!("{name}.state")),
            self.file(&format!("{name}.in"), records),
        );
        let saved = self.path(name);
        let args = [&["--state", &state, "-o", "/dev/null"], options, &[&input]].concat();
        dedup(&args, b"").text();
        echoless(&["state", "export", &state, "-o", &saved], b"").text();
        saved
    }

    fn stats(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("stats")).unwrap()).unwrap()
    }
}

/// Runs `dedup` with the memory of its options, or 1 MiB.
fn dedup(args: &[&str], input: &[u8]) -> Run {
    let mut all = vec!["dedup", "-q"];
    if !args.contains(&"-m") {
        all.extend(["-m", "1MiB"]);
    }
    all.extend(args);
    echoless(&all, input)
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
    let place = Place::new();
    let known = lines((0..20_000).map(|number| 3 * number));
    let more = lines(200_000..210_000);
    let saved = place.save("saved", &[], &known);
    let other = place.save("other", &["-m", "256KiB"], &more);
    let input = lines((0..150_000).map(|number| number * 7 % 90_000 + number / 2));
    let input_path = place.file("input", &input);
    let stats = place.path("stats");
    for (states, seen) in [
        (&[&saved][..], set(&known)),
        (&[&saved, &other], &set(&known) | &set(&more)),
    ] {
        let expected = exact(&input, seen.clone());
        for threads in ["1", "3"] {
            let mut args = vec!["-m", "4MiB", "--threads", threads, "--stats", &stats];
            args.extend(states.iter().flat_map(|state| ["--known-state", *state]));
            let run = dedup(&[&args[..], &[&input_path]].concat(), b"");
            assert!(run.text() == expected, "{threads} threads, {states:?}");
            let found = place.stats();
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
    let place = Place::new();
    let saved = place.save("saved", &["-m", "1MiB"], &lines(0..30_000));
    let state = place.path("state");
    let first = place.file("first", &lines((0..30_000).chain(50_000..50_100)));
    let second = place.file("second", &lines((29_000..31_000).chain(50_000..50_200)));
    let out = place.path("out");
    // Its memory is enough for the others alone.
    for (input, again) in [(&first, false), (&second, false), (&second, true)] {
        let mut args = vec!["-m", "16KiB", "--known-state", &saved, "--state", &state];
        args.extend(again.then_some("--again"));
        dedup(&[&args[..], &["-o", &out, input]].concat(), b"").text();
    }
    let expected = lines((50_000..50_100).chain(30_000..31_000).chain(50_100..50_200));
    assert_eq!(fs::read_to_string(&out).unwrap(), expected);
    let shown = echoless(&["state", "show", "--json", &state], b"").text();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["fresh"], 1200);
    assert_eq!(shown["observed"], 100 + 2 * 1200);
    assert_eq!(shown["evictions"], 0);
}

#[test]
fn other_options_take_its_duplicates_as_any_others() {
    let place = Place::new();
    let saved = place.save("saved", &["-k", "2", "-d", " "], "x call1\ny call2\n");
    let options = ["-k", "2", "-d", " ", "--known-state", &saved];
    let input = b"a call1\nb call3\nc call3\nd call1\n";
    let run = |more: &[&str]| dedup(&[&options, more].concat(), input);
    assert_eq!(run(&[]).text(), "b call3\n");
    assert_eq!(run(&["--invert"]).text(), "a call1\nc call3\nd call1\n");
    assert_eq!(run(&["--count"]).text(), "1\n");
    assert_eq!(run(&["--repeated"]).text(), "a call1\nc call3\n");
    let tagged = "a call1 duplicate\nb call3 fresh\nc call3 duplicate\nd call1 duplicate\n";
    assert_eq!(run(&["--tag"]).text(), tagged);
    // In the summary.
    let all = [
        "dedup",
        "-m",
        "1MiB",
        "--summary",
        "line",
        "-k",
        "2",
        "-d",
        " ",
        "--known-state",
        &saved,
    ];
    let run = echoless(&all, b"a call1\nb call3\nd call1\n");
    assert!(
        run.stderr
            .contains("2 duplicates (66.67 %), 2 by --known-state"),
        "{}",
        run.stderr
    );
}

#[test]
fn its_false_duplicates_are_among_those_that_are_expected() {
    let place = Place::new();
    let options = ["-m", "8KiB", "--fpr", "0.02"];
    let saved = place.save("saved", &options, &lines(0..20_000));
    let stats = place.path("stats");
    let input = lines(1_000_000..1_200_000);
    let args = ["-m", "16MiB", "--known-state", &saved, "--stats", &stats];
    let passed = dedup(&args, input.as_bytes()).text().lines().count();
    let mistaken = 200_000 - passed as u64;
    let found = place.stats();
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
    let place = Place::new();
    let saved = place.save("saved", &["--csv", "-k", "2"], "1,a\n2,b\n");
    let plain = place.save("plain", &[], "a\nb\n");
    let windowed = place.save("windowed", &["--window", "100"], "a\nb\n");
    let secret = place.file(
        "secret",
        "6465616462656566000102030405060708090a0b0c0d0e0f\n",
    );
    let secret_key = place.path("secret_key");
    fs::write(&secret_key, "00112233445566778899aabbccddeeff\n").unwrap();
    let other_key = place.path("other_key");
    fs::write(&other_key, "ff112233445566778899aabbccddeeff\n").unwrap();
    let keyed = place.save("keyed", &["--hash-key", &secret_key], "a\n");
    let bytes = fs::read(&plain).unwrap();
    let truncated = place.path("truncated");
    fs::write(&truncated, &bytes[..bytes.len() - 1]).unwrap();
    let longer = place.path("longer");
    fs::write(&longer, [&bytes[..], b"x"].concat()).unwrap();
    let flipped = place.path("flipped");
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    fs::write(&flipped, &damaged).unwrap();
    let folder = place.path("plain.state");
    let segment = Path::new(&folder).join("segment-0000000001");
    let segment = segment.to_str().unwrap();
    let missing = place.path("missing");
    let empty = place.file("empty", "");
    let no_file = "expected a file of echoless state export";
    let out = place.path("out");
    for (state, options, expected) in [
        (&*missing, &[][..], "No such file or directory"),
        (&*folder, &[], no_file),
        ("/dev/null", &[], no_file),
        (&*empty, &[], "empty: cannot read the saved state"),
        (&*secret, &[], "secret: cannot read the saved state"),
        (&*truncated, &[], "truncated: cannot read the saved state"),
        (&*longer, &[], "longer: cannot read the saved state"),
        (&*flipped, &[], "flipped: cannot read the saved state"),
        (
            segment,
            &[],
            "segment-0000000001: cannot read the saved state",
        ),
        (&*windowed, &[], "expected a filter without a window"),
        (
            &*plain,
            &["--seed", "7"],
            "invalid --seed: expected that of the keys in ",
        ),
        (
            &*plain,
            &["--hash-key", &other_key],
            "invalid --hash-key: expected none: ",
        ),
        (&*keyed, &[], "missing --hash-key: "),
        (
            &*keyed,
            &["--hash-key", &other_key],
            "invalid --hash-key: expected the secret key of ",
        ),
        (
            &*plain,
            &["-k", "2"],
            "invalid --key=2: expected no --key, as in ",
        ),
        (
            &*saved,
            &["--csv"],
            "missing --key: expected --key=2, as in ",
        ),
        (&*saved, &["-k", "2"], "missing --csv"),
        (
            &*saved,
            &["--csv", "-k", "2", "--trim"],
            "invalid --trim: expected no --trim, as in ",
        ),
        (
            &*plain,
            &["--duplicates", &plain],
            "is also a file that an option reads",
        ),
        (&*plain, &["--window", "5"], "cannot be used with"),
        (&*plain, &["--keep", "last"], "'--keep"),
    ] {
        let run = dedup(
            &[&["-o", &out, "--known-state", state], options].concat(),
            b"a\nc\n",
        );
        assert!(
            run.error().contains(expected),
            "{state} {options:?}: {}",
            run.error()
        );
        assert!(!Path::new(&out).exists(), "{state} {options:?}");
    }
    // Options that change no key may differ.
    let input = b"id,v\n1,a\n3,c\n";
    let options = [
        "--csv",
        "-k",
        "2",
        "--header",
        "--max-record",
        "100",
        "--known-state",
        &saved,
    ];
    assert_eq!(dedup(&options, input).text(), "id,v\n3,c\n");
    let options = ["--hash-key", &secret_key, "--known-state", &keyed];
    assert_eq!(dedup(&options, b"a\nc\n").text(), "c\n");
}
