//! A slow stream: lines that arrive one at a time at the command, on a pipe.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::rows::cost_row;
use crate::clock::median;
use crate::failure::Failure;
use crate::table::Table;
use crate::tools::{echoless, run_with_pipe};

/// Measures the CPU time of the command for each of `lines` lines that arrive this long after each
/// other, with each number of threads. The CPU time of a run without lines is subtracted.
///
/// # Errors
/// If the command is missing or fails, or its output is not its input, whose lines are distinct.
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
            let idle = run(&program, *threads, 0, gap, &output)?;
            let busy = run(&program, *threads, lines, gap, &output)?;
            seconds.push((busy - idle) / lines as f64);
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

/// CPU seconds of a run.
fn run(
    program: &Path,
    threads: u64,
    lines: u64,
    gap: Duration,
    output: &Path,
) -> Result<f64, Failure> {
    let mut command = Command::new(program);
    command.args(["dedup", "--quiet", "--memory", "16MiB", "--threads"]);
    command.arg(threads.to_string());
    let mut written = String::new();
    let usage = run_with_pipe(&mut command, Some(output), |pipe| {
        for number in 0..lines {
            let line = format!("line {number} of a slow stream\n");
            pipe.write_all(line.as_bytes())?;
            written.push_str(&line);
            thread::sleep(gap);
        }
        Ok(())
    })?;
    if fs::read_to_string(output)? != written {
        return Err(format!("--threads {threads}: the output is not the input").into());
    }
    Ok(usage.cpu_seconds)
}
