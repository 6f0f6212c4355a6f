//! A slow stream: lines that arrive one at a time at the command, on a pipe.

use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::rows::cost_row;
use crate::clock::{median, seconds_of};
use crate::failure::Failure;
use crate::table::Table;
use crate::tools::{echoless, run_with_pipe};

/// The lines that are not measured. With 64 threads, a run begins with some 10 ms of CPU in which
/// every thread waits for its turn and parks, and the first key in a page of the filter costs two
/// page faults: one that reads and one that writes.
const FIRST_LINES: u64 = 500;

/// The time between two of them.
const FIRST_GAP: Duration = Duration::from_millis(1);

/// How long after their last line all threads are parked.
const REST: Duration = Duration::from_millis(20);

/// The most times that [`REST`] passes before the lines are in the output.
const MOST_RESTS: usize = 1000;

/// The memory of the filter: the first lines reach all of its pages.
const MEMORY: &str = "256KiB";

/// Measures the CPU time of the command for each of `lines` lines that arrive this long after each
/// other, with each number of threads. The first lines of a run are not measured.
///
/// # Errors
/// If the command is missing or fails, or its output is not its input, whose lines are distinct;
/// on other systems than Linux.
pub(super) fn measure(
    threads: &[u64],
    lines: u64,
    gap: Duration,
    rounds: u64,
    table: &mut Table,
) -> Result<(), Failure> {
    let program = echoless()?;
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("output");
    let mut seconds = vec![Vec::new(); threads.len()];
    for _ in 0..rounds {
        for (threads, seconds) in threads.iter().zip(&mut seconds) {
            let used = run(&program, *threads, lines, gap, &output)?;
            seconds.push(used / lines as f64);
        }
    }
    for (threads, seconds) in threads.iter().zip(seconds) {
        let variant = format!("dedup --threads {threads}");
        let stream = format!("a line every {} ms", gap.as_millis());
        let row = cost_row(
            "slow stream",
            variant,
            &stream,
            *threads,
            None,
            median(seconds),
        );
        table.push(row);
    }
    Ok(())
}

/// CPU seconds of a run for all but its first lines.
fn run(
    program: &Path,
    threads: u64,
    lines: u64,
    gap: Duration,
    output: &Path,
) -> Result<f64, Failure> {
    let mut command = Command::new(program);
    command.args(["dedup", "--quiet", "--memory", MEMORY, "--threads"]);
    command.arg(threads.to_string());
    let mut written = String::new();
    let mut seconds = 0.0;
    run_with_pipe(&mut command, Some(output), |pipe, pid| {
        // Returns the CPU time once these lines are passed.
        let mut write = |numbers: Range<u64>, gap| -> io::Result<f64> {
            for number in numbers {
                let line = format!("line {number} of a slow stream\n");
                pipe.write_all(line.as_bytes())?;
                written.push_str(&line);
                thread::sleep(gap);
            }
            for _ in 0..MOST_RESTS {
                let is_passed = fs::metadata(output)?.len() == written.len() as u64;
                thread::sleep(REST);
                if is_passed {
                    return seconds_of(pid);
                }
            }
            Err(io::Error::other(
                "the command does not pass on all of its input",
            ))
        };
        let first = write(0..FIRST_LINES, FIRST_GAP)?;
        seconds = write(FIRST_LINES..FIRST_LINES + lines, gap)? - first;
        Ok(())
    })?;
    if fs::read_to_string(output)? != written {
        return Err(format!("--threads {threads}: the output is not the input").into());
    }
    Ok(seconds)
}
