//! `--exact`: no record is lost and no duplicate passes, in any memory.

use std::collections::{HashMap, HashSet};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{Folder, assert_errors, dedup, send};

/// A line of 16 bytes that has one hash with all others of these, with the seed 0: half of its bytes
/// are a constant of the hash, which then multiplies by 0.
fn crafted(number: u32) -> Vec<u8> {
    let free = (0..8).map(|digit| b'A' + (number >> (4 * digit) & 15) as u8);
    let free: Vec<u8> = free.collect();
    let constant = 0xe703_7ed1_a0b4_28db_u64;
    let high = ((constant >> 32) as u32).to_le_bytes();
    let low = (constant as u32).to_le_bytes();
    [&high, &free[..4], &low, &free[4..], b"\n"].concat()
}

#[test]
fn crafted_records_of_one_hash_are_all_kept() {
    let keys: Vec<u32> = (0..3000).chain(1000..2000).collect();
    let lines: Vec<Vec<u8>> = keys.iter().map(|key| crafted(*key)).collect();
    let folder = Folder::with(&[("in", lines.concat())]);
    assert_eq!(folder.dedup("in").bytes(), lines[0], "they have one hash");
    for threads in 1..=3 {
        for memory in ["64", "1MiB"] {
            let args = format!("--exact in --threads {threads} -m {memory}");
            assert!(
                folder.dedup(&args).bytes() == lines[..3000].concat(),
                "{args}"
            );
            let duplicates = folder.dedup(format!("{args} --invert")).bytes();
            assert!(duplicates == lines[3000..].concat(), "{args}");
        }
    }
}

#[test]
fn every_kind_of_run_has_the_outputs_of_one_without_errors() {
    let csv = "id,at,v\n1,5,\"a\"\n2,6,b\n1,7,c\nx\n3,8,\"a\nb\"\n2,9,b\n3,20,d\n1,21,a\n";
    let json = "{\"id\":1}\n{\"id\":2}\n{\"v\":[1,2],\"id\":1.0}\n{\"id\":\"1\"}\n";
    let folder = Folder::with(&[
        ("csv", csv),
        ("json", json),
        ("known", "id,at,v\n2,1,z\n"),
        ("fixed", "aabbaaccbb"),
        ("lists", "a\nb\n\na\nb\n\nc\n\n"),
    ]);
    let outputs = "--stats stats --duplicates dropped --explain=where";
    for args in [
        "csv --csv --header -k id --missing skip",
        "csv --csv --header -k id --missing empty",
        "csv --csv --header -k v,id --rejects rejects",
        "csv --csv --header -k id --missing skip --known known",
        "csv --csv --header -k id --missing skip --keep last",
        "csv --csv --header -k id --missing skip --keep none",
        "csv --csv --header -k id --missing skip --tag",
        "csv --csv --header -k id --missing skip --top-keys top",
        "csv --csv --header -k id --missing skip --window 3",
        "csv --csv --header -k id --missing skip --window 2s --time-field at --time-format s",
        "csv --csv --header -k v --window 9s --refresh --time-field at --missing empty \
         --time-format s",
        "csv -k 1 --missing empty --ignore-case",
        "json --format jsonl -k id",
        "json --format jsonl",
        "fixed --format fixed:2",
        "lists --format paragraphs",
    ] {
        let written = |more: &str| {
            let run = folder.dedup(format!("{args} {outputs} {more}"));
            let stats = folder.json("stats");
            let counts = [
                "records",
                "fresh",
                "duplicates",
                "unkeyed",
                "rejected",
                "late",
            ];
            let counts = counts.map(|field| stats[field].clone());
            let dropped = [folder.bytes("dropped"), folder.bytes("where")];
            (run.code, run.stdout, counts, dropped)
        };
        let expected = written("");
        for more in [
            "",
            "-m 64",
            "-m 1k --threads 3",
            "--threads 2 --read-bytes 7",
        ] {
            let exact = written(&format!("--exact {more}"));
            assert_eq!(exact, expected, "{args} {more}");
        }
    }
}

