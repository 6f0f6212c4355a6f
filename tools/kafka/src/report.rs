//! What a member did, and the state of the filters that it has, as text for a log.

use std::fmt;

use echoless::{AgeOrigin, MissAge, Report};
use echoless_metrics::Fields;
use serde::Serialize;
use serde_json::json;

/// What a member has done since it started, for all partitions that it had. Only transactions that
/// are committed count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) fresh: u64,
    pub(crate) duplicates: u64,
    /// Records that passed unjudged, because they have no key.
    pub(crate) unkeyed: u64,
    /// Records that passed unjudged, because they are older than the window.
    pub(crate) late: u64,
    /// Judged records whose time is further ahead of the clock than allowed.
    pub(crate) ahead: u64,
    /// Records that an output did not accept, in the topic of rejected ones.
    pub(crate) rejected: u64,
    /// Records that passed without a filter.
    pub(crate) copied: u64,
    /// Records that were read for the filter alone.
    pub(crate) again: u64,
    pub(crate) transactions: u64,
    /// Records of the sample of keys whose key is in another partition, too.
    pub(crate) shared_keys: u64,
}

impl Counts {
    /// The records that were judged, or passed all the same.
    const fn records(&self) -> u64 {
        self.fresh + self.duplicates + self.unkeyed + self.late
    }

    /// These and those of the filters, under the names of the statistics of `echoless dedup`.
    pub(crate) fn fields(&self, filters: Option<&Filters>) -> Fields {
        let mut fields = json!(self);
        fields["records"] = self.records().into();
        if let Some(filters) = filters {
            fields["partitions"] = filters.partitions.into();
            fields["lag"] = filters.lag.into();
            fields["fill"] = filters.fill().into();
            fields["evictions"] = filters.evictions().into();
            fields["expected_false_duplicates_high"] = filters.mistaken().into();
            let bytes = filters
                .reports
                .iter()
                .map(|report| report.tally.memory_bytes);
            fields["memory_bytes"] = bytes.sum::<u64>().into();
        }
        fields.as_object().cloned().unwrap_or_default()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fresh,
            duplicates,
            unkeyed,
            late,
            ahead,
            rejected,
            copied,
            again,
            transactions,
            shared_keys,
        } = self;
        if *copied > 0 {
            write!(out, "{copied} records copied, {transactions} transactions")?;
            return match rejected {
                0 => Ok(()),
                _ => write!(out, "; {rejected} rejected"),
            };
        }
        let records = self.records();
        let percent = *duplicates as f64 * 100.0 / records.max(1) as f64;
        write!(
            out,
            "{records} records: {fresh} fresh, {duplicates} duplicates ({percent:.2} %), {unkeyed} \
             passed unjudged, {late} too late, passed on; {again} read again, {transactions} \
             transactions"
        )?;
        if *ahead > 0 {
            write!(out, "; {ahead} too far ahead")?;
        }
        if *rejected > 0 {
            write!(out, "; {rejected} rejected")?;
        }
        if *shared_keys > 0 {
            write!(
                out,
                "; {shared_keys} of a sample with a key of another partition"
            )?;
        }
        Ok(())
    }
}

/// The state of the filters of a member's partitions, each since it began, on any member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filters {
    /// How many partitions the member has.
    pub(crate) partitions: usize,
    /// The offsets from where the group is to the ends of the partitions; `None` if the broker did
    /// not answer.
    pub(crate) lag: Option<i64>,
    pub(crate) reports: Vec<Report>,
}

impl Filters {
    /// A bound of the expected number of fresh records that were mistaken for duplicates.
    fn mistaken(&self) -> Option<f64> {
        let bounds = self.reports.iter().map(|report| {
            let by_rate = || {
                let rate = report.most_fpr?;
                Some(report.tally.fresh? as f64 * rate / (1.0 - rate))
            };
            report.expected_false_duplicates.or_else(by_rate)
        });
        bounds.sum()
    }

    /// The fill of the fullest one.
    fn fill(&self) -> Option<f64> {
        let fills = self.reports.iter().filter_map(Report::fill);
        fills.reduce(f64::max)
    }

    fn evictions(&self) -> Option<u64> {
        let evictions = self.reports.iter().map(|report| report.tally.evictions);
        evictions.sum()
    }

    /// Duplicates that were missed. Each needs an eviction, or a key that was mistaken before.
    fn missed(&self) -> String {
        let inside = match self.reports.iter().any(|report| report.window.is_some()) {
            true => " inside the window",
            false => "",
        };
        match self.evictions() {
            None => format!("unknown how many duplicates{inside} were missed"),
            Some(0) => format!("no evictions: no duplicate{inside} was missed"),
            Some(evictions) => {
                format!("{evictions} evictions: at most as many duplicates{inside} were missed")
            }
        }
    }
}

