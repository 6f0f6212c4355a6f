//! The statistics of a run: the JSON of `--stats`, and what the summary for people is made of.

use std::time::Duration;

use echoless::audit::{ErrorCounts, ErrorEstimates, Estimate};
use echoless::memory::huge_page_bytes;
use echoless::{AgeOrigin, Kernel, MissAge, Report};
use echoless_records::chunk::ConditionCounts;
use echoless_records::failure::visible_json;
use echoless_records::fault::Missing;
use echoless_stream::Span;
use serde::{Deserialize, Serialize};

use super::busiest::Busiest;
use super::ending::Ending;
use crate::config::{Content, DedupConfig, Keep, Late, WindowConfig};
use crate::dedup::audit::RunAudit;
use crate::dedup::backwards::PassErrors;
use crate::dedup::top_keys::TopKeys;
use crate::packets::report::{CopyReport, CopyStats};

/// The version of the JSON. It rises when a stable field changes its name, type or meaning.
pub(in crate::dedup) const SCHEMA_VERSION: u32 = 1;

/// What the run counted itself; the filter's [`Report`] has the rest.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct RunCounts {
    pub(crate) records: u64,
    pub(crate) duplicates: u64,
    /// The duplicates that are the first of their keys, with `--repeated`.
    pub(crate) repeated: u64,
    /// Records of known inputs, and those of them that have no verdict. No other number counts
    /// them.
    pub(crate) known: u64,
    pub(crate) known_unjudged: u64,
    /// The duplicates that a filter of `--known-state` contains.
    #[serde(default)]
    pub(crate) of_known_states: u64,
    /// The errors found among the known records, and in the runs before this one that left the
    /// filter to it.
    #[serde(with = "saved_errors")]
    pub(crate) known_errors: Option<ErrorCounts>,
    /// Lines that are no records.
    pub(crate) comments: u64,
    /// Blocks of a capture that are no packets.
    pub(crate) frame_blocks: u64,
    /// How packets were read.
    pub(crate) conditions: ConditionCounts,
    /// Records that were passed on without being judged.
    pub(crate) unkeyed: u64,
    /// Faulty records that were set aside.
    pub(crate) rejected: u64,
    /// Records that were later than window and lateness allow.
    pub(crate) late: u64,
    /// Records whose time is further ahead of the clock than `--max-advance` allows.
    #[serde(default)]
    pub(crate) ahead: u64,
    /// Inputs that were left before their end.
    pub(crate) partial_inputs: u64,
    /// The first tick and the last of the clock, if records have times.
    pub(crate) clock: Option<(i64, i64)>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// Sums of the runs with a state.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct RunTotals {
    #[serde(rename = "state_records")]
    records: u64,
    #[serde(rename = "state_duplicates")]
    duplicates: u64,
    #[serde(rename = "state_bytes_in")]
    bytes_in: u64,
    #[serde(rename = "state_bytes_out")]
    bytes_out: u64,
}

impl RunTotals {
    /// These with another run.
    pub(crate) const fn with(self, run: &RunCounts) -> Self {
        Self {
            records: self.records + run.records,
            duplicates: self.duplicates + run.duplicates,
            bytes_in: self.bytes_in + run.bytes_in,
            bytes_out: self.bytes_out + run.bytes_out,
        }
    }
}

/// Errors in the commits of a run.
mod saved_errors {
    use echoless::audit::ErrorCounts;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        errors: &Option<ErrorCounts>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        errors.map(|errors| errors.save()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ErrorCounts>, D::Error> {
        let saved = Option::<Vec<u8>>::deserialize(deserializer)?;
        let load = |bytes: Vec<u8>| {
            ErrorCounts::load(&bytes).ok_or_else(|| D::Error::custom("no counts of errors"))
        };
        saved.map(load).transpose()
    }
}

/// What a run consists of, before its first record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) threads: usize,
    /// The memory of the filter.
    pub(crate) filter_bytes: u64,
}

