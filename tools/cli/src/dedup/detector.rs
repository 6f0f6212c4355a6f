//! The filter that judges, and the witness that watches it: the one place where the engine's filters are chosen and built.

use echoless::{
    Audit, BuildError, Filter, FingerprintLines, FingerprintSpec, KeyHash, Replacement, Report,
    Verdicts,
};

/// What is asked of the filter.
#[derive(Debug, Clone)]
pub(crate) struct FilterChoice {
    pub(crate) memory_bytes: u64,
    pub(crate) max_fpr: f64,
    pub(crate) replacement: Replacement,
    /// `None` takes the best of this machine.
    pub(crate) kernel: Option<echoless::Kernel>,
    pub(crate) seed: u64,
}

/// Judges key hashes in the order of the stream.
#[derive(Debug)]
pub(crate) struct Detector {
    filter: FingerprintLines,
    audit: Audit,
}

impl Detector {
    /// Builds the filter that was asked for.
    pub(crate) fn build(choice: &FilterChoice) -> Result<Self, BuildError> {
        let mut spec = FingerprintSpec::new(choice.memory_bytes)
            .max_fpr(choice.max_fpr)
            .replacement(choice.replacement);
        if let Some(kernel) = choice.kernel {
            spec = spec.kernel(kernel);
        }
        Ok(Self {
            filter: spec.build()?,
            audit: Audit::new(),
        })
    }

    /// Tests and records a batch.
    pub(crate) fn judge(&mut self, hashes: &[KeyHash], verdicts: &mut Verdicts) {
        self.filter.observe(hashes, verdicts);
        self.audit.observe(hashes, verdicts);
    }

    /// The filter's account of itself.
    pub(crate) fn report(&self) -> Report {
        self.filter.report()
    }

    /// An unbiased estimate of how many duplicates were called fresh.
    pub(crate) fn estimated_missed_duplicates(&self) -> u64 {
        self.audit.estimated_missed_duplicates()
    }
}
