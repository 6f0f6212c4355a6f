//! The busiest window of a run: how much memory would have been enough for it.

use echoless::Report;

/// The busiest window of a run, and the filter that had to remember it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Busiest {
    pub(super) keys: u64,
    /// The shortest part of a window in which keys came so fast that 1 in 1000 of the first of them
    /// was evicted.
    pub(super) fastest: Option<f64>,
    pub(super) report: Report,
    /// The unit of the memory of the filter.
    pub(super) memory_unit: u64,
}

impl Busiest {
    /// The part of the window after which 1 in 1000 of its keys is evicted where keys come fastest;
    /// `None` if that does not happen before its end.
    pub(super) fn miss_fraction(self) -> Option<f64> {
        let evenly = self.report.miss_age?.in_window(self.keys) / self.keys as f64;
        let evenly = Some(evenly).filter(|fraction| *fraction < 1.0)?;
        Some(self.fastest.map_or(evenly, |fastest| fastest.min(evenly)))
    }

    /// The memory in which that happens at the end of the window: the age at which misses begin is
    /// proportional to the memory.
    pub(super) fn memory_bytes(self) -> Option<u64> {
        let bytes_per_key = self.report.tally.memory_bytes as f64 / self.report.miss_age?.age;
        let bytes = (self.keys as f64 * bytes_per_key).ceil() as u64;
        Some(bytes.max(1).next_multiple_of(self.memory_unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use echoless::{AgeOrigin, MissAge};

    /// 4 KiB remember 400 keys.
    fn busiest(keys: u64, fastest: Option<f64>) -> Busiest {
        let mut report = Report::default();
        report.tally.memory_bytes = 4096;
        report.miss_age = Some(MissAge::new(400.0, AgeOrigin::Recorded));
        Busiest {
            keys,
            fastest,
            report,
            memory_unit: 4096,
        }
    }

    #[test]
    fn memory_is_in_whole_units() {
        for (keys, bytes) in [(0, 4096), (7, 4096), (400, 4096), (401, 8192)] {
            assert_eq!(busiest(keys, None).memory_bytes(), Some(bytes), "{keys}");
        }
    }

    #[test]
    fn the_age_is_that_of_the_fastest_keys() {
        assert_eq!(busiest(400, None).miss_fraction(), None);
        assert_eq!(busiest(800, None).miss_fraction(), Some(0.5));
        assert_eq!(busiest(800, Some(0.01)).miss_fraction(), Some(0.01));
        // Keys that come evenly, whose sample varies.
        assert_eq!(busiest(800, Some(0.51)).miss_fraction(), Some(0.5));
        assert_eq!(busiest(390, Some(0.9)).miss_fraction(), None);
    }
}
