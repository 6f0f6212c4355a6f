//! The filter that judges: the one place where the engine's filters are chosen.

use echoless::{FingerprintSpec, Kernel, Replacement};

/// What is asked of the filter.
#[derive(Debug, Clone)]
pub(crate) struct FilterChoice {
    pub(crate) memory_bytes: u64,
    pub(crate) max_fpr: f64,
    pub(crate) replacement: Replacement,
    /// `None` takes the best of this machine.
    pub(crate) kernel: Option<Kernel>,
}

impl FilterChoice {
    /// What to build.
    pub(crate) fn spec(&self) -> FingerprintSpec {
        let spec = FingerprintSpec::new(self.memory_bytes)
            .max_fpr(self.max_fpr)
            .replacement(self.replacement);
        match self.kernel {
            Some(kernel) => spec.kernel(kernel),
            None => spec,
        }
    }
}
