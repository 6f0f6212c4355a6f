//! What a filter tells of itself at the end of a run: much, if it is one of fingerprint lines; else its memory and its load.

use echoless::spec::format_bytes;
use echoless::{Filter, FilterSpec, FingerprintLines, Replacement, Report};

/// A filter's filter_summary of itself.
#[derive(Debug, Clone)]
pub(crate) enum FilterSummary {
    Fingerprints {
        report: Report,
        replacement: Replacement,
    },
    Named {
        spec: FilterSpec,
        memory_bytes: u64,
        load: Option<f64>,
    },
}

impl FilterSummary {
    /// That of fingerprint lines, whole or in partitions.
    ///
    /// # Panics
    /// If there is no partition.
    pub(crate) fn of_fingerprints(partitions: &[FingerprintLines]) -> Self {
        Self::Fingerprints {
            report: echoless::report_of(partitions),
            replacement: partitions[0].replacement(),
        }
    }

    /// That of any filter, whole or in partitions.
    pub(crate) fn of_named(spec: FilterSpec, partitions: &[Box<dyn Filter>]) -> Self {
        let memory_bytes = partitions.iter().map(Filter::memory_bytes).sum();
        let weighted = partitions
            .iter()
            .map(|part| Some(part.load()? * part.memory_bytes() as f64));
        let load = weighted.sum::<Option<f64>>();
        Self::Named {
            spec,
            memory_bytes,
            load: load.map(|load| load / memory_bytes as f64),
        }
    }

    /// The name under which `--filter` gives this very filter.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Fingerprints {
                report,
                replacement,
            } => {
                let name = match replacement {
                    Replacement::Fifo => "qqht",
                    Replacement::Lru => "rowlru",
                    Replacement::Qqhtd => "qqhtd",
                };
                let (bits, slots) = (report.slot_bits, 512 / report.slot_bits);
                let memory = format_bytes(report.memory_bytes);
                format!("{name}:slots={slots},bits={bits},form=line,memory={memory}")
            }
            Self::Named { spec, .. } => spec.to_string(),
        }
    }

    /// What only fingerprint lines can tell.
    pub(crate) const fn report(&self) -> Option<&Report> {
        match self {
            Self::Fingerprints { report, .. } => Some(report),
            Self::Named { .. } => None,
        }
    }

    pub(crate) const fn memory_bytes(&self) -> u64 {
        match self {
            Self::Fingerprints { report, .. } => report.memory_bytes,
            Self::Named { memory_bytes, .. } => *memory_bytes,
        }
    }

    /// The share of the filter's cells that hold something, 0 to 1.
    pub(crate) const fn fill(&self) -> Option<f64> {
        match self {
            Self::Fingerprints { report, .. } => Some(report.fill),
            Self::Named { load, .. } => *load,
        }
    }
}
