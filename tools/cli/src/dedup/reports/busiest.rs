//! The busiest window of a run: how much memory would have been enough for it.

use echoless::Report;

/// The busiest window of a run, and the filter that had to remember it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Busiest {
    pub(super) keys: u64,
    pub(super) report: Report,
}

impl Busiest {
    /// The part of the window after which 1 in 1000 of its keys is evicted; `None` if that does not
    /// happen before its end.
    pub(super) fn miss_fraction(self) -> Option<f64> {
        let fraction = self.report.miss_age?.in_window(self.keys) / self.keys as f64;
        Some(fraction).filter(|fraction| *fraction < 1.0)
    }

    /// The memory in which that happens at the end of the window: the age at which misses begin is
    /// proportional to the memory.
    pub(super) fn memory_bytes(self) -> Option<u64> {
        let bytes_per_key = self.report.tally.memory_bytes as f64 / self.report.miss_age?.age;
        Some((self.keys as f64 * bytes_per_key).ceil() as u64)
    }
}