/// What a run has observed so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) counts: RunCounts,
    pub(crate) audit: &'a RunAudit,
    /// The errors of a pass before, whose verdicts count beside those of this audit.
    pub(crate) judging: Option<&'a PassErrors>,
    pub(crate) top_keys: Option<&'a TopKeys>,
    pub(crate) copies: Option<&'a CopyReport>,
    /// The sums of the runs before this one, if there is a state that has them.
    pub(crate) totals: Option<RunTotals>,
    pub(crate) elapsed: Duration,
    pub(crate) setup: Setup,
}

/// The statistics of a run, in the order in which they are written; `null` is what this filter
/// cannot report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Stats {
    /// The version of this format.
    pub(super) schema_version: u32,
    pub(super) version: &'static str,
    #[serde(flatten)]
    pub(super) ending: Ending,
    /// What one record is called.
    #[serde(skip)]
    pub(super) noun: &'static str,
    pub(super) records: u64,
    pub(super) fresh: u64,
    pub(super) duplicates: u64,
    /// Records that lack a field of the key and passed unjudged.
    pub(super) unkeyed: u64,
    /// Faulty records that were set aside.
    pub(super) rejected: u64,
    /// Lines that are no records; absent for packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comments: Option<u64>,
    /// Inputs that were not read to their end, because they are cut or damaged.
    pub(super) partial_inputs: u64,
    /// The records of known inputs, and those of them that have no verdict; absent without
    /// `--known`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known_unjudged: Option<u64>,
    /// The duplicates that a filter of `--known-state` contains, and how often these filters take a
    /// new key for one of theirs; absent without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known_state_duplicates: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) known_state_fpr: Option<f64>,
    /// The keys that occurred again; absent without `--repeated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repeated: Option<u64>,
    /// The most duplicates that a key has which is not in the list; absent without `--top-keys`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unlisted_duplicates_high: Option<u64>,
    /// Which record of each key passed; absent for packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keep: Option<&'static str>,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// The same and others of all runs with the state; absent without one.
    #[serde(flatten)]
    pub(super) totals: Option<RunTotals>,
    pub(super) seconds: f64,
    pub(super) threads: usize,
    /// `keyed` if the key hash has a secret key, else `seeded`.
    pub(super) hash: &'static str,
    /// What `--filter` takes to get this filter.
    pub(super) filter: String,
    /// The window and its granule in `window_unit`: `seconds` or `records`.
    pub(super) window: Option<f64>,
    pub(super) granule: Option<f64>,
    pub(super) window_unit: Option<&'static str>,
    /// The range of the clock in seconds since 1970.
    pub(super) clock_from: Option<f64>,
    pub(super) clock_to: Option<f64>,
    /// The same in ticks.
    #[serde(skip)]
    pub(super) clock: Option<(i64, i64)>,
    /// Records later than window and lateness allow.
    pub(super) late: Option<u64>,
    /// What became of them, and what to do about it.
    #[serde(skip)]
    pub(super) late_fate: &'static str,
    /// Records whose time is further ahead of the clock than `--max-advance` allows.
    pub(super) ahead: Option<u64>,
    /// What becomes of them.
    #[serde(skip)]
    pub(super) ahead_fate: &'static str,
    /// Keys that the filter forgot because their window was over.
    pub(super) expired: Option<u64>,
    /// The estimated number of keys in the busiest window.
    pub(super) busiest_window_keys: Option<u64>,
    /// The memory in which 1 in 1000 keys of the busiest window is evicted before its end.
    pub(super) busiest_window_memory_bytes: Option<u64>,
    /// The age in `window_unit` from which on more than 1 duplicate in 1000 is missed where keys
    /// come fastest.
    pub(super) busiest_window_miss_age: Option<f64>,
    /// Whether duplicates renew their keys, if there is a window.
    #[serde(skip)]
    pub(super) renews_keys: bool,
    pub(super) evictions: Option<u64>,
    /// A bound of the expected number of false duplicates.
    pub(super) expected_false_duplicates_high: Option<f64>,
    /// An estimate is `None` if no error was observed though there may have been some.
    pub(super) estimated_false_duplicates: Option<u64>,
    /// Bounds are `None` if all verdicts may be errors and none was observed.
    pub(super) estimated_false_duplicates_low: Option<u64>,
    pub(super) estimated_false_duplicates_high: Option<u64>,
    pub(super) estimated_missed_duplicates: Option<u64>,
    pub(super) estimated_missed_duplicates_low: Option<u64>,
    pub(super) estimated_missed_duplicates_high: Option<u64>,
    /// The estimated fraction of the duplicates that was missed.
    pub(super) estimated_fnr: Option<f64>,
    pub(super) estimated_fnr_low: Option<f64>,
    pub(super) estimated_fnr_high: Option<f64>,
    #[serde(skip)]
    pub(super) errors: ErrorEstimates,
    /// The age from which on more than 1 duplicate in 1000 is missed; in dense lines with a window
    /// that of windows of as many keys as the busiest one.
    pub(super) miss_age: Option<f64>,
    /// What the age counts.
    pub(super) miss_age_unit: Option<&'static str>,
    /// The moment from which it counts: `last seen` or `recorded`.
    pub(super) miss_age_since: Option<&'static str>,
    pub(super) expected_fpr: Option<f64>,
    pub(super) fill: Option<f64>,
    pub(super) memory_bytes: u64,
    pub(super) huge_page_bytes: Option<u64>,
    pub(super) slot_bits: Option<u32>,
    pub(super) kernel: Option<&'static str>,
    /// Blocks of a capture that are no packets; absent for records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frame_blocks: Option<u64>,
    /// How many packets were not compared as usual; absent for records.
    #[serde(flatten)]
    pub(super) conditions: Option<ConditionCounts>,
    /// The window of packets beside one of time; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) window_packets: Option<u64>,
    /// The inputs that were skipped; absent without `--skip-seen-files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped_files: Option<usize>,
    /// The inputs that were read.
    #[serde(skip)]
    pub(super) read_files: usize,
    /// Whether the file header in the output is that of an input with other records.
    #[serde(skip)]
    pub(super) has_stale_header: bool,
    /// Where duplicates come from; absent without `--report`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copies: Option<CopyStats>,
}

