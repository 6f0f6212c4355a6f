//! The keys of a chunk that read-only filters contain: duplicates that the filter of the run does
//! not see.

use echoless::{Filter, KeyHash, LineFilter, Verdict, Verdicts};

use super::parts::KEPT_RECORDS;

/// The keys that such a filter contains, and the others with their verdicts; empty without such
/// filters.
///
/// ```text
/// keys           a b c d
/// found          1 0 0 1
/// others           b c
/// of_others        0 1
/// verdicts       1 0 1 1
/// ```
#[derive(Debug, Default)]
pub struct KnownKeys {
    found: Verdicts,
    /// Those of one filter, if there are several.
    found_by_one: Verdicts,
    pub(super) others: Vec<KeyHash>,
    pub(super) of_others: Verdicts,
}

impl KnownKeys {
    /// The number of keys that were found.
    pub fn count(&self) -> u64 {
        self.found.count_duplicates()
    }

    /// Whether no keys were looked up.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Looks keys up.
    pub(super) fn find(&mut self, filters: &[Box<dyn LineFilter>], keys: &[KeyHash]) {
        self.found.reset(keys.len());
        for filter in filters {
            filter.contains_each(keys, &mut self.found_by_one);
            for index in self.found_by_one.duplicates() {
                self.found.set(index, Verdict::Duplicate);
            }
        }
        self.others.clear();
        (self.others).extend(self.found.fresh().map(|index| keys[index]));
    }

    /// Writes the verdicts on all keys.
    pub(super) fn join(&self, verdicts: &mut Verdicts) {
        verdicts.reset(self.found.len());
        for index in self.found.duplicates() {
            verdicts.set(index, Verdict::Duplicate);
        }
        for (index, of_other) in self.found.fresh().zip(self.of_others.iter()) {
            verdicts.set(index, of_other);
        }
    }

    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let Self {
            found,
            found_by_one,
            others,
            of_others,
        } = self;
        found.reset(0);
        found_by_one.reset(0);
        others.clear();
        of_others.reset(0);
    }

    /// Removes everything if it has the memory of very many records.
    pub(super) fn shrink(&mut self) {
        if self.found.len() > KEPT_RECORDS {
            *self = Self::default();
        }
    }
}
