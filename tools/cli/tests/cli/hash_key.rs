//! The secret key of the key hash: it changes which keys collide, not which are equal, and no
//! output shows it.

use std::fs;

use echoless::{Filter, FingerprintSpec, KeyHasher};
use serde_json::Value;

use crate::run::{command, dedup, echoless, file};

const ONE: &[u8] = b"000102030405060708090a0b0c0d0e0f\n";
const OTHER: &[u8] = b"ffeeddccbbaa99887766554433221100";

fn stream(records: u32) -> String {
    (0..records)
        .map(|i| format!("{},{i}\n", i.wrapping_mul(2_654_435_761) >> 17))
        .collect()
}

#[test]
fn any_key_finds_the_duplicates_on_any_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let input = stream(50_000);
    for args in [&["-k", "1"][..], &[]] {
        let expected = dedup(args, input.as_bytes()).bytes();
        for key in [ONE, OTHER] {
            let key = file(directory.path(), "key", key);
            for threads in ["1", "2", "3"] {
                let keyed = ["--hash-key", &key, "--threads", threads];
                let run = dedup([args, &keyed].concat(), input.as_bytes());
                assert!(run.bytes() == expected, "{args:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn the_errors_of_a_full_filter_depend_on_the_key_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (
        file(directory.path(), "one", ONE),
        file(directory.path(), "other", OTHER),
    );
    let input = stream(50_000);
    let outcome = |args: &[&str]| {
        let small = ["-m", "8k", "--fpr", "0.5", "-k", "1"];
        let args = [&["dedup", "-q"][..], &small, args].concat();
        echoless(&args, input.as_bytes()).bytes()
    };
    let keyed = outcome(&["--hash-key", &one]);
    assert!(keyed == outcome(&["--hash-key", &one, "--threads", "3"]));
    assert!(keyed != outcome(&["--hash-key", &other]));
    assert!(keyed != outcome(&[]));
}

/// The first attack of paper 002, section 7: anyone who knows the hash can rebuild the filter and
/// pick records that it reports as duplicates.
#[test]
fn crafted_records_are_dropped_with_a_seed_and_pass_with_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let key = file(directory.path(), "key", ONE);
    let mut input = stream(2000);
    let hasher = KeyHasher::seeded(0);
    let spec = FingerprintSpec::new(4 << 10).max_fpr(1e-3);
    let mut replica = spec.build().unwrap();
    for line in input.lines() {
        replica.observe_one(hasher.hash(line.as_bytes()));
    }
    let made_up = (0..).map(|number| format!("made up {number}"));
    let chosen = made_up.filter(|line| replica.contains(hasher.hash(line.as_bytes())));
    for line in chosen.take(50) {
        input += &(line + "\n");
    }
    let passed = |args: &[&str]| {
        let all = ["dedup", "-q", "-m", "4k", "--fpr", "1e-3"];
        let text = echoless([&all, args].concat(), input.as_bytes()).text();
        text.lines().filter(|line| line.contains("made up")).count()
    };
    assert_eq!(passed(&[]), 0);
    assert!(passed(&["--hash-key", &key]) >= 48);
}

#[test]
fn statistics_report_that_there_is_a_key_but_not_which() {
    let directory = tempfile::tempdir().unwrap();
    let key = file(directory.path(), "key", ONE);
    let path = file(directory.path(), "stats", b"");
    for (args, hash) in [(&["--hash-key", &key][..], "keyed"), (&[], "seeded")] {
        let args = [&["dedup", "-m", "64k", "--stats", &path], args].concat();
        let run = echoless(&args, b"a\nb\na\n");
        assert_eq!((run.code, &run.stdout[..]), (0, &b"a\nb\n"[..]));
        let stats = fs::read_to_string(&path).unwrap();
        let fields: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(fields["hash"], hash);
        for text in [stats, run.stderr] {
            assert!(!text.contains("00010203") && !text.contains("0c0d0e0f"));
        }
    }
}

#[test]
fn a_key_can_be_read_from_a_pipe() {
    let script = "echo a | \"$0\" dedup -q -m 64k --hash-key /dev/fd/3 3<<'END'\n\
                  000102030405060708090a0b0c0d0e0f\nEND";
    let mut shell = std::process::Command::new("sh");
    shell.env_remove("ECHOLESS_OPTS");
    shell.args(["-c", script]).arg(command("").get_program());
    let output = shell.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.stdout, b"a\n");
}

#[test]
fn invalid_keys_are_rejected_and_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let allowed = "expected 32 hexadecimal digits (16 bytes) and nothing else, as `openssl rand -hex 16` writes";
    for (content, found) in [
        (&b""[..], "0 digits"),
        (b"c0ffee\n", "6 digits"),
        (b"000102030405060708090a0b0c0d0e0fc0ffee", "38 digits"),
        (
            b"c0ffee-s-ecret-c0ffee-s-ecret-00",
            "byte 7 is not a hexadecimal digit",
        ),
        (
            b"\xc0\xff\xee\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c",
            "byte 1 is not a hexadecimal digit",
        ),
    ] {
        let path = file(directory.path(), "key", content);
        let run = dedup(["--hash-key", &path], b"a\n");
        let expected = format!("invalid --hash-key={path} ({found}): {allowed}");
        assert_eq!(run.error(), expected);
        assert!(!run.stderr.contains("ffee"));
        assert_eq!(run.stdout, b"");
    }
    let folder = directory.path().to_str().unwrap();
    for (path, reason) in [
        ("/no/such/key", "No such file"),
        (folder, "s a directory"),
        ("/dev/zero", "/dev/zero (more than 4096 bytes)"),
    ] {
        let run = dedup(["--hash-key", path], b"");
        let line = run.error();
        assert!(line.contains(path) && line.contains(reason), "{line}");
    }
}

#[test]
fn a_key_excludes_a_seed_and_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let key = file(directory.path(), "key", ONE);
    let run = dedup(["--hash-key", &key, "--seed", "0"], b"");
    assert!(
        run.error().contains("--hash-key") && run.error().contains("--seed"),
        "{}",
        run.error()
    );
    for option in ["-o", "--duplicates", "--stats"] {
        let run = dedup(["--hash-key", &key, option, &key], b"a\n");
        assert_eq!(
            run.error(),
            format!("{key}: is also a file that an option reads")
        );
        assert_eq!(fs::read(&key).unwrap(), ONE);
    }
}