impl Stats {
    /// Puts together the counts of the run, the estimates of its audit and the report of its
    /// filter.
    pub(crate) fn new(
        config: &DedupConfig,
        observed: Observed<'_>,
        report: Report,
        ending: Ending,
    ) -> Self {
        let Observed { counts, audit, .. } = observed;
        let repeats = match &config.content {
            Content::Records(records) => records.outputs.repeated,
            Content::Packets(_) => false,
        };
        let has_known = config.known > 0 || counts.known > 0;
        let found = audit.counts();
        let found = (counts.known_errors).map_or(found, |known| found.since(&known));
        let errors = found.estimates(Some(&report));
        let fresh = counts.records - counts.duplicates - counts.unkeyed - counts.rejected;
        let (errors, evictions) = match observed.judging {
            Some(judging) => (
                judging.joined(&errors, fresh, counts.duplicates),
                judging.evictions(report.tally.evictions),
            ),
            None => (errors, report.tally.evictions),
        };
        let states = &config.known_states;
        let errors = states.with_false_duplicates(errors);
        let fnr = errors.fnr();
        let window = config.window.as_ref();
        let busiest = audit.busiest_window().map(|keys| Busiest {
            keys,
            fastest: (audit.miss_age_ticks().zip(window))
                .map(|(ticks, window)| ticks as f64 / window.ticks as f64),
            report,
            memory_unit: config.filter.facts().memory_unit,
        });
        let false_duplicates = bounded(errors.false_duplicates, errors.duplicates);
        let missed_duplicates = bounded(errors.missed_duplicates, errors.fresh);
        let clock = counts.clock.zip(window);
        let (comments, frame_blocks, second) = match &config.content {
            Content::Records(_) => (Some(counts.comments), None, None),
            Content::Packets(packets) => (None, Some(counts.frame_blocks), packets.second),
        };
        Self {
            schema_version: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION"),
            ending,
            noun: config.content.noun(),
            records: counts.records,
            fresh,
            duplicates: counts.duplicates,
            unkeyed: counts.unkeyed,
            rejected: counts.rejected,
            comments,
            partial_inputs: counts.partial_inputs,
            known: has_known.then_some(counts.known),
            known_unjudged: has_known.then_some(counts.known_unjudged),
            known_state_duplicates: states.are_given().then_some(counts.of_known_states),
            known_state_fpr: states.fpr().filter(|_| states.are_given()),
            repeated: repeats.then_some(counts.repeated),
            unlisted_duplicates_high: observed.top_keys.map(TopKeys::unlisted_high),
            keep: match (&config.content, config.keep) {
                (Content::Packets(_), _) => None,
                (Content::Records(_), Keep::First) => Some("first"),
                (Content::Records(_), Keep::Last) => Some("last"),
                (Content::Records(_), Keep::None) => Some("none"),
            },
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            totals: observed.totals.map(|totals| totals.with(&counts)),
            seconds: observed.elapsed.as_secs_f64(),
            threads: observed.setup.threads,
            hash: if config.run.keyed_hash {
                "keyed"
            } else {
                "seeded"
            },
            filter: filter_text(config),
            window: window.map(|window| window.in_units(window.span.units())),
            granule: window.map(|window| window.in_units(window.granule(&config.filter))),
            window_unit: window.map(|window| unit_of(window, config)),
            clock_from: clock.map(|((from, _), window)| window.seconds_of(from)),
            clock: counts.clock.filter(|_| window.is_some()),
            clock_to: clock.map(|((_, to), window)| window.seconds_of(to)),
            late: window.map(|_| counts.late),
            late_fate: window.map_or("", |window| late_fate(window, config)),
            ahead: (window.and_then(|window| window.max_advance)).map(|_| counts.ahead),
            ahead_fate: window.map_or("", ahead_fate),
            expired: report.expired,
            busiest_window_keys: busiest.map(|busiest| busiest.keys),
            busiest_window_memory_bytes: busiest.and_then(Busiest::memory_bytes),
            busiest_window_miss_age: window.zip(busiest).and_then(|(window, busiest)| {
                Some(window.in_units(window.span.units()) * busiest.miss_fraction()?)
            }),
            renews_keys: config.filter.facts().renews_keys,
            evictions,
            expected_false_duplicates_high: errors.most_false_duplicates,
            estimated_false_duplicates: known(errors.false_duplicates),
            estimated_false_duplicates_low: false_duplicates.map(|bounds| bounds.low),
            estimated_false_duplicates_high: false_duplicates.map(|bounds| bounds.high),
            estimated_missed_duplicates: known(errors.missed_duplicates),
            estimated_missed_duplicates_low: missed_duplicates.map(|bounds| bounds.low),
            estimated_missed_duplicates_high: missed_duplicates.map(|bounds| bounds.high),
            estimated_fnr: fnr
                .filter(|_| !errors.missed_duplicates.is_unknown())
                .map(|rate| rate.value),
            estimated_fnr_low: fnr.zip(missed_duplicates).map(|(rate, _)| rate.low),
            estimated_fnr_high: fnr.zip(missed_duplicates).map(|(rate, _)| rate.high),
            errors,
            miss_age: report.miss_age.map(|miss| {
                // Dense lines with a window: the age depends on the keys of a window.
                busiest.map_or(miss.age, |busiest| miss.in_window(busiest.keys))
            }),
            miss_age_unit: report.miss_age.map(|_| "distinct keys"),
            miss_age_since: report.miss_age.map(since),
            expected_fpr: report.expected_fpr.and_then(|own| states.joined_fpr(own)),
            fill: report.fill(),
            // Without a report, the memory that the filter began with.
            memory_bytes: match report.tally.memory_bytes {
                0 => observed.setup.filter_bytes,
                reported => reported,
            },
            // The filter is nearly all of the process.
            huge_page_bytes: report
                .kernel
                .map(|_| huge_page_bytes().map_or(0, |huge| huge.min(report.tally.memory_bytes))),
            slot_bits: report.slot_bits,
            kernel: report.kernel.map(Kernel::name),
            frame_blocks,
            conditions: frame_blocks.map(|_| counts.conditions),
            window_packets: second,
            skipped_files: (config.skipped.as_ref())
                .filter(|_| config.state.is_none())
                .map(Vec::len),
            read_files: config.inputs().len(),
            has_stale_header: has_stale_header(config, counts),
            copies: observed.copies.map(CopyReport::stats),
        }
    }

