//! What a run did: a few lines for people, a JSON object for programs.

use std::fmt::Write as _;
use std::time::Duration;

use echoless::{Audit, Replacement, Report};
use serde::Serialize;

use super::filter_summary::FilterSummary;
use crate::number::{binary_bytes, decimal_bytes, grouped, short};

/// What the run counted itself; the filter's [`Report`] has the rest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) duplicates: u64,
    /// Records that were passed on without being judged.
    pub(crate) unkeyed: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// The statistics of a run, in the order in which they are written; `null` is what this filter cannot tell.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stats {
    version: &'static str,
    records: u64,
    fresh: u64,
    duplicates: u64,
    /// Records that lack a field of the key and passed unjudged.
    unkeyed: u64,
    bytes_in: u64,
    bytes_out: u64,
    seconds: f64,
    threads: usize,
    /// `keyed` if the key hash has a secret key, else `seeded`.
    hash: &'static str,
    /// What `--filter` takes to get this filter.
    filter: String,
    evictions: Option<u64>,
    expected_false_duplicates: Option<f64>,
    estimated_false_duplicates: u64,
    estimated_missed_duplicates: u64,
    /// The age from which on more than 1 duplicate in 1000 is missed: in distinct keys, or, where repeats count as new, in records.
    miss_age_keys: Option<f64>,
    expected_fpr: Option<f64>,
    fill: Option<f64>,
    memory_bytes: u64,
    huge_pages: Option<bool>,
    huge_page_bytes: Option<u64>,
    slot_bits: Option<u32>,
    kernel: Option<&'static str>,
    #[serde(skip)]
    filter_summary: FilterSummary,
}

impl Stats {
    /// Puts together what the run counted, what its witness found and what its filter says.
    pub(crate) fn new(
        counts: Counts,
        audit: &Audit,
        filter_summary: FilterSummary,
        keyed_hash: bool,
        elapsed: Duration,
        threads: usize,
    ) -> Self {
        let report = filter_summary.report();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            records: counts.records,
            fresh: counts.records - counts.duplicates - counts.unkeyed,
            duplicates: counts.duplicates,
            unkeyed: counts.unkeyed,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            seconds: elapsed.as_secs_f64(),
            threads,
            hash: if keyed_hash { "keyed" } else { "seeded" },
            filter: filter_summary.name(),
            evictions: report.map(|report| report.evictions),
            expected_false_duplicates: report.map(|report| report.expected_false_duplicates),
            estimated_false_duplicates: audit.estimated_false_duplicates(),
            estimated_missed_duplicates: audit.estimated_missed_duplicates(),
            miss_age_keys: report.map(|report| report.miss_age_keys),
            expected_fpr: report.map(|report| report.expected_fpr),
            fill: filter_summary.fill(),
            memory_bytes: filter_summary.memory_bytes(),
            huge_pages: report.map(|report| report.huge_page_bytes > 0),
            huge_page_bytes: report.map(|report| report.huge_page_bytes),
            slot_bits: report.map(|report| report.slot_bits),
            kernel: report.map(|report| report.kernel.name()),
            filter_summary,
        }
    }

    /// One JSON object, with a newline at its end.
    pub(crate) fn json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| unreachable!("numbers and names are always JSON: {error}"));
        json.push('\n');
        json
    }

    /// Three lines for people, each beginning with the command's name.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            let _ = writeln!(text, "echoless: {words}");
        };
        let mut records = format!(
            "{} ({}) in {:.2} s: {} fresh, {} ({:.2} %)",
            counted(self.records, "record"),
            decimal_bytes(self.bytes_in as f64),
            self.seconds,
            grouped(self.fresh),
            counted(self.duplicates, "duplicate"),
            self.duplicates as f64 * 100.0 / self.records.max(1) as f64,
        );
        if self.unkeyed > 0 {
            let _ = write!(records, ", {} passed unjudged", grouped(self.unkeyed));
        }
        line(records);
        let judged = if self.unkeyed == 0 {
            ""
        } else {
            " of the judged records"
        };
        match &self.filter_summary {
            FilterSummary::Fingerprints {
                report,
                replacement,
            } => {
                line(filter_line(report));
                line(self.promise(report, *replacement, judged));
            }
            FilterSummary::Named { spec, load, .. } => {
                let load = load.map_or(String::new(), |load| {
                    format!(", {:.1} % full", load * 100.0)
                });
                line(format!("filter {spec}{load}"));
                line(format!(
                    "about {}{judged} missed, about {} mistaken for duplicates, as a sample of the keys has it",
                    counted(self.estimated_missed_duplicates, "duplicate"),
                    counted(self.estimated_false_duplicates, "fresh record"),
                ));
            }
        }
        text
    }

    /// Whether duplicates were missed, and from which age on they are.
    fn promise(&self, report: &Report, replacement: Replacement, judged: &str) -> String {
        let age = format!(
            "1 duplicate in 1000 is missed at an age of {} {}",
            short(report.miss_age_keys),
            match replacement {
                Replacement::Qqhtd => "records",
                Replacement::Fifo | Replacement::Lru => "distinct keys",
            }
        );
        if report.evictions == 0 {
            format!("no evictions: no duplicate{judged} was missed (once full, {age})")
        } else {
            format!(
                "{}: about {}{judged} missed; {age}",
                counted(report.evictions, "eviction"),
                counted(self.estimated_missed_duplicates, "duplicate"),
            )
        }
    }
}

/// What a filter of fingerprint lines is, and what it expects of itself.
fn filter_line(report: &Report) -> String {
    format!(
        "filter of {} ({} pages, {}-bit slots, {} kernel), {:.1} % full; {} fresh records expected to be mistaken for duplicates",
        binary_bytes(report.memory_bytes as f64),
        if report.huge_page_bytes > 0 {
            "huge"
        } else {
            "small"
        },
        report.slot_bits,
        report.kernel,
        report.fill * 100.0,
        short(report.expected_false_duplicates),
    )
}

/// A number of things with the right ending.
fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}
