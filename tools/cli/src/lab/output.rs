//! Where measurements and plans go: text, CSV and JSON; and how far they are.

use std::io::{self, IsTerminal, Write};

use echoless::FilterSpec;
use echoless_lab::table;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::args::LabOutputs;
use crate::failure::Failure;
use crate::files::{Opened, Source, Target, Targets};

/// What is to be written where.
#[derive(Debug)]
pub(crate) struct LabOutput {
    csv: Option<Target>,
    json: Option<Target>,
    pub(crate) quiet: bool,
}

impl From<LabOutputs> for LabOutput {
    fn from(args: LabOutputs) -> Self {
        let target = |path| Target::from_path(Some(path));
        Self {
            csv: args.csv.map(target),
            json: args.json.map(target),
            quiet: args.quiet,
        }
    }
}

/// What can be written in three ways.
pub(crate) trait Written {
    /// For people.
    fn text(&self) -> String;
    /// For spreadsheets.
    fn csv(&self) -> String;
    /// For programs.
    fn json(&self) -> Value;
}

/// The files, open, so that a name that cannot be written ends the run before it has begun.
#[derive(Debug)]
pub(crate) struct LabTargets {
    csv: Option<Opened>,
    json: Option<Opened>,
}

impl LabTargets {
    /// Opens the files; none of them may be the input.
    pub(crate) fn open(output: &LabOutput, source: Option<&Source>) -> Result<Self, Failure> {
        let sources: Vec<Source> = source.into_iter().cloned().collect();
        let mut targets = Targets::new(&sources);
        let mut open = |target: &Target| targets.open(target);
        Ok(Self {
            csv: output.csv.as_ref().map(&mut open).transpose()?,
            json: output.json.as_ref().map(&mut open).transpose()?,
        })
    }

    /// Writes the results everywhere. Text goes to standard output, unless something else does.
    pub(crate) fn write(&mut self, results: &impl Written) -> Result<(), Failure> {
        let to_stdout = |target: &Option<Opened>| target.as_ref().is_some_and(|it| it.is_stdout);
        if !to_stdout(&self.csv) && !to_stdout(&self.json) {
            write_stdout(&results.text())?;
        }
        if let Some(csv) = &mut self.csv {
            write(csv, &results.csv())?;
        }
        if let Some(json) = &mut self.json {
            write(json, &format!("{:#}\n", results.json()))?;
        }
        Ok(())
    }
}

/// Writes text to standard output.
pub(crate) fn write_stdout(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .map_err(Failure::writing_stdout)
}

fn write(target: &mut Opened, text: &str) -> Result<(), Failure> {
    target.truncate()?;
    let written = target.file.write_all(text.as_bytes());
    written.map_err(Failure::writing(&target.name, target.is_stdout))
}

/// A specification as a CSV field: it has commas and no quotes.
pub(crate) fn quoted(spec: &FilterSpec) -> String {
    format!("\"{spec}\"")
}

/// A share in percent, with digits enough to tell small rates apart.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0".into(),
        _ if percent < 0.001 => format!("{percent:.1e}"),
        _ if percent < 1.0 => format!("{percent:.4}"),
        _ => format!("{percent:.2}"),
    }
}

/// Rows under a header: the first column to the left, the others to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    table::aligned(rows, |column| column == 0)
}

/// Records done, on a terminal; it disappears with the value.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows progress if standard error is a terminal.
    pub(crate) fn new(records: Option<u64>, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self {
                bar: ProgressBar::hidden(),
            };
        }
        let (bar, template) = match records {
            Some(records) => (
                ProgressBar::new(records),
                "{human_pos} of {human_len} records  {percent} %  {eta} left",
            ),
            None => (
                ProgressBar::no_length(),
                "{human_pos} records simulated  {elapsed}",
            ),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Says that so many more are done.
    pub(crate) fn add(&self, records: u64) {
        self.bar.inc(records);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
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