    /// One JSON object, with a newline at its end.
    pub(crate) fn json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| unreachable!("numbers and names are always JSON: {error}"));
        json.push('\n');
        visible_json(&json)
    }
}

/// Whether the file header in the output is that of an input with other records.
fn has_stale_header(config: &DedupConfig, counts: RunCounts) -> bool {
    let Content::Records(records) = &config.content else {
        return false;
    };
    let outputs = &records.outputs;
    let all_pass = match outputs.tag_file {
        Some(_) => true,
        None => counts.duplicates == 0 && !config.run.invert && !outputs.repeated,
    };
    let is_copy = all_pass && counts.rejected == 0 && config.inputs().len() == 1;
    let is_fixed = records.fix_header || config.run.count;
    records.reading.format.facts().file_header_end.is_some() && !is_copy && !is_fixed
}

/// The estimate, unless it is unknown.
fn known(estimate: Estimate) -> Option<u64> {
    (!estimate.is_unknown()).then_some(estimate.value)
}

/// The bounds of an estimate, unless they say nothing: none of all verdicts was observed to be an
/// error, and all of them may be.
pub(super) fn bounded(estimate: Estimate, verdicts: u64) -> Option<Estimate> {
    let says_nothing = estimate.is_unknown() && estimate.high >= verdicts;
    (!says_nothing).then_some(estimate)
}

