//! The statistics of a run: the JSON of `--stats`, and what the summary for people is made of.

use std::time::Instant;

use echoless::memory::huge_page_bytes;
use echoless::{AgeOrigin, Kernel, MissAge, Report};
use echoless_audit::{ErrorCounts, ErrorEstimates, Estimate};
use echoless_records::chunk::{Chunk, ConditionCounts};
use echoless_records::fault::Missing;
use echoless_stream::Span;
use serde::{Deserialize, Serialize};

use super::busiest::Busiest;
use super::ending::Ending;
use super::fields::Fields;
use crate::config::{Content, DedupConfig, Keep, Late, WindowConfig};
use crate::dedup::audit::RunAudit;
use crate::dedup::backwards::PassErrors;
use crate::dedup::exact::ExactCounts;
use crate::dedup::observers::Observers;

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

impl RunCounts {
    /// The records that are no duplicates.
    pub(crate) const fn fresh(&self) -> u64 {
        self.records - self.duplicates - self.unkeyed - self.rejected
    }

    /// Counts the records of a chunk that is written.
    pub(crate) fn count(&mut self, chunk: &Chunk) {
        let rejected = chunk.unkeyed.rejected.len() as u64;
        self.records += chunk.own_records() as u64;
        self.frame_blocks += chunk.unkeyed.frame.len() as u64;
        self.comments += chunk.unkeyed.comments.len() as u64;
        self.conditions += chunk.keys.packets.conditions;
        self.rejected += rejected;
        self.unkeyed += chunk.unkeyed.own_records() as u64 - rejected;
        self.duplicates += chunk.verdicts.of_keys.count_duplicates();
        self.of_known_states += chunk.known.count();
        self.late += chunk.clock.late;
        self.ahead += chunk.clock.ahead;
    }

    /// Counts the records of a known input. `errors` were found up to here: they affect no output,
    /// unless they concern later records.
    pub(crate) fn count_known(&mut self, chunk: &Chunk, errors: Option<ErrorCounts>) {
        self.known += chunk.own_records() as u64;
        self.known_unjudged += chunk.unkeyed.own_records() as u64;
        self.known_errors = errors.or(self.known_errors);
    }
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
    use echoless_audit::{ErrorCounts, SavedAudit as _};
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
    pub(crate) began: Instant,
    pub(crate) threads: usize,
    /// The memory of the filter.
    pub(crate) filter_bytes: u64,
}

/// What a run has counted and estimated so far, which a state saves.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) counts: RunCounts,
    pub(crate) audit: RunAudit,
    /// The message about the first input of which records were lost.
    pub(crate) lost: Option<String>,
    /// The sums of the runs before this one, if there is a state that has them.
    pub(crate) totals: Option<RunTotals>,
    /// What an exact run compares, once it knows that.
    pub(crate) exact: Option<ExactCounts>,
    /// The bytes that the run had read before it was started again.
    pub(crate) bytes_in_before: u64,
}

impl Sums {
    /// Those of a run that has not begun.
    pub(crate) fn new(config: &DedupConfig) -> Self {
        Self {
            counts: RunCounts::default(),
            audit: RunAudit::new(config),
            lost: None,
            totals: None,
            exact: config.exact.map(|_| ExactCounts::default()),
            bytes_in_before: 0,
        }
    }

    /// The errors among the records that are written.
    pub(crate) fn errors(&self, report: &Report) -> ErrorEstimates {
        let found = self.audit.counts();
        let found = (self.counts.known_errors).map_or(found, |known| found.since(&known));
        found.estimates(Some(report))
    }
}

/// The statistics of a run.
#[derive(Debug)]
pub(crate) struct Stats<'a> {
    pub(super) config: &'a DedupConfig,
    pub(super) counts: &'a RunCounts,
    pub(super) observers: &'a Observers<'a>,
    ending: Ending,
    totals: Option<RunTotals>,
    setup: Setup,
    pub(super) seconds: f64,
    /// What the filter reports; nothing while it is in use.
    pub(super) report: Report,
    pub(super) busiest: Option<Busiest>,
    pub(super) errors: ErrorEstimates,
    /// What an exact run has compared.
    pub(super) exact: Option<ExactCounts>,
    pub(super) evictions: Option<u64>,
    /// How often the filter takes a fresh key for a duplicate.
    expected_fpr: Option<f64>,
}

