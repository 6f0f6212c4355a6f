//! The filter of `--dense`: two lines of one page for a key.

use echoless::memory::LINE_BYTES;
use echoless::{FilterSpec, FingerprintGeometry, FingerprintSpec, Replacement, SpecError};

use super::memory_size::{MOST_DEFAULT_MEMORY, at_most_default, memory_for};

/// The narrowest dense lines that keep the false positive rate. Without `memory`, inputs with few
/// `keys` get a small filter.
///
/// # Errors
/// [`SpecError`] if the policy records duplicates, the memory is less than a page, or no slot is
/// wide enough for the rate.
pub(super) fn dense_filter(
    memory: Option<u64>,
    max_fpr: f64,
    replacement: Replacement,
    keys: impl FnOnce() -> Option<u64>,
) -> Result<FilterSpec, SpecError> {
    if replacement.records_duplicates() {
        let asked = replacement.to_string();
        let allowed = "fifo or lru with --dense";
        return Err(SpecError::new("replacement", asked, allowed));
    }
    // The width is that of the largest default, so the length of the input does not change it.
    let spec = FingerprintSpec::new(memory.unwrap_or(MOST_DEFAULT_MEMORY)).max_fpr(max_fpr);
    let spec = spec.dense(true).replacement(replacement);
    let width = spec.geometry()?.width;
    let memory = memory.unwrap_or_else(|| {
        // With a choice of two lines fewer lines overflow than with one, which the bound is for.
        let shape = FingerprintGeometry::new(MOST_DEFAULT_MEMORY / LINE_BYTES, width);
        at_most_default(keys().map(|keys| memory_for(keys, shape)))
    });
    Ok(FilterSpec::try_from(&spec.slot_width(width))?.memory(memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(memory: Option<u64>, max_fpr: f64, keys: Option<u64>) -> String {
        let spec = dense_filter(memory, max_fpr, Replacement::Lru, || keys);
        spec.map_or_else(|error| error.to_string(), |spec| spec.to_string())
    }

    #[test]
    fn the_rate_selects_the_width_and_few_keys_a_small_memory() {
        let cases = [
            (
                Some(1 << 20),
                1e-3,
                None,
                "dense:replacement=lru,bits=16,memory=1MiB",
            ),
            (
                Some(1 << 20),
                1e-8,
                None,
                "dense:replacement=lru,bits=32,memory=1MiB",
            ),
            (
                Some(1 << 20),
                1e-9,
                None,
                "dense:replacement=lru,bits=64,memory=1MiB",
            ),
            (
                None,
                1e-8,
                Some(10),
                "dense:replacement=lru,bits=32,memory=64KiB",
            ),
            (
                Some(4095),
                1e-8,
                None,
                "invalid memory=4095 B: expected at least 4096 B (one page)",
            ),
        ];
        for (memory, rate, keys, expected) in cases {
            assert_eq!(text(memory, rate, keys), expected);
        }
        assert!(
            text(Some(1 << 20), 1e-18, None).starts_with("invalid fpr=1e-18: expected at least")
        );
    }

    #[test]
    fn policies_that_record_duplicates_are_rejected() {
        let error = dense_filter(None, 1e-8, Replacement::Qqhtd, || None).unwrap_err();
        let expected = "invalid replacement=qqhtd: expected fifo or lru with --dense";
        assert_eq!(error.to_string(), expected);
    }
}