/// The moment from which an age counts, in words that follow it.
const fn since(age: MissAge) -> &'static str {
    match age.since {
        AgeOrigin::LastSeen => "last seen",
        AgeOrigin::Recorded => "recorded",
    }
}

/// The unit of the lengths of a window.
pub(super) fn unit_of(window: &WindowConfig, config: &DedupConfig) -> &'static str {
    match (window.span, &config.content) {
        (Span::Time(_), _) => "seconds",
        (Span::Records(_), Content::Records(_)) => "records",
        (Span::Records(_), Content::Packets(_)) => "packets",
    }
}

/// What becomes of late records, and what to do about it.
const fn late_fate(window: &WindowConfig, config: &DedupConfig) -> &'static str {
    match (window.late, &config.content) {
        (_, Content::Packets(_)) => {
            "passed unjudged; join the files in the order of time (mergecap)"
        }
        (Late::Pass, Content::Records(_)) => {
            "passed unjudged; sort the inputs by time, or set a longer --lateness"
        }
        (Late::Judge, Content::Records(_)) => {
            "judged at the latest time; sort the inputs by time, or set --late pass"
        }
        (Late::Reject, Content::Records(_)) => {
            "rejected; sort the inputs by time, or set a longer --lateness"
        }
    }
}

/// What becomes of records that are too far ahead.
const fn ahead_fate(window: &WindowConfig) -> &'static str {
    match (window.missing, window.rejects) {
        (Missing::Empty, _) => "judged at the latest time",
        (Missing::Skip, _) => "passed unjudged",
        (Missing::Error, _) => "rejected",
    }
}

/// The specification of the filter, or of both filters of two windows.
fn filter_text(config: &DedupConfig) -> String {
    match &config.content {
        Content::Records(_) => config.filter.to_string(),
        Content::Packets(packets) => packets.windows.to_string(),
    }
}