#[test]
fn windows_end_exactly() {
    // A tick of an approximate window of a day is longer than a second.
    let day = 86_400;
    let mut lines = String::new();
    for key in 0..40 {
        lines += &format!("{key},{}\n", 1_000_000 + key);
    }
    for key in 0..40 {
        lines += &format!("{key},{}\n", 1_000_000 + key + day + key % 2);
    }
    let folder = Folder::with(&[("in", lines)]);
    let args = "--csv -k 1 --window 1d --time-field 2 --time-format s --invert in --exact";
    // The clock is the latest time: records of one second beyond the day move it for the next.
    let mut clock = 0;
    let expected: String = (0..40)
        .filter_map(|key| {
            let at = 1_000_000 + key + day + key % 2;
            clock = at.max(clock);
            (clock - (1_000_000 + key) <= day).then(|| format!("{key},{at}\n"))
        })
        .collect();
    assert!(expected.lines().count() > 10 && expected.lines().count() < 30);
    assert_eq!(folder.dedup(args).text(), expected);
    assert_eq!(
        folder.dedup(format!("{args} -m 64 --threads 3")).text(),
        expected
    );
}

#[test]
fn the_report_says_what_was_compared_and_in_how_many_passes() {
    let lines: String = (0..20_000)
        .map(|key| format!("{}\n", key % 15_000))
        .collect();
    let fresh: String = (0..15_000).map(|key| format!("{key}\n")).collect();
    let folder = Folder::with(&[("in", &lines)]);
    let summary = |more: &str| {
        let run = folder.echoless(format!(
            "dedup --exact --summary full --stats stats in {more}"
        ));
        assert_eq!(run.stdout, fresh.as_bytes());
        (run.stderr, folder.json("stats")["exact"].clone())
    };
    let (text, stats) = summary("");
    assert!(
        text.contains("keys compared by a digest of 128 bits, in 2 passes"),
        "{text}"
    );
    assert_eq!(stats["passes"], Value::from(2));
    let suspects = stats["suspects"].as_u64().unwrap();
    assert!((5000..6000).contains(&suspects), "{suspects}");
    assert_eq!(folder.json("stats")["estimated_missed_duplicates_high"], 0);
    // What a filter of 64 KiB holds no more is compared in shares: some 9,000 of 15,000 keys at 25 bytes.
    let (_, stats) = summary("-m 64KiB");
    assert!(
        (4..8).contains(&stats["passes"].as_u64().unwrap()),
        "{stats}"
    );
    // Backwards, a round makes an index and judges.
    folder.dedup("--exact in --keep last --stats stats").text();
    assert_eq!(folder.json("stats")["exact"]["passes"], Value::from(4));
    folder.dedup("--exact in --keep none --stats stats").text();
    assert_eq!(folder.json("stats")["exact"]["passes"], Value::from(4));
    assert_eq!(folder.dedup("in --stats stats").code, 0);
    assert_eq!(folder.json("stats")["exact"], Value::Null);
}

#[test]
fn a_faulty_record_or_input_ends_the_run_as_without_the_option() {
    let folder = Folder::with(&[
        ("in", "1,a\n2,b\n1,a\nx\n3,c\n"),
        ("cut", "1,a\n\"b\nc"),
        ("header", "id,v\n1,a\n1,b\n"),
    ]);
    folder.write(
        "damaged.gz",
        &crate::codecs::compress("gzip", b"1,a\n1,a\n2,b\n")[..20],
    );
    for args in [
        "-k 2 --csv in",
        "-k 1 --csv cut",
        "-k 1 --csv in nosuch",
        // Behind it is another fault, which is met by nobody.
        "-k 2 --csv --header in header",
        "-k 1 --csv --header header in",
        "-k 1 --csv in damaged.gz",
        "-k 1 --csv in damaged.gz --strict",
        "-k 2 --csv in --keep last",
    ] {
        for threads in ["--threads 1", "--threads 3 --read-bytes 3", "-m 64"] {
            let run = |more: &str| folder.dedup(format!("{args} {threads} {more}"));
            let (plain, exact) = (run(""), run("--exact"));
            assert_eq!(exact.stderr, plain.stderr, "{args}");
            assert_eq!(
                (exact.code, exact.stdout),
                (plain.code, plain.stdout),
                "{args}"
            );
        }
    }
}

