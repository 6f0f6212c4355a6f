//! Verdicts as a list, for tests that compare them: test binaries include this file by its path.

use echoless::{Filter, KeyHash, Verdicts};

/// Whether each key is a duplicate, observed in batches of `size`.
pub(crate) fn observe_all(filter: &mut dyn Filter, keys: &[KeyHash], size: usize) -> Vec<bool> {
    let mut verdicts = Verdicts::new();
    let mut all = Vec::new();
    for batch in keys.chunks(size) {
        filter.observe(batch, &mut verdicts);
        all.extend(verdicts.to_bools());
    }
    all
}
