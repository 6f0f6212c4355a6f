//! Generates the files, runs the tools on them in turn, and compares the outputs.

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Args;

use super::catalogue::{self, Tool};
use super::child::{self, Usages};
use super::digest::{Comparison, Digest};
use crate::failure::Failure;
use crate::table::{Cell, Outputs, Table};

/// The options of `tools`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The size of each file, in MiB.
    #[arg(long, default_value_t = 200)]
    mib: u64,
    /// Runs of each tool; the table has the medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Memory of our filter, one row for each. Other tools are compared with the first. Clearing
    /// the memory can take longer than reading the file.
    #[arg(long, value_delimiter = ',', default_value = "256MiB,128MiB")]
    memory: Vec<String>,
    /// Threads of our command, one row for each.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<String>,
    /// Time writing a file too. By default the timed output is discarded, as the kernel's part of
    /// writing is the same for all tools.
    #[arg(long)]
    into_file: bool,
    /// Install the tools that are Rust crates into the build folder with cargo.
    #[arg(long)]
    install: bool,
    #[command(flatten)]
    outputs: Outputs,
}

/// The inputs: name, arguments of the generator, and bytes of a line.
const INPUTS: [(&str, &[&str], u64); 2] = [
    ("cdr", &["cdr"], 100),
    ("short lines", &["lines", "--record-bytes", "24"], 24),
];

/// The fraction of lines that repeat an earlier one.
const DUPLICATES: &str = "0.3";

/// A tool with its measurements.
struct Entry {
    tool: Tool,
    usages: Usages,
    outcome: Outcome,
}

/// The result of the untimed run.
enum Outcome {
    Missing,
    Failed(String),
    Finished(Digest),
}

/// Measures and prints the table.
///
/// # Errors
/// If our command is missing, fails, or has another output than an exact tool, or a file cannot be
/// written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let echoless = catalogue::echoless()?;
    let installed = catalogue::installed()?;
    if arguments.install {
        catalogue::install(&installed)?;
    }
    let mut table = Table::new(&[
        "name",
        "command",
        "input",
        "mib",
        "cpu_seconds",
        "system_seconds",
        "wall_seconds",
        "peak_mib",
        "bytes_per_cpu_second",
        "cpu_ratio_to_echoless",
        "lines_out",
        "output",
    ]);
    let folder = tempfile::tempdir()?;
    for (input, generator, line_bytes) in INPUTS {
        let file = folder.path().join("input");
        let lines = (arguments.mib << 20) / line_bytes;
        generate(&echoless, generator, lines, &file)?;
        let tools = catalogue::catalogue(
            &echoless,
            &arguments.memory,
            &arguments.threads,
            &installed.join("bin"),
        );
        let mut entries = check(tools, &file, folder.path())?;
        measure(&mut entries, arguments, &file, folder.path())?;
        push_rows(&mut table, input, fs::metadata(&file)?.len(), &entries)?;
    }
    table.publish(&arguments.outputs)
}

fn generate(echoless: &Path, kind: &[&str], lines: u64, file: &Path) -> Result<(), Failure> {
    let mut command = Command::new(echoless);
    command.arg("gen").args(kind);
    command.args(["--count", &lines.to_string(), "--duplicates", DUPLICATES]);
    child::run(&mut command, None, Some(file)).map(drop)
}

/// Runs each tool once, untimed, and reads its output.
fn check(tools: Vec<Tool>, input: &Path, folder: &Path) -> Result<Vec<Entry>, Failure> {
    let output = folder.join("output");
    let outcome = |tool: &Tool| {
        let Some(program) = &tool.program else {
            return Ok(Outcome::Missing);
        };
        let (mut command, stdin) = tool.command(program, input, folder);
        match child::run(&mut command, stdin, Some(&output)) {
            Ok(_) => Digest::of_file(&output).map(Outcome::Finished),
            Err(error) => Ok(Outcome::Failed(error.to_string())),
        }
    };
    let entry = |tool: Tool| {
        Ok(Entry {
            outcome: outcome(&tool)?,
            tool,
            usages: Usages::default(),
        })
    };
    tools.into_iter().map(entry).collect()
}

/// Runs the tools in turn, so that a busy period of the machine affects all of them.
///
/// Each timed run follows an untimed one of the same tool. A virtual machine may have returned free
/// memory to its host, and the first run that touches it would pay for that.
fn measure(
    entries: &mut [Entry],
    arguments: &Arguments,
    input: &Path,
    folder: &Path,
) -> Result<(), Failure> {
    let output = folder.join("output");
    let output = arguments.into_file.then_some(output.as_path());
    for _ in 0..arguments.rounds.max(1) {
        for entry in &mut *entries {
            if let (Some(program), Outcome::Finished(_)) = (&entry.tool.program, &entry.outcome) {
                let (mut command, stdin) = entry.tool.command(program, input, folder);
                child::run(&mut command, stdin, output)?;
                entry
                    .usages
                    .0
                    .push(child::run(&mut command, stdin, output)?);
            }
        }
    }
    Ok(())
}

impl Entry {
    fn digest(&self) -> Option<Digest> {
        match self.outcome {
            Outcome::Finished(digest) => Some(digest),
            Outcome::Missing | Outcome::Failed(_) => None,
        }
    }
}

/// Adds a row for each tool.
///
/// # Errors
/// If no exact tool ran, or the output of ours, which comes first, differs from that of the exact
/// tool: in its bytes, or in its lines if the exact tool sorts.
fn push_rows(table: &mut Table, input: &str, bytes: u64, entries: &[Entry]) -> Result<(), Failure> {
    let exact = entries
        .iter()
        .filter_map(|entry| Some((entry.tool.reference?, entry.digest()?)))
        .min_by_key(|(rank, _)| *rank);
    let (rank, exact) =
        exact.ok_or("neither awk nor sort ran: there is no exact output to compare with")?;
    let ours = entries.first().ok_or("there are no tools")?;
    let comparison = match &ours.outcome {
        Outcome::Finished(digest) => digest.compare(exact),
        Outcome::Failed(error) => return Err(error.as_str().into()),
        Outcome::Missing => return Err("echoless is missing".into()),
    };
    if comparison == Comparison::Different || (rank == 0 && comparison != Comparison::SameBytes) {
        return Err(format!(
            "the output of echoless for {input} has {}",
            comparison.name()
        )
        .into());
    }
    let our_cpu = ours.usages.median(|usage| usage.cpu_seconds);
    for entry in entries {
        let cpu = entry.usages.median(|usage| usage.cpu_seconds);
        let digest = entry.digest();
        let output = match &entry.outcome {
            Outcome::Missing => "not found",
            Outcome::Failed(error) => error,
            Outcome::Finished(_) if entry.tool.counts_only => "counts lines",
            Outcome::Finished(digest) => digest.compare(exact).name(),
        };
        let [cpu_seconds, system_seconds, wall_seconds, peak_mebibytes] = entry.usages.cells();
        table.push(vec![
            entry.tool.name.into(),
            entry.tool.command_line().into(),
            input.into(),
            Cell::from(bytes as f64 / 2f64.powi(20)),
            cpu_seconds,
            system_seconds,
            wall_seconds,
            peak_mebibytes,
            cpu.map(|cpu| bytes as f64 / cpu).into(),
            cpu.zip(our_cpu).map(|(cpu, ours)| cpu / ours).into(),
            digest.map(|digest| digest.lines).into(),
            output.into(),
        ]);
    }
    Ok(())
}