#[test]
fn records_before_a_fault_have_the_verdicts_of_all_rounds() {
    let twice = || (0..200).chain(0..200).map(|key| format!("{key},{key}\n"));
    let once: String = twice().take(200).collect();
    let all: String = twice().collect();
    let folder = Folder::with(&[("in", all + "x\n"), ("more", "1,1\n300,300\n".into())]);
    for memory in ["", "-m 64", "-m 1k"] {
        for args in ["-k 2 --csv in", "-k 2 --csv in more --threads 3"] {
            let run = folder.dedup(format!("--exact {args} {memory}"));
            assert_eq!(
                (run.code, &run.stdout[..]),
                (2, once.as_bytes()),
                "{args} {memory}"
            );
        }
        let args = "--csv -k 2 --rejects rejects in more";
        let run = folder.dedup(format!("--exact {args} {memory}"));
        assert_eq!(run.text(), format!("{once}300,300\n"), "{memory}");
    }
    let lines: String = (0..2000).map(|key| format!("{}\n", key % 1500)).collect();
    folder.write(
        "cut.gz",
        &crate::codecs::compress("gzip", lines.as_bytes())[..1500],
    );
    let expected = folder.dedup("cut.gz");
    let exact = folder.dedup("--exact -m 64 cut.gz");
    assert_eq!(
        (exact.code, exact.stdout, exact.stderr),
        (expected.code, expected.stdout, expected.stderr)
    );
}

#[test]
fn what_does_not_go_with_it_is_rejected() {
    assert_errors(
        |args| dedup(args, "a\nb\na\n"),
        &[
            "--exact --filter stamped x | cannot be used with",
            "--exact --replacement fifo x | cannot be used with",
            "--exact --dense x | cannot be used with",
            "--exact --known-state file x | cannot be used with",
            "--exact --follow x | cannot be used with",
            "--exact --state folder --commit-interval 9s x | invalid --commit-interval: expected no \
             --exact beside it, which commits a run once, at its end",
            "--exact --no-spool | invalid --exact: expected names of regular files, since it reads \
             them several times, not standard input: write it to a file first, cat > FILE",
            "--exact /dev/zero | not /dev/zero: write it to a file first",
            "--exact nosuch | nosuch: No such file",
        ],
    );
}

/// A record, and how it is compared.
#[derive(Debug, Clone)]
struct Row {
    key: u32,
    time: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn outputs_are_those_of_a_set(
        rows in vec((0_u32..400, 0_u64..30, 0_u64..40), 0..3000),
        keys in 1_u32..400,
        is_crafted: bool,
        memory in prop::sample::select(vec!["", "-m 64", "-m 300", "-m 4k", "-m 64k"]),
        threads in 1_usize..=4,
        mode in 0_usize..7,
        (window, refresh) in (1_u64..60, any::<bool>()),
        known in 0_usize..100,
    ) {
        // Times ascend but for some disorder, with ties.
        let mut now = 100;
        let rows: Vec<Row> = rows.iter().map(|(key, step, back)| {
            now += step / 20;
            Row { key: key % keys, time: if *back < 4 { now - back } else { now } }
        }).collect();
        let line = |row: &Row| {
            let key = match is_crafted {
                true => crafted(row.key),
                false => format!("key {}\n", row.key).into_bytes(),
            };
            [&key[..key.len() - 1], format!(",{}\n", row.time).as_bytes()].concat()
        };
        let lines: Vec<Vec<u8>> = rows.iter().map(line).collect();
        let folder = Folder::new();
        let (of_known, of_input) = lines.split_at(if mode == 5 { known.min(lines.len()) } else { 0 });
        folder.write("known", of_known.concat());
        folder.write("in", of_input.concat());
        let (mut seen, mut clock) = (HashMap::<u32, u64>::new(), 0);
        let mut counts = HashMap::<u32, u32>::new();
        rows.iter().for_each(|row| *counts.entry(row.key).or_default() += 1);
        let last: HashSet<usize> = rows.iter().enumerate()
            .map(|(at, row)| (row.key, at)).collect::<HashMap<_, _>>().into_values().collect();
        let mut expected = Vec::<u8>::new();
        let mut repeated = HashSet::new();
        for (at, row) in rows.iter().enumerate() {
            clock = clock.max(row.time);
            let now = if mode == 3 { at as u64 } else { clock };
            let is_seen = |seen: &u64| ![3, 4].contains(&mode) || now - seen <= window;
            let is_duplicate = seen.get(&row.key).is_some_and(is_seen);
            let is_late = mode == 4 && clock - row.time > window;
            if !is_late && (!is_duplicate || refresh) {
                seen.insert(row.key, now);
            }
            let passes = match mode {
                1 => last.contains(&at),
                2 => counts[&row.key] == 1,
                6 => is_duplicate && repeated.insert(row.key),
                _ => !is_duplicate || is_late,
            };
            if passes && at >= of_known.len() {
                expected.extend(&lines[at]);
            }
        }
        let refresh = if refresh { "--refresh" } else { "" };
        let more = match mode {
            1 => "--keep last".to_owned(),
            2 => "-u".into(),
            3 => format!("--window {window} {refresh}"),
            4 => format!("--window {window}s --time-field 2 --time-format s {refresh}"),
            5 => "--known known".into(),
            6 => "--repeated".into(),
            _ => String::new(),
        };
        let args = format!("--exact -d , -k 1 {memory} --threads {threads} {more} in");
        let written = folder.dedup(&args).bytes();
        prop_assert!(written == expected, "{}", args);
    }
}

