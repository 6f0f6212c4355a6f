//! The summary of a run: a few lines for people.

use std::fmt::Write as _;

use echoless::audit::Estimate;
use echoless::spec::format_bytes;
use echoless_records::number::{decimal_bytes, grouped, short};
use echoless_records::time::calendar::rfc3339;

use super::stats::{Stats, bounded, unit_of};
use crate::config::{ClockSource, Content, DedupConfig, WindowConfig};
use crate::packets::report::CopyStats;

impl Stats {
    /// Three to five lines for people, each beginning with the command's name.
    pub(crate) fn summary(&self, config: &DedupConfig) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            let _ = writeln!(text, "echoless: {words}");
        };
        line(self.records_line());
        if let Some(skipped) = self.skipped() {
            line(format!("{skipped}: their content was seen before"));
        }
        if let Some(partial) = self.partial() {
            line(partial);
        }
        if self.has_stale_header {
            line(
                "the file header is a copy: its file length and number of records are wrong \
                 (--fix-header corrects them)"
                    .into(),
            );
        }
        if let Some(conditions) = self.conditions.and_then(|counts| counts.words()) {
            line(conditions);
        }
        line(self.filter_line());
        if config.little_memory {
            line("the filter has less than the default memory: little is left (-m SIZE)".into());
        }
        if let Some(window) = &config.window {
            line(self.window_line(window, config));
        }
        if let Some(late) = self.late_records() {
            line(late);
        }
        if let Some(ahead) = self.ahead_records() {
            line(ahead);
        }
        line(self.errors_line(&self.judged()));
        if let Some(busiest) = self.busiest_line() {
            line(busiest);
        }
        text + &self.copies_report()
    }

    /// The report of `--report`, each line beginning with the command's name; empty without it.
    pub(crate) fn copies_report(&self) -> String {
        let mut text = String::new();
        for words in self.copies.iter().flat_map(CopyStats::lines) {
            let _ = writeln!(text, "echoless: {words}");
        }
        text
    }

    /// What was read, how it was judged and what was lost, as a line that begins with the command's
    /// name.
    pub(crate) fn line(&self) -> String {
        let mut line = format!("echoless: {}", self.records_line());
        for lost in self.losses() {
            let _ = write!(line, "; {lost}");
        }
        if let Some(skipped) = self.skipped() {
            let _ = write!(line, "; {skipped}");
        }
        if let Some(partial) = self.partial() {
            let _ = write!(line, "; {partial}");
        }
        if self.has_stale_header {
            line.push_str("; the file header is a copy (--fix-header)");
        }
        line.push('\n');
        line
    }

    /// What a log must not hide: late records, evictions and errors, each only if it is certain
    /// that there are any.
    fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        losses.extend(self.late_records());
        losses.extend(self.ahead_records());
        let missed = match self.evictions {
            // No duplicate was missed.
            Some(0) => None,
            Some(evictions) => Some(format!(
                "{}: {}",
                counted(evictions, "eviction"),
                self.missed("")
            )),
            None if self.errors.missed_duplicates.low > 0 => Some(self.missed("")),
            None => None,
        };
        losses.extend(missed);
        if self.errors.false_duplicates.low > 0 {
            losses.push(self.mistaken());
        }
        losses
    }

    /// How many inputs were skipped, if any were.
    fn skipped(&self) -> Option<String> {
        let skipped = self.skipped_files.filter(|skipped| *skipped > 0)?;
        let all = counted((skipped + self.read_files) as u64, "file");
        Some(format!("{skipped} of {all} skipped"))
    }

    /// How many inputs were not read to their end, if any were not.
    fn partial(&self) -> Option<String> {
        let partial = counted(self.partial_inputs, "input");
        (self.partial_inputs > 0).then(|| format!("{partial} not read to the end"))
    }

    fn records_line(&self) -> String {
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
        if let Some(comments @ 1..) = self.comments {
            let _ = write!(records, ", {}", counted(comments, "comment line"));
        }
        if let Some(repeated) = self.repeated {
            let _ = write!(records, ", {} with duplicates", counted(repeated, "key"));
        }
        if let Some(found @ 1..) = self.known_state_duplicates {
            let _ = write!(records, ", {} by --known-state", grouped(found));
        }
        if let Some(known) = self.known {
            let _ = write!(records, "; {} known", counted(known, self.noun));
            if let Some(unjudged) = self.known_unjudged.filter(|unjudged| *unjudged > 0) {
                let _ = write!(records, ", {} of them unjudged", grouped(unjudged));
            }
        }
        records
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
        if let Some(most) = self.expected_false_duplicates_high {
            let most = short(most);
            let _ = write!(
                text,
                "; at most {most} fresh {}s expected to be mistaken for duplicates",
                self.noun
            );
        }
        text
    }

    /// The window, its granule, the range of the clock and the expired keys.
    fn window_line(&self, window: &WindowConfig, config: &DedupConfig) -> String {
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
        if let Some((from, to)) = self.clock {
            let time = |tick: i64| rfc3339(tick.saturating_mul(window.resolution as i64));
            let _ = match &window.clock {
                // The year or the day is unknown.
                ClockSource::Field(fields) if fields.is_relative() => {
                    let ticks = to.saturating_sub(from).unsigned_abs();
                    let span = length(ticks.saturating_mul(window.resolution));
                    write!(text, "; clock over {span} {unit}")
                }
                _ => write!(text, "; clock from {} to {}", time(from), time(to)),
            };
        }
        if let Some(expired) = self.expired.filter(|expired| *expired > 0) {
            let _ = write!(text, "; {} expired", counted(expired, "key"));
        }
        text
    }

    /// How many records were too late for the window, if any were, and what to do about it.
    fn late_records(&self) -> Option<String> {
        let late = self.late.filter(|late| *late > 0)?;
        let late = counted(late, self.noun);
        Some(format!("{late} too late, {}", self.late_fate))
    }

    /// How many records were further ahead of the clock than allowed, if any were.
    fn ahead_records(&self) -> Option<String> {
        let ahead = self.ahead.filter(|ahead| *ahead > 0)?;
        let ahead = counted(ahead, self.noun);
        Some(format!(
            "{ahead} too far ahead (--max-advance), {}",
            self.ahead_fate
        ))
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
            "about {} keys in the busiest window; where they came fastest, 1 duplicate in 1000 is \
             missed at an age of {} {unit}; -m {} is enough for all of it",
            grouped(keys),
            short(age),
            format_bytes(memory),
        ))
    }

    /// Of which duplicates the errors are those: none are known of records without a verdict.
    fn judged(&self) -> String {
        let inside = if self.window.is_some() {
            " inside the window"
        } else {
            ""
        };
        match self.unkeyed + self.rejected {
            0 => inside.to_owned(),
            _ => format!(" of the judged {}s{inside}", self.noun),
        }
    }

    /// Whether duplicates were missed, and from which age on they are.
    fn errors_line(&self, judged: &str) -> String {
        let age = match (self.miss_age, self.miss_age_since) {
            (Some(age), Some(since)) => {
                let age = short(age);
                Some(format!(
                    "1 duplicate in 1000 is missed at an age of {age} distinct keys since it was {since}"
                ))
            }
            (_, None) | (None, _) => None,
        };
        if let Some(0) = self.evictions {
            // A mistaken record is not recorded, and the record that it was taken for expires.
            let unless = if self.window.is_some() && !self.renews_keys {
                ", unless its first record was itself mistaken for a duplicate"
            } else {
                ""
            };
            let age = age.map_or(String::new(), |age| format!(" (once full, {age})"));
            return format!("no evictions: no duplicate{judged} was missed{unless}{age}");
        }
        let missed = self.missed(judged);
        let errors = match self.evictions {
            Some(evictions) => format!("{}: {missed}", counted(evictions, "eviction")),
            None => format!("estimated from samples: {missed}, {}", self.mistaken()),
        };
        match age {
            Some(age) => format!("{errors}; {age}"),
            None => errors,
        }
    }

    /// How many duplicates were missed, and which fraction of all, as far as that is known.
    fn missed(&self, judged: &str) -> String {
        let missed = self.errors.missed_duplicates;
        let rates = match [
            self.estimated_fnr,
            self.estimated_fnr_low,
            self.estimated_fnr_high,
        ] {
            [Some(rate), Some(low), Some(high)] if says_much(missed) => {
                let percent = |rate: f64| short(rate * 100.0);
                if missed.is_exact() {
                    format!(" ({} % of all)", percent(rate))
                } else {
                    format!(" ({} to {} % of all)", percent(low), percent(high))
                }
            }
            [_, _, _] => String::new(),
        };
        let all = self.errors.fresh;
        let missed = in_words(missed, all, &format!("duplicate{judged}"), "missed");
        format!("{missed}{rates}")
    }

    /// How many fresh records were taken for duplicates, as far as that is known.
    fn mistaken(&self) -> String {
        let noun = format!("fresh {}", self.noun);
        let mistaken = self.errors.false_duplicates;
        in_words(
            mistaken,
            self.errors.duplicates,
            &noun,
            "mistaken for duplicates",
        )
    }
}

