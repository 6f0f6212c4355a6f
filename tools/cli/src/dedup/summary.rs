//! What a run did: a few lines for people, a JSON object for programs.

use std::fmt::Write as _;
use std::time::Duration;

use echoless::spec::format_bytes;
use echoless::{AgeUnit, Kernel, MissAge, Report};
use serde::Serialize;

use super::audit::RunAudit;
use crate::config::{Content, DedupConfig, WindowConfig};
use crate::number::{decimal_bytes, grouped, short};
use crate::packets::report::{CopyReport, CopyStats};
use crate::time::calendar::rfc3339;
use crate::time::span::Span;

/// What the run counted itself; the filter's [`Report`] has the rest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) duplicates: u64,
    /// The duplicates that are the first of their keys, with `--repeated`.
    pub(crate) repeated: u64,
    /// Records of known inputs, and those of them that have no verdict. No other number counts
    /// them.
    pub(crate) known: u64,
    pub(crate) known_unjudged: u64,
    /// The estimated errors among the known records.
    pub(crate) known_missed: u64,
    pub(crate) known_mistaken: u64,
    /// Blocks of a capture that are no packets.
    pub(crate) frame_blocks: u64,
    /// Records that were passed on without being judged.
    pub(crate) unkeyed: u64,
    /// Faulty records that were set aside.
    pub(crate) rejected: u64,
    /// Records that were later than window and lateness allow.
    pub(crate) late: u64,
    /// The first tick and the last of the clock, if records have times.
    pub(crate) clock: Option<(i64, i64)>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// The statistics of a run, in the order in which they are written; `null` is what this filter
/// cannot tell.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stats {
    version: &'static str,
    /// What one record is called.
    #[serde(skip)]
    noun: &'static str,
    records: u64,
    fresh: u64,
    duplicates: u64,
    /// Records that lack a field of the key and passed unjudged.
    unkeyed: u64,
    /// Faulty records that were set aside.
    rejected: u64,
    /// The records of known inputs, and those of them that have no verdict; absent without
    /// `--known`.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known_unjudged: Option<u64>,
    /// The keys that occurred again; absent without `--repeated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<u64>,
    bytes_in: u64,
    bytes_out: u64,
    seconds: f64,
    threads: usize,
    /// `keyed` if the key hash has a secret key, else `seeded`.
    hash: &'static str,
    /// What `--filter` takes to get this filter.
    filter: String,
    /// The window and its granule in `window_unit`: `seconds` or `records`.
    window: Option<f64>,
    granule: Option<f64>,
    window_unit: Option<&'static str>,
    /// The range of the clock in seconds since 1970.
    clock_from: Option<f64>,
    clock_to: Option<f64>,
    /// Records later than window and lateness allow.
    late: Option<u64>,
    /// Keys that the filter forgot because their window was over.
    expired: Option<u64>,
    /// The estimated number of keys in the busiest window.
    busiest_window_keys: Option<u64>,
    /// The memory in which 1 in 1000 keys of the busiest window is evicted before its end.
    busiest_window_memory_bytes: Option<u64>,
    /// The age in the busiest window, in `window_unit`, from which on more than 1 duplicate in 1000
    /// is missed.
    busiest_window_miss_age: Option<f64>,
    /// Whether duplicates renew their keys, if there is a window.
    #[serde(skip)]
    renews_keys: bool,
    /// The window in words.
    #[serde(skip)]
    window_line: Option<String>,
    evictions: Option<u64>,
    expected_false_duplicates: Option<f64>,
    estimated_false_duplicates: u64,
    estimated_missed_duplicates: u64,
    /// The estimated fraction of the duplicates that was missed.
    estimated_fnr: Option<f64>,
    /// The age from which on more than 1 duplicate in 1000 is missed.
    miss_age: Option<f64>,
    /// What the age counts: `distinct keys` or `records`.
    miss_age_unit: Option<&'static str>,
    expected_fpr: Option<f64>,
    fill: Option<f64>,
    memory_bytes: u64,
    huge_page_bytes: Option<u64>,
    slot_bits: Option<u32>,
    kernel: Option<&'static str>,
    /// Blocks of a capture that are no packets; absent for records.
    #[serde(skip_serializing_if = "Option::is_none")]
    frame_blocks: Option<u64>,
    /// The window of packets beside one of time; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_packets: Option<u64>,
    /// The inputs that were skipped; absent without `--skip-seen-files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped_files: Option<usize>,
    /// The inputs that were read.
    #[serde(skip)]
    read_files: usize,
    /// Whether the file header in the output is that of an input with other records.
    #[serde(skip)]
    has_stale_header: bool,
    /// Where duplicates come from; absent without `--report`.
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<CopyStats>,
}

