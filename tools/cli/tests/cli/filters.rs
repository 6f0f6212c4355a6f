//! Options of the filter: they change its capacity and speed, not the verdicts while nothing is
//! evicted.

use crate::run::{Folder, command, dedup, echoless, run};

fn stream() -> String {
    let line = |i: u32| format!("{}\n", i.wrapping_mul(2_654_435_761) >> 17);
    (0..50_000).map(line).collect()
}

#[test]
fn options_that_do_not_change_the_output() {
    let input = stream();
    let expected = dedup("", &input).bytes();
    assert!(expected.len() < input.len());
    for args in [
        "--kernel auto",
        "--kernel scalar",
        "--kernel portable",
        "--seed 12345",
        "--fpr 1e-9",
        "--replacement fifo",
        "--memory 3MB",
    ] {
        let memory = if args.starts_with("--memory") {
            ""
        } else {
            "-m 2MiB"
        };
        let run = echoless(format!("dedup -q {memory} {args}"), &input);
        assert!(run.bytes() == expected, "{args}");
    }
}

#[test]
fn kernels_of_some_machines() {
    let input = stream();
    let expected = dedup("--kernel scalar", &input).bytes();
    for kernel in ["avx2", "avx512"] {
        let run = dedup(format!("--kernel {kernel}"), &input);
        if run.code == 2 {
            run.fails("on this machine");
            let required = std::env::var_os("ECHOLESS_REQUIRE_KERNELS").is_some();
            assert!(
                !required,
                "no {kernel}, and ECHOLESS_REQUIRE_KERNELS is set"
            );
            eprintln!("skipped: this machine has no {kernel}");
        } else {
            assert!(run.bytes() == expected, "{kernel}");
        }
    }
}

#[test]
fn a_filter_that_is_too_small_reports_evictions() {
    // 64 lines of 16 slots, and keys that recur 4000 keys later.
    let input: String = (0..50_000).map(|i| format!("{}\n", i % 4000)).collect();
    let folder = Folder::with(&[("in", input)]);
    for replacement in ["fifo", "lru", "qqhtd"] {
        let args = format!("dedup -m 4k --replacement {replacement} --count --stats stats in");
        let run = folder.echoless(args);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let stats = folder.json("stats");
        let fresh = stats["fresh"].as_u64().unwrap();
        assert_eq!(run.stdout, format!("{fresh}\n").as_bytes());
        assert!(stats["evictions"].as_u64().unwrap() > 40_000);
        // So few keys are all followed.
        for field in ["", "_low", "_high"] {
            let field = format!("estimated_missed_duplicates{field}");
            assert_eq!(stats[&field], fresh - 4000, "{field}");
        }
        assert!(!run.stderr.contains("no duplicate was missed"));
        assert!(
            run.stderr.contains(" duplicates missed ("),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn missed_duplicates_have_bounds_and_are_unknown_where_the_samples_are_too_small() {
    let folder = Folder::new();
    // 300,000 keys that come once, and one that comes `hot` times, each time evicted before.
    for (hot, words) in [
        (1, "unknown how many duplicates were missed, at most "),
        (1000, " evictions: about "),
    ] {
        let input: String = (0..300_000)
            .map(|number| match number % (300_000 / hot) {
                0 => "hot\n".to_owned(),
                _ => format!("{number}\n"),
            })
            .collect();
        let run = folder.echoless_on("dedup -m 256 --count --stats stats", input);
        assert!(run.stderr.contains(words), "{}", run.stderr);
        let stats = folder.json("stats");
        let truth = f64::from(hot - 1);
        let field = |end: &str| &stats[format!("estimated_missed_duplicates{end}")];
        let bound = |end: &str| field(end).as_f64().unwrap();
        assert!(bound("_low") <= truth && truth <= bound("_high"));
        assert_eq!(field("").is_null(), hot == 1);
        assert_eq!(stats["estimated_fnr"].is_null(), hot == 1);
    }
}

#[test]
fn short_files_get_little_memory_and_streams_of_unknown_length_the_default() {
    let input = stream();
    // Records are counted: the same number of longer ones needs no more.
    let longer = input.replace('\n', &format!("{}\n", "x".repeat(100)));
    let folder = Folder::with(&[
        ("records", &input),
        ("copy", &input),
        ("longer", &longer),
        ("empty", &String::new()),
    ]);
    let expected = echoless("dedup -q -m 256MiB", &input).bytes();
    let memory = || folder.json("stats")["memory_bytes"].as_u64().unwrap();
    let run = |args: &str| {
        let run = folder.echoless_on(format!("dedup -q --stats stats {args}"), &input);
        assert!(run.bytes() == expected, "{args}");
        let stats = folder.json("stats");
        assert_eq!(
            (&stats["evictions"], &stats["slot_bits"]),
            (&0.into(), &32.into())
        );
        memory()
    };
    let of_file = run("records");
    assert!((64 << 10..4 << 20).contains(&of_file), "{of_file}");
    assert!(run("--replacement fifo records") == of_file);
    assert!(run("--threads 3 records") == of_file);
    assert!(run("records copy") > of_file);
    folder
        .echoless("dedup -q --stats stats -o /dev/null longer")
        .text();
    assert!(memory() < of_file + of_file / 100, "{}", memory());
    // Nothing bounds the number of keys of a pipe, of a file that may have more than its length,
    // and of a replacement that stores repeated keys.
    for args in ["", "records empty", "--replacement qqhtd records"] {
        assert_eq!(run(args), 256 << 20, "{args}");
    }
    assert_eq!(run("-m 8MiB records"), 8 << 20);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_input() {
    use std::io::{Read, Write};

    let mut child = command("dedup -q -m 8MiB").spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut peaks = Vec::new();
    for round in 0..8 {
        let lines: String = (0..100_000).map(|i| format!("{round} {i:060}\n")).collect();
        let mut back = vec![0; lines.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| stdin.write_all(lines.as_bytes()).unwrap());
            stdout.read_exact(&mut back).unwrap();
        });
        assert!(back == lines.as_bytes());
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let kibibytes_of = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        // Without the program itself, whose pages are those of its file.
        peaks.push(kibibytes_of("VmHWM:") - kibibytes_of("RssFile:"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert!(peaks[7] < (8 + 12) << 10, "{peaks:?} KiB");
    // The sample of the audit grows, to 1 MiB at most.
    assert!(peaks[7] - peaks[1] < 4 << 10, "{peaks:?} KiB");
}

#[test]
fn impossible_memory_is_rejected() {
    let mut without_input = command("dedup -m 1P --fpr 0.1");
    without_input.stdin(std::process::Stdio::null());
    let run = run(without_input);
    run.fails_with("invalid --memory=1P: expected 64 B (one line) to 256 GiB (2^32 lines)");
}