/// Whether the bounds of an estimate are so close that it is worth printing.
const fn says_much(estimate: Estimate) -> bool {
    estimate.high <= estimate.low.saturating_mul(10)
}

/// An estimated number of `thing`s of which something `happened` to each, with its bounds if so
/// many verdicts do not exceed them.
fn in_words(estimate: Estimate, verdicts: u64, thing: &str, happened: &str) -> String {
    let Estimate { value, low, high } = estimate;
    // The plural goes to the first word that is no adjective.
    let things = |number: u64| {
        let (noun, rest) = match thing.strip_prefix("duplicate") {
            Some(rest) => ("duplicate", rest),
            None => (thing, ""),
        };
        let plural = if number == 1 { "" } else { "s" };
        format!("{noun}{plural}{rest}")
    };
    let (low, high) = (grouped(low), grouped(high));
    if estimate.is_exact() {
        format!("{} {} {happened}", grouped(value), things(value))
    } else if estimate.is_unknown() {
        let bound =
            bounded(estimate, verdicts).map_or(String::new(), |_| format!(", at most {high}"));
        format!("unknown how many {} were {happened}{bound}", things(0))
    } else if says_much(estimate) {
        let value = grouped(value);
        format!("about {value} ({low} to {high}) {} {happened}", things(0))
    } else {
        format!("at least {low}, at most {high} {} {happened}", things(0))
    }
}

/// A number of things with the right ending.
fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}