impl Stats {
    /// Puts together the counts of the run, the estimates of its audit and the report of its
    /// filter.
    pub(crate) fn new(
        counts: Counts,
        audit: &RunAudit,
        copies: Option<&CopyReport>,
        config: &DedupConfig,
        report: Report,
        elapsed: Duration,
        threads: usize,
    ) -> Self {
        let window = config.window.as_ref();
        let repeats = match &config.content {
            Content::Records(records) => records.outputs.repeated,
            Content::Packets(_) => false,
        };
        let has_known = config.known > 0;
        let missed = audit.missed() - counts.known_missed;
        let busiest = audit.busiest_window().map(|keys| Busiest { keys, report });
        let clock = counts.clock.zip(window);
        let (frame_blocks, second) = match &config.content {
            Content::Records(_) => (None, None),
            Content::Packets(packets) => (Some(counts.frame_blocks), packets.second),
        };
        let seconds =
            |tick: i64, window: &WindowConfig| tick as f64 * window.in_units(window.resolution);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            noun: config.content.noun(),
            records: counts.records,
            fresh: counts.records - counts.duplicates - counts.unkeyed - counts.rejected,
            duplicates: counts.duplicates,
            unkeyed: counts.unkeyed,
            rejected: counts.rejected,
            known: has_known.then_some(counts.known),
            known_unjudged: has_known.then_some(counts.known_unjudged),
            repeated: repeats.then_some(counts.repeated),
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            seconds: elapsed.as_secs_f64(),
            threads,
            hash: if config.run.keyed_hash {
                "keyed"
            } else {
                "seeded"
            },
            filter: filter_text(config),
            window: window.map(|window| window.in_units(window.span.units())),
            granule: window.map(|window| window.in_units(window.granule(&config.filter))),
            window_unit: window.map(|window| unit_of(window, config)),
            clock_from: clock.map(|((from, _), window)| seconds(from, window)),
            clock_to: clock.map(|((_, to), window)| seconds(to, window)),
            late: window.map(|_| counts.late),
            expired: report.expired,
            busiest_window_keys: busiest.map(|busiest| busiest.keys),
            busiest_window_memory_bytes: busiest.and_then(Busiest::memory_bytes),
            busiest_window_miss_age: window.zip(busiest).and_then(|(window, busiest)| {
                Some(window.in_units(window.span.units()) * busiest.miss_share()?)
            }),
            renews_keys: config.filter.renews_keys(),
            window_line: window.map(|window| window_line(window, counts, config, report.expired)),
            evictions: report.tally.evictions,
            expected_false_duplicates: report.expected_false_duplicates,
            estimated_false_duplicates: audit.mistaken() - counts.known_mistaken,
            estimated_missed_duplicates: missed,
            estimated_fnr: ratio(missed, counts.duplicates + missed),
            miss_age: report.miss_age.map(|miss| miss.age),
            miss_age_unit: report.miss_age.map(unit),
            expected_fpr: report.expected_fpr,
            fill: report.fill(),
            memory_bytes: report.tally.memory_bytes,
            huge_page_bytes: report.tally.huge_page_bytes,
            slot_bits: report.slot_bits,
            kernel: report.kernel.map(Kernel::name),
            frame_blocks,
            window_packets: second,
            skipped_files: config.seen.as_ref().map(|seen| seen.skipped().len()),
            read_files: config.inputs().len(),
            has_stale_header: match &config.content {
                Content::Records(records) => {
                    let all_pass = match records.outputs.tag_file {
                        Some(_) => true,
                        None => counts.duplicates == 0 && !config.run.invert && !repeats,
                    };
                    let is_copy = all_pass && counts.rejected == 0 && config.inputs().len() == 1;
                    let is_fixed = records.fix_header || config.run.count;
                    records.reading.format.has_file_header() && !is_copy && !is_fixed
                }
                Content::Packets(_) => false,
            },
            copies: copies.map(CopyReport::stats),
        }
    }

    /// One JSON object, with a newline at its end.
    pub(crate) fn json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| unreachable!("numbers and names are always JSON: {error}"));
        json.push('\n');
        json
    }

    /// Three to five lines for people, each beginning with the command's name.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            let _ = writeln!(text, "echoless: {words}");
        };
        let mut records = format!(
            "{} ({}) in {:.2} s: {} fresh, {} ({:.2} %)",
            counted(self.records, self.noun),
            decimal_bytes(self.bytes_in as f64),
            self.seconds,
            grouped(self.fresh),
            counted(self.duplicates, "duplicate"),
            self.duplicates as f64 * 100.0 / self.records.max(1) as f64,
        );
        if self.unkeyed > 0 {
            let _ = write!(records, ", {} passed unjudged", grouped(self.unkeyed));
        }
        if self.rejected > 0 {
            let _ = write!(records, ", {} rejected", grouped(self.rejected));
        }
        if let Some(repeated) = self.repeated {
            let _ = write!(records, ", {} with duplicates", counted(repeated, "key"));
        }
        if let Some(known) = self.known {
            let _ = write!(records, "; {} known", counted(known, self.noun));
            if let Some(unjudged) = self.known_unjudged.filter(|unjudged| *unjudged > 0) {
                let _ = write!(records, ", {} of them unjudged", grouped(unjudged));
            }
        }
        line(records);
        if let Some(skipped) = self.skipped_files.filter(|skipped| *skipped > 0) {
            let all = counted((skipped + self.read_files) as u64, "file");
            line(format!(
                "{skipped} of {all} skipped: their content was seen before"
            ));
        }
        let judged = match (self.window, self.unkeyed + self.rejected) {
            (None, 0) => "",
            (None, _) => " of the judged records",
            (Some(_), 0) => " inside the window",
            (Some(_), _) => " of the judged records inside the window",
        };
        if self.has_stale_header {
            line(
                "the file header is a copy: its file length and number of records are wrong \
                 (--fix-header corrects them)"
                    .into(),
            );
        }
        line(self.filter_line());
        if let Some(window) = &self.window_line {
            line(window.clone());
        }
        line(self.errors_line(judged));
        if let Some(busiest) = self.busiest_line() {
            line(busiest);
        }
        if let Some(copies) = &self.copies {
            copies.lines().into_iter().for_each(line);
        }
        text
    }

    /// The filter, how full it is, and the false duplicates that it expects.
    fn filter_line(&self) -> String {
        let mut text = format!("filter {}", self.filter);
        if let (Some(kernel), Some(huge)) = (self.kernel, self.huge_page_bytes) {
            let pages = if huge > 0 { "huge" } else { "small" };
            let _ = write!(text, " ({pages} pages, {kernel} kernel)");
        }
        if let Some(fill) = self.fill {
            let _ = write!(text, ", fill {:.1} %", fill * 100.0);
        }
        if let Some(expected) = self.expected_false_duplicates {
            let expected = short(expected);
            let _ = write!(
                text,
                "; {expected} fresh {}s expected to be mistaken for duplicates",
                self.noun
            );
        }
        text
    }

    /// The busiest window, and the memory that would be enough for it.
    fn busiest_line(&self) -> Option<String> {
        let (keys, bytes) = self
            .busiest_window_keys
            .zip(self.busiest_window_memory_bytes)?;
        let age = self.busiest_window_miss_age?;
        let unit = self.window_unit?;
        // In whole MiB, as people would type it.
        let memory = bytes.next_multiple_of(1 << 20);
        Some(format!(
            "about {} keys in the busiest window, where 1 duplicate in 1000 is missed at an age of {} {unit}; \
             -m {} is enough for all of it",
            grouped(keys),
            short(age),
            format_bytes(memory),
        ))
    }

    /// Whether duplicates were missed, and from which age on they are.
    fn errors_line(&self, judged: &str) -> String {
        let missed = counted(self.estimated_missed_duplicates, "duplicate");
        let age = self.miss_age.zip(self.miss_age_unit).map(|(age, unit)| {
            format!(
                "1 duplicate in 1000 is missed at an age of {} {unit}",
                short(age)
            )
        });
        match (self.evictions, age) {
            (Some(0), Some(age)) => {
                // A mistaken record is not recorded, and the record that it was taken for expires.
                let unless = if self.window.is_some() && !self.renews_keys {
                    ", unless its first record was itself mistaken for a duplicate"
                } else {
                    ""
                };
                format!("no evictions: no duplicate{judged} was missed{unless} (once full, {age})")
            }
            (Some(evictions), Some(age)) => {
                let evictions = counted(evictions, "eviction");
                let percent = self.estimated_fnr.unwrap_or(0.0) * 100.0;
                let share = short(percent);
                format!("{evictions}: about {missed}{judged} missed ({share} % of all); {age}")
            }
            _ => format!(
                "estimated from a sample of the keys: {missed}{judged} missed, {} mistaken for duplicates",
                counted(
                    self.estimated_false_duplicates,
                    &format!("fresh {}", self.noun)
                ),
            ),
        }
    }
}