impl fmt::Display for Filters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} partitions", self.partitions)?;
        if let Some(lag) = self.lag {
            write!(out, ", lag {lag}")?;
        }
        let [first, ..] = &self.reports[..] else {
            return Ok(());
        };
        if let Some(fill) = self.fill() {
            write!(out, ", fill at most {:.1} %", fill * 100.0)?;
        }
        write!(out, "; {}", self.missed())?;
        if let Some(MissAge { age, since, .. }) = first.miss_age {
            let since = match since {
                AgeOrigin::LastSeen => "last seen",
                AgeOrigin::Recorded => "recorded",
            };
            write!(
                out,
                "; once a filter is full, 1 in 1000 at an age of {age:.1e} distinct keys since it \
                 was {since}"
            )?;
        }
        match self.mistaken() {
            Some(most) => write!(
                out,
                "; at most {most:.1e} fresh records expected to be mistaken for duplicates"
            ),
            None => write!(
                out,
                "; unknown how many fresh records were mistaken for duplicates"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use echoless::{Filter, FilterSpec, KeyHasher};

    use super::*;

    fn report(spec: &str, keys: u64) -> Report {
        let mut filter = spec.parse::<FilterSpec>().unwrap().build().unwrap();
        for key in 0..keys {
            filter.observe_one(KeyHasher::seeded(0).hash_u64(key));
        }
        filter.report()
    }

    fn text(specs: &[(&str, u64)], lag: Option<i64>) -> String {
        let reports: Vec<Report> = specs
            .iter()
            .map(|(spec, keys)| report(spec, *keys))
            .collect();
        let partitions = reports.len();
        let filters = Filters {
            partitions,
            lag,
            reports,
        };
        filters.to_string()
    }

    #[test]
    fn counts_are_one_line() {
        let counts = Counts {
            fresh: 6,
            duplicates: 3,
            unkeyed: 2,
            late: 1,
            again: 5,
            transactions: 4,
            ..Counts::default()
        };
        let line = "12 records: 6 fresh, 3 duplicates (25.00 %), 2 passed unjudged, 1 too late, \
                    passed on; 5 read again, 4 transactions";
        assert_eq!(counts.to_string(), line);
        let shared_keys = 7;
        let counts = Counts {
            shared_keys,
            ..counts
        };
        let more = "; 7 of a sample with a key of another partition";
        assert_eq!(counts.to_string(), format!("{line}{more}"));
        let copied = Counts {
            copied: 9,
            transactions: 2,
            ..Counts::default()
        };
        assert_eq!(copied.to_string(), "9 records copied, 2 transactions");
    }

    #[test]
    fn filters_are_added_up() {
        // 1024 slots for 10,000 keys, and for 100.
        let small = "fingerprint:bits=32,memory=4KiB";
        let full = report(small, 10_000).tally.evictions.unwrap();
        assert!(full > 8_900);
        let found = text(&[(small, 10_000), (small, 100)], Some(17));
        let begin = "2 partitions, lag 17, fill at most 100.0 %; ";
        assert!(found.starts_with(begin), "{found}");
        let missed = format!("; {full} evictions: at most as many duplicates were missed; once a");
        assert!(found.contains(&missed), "{found}");
        let mistaken = [10_000, 100].map(|keys| {
            let report = report(small, keys);
            report.expected_false_duplicates.unwrap()
        });
        let mistaken = format!("; at most {:.1e} fresh", mistaken[0] + mistaken[1]);
        assert!(found.contains(&mistaken), "{found}");
    }

    #[test]
    fn a_window_bounds_the_false_duplicates_by_its_highest_rate() {
        let spec = "clocked:window=100,refresh=false,memory=64KiB";
        let found = text(&[(spec, 1_000)], None);
        let begin = "1 partitions, fill at most";
        assert!(found.starts_with(begin), "{found}");
        let missed = "no evictions: no duplicate inside the window was missed; ";
        assert!(found.contains(missed), "{found}");
        let report = report(spec, 1_000);
        let (fresh, rate) = (report.tally.fresh.unwrap(), report.most_fpr.unwrap());
        let mistaken = format!("; at most {:.1e} fresh", fresh as f64 * rate);
        assert!(found.contains(&mistaken), "{found}");
        assert_eq!(text(&[], Some(0)), "0 partitions, lag 0");
    }

    #[test]
    fn all_is_in_the_metrics() {
        let counts = Counts {
            fresh: 6,
            duplicates: 3,
            again: 5,
            ..Counts::default()
        };
        let filters = Filters {
            partitions: 2,
            lag: Some(17),
            reports: vec![report("fingerprint:bits=32,memory=4KiB", 100)],
        };
        let text = echoless_metrics::text(&counts.fields(Some(&filters)));
        for line in [
            "echoless_records_total 9",
            "echoless_fresh_total 6",
            "echoless_duplicates_total 3",
            "echoless_again_total 5",
            "echoless_evictions_total 0",
            "echoless_partitions 2.0",
            "echoless_lag 17.0",
            "echoless_memory_bytes 4096.0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let fill = format!("echoless_fill {}", 100.0 / 1024.0);
        assert!(text.contains(&fill), "{text}");
        // All that it counts is a metric.
        let fields = counts.fields(None);
        for name in fields.keys() {
            assert!(
                text.contains(&format!("\necholess_{name}_total ")),
                "{name}"
            );
        }
    }

    #[test]
    fn what_a_filter_does_not_count_is_unknown() {
        echoless_papers::register();
        let found = text(&[("rlbsbf:k=2,form=line,memory=64KiB", 1_000)], None);
        let missed = "; unknown how many duplicates were missed";
        assert!(found.contains(missed), "{found}");
    }
}
