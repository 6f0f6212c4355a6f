//! The filter that judges: the one place where the engine's filters are chosen.

use echoless::memory::LINE_BYTES;
use echoless::spec::{Form, format_bytes};
use echoless::{FilterSpec, FingerprintSpec, SpecError};

use super::sizing::DEFAULT_MEMORY;

/// What is asked of the filter.
#[derive(Debug, Clone)]
pub(crate) enum FilterChoice {
    /// Lines of fingerprints, which know what they promise.
    Fingerprints(FingerprintSpec),
    /// Any other filter, its memory said.
    Named(FilterSpec),
}

impl FilterChoice {
    /// Lines of fingerprints in so much memory.
    pub(crate) fn fingerprints(memory: Option<u64>) -> FingerprintSpec {
        FingerprintSpec::new(memory.unwrap_or(DEFAULT_MEMORY))
    }

    /// The filter of that name. Its memory comes from either side, or from both if they agree.
    ///
    /// # Errors
    /// [`SpecError`] if they do not.
    pub(crate) fn named(spec: FilterSpec, memory: Option<u64>) -> Result<Self, SpecError> {
        let spec = match (spec.memory, memory) {
            (Some(own), Some(asked)) if own != asked => {
                let allowed = format!("{}, which the filter names itself", format_bytes(own));
                return Err(SpecError::new("memory", format_bytes(asked), allowed));
            }
            (Some(_), _) => spec,
            (None, asked) => spec.memory(asked.unwrap_or(DEFAULT_MEMORY)),
        };
        Ok(match spec.fingerprints() {
            Some(spec) => Self::Fingerprints(spec),
            None => Self::Named(spec),
        })
    }

    /// How many threads can have a part of the work. What cannot be built at all is refused when it is.
    pub(crate) fn most_threads(&self) -> u64 {
        match self {
            Self::Fingerprints(spec) => spec.geometry().map_or(1, |shape| shape.lines),
            Self::Named(spec) if spec.form == Form::Line => spec.memory.unwrap_or(0) / LINE_BYTES,
            // All of its threads share the reading, and one at a time has the filter.
            Self::Named(_) => u64::MAX,
        }
    }
}
