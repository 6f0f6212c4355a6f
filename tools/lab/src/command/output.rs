//! The outputs of `eval` and `plan`, as text, CSV and JSON.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use echoless::FilterSpec;
use echoless_records::failure::Failure;
use echoless_records::files::{Opened, Source, Target, Targets, write_stdout};
use serde_json::Value;

use crate::table;

/// The options for outputs besides standard output.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Output")]
pub(crate) struct LabOutputs {
    /// Write the rows to this file, as CSV; `-` replaces the text on standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) to_csv: Option<PathBuf>,

    /// Write everything to this file, as JSON; `-` replaces the text on standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) to_json: Option<PathBuf>,

    /// Write no progress, only results and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Results in three formats: for people, for spreadsheets, for programs.
pub(crate) trait LabReport {
    fn text(&self) -> String;
    fn csv(&self) -> String;
    fn json(&self) -> Value;
}

/// The outputs, open: a file that cannot be written ends the run before it starts.
#[derive(Debug)]
pub(crate) struct LabTargets {
    csv: Option<Opened>,
    json: Option<Opened>,
    /// Removes new files without content if the run fails: after they are closed.
    targets: Targets,
}

impl LabTargets {
    /// Opens the outputs. None of them may be one of the files that are read.
    pub(crate) fn open(outputs: &LabOutputs, sources: &[Source]) -> Result<Self, Failure> {
        let mut targets = Targets::new(sources);
        let mut open = |path: &PathBuf| targets.open(&Target::from(path.clone()));
        let csv = outputs.to_csv.as_ref().map(&mut open).transpose()?;
        let json = outputs.to_json.as_ref().map(&mut open).transpose()?;
        Ok(Self { csv, json, targets })
    }

    /// Writes the results to all outputs. The text goes to standard output, unless CSV or JSON
    /// does. Files come first, so they are complete even if the reader of standard output leaves.
    pub(crate) fn write(&mut self, results: &impl LabReport) -> Result<(), Failure> {
        let csv = self.csv.as_mut().map(|target| (target, results.csv()));
        let json = (self.json.as_mut()).map(|target| (target, format!("{:#}\n", results.json())));
        let mut outputs: Vec<_> = csv.into_iter().chain(json).collect();
        outputs.sort_by_key(|(target, _)| target.is_stdout);
        let writes_text = !outputs.iter().any(|(target, _)| target.is_stdout);
        for (target, text) in outputs {
            write(target, &text)?;
        }
        if writes_text {
            write_stdout(results.text().as_bytes())?;
        }
        self.targets.keep();
        Ok(())
    }
}

fn write(target: &mut Opened, text: &str) -> Result<(), Failure> {
    target.truncate()?;
    let written = target.file.write_all(text.as_bytes());
    let closed = written.and_then(|()| target.file.close());
    closed.map_err(Failure::writing(&target.name, target.is_stdout))
}

/// A specification as a CSV field. It has commas and no quotes.
pub(crate) fn quoted(spec: &FilterSpec) -> String {
    format!("\"{spec}\"")
}

/// A share in percent, with enough digits to distinguish small rates.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0".into(),
        _ if percent < 0.001 => format!("{percent:.1e}"),
        _ if percent < 1.0 => format!("{percent:.4}"),
        _ => format!("{percent:.2}"),
    }
}

/// Aligns rows under their header: the first column to the left, the others to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    table::aligned(rows, |column| column == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_keep_their_digits() {
        for (share, text) in [
            (0.0, "0"),
            (1e-9, "1.0e-7"),
            (0.000_262, "0.0262"),
            (0.25, "25.00"),
            (1.0, "100.00"),
        ] {
            assert_eq!(percent(share), text);
        }
    }
}
