//! `echoless gen`: equal options give equal bytes, and the requested fraction of duplicates.

use std::collections::HashSet;

use crate::run::echoless;

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
    for kind in KINDS {
        let bytes = generate(&[kind, "-n", "20000", "--duplicates", "0.25", "--gap", "100"]);
        let lines = lines(&bytes);
        assert_eq!(lines.len(), 20_000);
        let distinct = HashSet::<&[u8]>::from_iter(lines).len();
        assert!((14_600..15_400).contains(&distinct), "{kind}: {distinct}");
    }
}

#[test]
fn options_reach_the_generators() {
    let with_gap = |gap| generate(&["keys", "-n", "5k", "--duplicates", "0.4", "--gap", gap]);
    assert_eq!(with_gap("2k"), with_gap("2000"));
    assert_ne!(with_gap("2k"), with_gap("1k"));
    let capture = |rate| generate(&["packets", "-n", "10", "--rate", rate]);
    assert_eq!(capture("20k"), capture("20000"));
    let records = generate(&["cdr", "-n", "2", "--header"]);
    assert!(records.starts_with(b"record_id,caller,callee,start_time,"));
}
