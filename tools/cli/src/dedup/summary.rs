//! What a run did: a few lines for people, a JSON object for programs.

use std::fmt::Write as _;
use std::time::Duration;

use echoless::{Replacement, Report};
use serde::Serialize;

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

/// The statistics of a run, in the order in which they are written.
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
    evictions: u64,
    expected_false_duplicates: f64,
    estimated_missed_duplicates: u64,
    /// The age from which on more than 1 duplicate in 1000 is missed: in distinct keys, or, where repeats count as new, in records.
    miss_age_keys: f64,
    expected_fpr: f64,
    fill: f64,
    memory_bytes: u64,
    huge_pages: bool,
    huge_page_bytes: u64,
    slot_bits: u32,
    kernel: &'static str,
    /// `keyed` if the key hash has a secret key, else `seeded`.
    hash: &'static str,
    /// What ages count; for people only.
    #[serde(skip)]
    age_unit: &'static str,
}

impl Stats {
    /// Puts together what the run counted and what its filter says.
    pub(crate) fn new(
        counts: Counts,
        report: &Report,
        keyed_hash: bool,
        replacement: Replacement,
        estimated_missed_duplicates: u64,
        elapsed: Duration,
        threads: usize,
    ) -> Self {
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
            evictions: report.evictions,
            expected_false_duplicates: report.expected_false_duplicates,
            estimated_missed_duplicates,
            miss_age_keys: report.miss_age_keys,
            expected_fpr: report.expected_fpr,
            fill: report.fill,
            memory_bytes: report.memory_bytes,
            huge_pages: report.huge_page_bytes > 0,
            huge_page_bytes: report.huge_page_bytes,
            slot_bits: report.slot_bits,
            kernel: report.kernel.name(),
            hash: if keyed_hash { "keyed" } else { "seeded" },
            age_unit: match replacement {
                Replacement::Qqhtd => "records",
                _ => "distinct keys",
            },
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
        line(format!(
            "filter of {} ({} pages, {}-bit slots, {} kernel), {:.1} % full; {} fresh records expected to be mistaken for duplicates",
            binary_bytes(self.memory_bytes as f64),
            if self.huge_pages { "huge" } else { "small" },
            self.slot_bits,
            self.kernel,
            self.fill * 100.0,
            short(self.expected_false_duplicates),
        ));
        let judged = if self.unkeyed == 0 {
            ""
        } else {
            " of the judged records"
        };
        let age = format!(
            "1 duplicate in 1000 is missed at an age of {} {}",
            short(self.miss_age_keys),
            self.age_unit
        );
        line(if self.evictions == 0 {
            format!("no evictions: no duplicate{judged} was missed (once full, {age})")
        } else {
            format!(
                "{}: about {}{judged} missed; {age}",
                counted(self.evictions, "eviction"),
                counted(self.estimated_missed_duplicates, "duplicate"),
            )
        });
        text
    }
}

/// A number of things with the right ending.
fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}
