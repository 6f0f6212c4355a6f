//! What a run did: a few lines for people, a JSON object for programs.

use std::fmt::Write as _;
use std::time::Duration;

use echoless::Report;
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
    /// The age, in distinct keys, from which on more than 1 duplicate in 1000 is missed.
    miss_age_keys: f64,
    expected_fpr: f64,
    fill: f64,
    memory_bytes: u64,
    huge_pages: bool,
    huge_page_bytes: u64,
    slot_bits: u32,
    kernel: &'static str,
}

impl Stats {
    /// Puts together what the run counted and what its filter says.
    pub(crate) fn new(
        counts: Counts,
        report: &Report,
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
            "{} records ({}) in {:.2} s: {} fresh, {} duplicates ({:.2} %)",
            grouped(self.records),
            decimal_bytes(self.bytes_in as f64),
            self.seconds,
            grouped(self.fresh),
            grouped(self.duplicates),
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
        let age = short(self.miss_age_keys);
        line(if self.evictions == 0 {
            format!(
                "no evictions: no duplicate was missed (once full, misses begin at an age of {age} distinct keys)"
            )
        } else {
            format!(
                "{} evictions: about {} duplicates were missed; misses begin at an age of {age} distinct keys",
                grouped(self.evictions),
                grouped(self.estimated_missed_duplicates),
            )
        });
        text
    }
}
