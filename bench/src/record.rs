//! Recorded runs: the rows as CSV, and beside them the machine, date, commit and command.
//!
//! ```text
//! bench/record/<machine>/<date>/<benchmark>.csv    the rows
//! bench/record/<machine>/<date>/<benchmark>.json   the [`Provenance`]
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use echoless_lab::calendar;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::machine::Machine;

/// The origin of the rows of a recorded run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The benchmark: the subcommand's name.
    pub benchmark: String,
    /// The command line that repeats the run.
    pub command: String,
    /// The machine that ran it.
    pub machine: Machine,
    /// The day of the run (UTC), `YYYY-MM-DD`.
    pub date: String,
    /// The commit that was checked out, followed by `+` if files had been changed since.
    pub commit: String,
    /// The version of the compiler.
    pub rustc: String,
}

impl Provenance {
    /// The provenance of a run of this process, today.
    #[must_use]
    pub fn of_this_run() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
        let mark = changed.map_or("", |changes| if changes.is_empty() { "" } else { "+" });
        let commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
        Self {
            benchmark: arguments.first().cloned().unwrap_or_default(),
            command: format!(
                "cargo run {} -p echoless-bench -- {}",
                profile(),
                arguments.join(" ")
            ),
            machine: Machine::this(),
            date: today(),
            commit: commit.map_or_else(|| "unknown".into(), |commit| commit + mark),
            rustc: output("rustc", &["--version"]).unwrap_or_else(|| "unknown".into()),
        }
    }
}

/// The option of cargo for the build that runs. The folder of the program is named by it.
fn profile() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().and_then(Path::file_name);
    match folder.and_then(|name| name.to_str()) {
        Some("release") => "--release".into(),
        Some("debug") | None => "--profile dev".into(),
        Some(name) => format!("--profile {name}"),
    }
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The origin of its rows.
    pub provenance: Provenance,
    /// The CSV file.
    pub rows: PathBuf,
}

/// Writes the rows of a run below `folder`. Replaces a run of the same benchmark, machine and day.
///
/// # Errors
/// If a file cannot be written; the error names it.
pub fn write(folder: &Path, provenance: Provenance, csv: &str) -> Result<Run, Failure> {
    let day = folder
        .join(provenance.machine.slug())
        .join(&provenance.date);
    let named = |error: std::io::Error| format!("{}: {error}", day.display());
    fs::create_dir_all(&day).map_err(named)?;
    let rows = day.join(format!("{}.csv", provenance.benchmark));
    fs::write(&rows, csv).map_err(named)?;
    let json = serde_json::to_string_pretty(&provenance)? + "\n";
    fs::write(rows.with_extension("json"), json).map_err(named)?;
    Ok(Run { provenance, rows })
}

/// All recorded runs below `folder`, by machine, then the newest day first, then by benchmark.
///
/// # Errors
/// If the folder cannot be read, or the provenance of a CSV is missing or invalid; the error names
/// the file.
pub fn read(folder: &Path) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for machine in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        for day in entries(&machine)?.into_iter().filter(|path| path.is_dir()) {
            for rows in entries(&day)? {
                if rows.extension().is_some_and(|kind| kind == "csv") {
                    let provenance = read_provenance(&rows.with_extension("json"))?;
                    runs.push(Run { provenance, rows });
                }
            }
        }
    }
    runs.sort_by(|a, b| {
        let (a, b) = (&a.provenance, &b.provenance);
        (a.machine.slug(), &b.date, &a.benchmark).cmp(&(b.machine.slug(), &a.date, &b.benchmark))
    });
    Ok(runs)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let named = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(named)? {
        paths.push(entry.map_err(named)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn read_provenance(path: &Path) -> Result<Provenance, Failure> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    Ok(serde_json::from_str(&text).map_err(|error| named(&error))?)
}

/// The output of a command; `None` if it is not installed or fails.
fn output(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Today (UTC), `YYYY-MM-DD`.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let (year, month, day) = calendar::date(since.map_or(0, |since| since.as_secs() / 86_400));
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provenance(benchmark: &str, date: &str) -> Provenance {
        Provenance {
            benchmark: benchmark.into(),
            command: format!("echoless-bench {benchmark}"),
            machine: Machine {
                cpu: "Some CPU 7".into(),
                cpu_family: String::new(),
                cores: 2,
                memory_mib: 1024,
                system: "linux 6.1.0".into(),
                look_ahead: "3 blocks".into(),
            },
            date: date.into(),
            commit: "0123456789ab".into(),
            rustc: "rustc 1.95.0".into(),
        }
    }

    #[test]
    fn runs_are_read_newest_day_first() {
        let folder = tempfile::tempdir().unwrap();
        for (benchmark, date) in [
            ("limit", "2024-01-02"),
            ("peers", "2024-02-01"),
            ("limit", "2024-02-01"),
        ] {
            write(folder.path(), provenance(benchmark, date), "name\na\n").unwrap();
        }
        let runs = read(folder.path()).unwrap();
        let names: Vec<(&str, &str)> = runs
            .iter()
            .map(|run| {
                (
                    run.provenance.date.as_str(),
                    run.provenance.benchmark.as_str(),
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                ("2024-02-01", "limit"),
                ("2024-02-01", "peers"),
                ("2024-01-02", "limit")
            ]
        );
        assert_eq!(runs[0].provenance, provenance("limit", "2024-02-01"));
        assert_eq!(fs::read_to_string(&runs[0].rows).unwrap(), "name\na\n");
        let path = folder
            .path()
            .join("some-cpu-7-2-cores/2024-02-01/limit.csv");
        assert_eq!(runs[0].rows, path);
    }

    #[test]
    fn a_missing_folder_and_a_missing_provenance_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none: "), "{error}");
        let run = write(folder.path(), provenance("limit", "2024-01-02"), "a\n").unwrap();
        fs::write(run.rows.with_extension("json"), "{").unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("limit.json: "), "{error}");
        fs::remove_file(run.rows.with_extension("json")).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("limit.json: "), "{error}");
    }
}
