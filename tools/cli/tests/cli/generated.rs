//! `echoless gen`: equal options give equal bytes, and the requested fraction of duplicates.

use std::collections::HashSet;

use crate::run::{dedup, echoless};

fn generate(args: &[&str]) -> Vec<u8> {
    echoless([&["gen"], args].concat(), b"").bytes()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

const KINDS: [&str; 3] = ["cdr", "keys", "lines"];

#[test]
fn equal_options_give_equal_bytes() {
    for kind in KINDS {
        let args = [kind, "-n", "3000", "--duplicates", "0.3"];
        let bytes = generate(&args);
        assert!(bytes == generate(&args), "{kind}");
        assert!(
            bytes != generate(&[&args[..], &["--seed", "1"]].concat()),
            "{kind}"
        );
        assert!(generate(&[kind, "-n", "0"]).is_empty());
    }
}

#[test]
fn a_file_without_records_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none");
    generate(&[KINDS[0], "-n", "0", "-o", path.to_str().unwrap()]);
    assert!(std::fs::read(path).unwrap().is_empty());
}

#[test]
fn a_shorter_stream_is_the_beginning_of_a_longer_one() {
    for kind in KINDS {
        let long = generate(&[kind, "-n", "2000", "--duplicates", "0.5"]);
        let short = generate(&[kind, "-n", "500", "--duplicates", "0.5"]);
        assert!(long.starts_with(&short), "{kind}");
    }
}

#[test]
fn the_stream_does_not_change_between_versions() {
    for (args, expected) in [
        (
            &["keys", "-n", "6", "--duplicates", "0.5", "--seed", "7"][..],
            "E2C17EAC478A8077\nC85F459F9610FEC2\nD10D12F01CFD0E2F\n2CB2AB06A4000054\nC85F459F9610FEC2\n73994D9D490FCFA8\n",
        ),
        (
            &[
                "keys",
                "-n",
                "7",
                "--duplicates",
                "0.8",
                "--distribution",
                "zipf:1.1",
                "--seed",
                "3",
            ],
            "3ADF11D0F1D88DB8\n8B63B6915BF4C8BE\n26A2C2E4E23F42F2\n26A2C2E4E23F42F2\n0E04656B25DEDCB2\n3ADF11D0F1D88DB8\n8B63B6915BF4C8BE\n",
        ),
        (
            &["cdr", "-n", "1"],
            "0000000000,491710085865,491616176964,2025-01-01T00:00:00Z,475,0116-4591,MTC,356645727770305,16,T171\n",
        ),
        (
            &["lines", "-n", "2", "--record-bytes", "24"],
            "AAAAAAAAAAZzXXYxNXZEo4s\nVwnS-lbe34Sjoa9OOdsqsEY\n",
        ),
    ] {
        assert_eq!(String::from_utf8(generate(args)).unwrap(), expected);
    }
}

#[test]
fn the_share_of_duplicates_is_as_requested() {
    const COUNT: usize = 20_000;
    for kind in KINDS {
        for more in [
            &[][..],
            &["--distribution", "zipf"],
            &["--distribution", "zipf:1.5"],
            &["--gap", "100"],
        ] {
            for share in ["0", "0.25", "0.9"] {
                let count = COUNT.to_string();
                let args = [&[kind, "-n", &count, "--duplicates", share], more].concat();
                let bytes = generate(&args);
                let lines = lines(&bytes);
                assert_eq!(lines.len(), COUNT);
                let distinct: HashSet<&[u8]> = lines.into_iter().collect();
                let measured = 1.0 - distinct.len() as f64 / COUNT as f64;
                let requested: f64 = share.parse().unwrap();
                assert!((measured - requested).abs() < 0.02, "{args:?}: {measured}");
                assert!(requested > 0.0 || measured == 0.0, "{args:?}: {measured}");
            }
        }
    }
}

#[test]
fn a_gap_is_the_distance_to_the_record_repeated() {
    let bytes = generate(&["keys", "-n", "5000", "--duplicates", "0.4", "--gap", "37"]);
    let lines = lines(&bytes);
    let mut seen = HashSet::new();
    for (at, line) in lines.iter().enumerate() {
        if !seen.insert(line) {
            assert_eq!(line, &lines[at - 37]);
        }
    }
    assert!(seen.len() < 4000);
    let with_gap = |gap| generate(&["keys", "-n", "5k", "--duplicates", "0.4", "--gap", gap]);
    assert_eq!(with_gap("2k"), with_gap("2000"));
    let capture = |rate| generate(&["packets", "-n", "10", "--rate", rate]);
    assert_eq!(capture("20k"), capture("20000"));
}

#[test]
fn call_records_fit_their_header() {
    let bytes = generate(&["cdr", "-n", "1000", "--header"]);
    let lines = lines(&bytes);
    assert_eq!(lines.len(), 1001);
    assert!(lines[0].starts_with(b"record_id,caller,callee,start_time,"));
    let mean = bytes.len() as f64 / lines.len() as f64;
    assert!((95.0..105.0).contains(&mean), "{mean}");
    let args = ["--header", "-k", "record_id,start_time"];
    assert!(dedup(args, &bytes).bytes() == bytes);
}

#[test]
fn lines_have_the_requested_length() {
    for length in [5, 20, 100, 1000] {
        let text = length.to_string();
        let bytes = generate(&["lines", "-n", "200", "--record-bytes", &text]);
        let lines = lines(&bytes);
        assert_eq!(lines.len(), 200);
        assert!(lines.iter().all(|line| line.len() == length));
    }
}