impl<'a> Stats<'a> {
    /// Puts together the counts of the run, the estimates of its audit and the report of its
    /// filter. `judging` are the errors of a pass before, whose verdicts count beside those of this
    /// audit.
    pub(crate) fn new(
        config: &'a DedupConfig,
        sums: &'a Sums,
        observers: &'a Observers<'a>,
        setup: Setup,
        judging: Option<&PassErrors>,
        report: Report,
        ending: Ending,
    ) -> Self {
        let Sums { counts, audit, .. } = sums;
        let own = sums.errors(&report);
        let (errors, evictions) = match judging {
            Some(judging) => (
                judging.joined(&own, counts.fresh(), counts.duplicates),
                judging.evictions(report.tally.evictions),
            ),
            None => (own, report.tally.evictions),
        };
        let states = &config.known_states;
        let window = config.window.as_ref();
        Self {
            config,
            counts,
            observers,
            ending,
            totals: sums.totals,
            setup,
            seconds: setup.began.elapsed().as_secs_f64(),
            busiest: audit.busiest_window().map(|keys| Busiest {
                keys,
                fastest: (audit.miss_age_ticks().zip(window))
                    .map(|(ticks, window)| ticks as f64 / window.ticks as f64),
                report,
                memory_unit: config.filter.facts().memory_unit,
            }),
            errors: states.with_false_duplicates(errors),
            exact: sums.exact,
            evictions,
            expected_fpr: report.expected_fpr.and_then(|own| states.joined_fpr(own)),
            report,
        }
    }

    /// One JSON object, with a newline at its end. `null` is what this filter cannot report.
    pub(crate) fn json(&self) -> String {
        let (config, counts) = (self.config, self.counts);
        let mut fields = Fields::begin(&self.ending);
        fields.add("records", counts.records);
        fields.add("fresh", counts.fresh());
        fields.add("duplicates", counts.duplicates);
        fields.add("unkeyed", counts.unkeyed);
        fields.add("rejected", counts.rejected);
        if let Content::Records(_) = &config.content {
            fields.add("comments", counts.comments);
        }
        fields.add("partial_inputs", counts.partial_inputs);
        if let Some(known) = self.known() {
            fields.add("known", known);
            fields.add("known_unjudged", counts.known_unjudged);
        }
        self.observers.stats_of_records(counts, &mut fields);
        if let Content::Records(_) = &config.content {
            let keep = match config.keep {
                Keep::First => "first",
                Keep::Last => "last",
                Keep::None => "none",
            };
            fields.add("keep", keep);
        }
        fields.add("bytes_in", counts.bytes_in);
        fields.add("bytes_out", counts.bytes_out);
        if let Some(totals) = self.totals {
            fields.add_all(&totals.with(counts));
        }
        fields.add("seconds", self.seconds);
        fields.add("threads", self.setup.threads);
        let is_keyed = config.run.keyed_hash;
        fields.add("hash", if is_keyed { "keyed" } else { "seeded" });
        fields.add("filter", filter_text(config));
        if let Some(exact) = self.exact {
            fields.add("exact", exact);
        }
        self.add_window(&mut fields);
        self.add_errors(&mut fields);
        self.add_filter(&mut fields);
        self.observers.stats_of_run(counts, &mut fields);
        fields.json()
    }

    fn add_window(&self, fields: &mut Fields) {
        let window = self.config.window.as_ref();
        let length = |units: fn(&WindowConfig, &DedupConfig) -> u64| {
            window.map(|window| window.in_units(units(window, self.config)))
        };
        fields.add("window", length(|window, _| window.span.units()));
        let granule = length(|window, config| window.granule(&config.filter));
        fields.add("granule", granule);
        let unit = window.map(|window| unit_of(window, self.config));
        fields.add("window_unit", unit);
        let clock = self.counts.clock.zip(window);
        let seconds = |tick: fn((i64, i64)) -> i64| {
            clock.map(|(clock, window)| window.seconds_of(tick(clock)))
        };
        fields.add("clock_from", seconds(|(from, _)| from));
        fields.add("clock_to", seconds(|(_, to)| to));
        fields.add("late", window.map(|_| self.counts.late));
        let max_advance = window.and_then(|window| window.max_advance.as_ref());
        fields.add("ahead", max_advance.map(|_| self.counts.ahead));
        fields.add("expired", self.report.expired);
        fields.add(
            "busiest_window_keys",
            self.busiest.map(|busiest| busiest.keys),
        );
        let memory = self.busiest.and_then(Busiest::memory_bytes);
        fields.add("busiest_window_memory_bytes", memory);
        fields.add("busiest_window_miss_age", self.busiest_miss_age());
    }