/// Lines of numbered keys.
fn lines_of(keys: &[u32], is_crafted: bool) -> Vec<Vec<u8>> {
    let line = |key: &u32| match is_crafted {
        true => crafted(*key),
        false => format!("key {key}\n").into_bytes(),
    };
    keys.iter().map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn runs_of_a_state_have_the_outputs_of_one_set(
        runs in vec(vec(vec(0_u32..500, 0..700), 1..3), 1..5),
        is_crafted: bool,
        memory in prop::sample::select(vec!["-m 64", "-m 300", "-m 4k", "-m 64k"]),
        threads in 1_usize..=3,
    ) {
        let folder = Folder::new();
        let (mut seen, mut passed, mut dropped) = (HashSet::new(), vec![0_u8; 0], vec![0_u8; 0]);
        for (run, inputs) in runs.iter().enumerate() {
            let mut names = String::new();
            for (number, keys) in inputs.iter().enumerate() {
                let name = format!("in{run}.{number}");
                let lines = lines_of(keys, is_crafted);
                for (key, line) in keys.iter().zip(&lines) {
                    let outputs = [&mut dropped, &mut passed];
                    outputs[usize::from(seen.insert(*key))].extend(line);
                }
                folder.write(&name, lines.concat());
                names += &format!(" {name}");
            }
            let args = format!(
                "--exact --state state {memory} --threads {threads} -o out --duplicates dup{names}"
            );
            folder.dedup(args).text();
            prop_assert!(folder.bytes("out") == passed, "run {}", run);
            prop_assert!(folder.bytes("dup") == dropped, "run {}", run);
        }
        folder.echoless("state verify state").text();
        let shown = folder.echoless("state show state").text();
        let stored = format!("exact      {} keys,", seen.len());
        prop_assert!(shown.contains(&stored), "{}", shown);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn runs_of_a_state_have_the_window_of_one_stream(
        runs in vec(vec((0_u32..300, 0_u64..30, 0_u64..60), 0..600), 1..6),
        (is_crafted, is_timed, refresh) in any::<(bool, bool, bool)>(),
        late in prop::sample::select(vec!["pass", "judge", "reject"]),
        window in 1_u64..150,
        memory in prop::sample::select(vec!["-m 64", "-m 300", "-m 4k", "-m 64k"]),
        threads in 1_usize..=3,
    ) {
        let folder = Folder::new();
        // Times ascend but for some disorder, with ties, and count from a day long ago.
        let mut now = 1_700_000_000_000_000_000;
        let (mut seen, mut clock, mut record) = (HashMap::<u32, u64>::new(), 0, 0);
        let [mut passed, mut dropped, mut rejected] = [const { Vec::<u8>::new() }; 3];
        let rejects = if is_timed && late == "reject" { "--rejects" } else { "" };
        let window_options = match is_timed {
            true => format!("--window {window}ns --time-field 2 --time-format ns --late {late}"),
            false => format!("--window {window}"),
        };
        let refreshes = if refresh { "--refresh" } else { "" };
        let options = format!("--exact -d , -k 1 {window_options} {refreshes} {memory}");
        let outputs = |name: &str| {
            let rejects = rejects.replace("--rejects", &format!("--rejects {name}.rejects"));
            format!("-o {name} --duplicates {name}.dup {rejects}")
        };
        let mut names = String::new();
        for (run, rows) in runs.iter().enumerate() {
            let mut input = Vec::new();
            for (key, step, back) in rows {
                now += step / 20;
                let time = if *back < 12 { now - back * back } else { now };
                let text = match is_crafted {
                    true => crafted(*key),
                    false => format!("key {key}\n").into_bytes(),
                };
                let line = [&text[..text.len() - 1], format!(",{time}\n").as_bytes()].concat();
                input.extend(&line);
                record += 1;
                clock = if is_timed { time.max(clock) } else { record };
                if is_timed && late != "judge" && clock - time > window {
                    let output = if late == "pass" { &mut passed } else { &mut rejected };
                    output.extend(&line);
                    continue;
                }
                let is_duplicate = seen.get(key).is_some_and(|seen| clock - seen <= window);
                if !is_duplicate || refresh {
                    seen.insert(*key, clock);
                }
                let output = if is_duplicate { &mut dropped } else { &mut passed };
                output.extend(&line);
            }
            let name = format!("in{run}");
            folder.write(&name, input);
            let own = format!("{options} --state state --threads {threads} {} {name}", outputs("out"));
            folder.dedup(&own).text();
            prop_assert!(folder.bytes("out") == passed, "run {}: {}", run, own);
            prop_assert!(folder.bytes("out.dup") == dropped, "run {}: {}", run, own);
            names += &format!(" {name}");
        }
        folder.dedup(format!("{options} {} {names}", outputs("one"))).text();
        prop_assert!(folder.bytes("one") == passed);
        prop_assert!(folder.bytes("one.dup") == dropped);
        if !rejects.is_empty() {
            prop_assert!(folder.bytes("one.rejects") == rejected);
            prop_assert!(folder.bytes("out.rejects") == rejected);
        }
        folder.echoless("state verify state").text();
        let shown = folder.echoless("state show state").text();
        prop_assert!(shown.contains(" times of keys, some "), "{}", shown);
    }
}

/// No later run can read what is left of a pipe.
#[test]
fn the_last_record_of_a_pipe_needs_no_newline() {
    for options in [
        "",
        "--csv -k 1",
        "--csv -k 1 --window 10",
        "--format jsonl -k 1",
    ] {
        let folder = Folder::new();
        let mut expected = String::new();
        for run in 0..3 {
            let input = format!("{{\"1\":{run}}}\n{{\"1\":\"{run}\"}}");
            let args = format!("--exact --state state -o out {options}");
            let run = folder.dedup_on(args, &input);
            assert_eq!(run.code, 0, "{options}: {}", run.stderr);
            expected.push_str(&input);
            assert_eq!(folder.read("out"), expected, "{options}");
            expected.push('\n');
        }
    }
}

#[test]
fn a_state_forgets_what_its_window_leaves_behind() {
    let folder = Folder::new();
    for run in 0..12 {
        let keys: Vec<u32> = (run * 1000..(run + 1) * 1000).collect();
        folder.write("in", lines_of(&keys, false).concat());
        let args = "--exact --state state -m 64k --window 500 -o out in";
        folder.dedup(args).text();
    }
    assert_eq!(
        folder.bytes("out").split(|byte| *byte == b'\n').count(),
        12_001
    );
    let shown = folder.echoless("state show --json state").text();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let times = shown["run"]["exact"]["times"].as_u64().unwrap();
    // Those of the last run and, before they are merged, of one before.
    assert!((1000..=3000).contains(&times), "{shown}");
    assert_errors(
        |args| folder.dedup(args),
        &[
            "--exact --state state -o out -m 64k in | missing --window: expected --window=500, as \
             in the state state",
            "--exact --state state -o out -m 64k --window 501 in | invalid --window=501: expected \
             --window=500, as in the state state",
        ],
    );
}

#[test]
fn a_state_of_exact_runs_is_no_other_and_cannot_be_one_file() {
    let folder = Folder::with(&[("in", "a\nb\n"), ("more", "b\nc\n")]);
    folder.dedup("--exact --state exact -o out in").text();
    folder.dedup("--state plain -o out2 in").text();
    assert_errors(
        |args| folder.dedup(args),
        &[
            "--state exact -o out more | missing --exact: expected --exact, as in the state exact",
            "--exact --state plain -o out2 more | invalid --exact: expected no --exact, as in the \
             state plain",
        ],
    );
    folder
        .dedup("--exact --state exact -o exact/keys/out in")
        .fails("a file of the state exact");
    let exported = folder.echoless("state export exact -o file");
    exported.fails("copy its folder");
    // Damage to the keys is no other verdict.
    let keys = std::fs::read_dir(folder.path("exact/keys")).unwrap();
    let [run] = &keys.map(|file| file.unwrap().path()).collect::<Vec<_>>()[..] else {
        panic!("one file of keys");
    };
    let whole = std::fs::read(run).unwrap();
    let mut damaged = whole.clone();
    damaged[45] ^= 1;
    std::fs::write(run, damaged).unwrap();
    let verified = folder.echoless("state verify exact");
    verified.fails("its block 0 is damaged");
    let failed = folder.dedup("--exact --state exact -o out more");
    failed.fails("its block 0 is damaged");
    assert_eq!(folder.bytes("out"), b"a\nb\n");
    std::fs::write(run, whole).unwrap();
    folder.dedup("--exact --state exact -o out more").text();
    assert_eq!(folder.bytes("out"), b"a\nb\nc\n");
    std::fs::remove_dir_all(folder.path("exact/keys")).unwrap();
    let failed = folder.dedup("--exact --state exact -o out --again more");
    assert!(
        failed.stderr.contains("from number 0 to 3 are missing"),
        "{}",
        failed.stderr
    );
}

#[test]
fn a_run_of_a_state_that_does_not_end_is_as_if_it_had_not_begun() {
    let keys: Vec<u32> = (0..20_000).map(|at| at * at % 9973).collect();
    let lines = lines_of(&keys, false);
    let folder = Folder::with(&[("in", lines.concat()), ("first", lines[..50].concat())]);
    // What passes if a key counts as seen for so many records.
    let expected = |window: usize| -> Vec<u8> {
        let mut seen = HashMap::new();
        let all = keys[..50].iter().chain(&keys);
        let rows = all.zip(lines[..50].iter().chain(&lines)).enumerate();
        let fresh = rows.filter(|(at, (key, _))| {
            let is_seen = |seen: &usize| at - seen <= window;
            let is_fresh = !seen.get(*key).is_some_and(is_seen);
            if is_fresh {
                seen.insert(**key, *at);
            }
            is_fresh
        });
        fresh.flat_map(|(_, (_, line))| line.clone()).collect()
    };
    let mut killed = 0;
    for (seed, window) in (0..12).map(|seed| (seed, [usize::MAX, 7000][seed as usize % 2])) {
        let option = match window {
            usize::MAX => String::new(),
            window => format!("--window {window}"),
        };
        let state = format!("--exact -m 16k {option} --state state{seed} -o out{seed}");
        folder.dedup(format!("{state} first")).text();
        let mut command = folder.command(format!("dedup -q {state} --threads 2 in"));
        let mut child = command.spawn().unwrap();
        // Anywhere in the run, whose passes take some milliseconds.
        std::thread::sleep(std::time::Duration::from_micros(1500 * seed));
        match seed % 3 {
            0 => send(&child, "-TERM"),
            _ => child.kill().unwrap(),
        }
        killed += u32::from(!child.wait().unwrap().success());
        folder.dedup(format!("{state} in")).text();
        assert!(
            folder.bytes(&format!("out{seed}")) == expected(window),
            "{seed}"
        );
    }
    assert!(killed > 0, "all runs had ended");
    let expected = expected(usize::MAX);
    // A reader that leaves.
    folder
        .dedup("--exact -m 4k --state left -o out first")
        .text();
    let mut command = folder.command("dedup -q --exact -m 4k --state left -o - in");
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    folder.echoless("state verify left").text();
    let fresh: Vec<u8> = expected[lines[..50].concat().len()..].to_vec();
    assert!(folder.dedup("--exact -m 4k --state left -o - in").stdout == fresh);
}

#[test]
fn a_full_filter_does_not_make_a_short_run_long() {
    let keys: Vec<u32> = (0..50_000).collect();
    let lines = lines_of(&keys, false);
    let folder = Folder::with(&[
        ("in", lines.concat()),
        ("more", [lines[..9].concat(), b"new\n".to_vec()].concat()),
    ]);
    let state = "--exact -m 64k --state state -o out --stats stats";
    folder.dedup(format!("{state} in")).text();
    folder.dedup(format!("{state} more")).text();
    let stats = folder.json("stats");
    assert_eq!(stats["duplicates"], 9);
    assert_eq!(stats["exact"]["passes"], 3, "{stats}");
    assert!(stats["exact"]["suspects"].as_u64() <= Some(10), "{stats}");
}

#[test]
fn the_secret_of_a_state_is_not_shown() {
    let folder = Folder::with(&[("in", "a\n")]);
    folder.dedup("--exact --state state -o out in").text();
    let shown = folder.echoless("state show --json state").text();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["run"]["exact"], serde_json::json!({ "keys": 1 }));
}
