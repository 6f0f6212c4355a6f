//! The ranking as text, CSV and JSON.

use std::fmt::Write as _;

use echoless::spec::format_bytes;
use echoless_lab::plan::{Basis, Candidate, Interval, PlanRequest};
use echoless_lab::stream::format_count;
use serde_json::{Value, json};

use crate::lab::output::{LabReport, aligned, percent, quoted};

/// A filter, and its speed if that is measured.
pub(crate) struct Row<'a> {
    pub(crate) candidate: &'a Candidate,
    pub(crate) nanoseconds: Option<f64>,
}

/// The filters, best first.
pub(crate) struct PlanReport<'a> {
    pub(crate) request: &'a PlanRequest,
    pub(crate) rows: &'a [Row<'a>],
    /// Whether the text is the specification of the first filter alone.
    pub(crate) spec_only: bool,
    /// The options that read the records, quoted for a shell.
    pub(crate) record_options: &'a str,
}

impl PlanReport<'_> {
    /// The command that removes duplicates with this filter.
    fn command(&self, candidate: &Candidate) -> String {
        let (filter, window) = match candidate.spec.facts().window {
            None => (candidate.spec.to_string(), String::new()),
            // The window of a specification is in ticks, whose length `dedup` chooses.
            Some(window) => (
                without_option(&candidate.spec.to_string(), "window"),
                format!(" --window {}", window.ticks),
            ),
        };
        format!(
            "echoless dedup{window} --filter '{filter}'{}",
            self.record_options
        )
    }
}

/// The text of a specification without one of its options.
fn without_option(spec: &str, key: &str) -> String {
    let (name, options) = spec.split_once(':').unwrap_or((spec, ""));
    let is_other = |option: &&str| option.split_once('=').is_none_or(|(name, _)| name != key);
    let others: Vec<&str> = options.split(',').filter(is_other).collect();
    format!("{name}:{}", others.join(","))
}

const CSV_HEADER: &str = "rank,spec,fpr,fpr_low,fpr_high,fnr,fnr_low,fnr_high,shown,basis,simulated_records,lines_per_key,ns_per_key,meets_bounds,why\n";

fn basis(candidate: &Candidate) -> (&'static str, Option<u64>) {
    match candidate.basis {
        Basis::Formula => ("formula", None),
        Basis::Simulation { records, .. } => ("simulation", Some(records)),
    }
}

/// A rate in percent with its interval, if it has one.
fn rate(candidate: &Candidate, rate: f64, interval: Interval) -> String {
    let text = percent(rate);
    match candidate.basis {
        Basis::Formula => text,
        Basis::Simulation { shown: false, .. } => format!("{text} (not shown)"),
        Basis::Simulation { shown: true, .. } => {
            let Interval { low, high } = interval;
            format!("{text} ({}..{})", percent(low), percent(high))
        }
    }
}

impl LabReport for PlanReport<'_> {
    fn text(&self) -> String {
        let Some(Row { candidate, .. }) = self.rows.first() else {
            return String::new();
        };
        if self.spec_only {
            return format!("{}\n", candidate.spec);
        }
        let request = self.request;
        let spec = &candidate.spec;
        let first = if !candidate.rank.meets_bounds() {
            format!("no filter is shown to meet the bounds; the nearest is {spec}")
        } else if candidate.is_shown() {
            format!("use {spec}\n    {}", self.command(candidate))
        } else {
            format!(
                "no filter is recommended: the rates of the first one are not shown; a larger \
                 --budget may show them; it is {spec}"
            )
        };
        let mut text = format!(
            "{first}\n    {}\n    for {} records in {}, like {}",
            candidate.why,
            format_count(request.records),
            format_bytes(request.memory),
            request.stream
        );
        if let Some(window) = request.window {
            let _ = write!(text, ", duplicates within {} records", format_count(window));
        }
        let timed = self.rows.iter().any(|row| row.nanoseconds.is_some());
        let mut header = vec!["filter", "FPR %", "FNR %", "lines"];
        header.extend(timed.then_some("ns/key"));
        header.extend(["predicted by", "why"]);
        let mut rows = vec![header.into_iter().map(String::from).collect::<Vec<_>>()];
        for row in self.rows {
            let candidate = row.candidate;
            let mut cells = vec![
                candidate.spec.to_string(),
                rate(
                    candidate,
                    candidate.predicted.rates.fpr,
                    candidate.predicted.fpr,
                ),
                rate(
                    candidate,
                    candidate.predicted.rates.fnr,
                    candidate.predicted.fnr,
                ),
                format!("{:.1}", candidate.lines),
            ];
            cells.extend(row.nanoseconds.map(|time| format!("{time:.1}")));
            cells.push(match basis(candidate) {
                (basis, Some(records)) => format!("{basis} of {} records", format_count(records)),
                (basis, None) => basis.into(),
            });
            cells.push(candidate.why.clone());
            rows.push(cells);
        }
        format!("{text}\n\n{}", aligned(&rows))
    }

    fn csv(&self) -> String {
        let mut text = String::from(CSV_HEADER);
        let optional = |value: Option<String>| value.unwrap_or_default();
        for (row, rank) in self.rows.iter().zip(1..) {
            let candidate = row.candidate;
            let (basis, records) = basis(candidate);
            let predicted = &candidate.predicted;
            let _ = writeln!(
                text,
                "{rank},{},{},{},{},{},{},{},{},{basis},{},{},{},{},\"{}\"",
                quoted(&candidate.spec),
                predicted.rates.fpr,
                predicted.fpr.low,
                predicted.fpr.high,
                predicted.rates.fnr,
                predicted.fnr.low,
                predicted.fnr.high,
                candidate.is_shown(),
                optional(records.map(|records| records.to_string())),
                candidate.lines,
                optional(row.nanoseconds.map(|time| time.to_string())),
                candidate.rank.meets_bounds(),
                candidate.why,
            );
        }
        text
    }

    fn json(&self) -> Value {
        let row = |row: &Row<'_>| {
            let candidate = row.candidate;
            let (basis, records) = basis(candidate);
            let predicted = &candidate.predicted;
            json!({
                "spec": candidate.spec,
                "name": candidate.spec.to_string(),
                "command": self.command(candidate),
                "fpr": predicted.rates.fpr,
                "fpr_low": predicted.fpr.low,
                "fpr_high": predicted.fpr.high,
                "fnr": predicted.rates.fnr,
                "fnr_low": predicted.fnr.low,
                "fnr_high": predicted.fnr.high,
                "shown": candidate.is_shown(),
                "basis": basis,
                "simulated_records": records,
                "lines_per_key": candidate.lines,
                "ns_per_key": row.nanoseconds,
                "meets_bounds": candidate.rank.meets_bounds(),
                "why": candidate.why,
            })
        };
        let goal = &self.request.goal;
        json!({
            "memory_bytes": self.request.memory,
            "records": self.request.records,
            "stream": self.request.stream.to_string(),
            "window": self.request.window,
            "budget_seconds": self.request.budget.as_secs_f64(),
            "max_fpr": goal.max_fpr,
            "max_fnr": goal.max_fnr,
            "candidates": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
