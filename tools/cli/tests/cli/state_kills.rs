//! Runs with a state that are killed at random instants, and started again until they end: the
//! outputs are those of a run that was never interrupted, byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kills::draw;
use crate::run::{command, file, run, send};

/// The number of kills, or that of `ECHOLESS_KILLS`.
const KILLS: u64 = 18;

/// Lines with a key of two fields, a time that rises slowly, and some that are faulty.
fn records(seed: u64, count: u64) -> Vec<u8> {
    let mut all = Vec::new();
    let mut state = seed;
    for number in 0..count {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(seed | 1);
        let key = (state >> 33) % (1 + number);
        let width = (state >> 20) as usize % 40;
        let line = match state >> 58 {
            0 => format!("faulty {key}\n"),
            _ => format!("{},{key:width$},\"a \"\"text\"\"\"\n", 1000 + number / 10),
        };
        all.extend(line.into_bytes());
    }
    all
}

/// The files of a run.
struct Files<'a> {
    folder: &'a Path,
    inputs: Vec<String>,
}

impl Files<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// The options of the run whose outputs have this prefix.
    fn args(&self, prefix: &str, options: &[&str]) -> Vec<String> {
        let path = |name: &str| self.path(&format!("{prefix}.{name}"));
        let mut args: Vec<String> = ["dedup", "-q", "--csv", "-k", "2", "-m", "256KiB"]
            .map(str::to_owned)
            .to_vec();
        args.extend(options.iter().map(|option| (*option).to_owned()));
        for (option, name) in [
            ("-o", "out"),
            ("--duplicates", "dup"),
            ("--rejects", "rejects"),
            ("--stats", "stats"),
            ("--state", "state"),
        ] {
            args.extend([option.to_owned(), path(name)]);
        }
        args.push("--explain".to_owned());
        args.extend(self.inputs.iter().cloned());
        args
    }

    /// Whether a run has ended that was killed behind its last commit. The next one finds nothing
    /// new, and counts that.
    fn has_ended(&self, prefix: &str) -> bool {
        let state = self.path(&format!("{prefix}.state"));
        let shown = run(command(["state", "show", "--json", &state]));
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        shown["run"]["ended"] == true
    }

    /// What the run has written.
    fn outputs(&self, prefix: &str) -> BTreeMap<&'static str, Vec<u8>> {
        let read = |name| {
            let path = self.path(&format!("{prefix}.{name}"));
            (name, fs::read(path).unwrap())
        };
        let names = ["out", "dup", "dup.jsonl", "rejects", "rejects.jsonl"];
        names.into_iter().map(read).collect()
    }

    /// The counts and the estimates.
    fn stats(&self, prefix: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(&format!("{prefix}.stats"))).unwrap();
        let depends_on_run = ["seconds", "threads", "huge_page", "look_ahead"];
        let lines = text.lines().map(str::trim);
        let lasting = |line: &&str| !depends_on_run.iter().any(|name| line.contains(name));
        lines.filter(lasting).map(str::to_owned).collect()
    }
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn killed_at_any_instant_a_run_goes_on_as_if_it_had_not_been() {
    let wanted = std::env::var("ECHOLESS_KILLS").ok();
    let wanted = wanted.map_or(KILLS, |kills| kills.parse().unwrap());
    let (mut kills, mut case) = (0, 0);
    while kills < wanted {
        let folder = tempfile::tempdir().unwrap();
        let first = records(case, 6000 + draw(case, 30_000));
        let second = records(case + 1000, 20_000);
        let zipped = zstd::encode_all(&second[..], 1).unwrap();
        let files = Files {
            folder: folder.path(),
            inputs: vec![
                file(folder.path(), "first.csv", &first),
                file(folder.path(), "second.csv.zst", &zipped),
            ],
        };
        let window = [
            &[][..],
            &["--window", "500"],
            &["--window", "90s", "--time-field", "1", "--refresh"],
            &["--window", "90s", "--time-field", "1"],
        ][(case % 4) as usize];
        let compress =
            [&["--compress", "zstd"][..], &[], &["--compress", "gzip:1"]][(case % 3) as usize];
        let interval = [
            &[][..],
            &["--commit-interval", "0s"],
            &["--commit-interval", "2ms"],
        ][(case % 3) as usize];
        let threads = ["3", "1"][(case % 2) as usize];
        let options = |threads, bytes| {
            let mut options = vec!["--threads", threads, "--read-bytes", bytes];
            options.extend([window, compress, interval].concat());
            options
        };
        run(command(strs(&files.args("whole", &options("2", "100000"))))).text();
        // How long a run takes decides only where it is killed.
        let start = Instant::now();
        run(command(strs(
            &files.args("timed", &options(threads, "3000")),
        )))
        .text();
        let most = start.elapsed().as_micros() as u64;
        let args = files.args("killed", &options(threads, "3000"));
        let mut of_case = 0;
        loop {
            let mut child = command(strs(&args)).spawn().unwrap();
            drop(child.stdin.take());
            let pause = draw(kills ^ case << 32, most);
            thread::sleep(Duration::from_micros(pause));
            // A signal that ends the run in order is no end of it, either.
            if kills % 4 == 3 {
                send(&child, "-TERM");
            } else {
                child.kill().unwrap();
            }
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                break;
            }
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), None | Some(143)), "{told}");
            kills += 1;
            of_case += 1;
            if files.has_ended("killed") {
                break;
            }
            // With seldom commits, a run gets no further.
            if of_case == 3 {
                run(command(strs(&args))).text();
                break;
            }
        }
        let told = format!("case {case}: {window:?} {compress:?} {interval:?} {threads} threads");
        let (whole, killed) = (files.outputs("whole"), files.outputs("killed"));
        for (name, bytes) in &whole {
            assert!(killed[name] == *bytes, "{told}: {name}");
        }
        assert_eq!(files.stats("killed"), files.stats("whole"), "{told}");
        case += 1;
    }
}
