//! Generates the files, runs the cases on them in turns, and compares times and outputs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::cases::{Case, EDITCAP_INPUT, INPUTS, Input, Program, Source};
use super::json;
use crate::failure::Failure;
use crate::table::{Outputs, Table};
use crate::tools::{Usage, Usages, echoless, find, run_child};

/// The options of `formats`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The size of each file, in MiB; that of editcap always has 500,000 packets.
    #[arg(long, default_value_t = 300)]
    mib: u64,
    /// Runs of each case; the table has the medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measure only inputs whose name contains one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    outputs: Outputs,
}

/// The number of packets for editcap.
const EDITCAP_PACKETS: u64 = 500_000;

/// The name of the device that discards what is written.
const NULL_DEVICE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// A case with its measurements.
struct Entry {
    case: Case,
    /// `None` if the program is missing.
    program: Option<PathBuf>,
    usages: Usages,
    output: Vec<u8>,
}

/// Measures and prints the table.
///
/// # Errors
/// If our command is missing or fails, two outputs differ that must not, or a file cannot be
/// written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "input",
        "case",
        "command",
        "mib",
        "records",
        "cpu_seconds",
        "system_seconds",
        "wall_seconds",
        "peak_mib",
        "bytes_per_cpu_second",
        "records_per_cpu_second",
        "compared_with",
        "cpu_ratio",
        "wall_ratio",
    ]);
    let wanted = |input: &&Input| {
        let only = &arguments.only;
        only.is_empty() || only.iter().any(|name| input.name.contains(name.as_str()))
    };
    let echoless = echoless()?;
    for input in INPUTS.iter().filter(wanted) {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("input");
        let records = match input.name {
            EDITCAP_INPUT => EDITCAP_PACKETS,
            _ => (arguments.mib << 20) / input.record_bytes,
        };
        generate(&echoless, input.source, records, &file)?;
        let entries = measure(input, arguments.rounds, &echoless, &file, folder.path())?;
        let bytes = fs::metadata(&file)?.len();
        push_rows(&mut table, input, records, bytes, &entries);
    }
    table.publish(&arguments.outputs)
}

fn generate(echoless: &Path, source: Source, records: u64, file: &Path) -> Result<(), Failure> {
    match source {
        Source::Json => Ok(json::write(file, records)?),
        Source::Generator(arguments) => {
            let mut command = Command::new(echoless);
            command.arg("gen").args(arguments.split(' '));
            command.args(["--count", &records.to_string()]);
            run_child(&mut command, None, Some(file)).map(drop)
        }
    }
}

/// Runs the cases in turns, so that a busy period of the machine affects all of them. The outputs
/// of the first round, which is not timed, are compared; the others are discarded, as the kernel's
/// part of writing is the same for all programs.
fn measure(
    input: &Input,
    rounds: usize,
    echoless: &Path,
    file: &Path,
    folder: &Path,
) -> Result<Vec<Entry>, Failure> {
    let mut entries: Vec<Entry> = (input.cases.iter())
        .map(|case| Entry {
            case: *case,
            program: match case.program {
                Program::Echoless => Some(echoless.to_owned()),
                Program::Editcap => find("editcap", folder),
            },
            usages: Usages::default(),
            output: Vec::new(),
        })
        .collect();
    let written = folder.join("output");
    for round in 0..=rounds.max(1) {
        for entry in &mut entries {
            let Some(program) = &entry.program else {
                continue;
            };
            let output = match round {
                0 => &written,
                _ => Path::new(NULL_DEVICE),
            };
            let slow = entry.case.program == Program::Editcap;
            if slow && round > 0 {
                continue;
            }
            let words = entry.case.arguments.split(' ');
            let arguments = words.map(|word| match word {
                "{input}" => file.as_os_str(),
                "{output}" => output.as_os_str(),
                _ => word.as_ref(),
            });
            let usage = run_child(Command::new(program).args(arguments), None, None)?;
            if round == 0 {
                entry.output = fs::read(output)?;
                fs::remove_file(output)?;
            }
            if round > 0 || slow {
                entry.usages.0.push(usage);
            }
        }
        if round == 0 {
            compare_outputs(&mut entries)?;
        }
    }
    Ok(entries)
}

/// Checks the outputs that must be equal, and drops all.
fn compare_outputs(entries: &mut [Entry]) -> Result<(), Failure> {
    for entry in &*entries {
        let other = entries
            .iter()
            .find(|other| Some(other.case.name) == entry.case.compared);
        if let Some(other) = other
            && entry.case.same_output
            && entry.program.is_some()
            && entry.output != other.output
        {
            let (one, other) = (entry.case.name, other.case.name);
            return Err(format!("the outputs of `{one}` and `{other}` differ").into());
        }
    }
    for entry in entries {
        entry.output = Vec::new();
    }
    Ok(())
}

impl Entry {
    /// The ratio of the medians.
    fn ratio(&self, other: Option<&Self>, value: fn(&Usage) -> f64) -> Option<f64> {
        Some(self.usages.median(value)? / other?.usages.median(value)?)
    }
}

fn push_rows(table: &mut Table, input: &Input, records: u64, bytes: u64, entries: &[Entry]) {
    for entry in entries {
        let cpu = entry.usages.median(|usage| usage.cpu_seconds);
        let compared = entry.case.compared;
        let other = entries
            .iter()
            .find(|other| Some(other.case.name) == compared);
        let program = match entry.case.program {
            Program::Echoless => "echoless",
            Program::Editcap => "editcap",
        };
        let [cpu_seconds, system_seconds, wall_seconds, peak_mebibytes] = entry.usages.cells();
        table.push(vec![
            input.name.into(),
            entry.case.name.into(),
            format!("{program} {}", entry.case.arguments).into(),
            (bytes as f64 / 2f64.powi(20)).into(),
            records.into(),
            cpu_seconds,
            system_seconds,
            wall_seconds,
            peak_mebibytes,
            cpu.map(|cpu| bytes as f64 / cpu).into(),
            cpu.map(|cpu| records as f64 / cpu).into(),
            compared.unwrap_or_default().into(),
            entry.ratio(other, |usage| usage.cpu_seconds).into(),
            entry.ratio(other, |usage| usage.wall_seconds).into(),
        ]);
    }
}
