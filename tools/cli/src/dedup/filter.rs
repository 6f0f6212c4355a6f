//! The filter of a run: its memory, and how many threads can share it.

use echoless::spec::format_bytes;
use echoless::{FilterSpec, SpecError};

use super::memory_size::default_memory;

/// The filter with the memory of `-m`, or that of its specification, or the default.
///
/// # Errors
/// [`SpecError`] if the option and the specification disagree.
pub(crate) fn with_memory(spec: FilterSpec, option: Option<u64>) -> Result<FilterSpec, SpecError> {
    match (spec.memory, option) {
        (Some(own), Some(asked)) if own != asked => {
            let allowed = format!("{}, as in --filter", format_bytes(own));
            Err(SpecError::new("--memory", format_bytes(asked), allowed))
        }
        (Some(_), _) => Ok(spec),
        (None, asked) => Ok(spec.memory(asked.unwrap_or_else(default_memory))),
    }
}

/// The highest number of threads that can share the work: one for each line, or dense page, of a
/// filter that has partitions, any number where one thread at a time uses the whole filter.
pub(crate) fn most_threads(spec: &FilterSpec) -> u64 {
    if spec.has_partitions() {
        spec.most_partitions()
    } else {
        u64::MAX
    }
}
