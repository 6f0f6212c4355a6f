//! The ranking, written as text, CSV and JSON.

use std::fmt::Write as _;

use echoless::spec::format_bytes;
use echoless_lab::plan::{Basis, Choice, Question};
use echoless_lab::stream::format_count;
use serde_json::{Value, json};

use crate::lab_output::{Written, aligned, percent, quoted};

/// A filter and its measured speed, if that was asked for.
pub(crate) struct Row<'a> {
    pub(crate) choice: &'a Choice,
    pub(crate) nanoseconds: Option<f64>,
}

/// The filters, the best first.
pub(crate) struct Report<'a> {
    pub(crate) question: &'a Question,
    pub(crate) rows: &'a [Row<'a>],
    /// The options of the key, as a shell takes them.
    pub(crate) key_options: &'a str,
}

impl Report<'_> {
    /// The command that removes duplicates with this filter.
    fn command(&self, choice: &Choice) -> String {
        format!(
            "echoless dedup --filter '{}'{}",
            choice.spec, self.key_options
        )
    }
}

const CSV_HEADER: &str =
    "rank,spec,fpr,fnr,basis,simulated_records,lines_per_key,ns_per_key,meets_bounds,why\n";

fn basis(choice: &Choice) -> (&'static str, Option<u64>) {
    match choice.basis {
        Basis::Formula => ("formula", None),
        Basis::Simulation { records } => ("simulation", Some(records)),
    }
}

impl Written for Report<'_> {
    fn text(&self) -> String {
        let Some(Row { choice, .. }) = self.rows.first() else {
            return String::new();
        };
        let question = self.question;
        let mut text = format!(
            "use {}\n    {}\n    {}\n    for {} records in {}, like {}",
            choice.spec,
            self.command(choice),
            choice.why,
            format_count(question.records),
            format_bytes(question.memory),
            question.stream
        );
        if let Some(window) = question.window {
            let _ = write!(text, ", duplicates within {} records", format_count(window));
        }
        let timed = self.rows.iter().any(|row| row.nanoseconds.is_some());
        let mut header = vec!["filter", "FPR %", "FNR %", "lines"];
        header.extend(timed.then_some("ns/key"));
        header.extend(["predicted by", "why"]);
        let mut rows = vec![header.into_iter().map(String::from).collect::<Vec<_>>()];
        for row in self.rows {
            let choice = row.choice;
            let mut cells = vec![
                choice.spec.to_string(),
                percent(choice.rates.fpr),
                percent(choice.rates.fnr),
                format!("{:.1}", choice.lines),
            ];
            cells.extend(row.nanoseconds.map(|time| format!("{time:.1}")));
            cells.push(match basis(choice) {
                (basis, Some(records)) => format!("{basis} of {} records", format_count(records)),
                (basis, None) => basis.into(),
            });
            cells.push(choice.why.clone());
            rows.push(cells);
        }
        format!("{text}\n\n{}", aligned(&rows))
    }

    fn csv(&self) -> String {
        let mut text = String::from(CSV_HEADER);
        let optional = |value: Option<String>| value.unwrap_or_default();
        for (row, rank) in self.rows.iter().zip(1..) {
            let choice = row.choice;
            let (basis, records) = basis(choice);
            let _ = writeln!(
                text,
                "{rank},{},{},{},{basis},{},{},{},{},\"{}\"",
                quoted(&choice.spec),
                choice.rates.fpr,
                choice.rates.fnr,
                optional(records.map(|records| records.to_string())),
                choice.lines,
                optional(row.nanoseconds.map(|time| time.to_string())),
                choice.standing.meets_bounds(),
                choice.why,
            );
        }
        text
    }

    fn json(&self) -> Value {
        let row = |row: &Row<'_>| {
            let choice = row.choice;
            let (basis, records) = basis(choice);
            json!({
                "spec": choice.spec,
                "name": choice.spec.to_string(),
                "command": self.command(choice),
                "fpr": choice.rates.fpr,
                "fnr": choice.rates.fnr,
                "basis": basis,
                "simulated_records": records,
                "lines_per_key": choice.lines,
                "ns_per_key": row.nanoseconds,
                "meets_bounds": choice.standing.meets_bounds(),
                "why": choice.why,
            })
        };
        let goal = &self.question.goal;
        json!({
            "memory_bytes": self.question.memory,
            "records": self.question.records,
            "stream": self.question.stream.to_string(),
            "window": self.question.window,
            "max_fpr": goal.max_fpr,
            "max_fnr": goal.max_fnr,
            "choices": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
