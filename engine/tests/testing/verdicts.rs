//! Verdicts as a list, for tests that compare them: test binaries include this file by its path.

use echoless::Verdicts;

/// Whether each key of a batch is a duplicate.
pub(crate) fn duplicates(verdicts: &Verdicts) -> Vec<bool> {
    (0..verdicts.len())
        .map(|index| verdicts.is_duplicate(index))
        .collect()
}
