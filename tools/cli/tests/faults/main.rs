//! Every call that reads, writes or closes a file fails once, or does only a part: nothing may be
//! lost silently, and what was written before a failure must be whole records.
//!
//! A small library, preloaded, makes the n-th call fail, for every n of a run. It is compiled with
//! `cc`; without a C compiler the tests skip, and report that.

#![cfg(target_os = "linux")]

mod state_files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Numbers of errors: an interrupted call, a device that fails, a full one.
const EINTR: &str = "4";
const EIO: &str = "5";
const ENOSPC: &str = "28";

/// The records of a run: some repeat, some lack the second field.
fn records() -> Vec<u8> {
    let record = |number: usize| match number % 7 {
        0 => format!("{number}\n"),
        repeated => format!("{repeated},cell{}\n", number % 5),
    };
    (0..400)
        .flat_map(|number| record(number).into_bytes())
        .collect()
}

/// The options of each run. `{}` stands for the folder of its outputs.
const RUNS: [&[&str]; 10] = [
    // The first record lacks its end, and more runs of records follow than one call writes.
    &["-o", "{}/out", "{}/../start", "{}/../alternating"],
    &["-o", "{}/out"],
    &[
        "--threads",
        "2",
        "--read-bytes",
        "700",
        "-o",
        "{}/out",
        "--duplicates",
        "{}/dropped",
    ],
    &[
        "-k",
        "2",
        "--rejects",
        "{}/rejects",
        "-o",
        "{}/out",
        "--explain={}/explained",
    ],
    &[
        "--compress",
        "gzip",
        "-o",
        "{}/out.gz",
        "--duplicates",
        "{}/dropped.gz",
    ],
    &[
        "--compress",
        "zstd",
        "--read-bytes",
        "300",
        "-o",
        "{}/out.zst",
    ],
    &["--tag", "-o", "{}/out", "--header"],
    &["--tag-file", "{}/tags", "-o", "{}/out"],
    &["--count", "-o", "{}/out"],
    &["--keep", "last", "-k", "1", "-o", "{}/out"],
];

/// The folder with the library and the input; `None` without a C compiler.
struct Faults {
    folder: TempDir,
}

impl Faults {
    fn new() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        compiler.arg(folder.path().join("shim.so")).arg(source);
        match compiler.output() {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(error) => {
                eprintln!("skipped: cc cannot be run: {error}");
                return None;
            }
        }
        fs::write(folder.path().join("input"), records()).unwrap();
        fs::write(folder.path().join("start"), "start").unwrap();
        let alternating = (0..1200).map(|number| format!("fresh {number}\nrepeated\n"));
        let alternating: String = alternating.collect();
        fs::write(folder.path().join("alternating"), alternating).unwrap();
        Some(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the command with these options and a fault. Returns what it wrote, and whether the
    /// fault happened.
    fn run(&self, options: &[&str], fault: &str) -> (Output, Files, bool) {
        let outputs = self.path("outputs");
        let _ = fs::remove_dir_all(&outputs);
        fs::create_dir(&outputs).unwrap();
        self.run_again(options, fault)
    }

    /// As [`run`](Self::run), where an earlier run has left its outputs.
    fn run_again(&self, options: &[&str], fault: &str) -> (Output, Files, bool) {
        let outputs = self.path("outputs");
        let mark = self.path("mark");
        let _ = fs::remove_file(&mark);
        let folder = outputs.to_str().unwrap();
        let options = options.iter().map(|option| option.replace("{}", folder));
        let output = Command::new(env!("CARGO_BIN_EXE_echoless"))
            .env_remove("ECHOLESS_OPTS")
            .args(["dedup", "-q", "-m", "64k"])
            .args(options)
            .arg(self.path("input"))
            .env("LD_PRELOAD", self.path("shim.so"))
            .env("FAULT", fault)
            .env("FAULT_MARK", &mark)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (output, Files::read(&outputs), mark.exists())
    }

    /// Makes every call of a kind fail in turn, and checks how the run ends. `survives` is true if
    /// the run must succeed all the same. Returns the number of runs that the fault met.
    fn check(&self, options: &[&str], call: &str, how: &str, survives: bool) -> usize {
        let (output, expected, _) = self.run(options, "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        for number in 1.. {
            let fault = format!("{call}:{number}:{how}");
            let (output, files, happened) = self.run(options, &fault);
            let told = format!("{options:?} {fault}: {output:?}");
            match output.status.code() {
                Some(0) => assert!(files.0 == expected.0, "lost silently: {told}"),
                Some(2) => {
                    assert!(!survives, "{told}");
                    let message = String::from_utf8_lossy(&output.stderr);
                    assert_eq!(message.matches('\n').count(), 1, "{told}");
                    files.check_whole_records(&expected, &told);
                }
                _ => panic!("{told}"),
            }
            if !happened {
                return number - 1;
            }
        }
        unreachable!("a run makes finitely many calls");
    }
}

/// The name and the content of each output.
struct Files(Vec<(String, Vec<u8>)>);

impl Files {
    fn read(folder: &Path) -> Self {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        Self(files)
    }

