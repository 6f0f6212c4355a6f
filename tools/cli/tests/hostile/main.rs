//! The command with hostile arguments: every option of every subcommand with values that it should
//! reject or survive, options that contradict each other, and files that are not what they seem.
//!
//! The options come from `--help`, so a new one is tried without being named here. Each run must
//! end with an exit code of its own and, if it failed, one line that can be read. What it read must
//! be as it was.

mod files;
mod options;
mod run;
mod values;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use options::{Opt, options_of};
use run::{Bench, check};
use values::{HOSTILE, usual};

/// The start of a run of each subcommand that is short with any option behind it.
const COMMANDS: [&str; 5] = [
    "dedup -m 64k calls.csv",
    "packets -m 64k mirror.pcap",
    "gen cdr -n 100",
    "eval bloom:k=4,memory=64 --stream uniform:records=500,distinct=0.6 --points 3",
    "plan -m 4k --records 500 --distinct 0.6 --threads 1",
];

fn subcommand(command: &str) -> &str {
    command.split(' ').next().unwrap()
}

/// Runs cases on both cores; `run` gets a folder with the files of the cases. Returns their number.
fn for_all<T: Sync>(cases: &[T], run: impl Fn(&Bench, &T) + Sync) -> usize {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let bench = Bench::new();
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = std::panic::AssertUnwindSafe(|| run(&bench, case));
                    if std::panic::catch_unwind(run).is_err() {
                        failures.lock().unwrap().push(());
                    }
                }
            });
        }
    });
    let failed = failures.into_inner().unwrap().len();
    assert_eq!(failed, 0, "{failed} of {} cases; see above", cases.len());
    cases.len()
}

#[test]
fn every_option_with_hostile_values() {
    let mut cases: Vec<Vec<String>> = Vec::new();
    for command in COMMANDS {
        for option in options_of(subcommand(command)) {
            for value in HOSTILE {
                if let Some(arguments) = option.with(value) {
                    let start = command.split(' ').map(String::from);
                    cases.push(start.chain(arguments).collect());
                }
            }
        }
    }
    let tried = for_all(&cases, |bench, arguments| check(bench, arguments));
    assert!(tried > 1500, "{tried}");
}

#[test]
fn options_in_pairs() {
    let mut cases: Vec<Vec<String>> = Vec::new();
    for command in COMMANDS.into_iter().take(3) {
        let options: Vec<Opt> = options_of(subcommand(command));
        for (index, one) in options.iter().enumerate() {
            for other in &options[index..] {
                let start = command.split(' ').map(String::from);
                let both = [one, other].map(usual);
                cases.push(start.chain(both.into_iter().flatten()).collect());
            }
        }
    }
    let tried = for_all(&cases, |bench, arguments| check(bench, arguments));
    assert!(tried > 1000, "{tried}");
}

#[test]
fn files_that_are_not_what_they_seem() {
    let cases = files::cases();
    let tried = for_all(&cases, |bench, arguments| check(bench, arguments));
    assert!(tried > 100, "{tried}");
}
