//! The secret key of the key hash: it changes which keys collide, not which are equal, and no
//! output shows it.

use echoless::{Filter, FingerprintSpec, KeyHasher};

use crate::run::{Folder, run};

const ONE: &[u8] = b"000102030405060708090a0b0c0d0e0f\n";
const OTHER: &[u8] = b"ffeeddccbbaa99887766554433221100";

fn stream(records: u32) -> String {
    (0..records)
        .map(|i| format!("{},{i}\n", i.wrapping_mul(2_654_435_761) >> 17))
        .collect()
}

#[test]
fn any_key_finds_the_duplicates_on_any_number_of_threads() {
    let folder = Folder::with(&[
        ("in", stream(50_000).as_bytes()),
        ("one", ONE),
        ("other", OTHER),
    ]);
    for args in ["-k 1 in", "in"] {
        let expected = folder.dedup(args).bytes();
        for key in ["one", "other"] {
            for threads in 1..=3 {
                let run = folder.dedup(format!("--hash-key {key} --threads {threads} {args}"));
                assert!(run.bytes() == expected, "{args}, {threads} threads");
            }
        }
    }
}

#[test]
fn the_errors_of_a_full_filter_depend_on_the_key_alone() {
    let folder = Folder::with(&[
        ("in", stream(50_000).as_bytes()),
        ("one", ONE),
        ("other", OTHER),
    ]);
    let outcome = |args: &str| {
        let run = folder.echoless(format!("dedup -q -m 8k --fpr 0.5 -k 1 in {args}"));
        run.bytes()
    };
    let keyed = outcome("--hash-key one");
    assert!(keyed == outcome("--hash-key one --threads 3"));
    assert!(keyed != outcome("--hash-key other"));
    assert!(keyed != outcome(""));
}

/// The first attack of paper 002, section 7: anyone who knows the hash can rebuild the filter and
/// pick records that it reports as duplicates.
#[test]
fn crafted_records_are_dropped_with_a_seed_and_pass_with_a_key() {
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
    let folder = Folder::with(&[("in", input.as_bytes()), ("key", ONE)]);
    let passed = |args: &str| {
        let text = folder
            .echoless(format!("dedup -q -m 4k --fpr 1e-3 in {args}"))
            .text();
        text.lines().filter(|line| line.contains("made up")).count()
    };
    assert_eq!(passed(""), 0);
    assert!(passed("--hash-key key") >= 48);
}

#[test]
fn statistics_report_that_there_is_a_key_but_not_which() {
    let folder = Folder::with(&[("key", ONE)]);
    for (args, hash) in [("--hash-key key", "keyed"), ("", "seeded")] {
        let run = folder.echoless_on(format!("dedup -m 64k --stats stats {args}"), "a\nb\na\n");
        assert_eq!((run.code, &run.stdout[..]), (0, &b"a\nb\n"[..]));
        assert_eq!(folder.json("stats")["hash"], hash);
        for text in [folder.read("stats"), run.stderr] {
            assert!(!text.contains("00010203") && !text.contains("0c0d0e0f"));
        }
    }
}

#[test]
fn a_key_can_be_read_from_a_pipe() {
    let script = "echo a | \"$0\" dedup -q -m 64k --hash-key /dev/fd/3 3<<'END'\n\
                  000102030405060708090a0b0c0d0e0f\nEND";
    assert_eq!(run(Folder::new().shell(script)).text(), "a\n");
}

#[test]
fn invalid_keys_are_rejected_and_not_shown() {
    let folder = Folder::new();
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
        folder.write("key", content);
        let run = folder.dedup_on("--hash-key key", "a\n");
        let expected = format!("invalid --hash-key=key ({found}): {allowed}");
        assert_eq!(run.error(), expected);
        assert!(!run.stderr.contains("ffee"));
        assert_eq!(run.stdout, b"");
    }
    for (path, reason) in [
        ("/no/such/key", "No such file"),
        (".", "s a directory"),
        ("/dev/zero", "/dev/zero (more than 4096 bytes)"),
    ] {
        let run = folder.dedup(format!("--hash-key {path}"));
        let line = run.error();
        assert!(line.contains(path) && line.contains(reason), "{line}");
    }
}

#[test]
fn a_key_excludes_a_seed_and_is_not_overwritten() {
    let folder = Folder::with(&[("key", ONE)]);
    let run = folder.dedup("--hash-key key --seed 0");
    run.fails("--hash-key");
    run.fails("--seed");
    for option in ["-o", "--duplicates", "--stats"] {
        let run = folder.dedup_on(format!("--hash-key key {option} key"), "a\n");
        run.fails_with("key: is also a file that an option reads");
        assert_eq!(folder.bytes("key"), ONE);
    }
}