    /// Checks that each file has some whole records of the expected one, from its start on.
    fn check_whole_records(&self, expected: &Self, told: &str) {
        // The first record of one run lacks its end.
        for (name, content) in &self.0 {
            if name.ends_with(".gz") || name.ends_with(".zst") {
                continue; // cut, and decoders report that
            }
            let (_, whole) = expected.0.iter().find(|(other, _)| other == name).unwrap();
            assert!(whole.starts_with(content), "{name}: {told}");
            assert!(
                content.is_empty() || content == b"start" || content.ends_with(b"\n"),
                "half a record in {name}: {told}"
            );
        }
    }
}

/// Runs every set of options with each of these faults.
fn check_all(call: &str, faults: &[(&str, bool)]) {
    let Some(bench) = Faults::new() else {
        return;
    };
    for options in RUNS {
        for (how, survives) in faults {
            let met = bench.check(options, call, how, *survives);
            assert!(met > 0, "{options:?}: no {call} was met");
        }
    }
}

#[test]
fn reads_that_fail_or_are_cut_short() {
    check_all("read", &[(EIO, false), (EINTR, true), ("short", true)]);
}

#[test]
fn reads_of_several_threads_that_fail_or_are_cut_short() {
    let Some(bench) = Faults::new() else {
        return;
    };
    // Chunks are of a MiB, and the first and the last are read in turns.
    let lines: Vec<u8> = (0..600_000)
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect();
    fs::write(bench.path("input"), lines).unwrap();
    let options = &["--threads", "2", "-o", "{}/out"];
    for (how, survives) in [(EIO, false), (EINTR, true), ("short", true)] {
        let met = bench.check(options, "pread", how, survives);
        assert!(met >= 4, "{how}: {met} reads");
    }
}

#[test]
fn writes_that_fail_or_are_cut_short() {
    check_all(
        "write",
        &[
            (EIO, false),
            (ENOSPC, false),
            (EINTR, true),
            ("short", true),
        ],
    );
}

#[test]
fn errors_at_closing() {
    check_all("close", &[(EIO, false)]);
}

#[test]
fn an_error_at_closing_an_output_is_reported() {
    let Some(bench) = Faults::new() else {
        return;
    };
    // Which call closes the output depends on what else is opened; one of them does.
    for options in RUNS {
        let reported = (1..200).map(|number| bench.run(options, &format!("close:{number}:{EIO}")));
        let messages: Vec<String> = reported
            .take_while(|(_, _, happened)| *happened)
            .filter(|(output, ..)| output.status.code() == Some(2))
            .map(|(output, ..)| String::from_utf8(output.stderr).unwrap())
            .collect();
        for option in options
            .iter()
            .filter(|option| option.contains("{}/") && !option.contains(".."))
        {
            let name = option.rsplit('/').next().unwrap();
            let named =
                |message: &String| message.contains(&format!("/{name}: Input/output error"));
            assert!(messages.iter().any(named), "{option}: {messages:?}");
        }
    }
}

#[test]
fn a_replaced_file_has_all_records_or_the_old_ones() {
    let Some(bench) = Faults::new() else {
        return;
    };
    let input = bench.path("input");
    let (output, ..) = bench.run(&["--in-place"], "");
    assert!(output.status.success(), "{output:?}");
    let expected = fs::read(&input).unwrap();
    assert!(expected.len() < records().len());
    for (call, how) in [
        ("read", EIO),
        ("write", EIO),
        ("write", ENOSPC),
        ("write", "short"),
        ("close", EIO),
    ] {
        for number in 1.. {
            fs::write(&input, records()).unwrap();
            let fault = format!("{call}:{number}:{how}");
            let (output, _, happened) = bench.run(&["--in-place"], &fault);
            let found = fs::read(&input).unwrap();
            match output.status.code() {
                Some(0) => assert!(found == expected, "{fault}: {output:?}"),
                Some(2) => assert!(found == records(), "{fault}: {output:?}"),
                _ => panic!("{fault}: {output:?}"),
            }
            let entries = fs::read_dir(bench.folder.path()).unwrap();
            let is_left = |name: &str| name.starts_with(".echoless-");
            let left = entries.filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_str().is_some_and(is_left)
            });
            assert_eq!(left.count(), 0, "{fault}: a temporary file is left");
            if !happened {
                assert!(number > 1, "no {call} was met");
                break;
            }
        }
    }
}