    fn add_errors(&self, fields: &mut Fields) {
        let errors = &self.errors;
        fields.add("evictions", self.evictions);
        let most = errors.most_false_duplicates;
        fields.add("expected_false_duplicates_high", most);
        let mut add = |name: &str, estimate, verdicts| {
            let bounds = bounded(estimate, verdicts);
            fields.add(name, known(estimate));
            fields.add(&format!("{name}_low"), bounds.map(|bounds| bounds.low));
            fields.add(&format!("{name}_high"), bounds.map(|bounds| bounds.high));
        };
        let (mistaken, missed) = (errors.false_duplicates, errors.missed_duplicates);
        add("estimated_false_duplicates", mistaken, errors.duplicates);
        add("estimated_missed_duplicates", missed, errors.fresh);
        let [rate, low, high] = self.missed_rates();
        fields.add("estimated_fnr", rate);
        fields.add("estimated_fnr_low", low);
        fields.add("estimated_fnr_high", high);
        fields.add("miss_age", self.miss_age());
        let age = self.report.miss_age;
        fields.add("miss_age_unit", age.map(|_| "distinct keys"));
        fields.add("miss_age_since", age.map(since));
    }

    fn add_filter(&self, fields: &mut Fields) {
        fields.add("expected_fpr", self.expected_fpr);
        fields.add("fill", self.report.fill());
        // Without a report, the memory that the filter began with.
        let memory = match self.report.tally.memory_bytes {
            0 => self.setup.filter_bytes,
            reported => reported,
        };
        fields.add("memory_bytes", memory);
        fields.add("huge_page_bytes", self.huge_page_bytes());
        fields.add("slot_bits", self.report.slot_bits);
        fields.add("kernel", self.report.kernel.map(Kernel::name));
    }

    /// The known records, if there may be any.
    pub(super) fn known(&self) -> Option<u64> {
        let known = self.counts.known;
        (self.config.known > 0 || known > 0).then_some(known)
    }

    /// The age in units of the window from which on more than 1 duplicate in 1000 is missed where
    /// keys come fastest.
    pub(super) fn busiest_miss_age(&self) -> Option<f64> {
        let window = self.config.window.as_ref()?;
        Some(window.in_units(window.span.units()) * self.busiest?.miss_fraction()?)
    }

    /// The estimated fraction of the duplicates that was missed, and its bounds.
    pub(super) fn missed_rates(&self) -> [Option<f64>; 3] {
        let (rate, missed) = (self.errors.fnr(), self.errors.missed_duplicates);
        let bounds = rate.filter(|_| bounded(missed, self.errors.fresh).is_some());
        [
            rate.filter(|_| !missed.is_unknown()).map(|rate| rate.value),
            bounds.map(|rate| rate.low),
            bounds.map(|rate| rate.high),
        ]
    }

    /// The age from which on more than 1 duplicate in 1000 is missed; in dense lines with a window
    /// that of windows of as many keys as the busiest one.
    pub(super) fn miss_age(&self) -> Option<f64> {
        let miss = self.report.miss_age?;
        let busiest = self.busiest;
        Some(busiest.map_or(miss.age, |busiest| miss.in_window(busiest.keys)))
    }

    /// The part of the filter in huge pages: it is nearly all of the process.
    pub(super) fn huge_page_bytes(&self) -> Option<u64> {
        let memory = self.report.tally.memory_bytes;
        let huge = |_| huge_page_bytes().map_or(0, |huge| huge.min(memory));
        self.report.kernel.map(huge)
    }
}

/// Whether the file header in the output is that of an input with other records.
pub(super) fn has_stale_header(config: &DedupConfig, counts: &RunCounts) -> bool {
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
pub(super) const fn since(age: MissAge) -> &'static str {
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
pub(super) fn late_fate(window: &WindowConfig, config: &DedupConfig) -> &'static str {
    match (window.late, &config.content) {
        (_, Content::Packets(_)) if config.sources.len() > 1 => {
            "passed unjudged; join the files in the order of time (mergecap)"
        }
        (_, Content::Packets(packets)) if packets.live.is_some() => "passed unjudged",
        (_, Content::Packets(_)) => "passed unjudged; sort the packets by time first (reordercap)",
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
pub(super) const fn ahead_fate(window: &WindowConfig) -> &'static str {
    match (window.missing, window.rejects) {
        (Missing::Empty, _) => "judged at the latest time",
        (Missing::Skip, _) => "passed unjudged",
        (Missing::Error, _) => "rejected",
    }
}

/// The specification of the filter, or of both filters of two windows.
pub(super) fn filter_text(config: &DedupConfig) -> String {
    match &config.content {
        Content::Records(_) => config.filter.to_string(),
        Content::Packets(packets) => packets.windows.to_string(),
    }
}
