//! A report of fixed layout.

use echoless::Report;

/// What a count is that the filter does not keep. A rate or an age that is unknown is not a number.
pub const UNKNOWN_COUNT: u64 = u64::MAX;

/// The report of a filter, in a layout that C can read. New fields are added at the end.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct ReportFields {
    /// The bytes of this struct that the caller knows; set by the caller.
    pub size: usize,
    /// The memory of the filter's state, in bytes.
    pub memory_bytes: u64,
    /// The keys observed, fresh and duplicate.
    pub observed: u64,
    /// The keys reported as fresh.
    pub fresh: u64,
    /// The keys evicted, in a filter with a window before they expired. While this is 0, no
    /// duplicate of a recorded key was missed.
    pub evictions: u64,
    /// The keys that were forgotten because their window was over.
    pub expired: u64,
    /// The fraction of the cells (bits, counters or slots) that is occupied, 0 to 1.
    pub fill: f64,
    /// The probability that a key that was never seen would be reported as a duplicate now.
    pub expected_fpr: f64,
    /// The highest `expected_fpr`, that with every cell occupied, of a filter with a window.
    pub most_fpr: f64,
    /// An upper bound of the expected number of keys so far that were reported as duplicates but
    /// never seen before.
    pub expected_false_duplicates: f64,
    /// The age, in distinct keys, up to which at most 1 duplicate in 1000 is missed.
    pub miss_age: f64,
    /// The window in ticks, 0 without one.
    pub window_ticks: u64,
}

impl From<&Report> for ReportFields {
    fn from(report: &Report) -> Self {
        let rate = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let count = |value: Option<u64>| value.unwrap_or(UNKNOWN_COUNT);
        let tally = report.tally;
        Self {
            size: size_of::<Self>(),
            memory_bytes: tally.memory_bytes,
            observed: count(tally.observed),
            fresh: count(tally.fresh),
            evictions: count(tally.evictions),
            expired: count(report.expired),
            fill: rate(report.fill()),
            expected_fpr: rate(report.expected_fpr),
            most_fpr: rate(report.most_fpr),
            expected_false_duplicates: rate(report.expected_false_duplicates),
            // How many keys are in the window is not known here.
            miss_age: rate(report.miss_age.map(|age| age.least)),
            window_ticks: report.window.map_or(0, |window| window.ticks),
        }
    }
}