#[test]
fn a_run_with_a_state_goes_on_after_any_fault() {
    let Some(bench) = Faults::new() else {
        return;
    };
    let state = bench.path("state");
    let folder = state.to_str().unwrap();
    for (compress, interval) in [("gzip", "0s"), ("none", "1s")] {
        let mut options = vec!["--read-bytes", "700", "-k", "2", "--rejects", "{}/rejects"];
        options.extend(["-o", "{}/out", "--duplicates", "{}/dropped"]);
        options.extend(["--state", folder, "--commit-interval", interval]);
        if compress != "none" {
            options.extend(["--compress", compress]);
        }
        let fresh = |fault: &str| {
            let _ = fs::remove_dir_all(&state);
            bench.run(&options, fault)
        };
        let (output, expected, _) = fresh("");
        assert!(output.status.success(), "{output:?}");
        for (call, how) in [
            ("write", EIO),
            ("write", ENOSPC),
            ("write", "short"),
            ("sync", EIO),
            ("cut", EIO),
            ("read", EIO),
            ("close", EIO),
        ] {
            for number in 1.. {
                let fault = format!("{call}:{number}:{how}");
                let (output, _, happened) = fresh(&fault);
                let told = format!("{options:?} {fault}: {output:?}");
                let code = output.status.code();
                assert!(code == Some(0) || code == Some(2), "{told}");
                // The runtime reads files of the system, and some files are closed without a
                // report.
                let is_met = how != "short" && call != "read" && call != "close";
                assert!(!happened || !is_met || code == Some(2), "{told}");
                if code == Some(2) {
                    let message = String::from_utf8_lossy(&output.stderr);
                    assert_eq!(message.matches('\n').count(), 1, "{told}");
                }
                let (output, files, _) = bench.run_again(&options, "");
                assert!(output.status.success(), "{told}, then {output:?}");
                assert!(files.0 == expected.0, "{told}, then {output:?}");
                if !happened {
                    break;
                }
            }
        }
    }
}

/// A run of a state that a signal ends, anywhere: in a pass, while files of keys are merged, or
/// while keys are looked up there. The next run writes what it has not.
#[test]
fn an_exact_run_of_a_state_ends_by_a_signal_wherever_it_is() {
    let Some(faults) = Faults::new() else {
        return;
    };
    let lines = |keys: std::ops::Range<u32>| -> String {
        let line = |key| format!("{key},line {}\n", key % 3000);
        keys.map(line).collect()
    };
    for (number, keys) in [0..200, 100..900, 500..4000].into_iter().enumerate() {
        fs::write(faults.path(&format!("in{number}")), lines(keys)).unwrap();
    }
    let folder = faults.path("case");
    let begin = || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
    };
    let run = |number: usize, fault: &str| {
        let mark = faults.path("mark");
        let _ = fs::remove_file(&mark);
        let mut command = Command::new(env!("CARGO_BIN_EXE_echoless"));
        command.env_remove("ECHOLESS_OPTS").current_dir(&folder);
        command.args(["dedup", "-q", "-m", "64k", "--exact", "-d", ",", "-k", "2"]);
        command.args(["--window", "2000", "--state", "state", "-o", "out"]);
        command.arg(faults.path(&format!("in{number}")));
        command.env("LD_PRELOAD", faults.path("shim.so"));
        command.env("FAULT", fault).env("FAULT_MARK", &mark);
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output, mark.exists())
    };
    begin();
    (0..3).for_each(|number| assert_eq!(run(number, "").0.status.code(), Some(0)));
    let expected = fs::read(folder.join("out")).unwrap();
    let mut ended = 0;
    for call in (60..).step_by(7) {
        begin();
        (0..2).for_each(|number| assert_eq!(run(number, "").0.status.code(), Some(0)));
        let fault = format!("any:{call}:term");
        let (output, happened) = run(2, &fault);
        let code = output.status.code();
        // Before it is caught, the signal ends the process; at the end, it has no effect.
        assert!(matches!(code, None | Some(143 | 0)), "{fault}: {output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        let is_whole = told.is_empty() || told.contains("so the state has none of it");
        assert!(
            is_whole && told.matches('\n').count() <= 1,
            "{fault}: {told}"
        );
        ended += u32::from(code == Some(143));
        let again = run(2, "").0;
        assert_eq!(again.status.code(), Some(0), "{fault}: {again:?}");
        let written = fs::read(folder.join("out")).unwrap();
        assert!(written == expected, "{fault}");
        if !happened {
            break;
        }
    }
    assert!(ended > 5, "{ended}");
}
