//! The summary of a run: a few lines for people.

use std::fmt::Write as _;

use echoless::spec::format_bytes;
use echoless_audit::Estimate;
use echoless_records::number::{decimal_bytes, grouped, short};
use echoless_records::time::calendar::rfc3339;

use super::stats::{
    Stats, ahead_fate, bounded, filter_text, has_stale_header, late_fate, since, unit_of,
};
use crate::config::{ClockSource, Content, WindowConfig};
use crate::dedup::exact::ExactCounts;
use crate::dedup::observers::Words;

impl Stats<'_> {
    /// Three to five lines for people, each beginning with the command's name.
    pub(crate) fn summary(&self) -> String {
        let words = self.observers.words(self.counts);
        let mut lines = vec![self.records_line(&words)];
        let skipped = words.skipped.as_ref();
        lines.extend(skipped.map(|skipped| format!("{skipped}: their content was seen before")));
        lines.extend(self.partial());
        if has_stale_header(self.config, self.counts) {
            lines.push(
                "the file header is a copy: its file length and number of records are wrong \
                 (--fix-header corrects them)"
                    .into(),
            );
        }
        lines.extend(words.lines);
        match self.exact {
            Some(exact) => lines.push(exact_line(exact)),
            None => lines.push(self.filter_line()),
        }
        if self.config.little_memory {
            let little = "the filter has less than the default memory: little is left (-m SIZE)";
            lines.push(little.into());
        }
        let window = self.config.window.as_ref();
        lines.extend(window.map(|window| self.window_line(window)));
        lines.extend(self.late_records());
        lines.extend(self.ahead_records());
        if self.exact.is_none() {
            lines.push(self.errors_line(&self.judged()));
        }
        lines.extend(self.busiest_line());
        lines.extend(words.report);
        with_name(&lines)
    }

    /// The report of `--report`, each line beginning with the command's name; empty without it.
    pub(crate) fn requested_report(&self) -> String {
        with_name(&self.observers.words(self.counts).report)
    }

    /// What was read, how it was judged and what was lost, as a line that begins with the command's
    /// name.
    pub(crate) fn line(&self) -> String {
        let words = self.observers.words(self.counts);
        let mut parts = vec![self.records_line(&words)];
        parts.extend(self.losses());
        parts.extend(words.skipped);
        parts.extend(self.partial());
        if has_stale_header(self.config, self.counts) {
            parts.push("the file header is a copy (--fix-header)".into());
        }
        with_name(&[parts.join("; ")])
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

    /// How many inputs were not read to their end, if any were not.
    fn partial(&self) -> Option<String> {
        let inputs = self.counts.partial_inputs;
        let partial = counted(inputs, "input");
        (inputs > 0).then(|| format!("{partial} not read to the end"))
    }

    fn records_line(&self, words: &Words) -> String {
        let counts = self.counts;
        let mut records = format!(
            "{} ({}) in {:.2} s",
            counted(counts.records, self.noun()),
            decimal_bytes(counts.bytes_in as f64),
            self.seconds,
        );
        // A diagnosis tells which of the duplicates of its wide key are copies.
        if !self.config.content.is_diagnosed() {
            let _ = write!(
                records,
                ": {} fresh, {} ({:.2} %)",
                grouped(counts.fresh()),
                counted(counts.duplicates, "duplicate"),
                counts.duplicates as f64 * 100.0 / counts.records.max(1) as f64,
            );
        }
        if counts.unkeyed > 0 {
            let _ = write!(records, ", {} passed unjudged", grouped(counts.unkeyed));
        }
        if counts.rejected > 0 {
            let _ = write!(records, ", {} rejected", grouped(counts.rejected));
        }
        if counts.comments > 0 {
            let _ = write!(records, ", {}", counted(counts.comments, "comment line"));
        }
        records.push_str(&words.records);
        if let Some(known) = self.known() {
            let _ = write!(records, "; {} known", counted(known, self.noun()));
            if counts.known_unjudged > 0 {
                let unjudged = grouped(counts.known_unjudged);
                let _ = write!(records, ", {unjudged} of them unjudged");
            }
        }
        records
    }

    /// What one record is called.
    fn noun(&self) -> &'static str {
        self.config.content.noun()
    }

    /// The filter, how full it is, and the false duplicates that it expects.
    fn filter_line(&self) -> String {
        let mut text = format!("filter {}", filter_text(self.config));
        if let (Some(kernel), Some(huge)) = (self.report.kernel, self.huge_page_bytes()) {
            let kernel = kernel.name();
            let pages = if huge > 0 { "huge" } else { "small" };
            let _ = write!(text, " ({pages} pages, {kernel} kernel)");
        }
        if let Some(fill) = self.report.fill() {
            let _ = write!(text, ", fill {:.1} %", fill * 100.0);
        }
        if let Some(most) = self.errors.most_false_duplicates {
            let most = short(most);
            let _ = write!(
                text,
                "; at most {most} fresh {}s expected to be mistaken for duplicates",
                self.noun()
            );
        }
        text
    }

    /// The window, its granule, the range of the clock and the expired keys.
    fn window_line(&self, window: &WindowConfig) -> String {
        let config = self.config;
        let unit = unit_of(window, config);
        let length = |units| match window.in_units(units) {
            1.0 => format!("1 {}", unit.trim_end_matches('s')),
            whole if whole.fract() == 0.0 => format!("{} {unit}", grouped(whole as u64)),
            length => format!("{} {unit}", short(length)),
        };
        let mut text = format!(
            "window of {}, forgotten at most {} later",
            length(window.span.units()),
            length(window.granule(&config.filter)),
        );
        if let Content::Packets(packets) = &config.content
            && let Some(second) = packets.second
        {
            let _ = write!(text, ", and of {} packets", grouped(second));
        }
        if let Some((from, to)) = self.counts.clock {
            let time = |tick: i64| rfc3339(tick.saturating_mul(window.resolution as i64));
            let _ = match &window.clock {
                // The year or the day is unknown.
                ClockSource::Field(fields) if fields.is_relative() => {
                    let ticks = to.saturating_sub(from).unsigned_abs();
                    let span = length(ticks.saturating_mul(window.resolution));
                    write!(text, "; clock over {span}")
                }
                _ => write!(text, "; clock from {} to {}", time(from), time(to)),
            };
        }
        if let Some(expired) = self.report.expired.filter(|expired| *expired > 0) {
            let _ = write!(text, "; {} expired", counted(expired, "key"));
        }
        text
    }

    /// How many records were too late for the window, if any were, and what to do about it.
    fn late_records(&self) -> Option<String> {
        let window = self.config.window.as_ref()?;
        let late = counted(self.counts.late, self.noun());
        let fate = late_fate(window, self.config);
        (self.counts.late > 0).then(|| format!("{late} too late, {fate}"))
    }

    /// How many records were further ahead of the clock than allowed, if any were.
    fn ahead_records(&self) -> Option<String> {
        let window = self.config.window.as_ref()?;
        let ahead = counted(self.counts.ahead, self.noun());
        let fate = ahead_fate(window);
        (self.counts.ahead > 0).then(|| format!("{ahead} too far ahead (--max-advance), {fate}"))
    }

    /// The busiest window, and the memory that would be enough for it.
    fn busiest_line(&self) -> Option<String> {
        let (busiest, age) = (self.busiest?, self.busiest_miss_age()?);
        let (keys, bytes) = (busiest.keys, busiest.memory_bytes()?);
        let unit = unit_of(self.config.window.as_ref()?, self.config);
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
        let inside = if self.config.window.is_some() {
            " inside the window"
        } else {
            ""
        };
        match self.counts.unkeyed + self.counts.rejected {
            0 => inside.to_owned(),
            _ => format!(" of the judged {}s{inside}", self.noun()),
        }
    }

    /// Whether duplicates were missed, and from which age on they are.
    fn errors_line(&self, judged: &str) -> String {
        let age = self.miss_age().zip(self.report.miss_age).map(|(age, miss)| {
            let (age, since) = (short(age), since(miss));
            format!(
                "1 duplicate in 1000 is missed at an age of {age} distinct keys since it was {since}"
            )
        });
        if let Some(0) = self.evictions {
            // A mistaken record is not recorded, and the record that it was taken for expires.
            let renews_keys = self.config.filter.facts().renews_keys;
            let unless = if self.config.window.is_some() && !renews_keys {
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
        let rates = match self.missed_rates() {
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
        let noun = format!("fresh {}", self.noun());
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

fn exact_line(exact: ExactCounts) -> String {
    let ExactCounts { suspects, passes } = exact;
    if passes == 0 {
        return "exact: ended before the keys that are compared were found".into();
    }
    let keys = counted(suspects, "key");
    format!("exact: some {keys} compared by a digest of 128 bits, in {passes} passes")
}

/// Lines that begin with the command's name.
fn with_name(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("echoless: {line}\n"))
        .collect()
}

/// A number of things with the right ending.
pub(in crate::dedup) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}