/// The busiest window of a run, and the filter that had to remember it.
#[derive(Debug, Clone, Copy)]
struct Busiest {
    keys: u64,
    report: Report,
}

impl Busiest {
    /// The part of the window after which 1 in 1000 of its keys is evicted; `None` if that does not
    /// happen before its end.
    fn miss_share(self) -> Option<f64> {
        let share = self.report.miss_age?.age / self.keys as f64;
        Some(share).filter(|share| *share < 1.0)
    }

    /// The memory in which that happens at the end of the window: the age at which misses begin is
    /// proportional to the memory.
    fn memory_bytes(self) -> Option<u64> {
        let bytes_per_key = self.report.tally.memory_bytes as f64 / self.report.miss_age?.age;
        Some((self.keys as f64 * bytes_per_key).ceil() as u64)
    }
}

/// The fraction `part` of `whole`; `None` of nothing.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The window, its granule, the range of the clock and the late records.
fn window_line(
    window: &WindowConfig,
    counts: Counts,
    config: &DedupConfig,
    expired: Option<u64>,
) -> String {
    let unit = unit_of(window, config);
    let length = |units| match window.in_units(units) {
        whole if whole.fract() == 0.0 => grouped(whole as u64),
        length => short(length),
    };
    let mut text = format!(
        "window of {} {unit}, forgotten at most {} {unit} later",
        length(window.span.units()),
        length(window.granule(&config.filter)),
    );
    if let Content::Packets(packets) = &config.content
        && let Some(second) = packets.second
    {
        let _ = write!(text, ", and of {} packets", grouped(second));
    }
    if let Some((from, to)) = counts.clock {
        let time = |tick: i64| rfc3339(tick.saturating_mul(window.resolution as i64));
        let _ = write!(text, "; clock from {} to {}", time(from), time(to));
    }
    if let Some(expired) = expired.filter(|expired| *expired > 0) {
        let _ = write!(text, "; {} expired", counted(expired, "key"));
    }
    if counts.late > 0 {
        let _ = write!(
            text,
            "; {} too late",
            counted(counts.late, config.content.noun())
        );
    }
    text
}

/// The unit of the lengths of a window.
fn unit_of(window: &WindowConfig, config: &DedupConfig) -> &'static str {
    match (window.span, &config.content) {
        (Span::Time(_), _) => "seconds",
        (Span::Records(_), Content::Records(_)) => "records",
        (Span::Records(_), Content::Packets(_)) => "packets",
    }
}

/// The specification of the filter, or of both filters of two windows.
fn filter_text(config: &DedupConfig) -> String {
    match &config.content {
        Content::Records(_) => config.filter.to_string(),
        Content::Packets(packets) => packets.windows.to_string(),
    }
}

/// What an age counts, in the words of this command.
const fn unit(age: MissAge) -> &'static str {
    match age.unit {
        AgeUnit::Arrivals => "records",
        _ => "distinct keys",
    }
}

/// A number of things with the right ending.
fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}
