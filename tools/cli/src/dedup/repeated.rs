//! `--repeated`: which duplicates are the first ones of their keys.
//!
//! The keys of duplicates pass a second filter like the first, in the order of delivery: those that
//! are fresh there were not written before. A line of it holds some of the keys of the same line
//! of the first filter, so it evicts nothing where the first one evicts nothing. With a window it
//! forgets as the first one does, and a key is written at most once in any span of a window.

use std::fmt::Write as _;

use echoless::{Filter, KeyHash, Verdicts};
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;

use super::observers::{Observer, Words};
use super::reports::fields::Fields;
use super::reports::stats::RunCounts;
use super::reports::summary::counted;

/// The second filter.
#[derive(Debug)]
pub(super) struct Repeated {
    /// `None` in a run that has not begun.
    filter: Option<Box<dyn Filter>>,
    /// The key hash of each duplicate of the current chunk, its tick if it has one, and its record.
    keys: Vec<KeyHash>,
    ticks: Vec<u64>,
    records: Vec<usize>,
    verdicts: Verdicts,
}

impl Repeated {
    /// With this as the second filter.
    pub(super) fn new(filter: Option<Box<dyn Filter>>) -> Self {
        Self {
            filter,
            keys: Vec::new(),
            ticks: Vec::new(),
            records: Vec::new(),
            verdicts: Verdicts::new(),
        }
    }

    /// Marks the first duplicates of their keys in the next chunk of the stream, and returns their
    /// number.
    fn mark(&mut self, chunk: &mut Chunk) -> u64 {
        let Some(filter) = &mut self.filter else {
            return 0;
        };
        self.keys.clear();
        self.ticks.clear();
        self.records.clear();
        for hash in chunk.verdicts.of_keys.duplicates() {
            self.keys.push(chunk.keys.judged()[hash]);
            // Without a window there are none.
            self.ticks.extend(chunk.clock.ticks.get(hash));
            self.records.push(chunk.record_of(hash));
        }
        if self.ticks.is_empty() {
            filter.observe(&self.keys, &mut self.verdicts);
        } else {
            filter.observe_at(&self.keys, &self.ticks, &mut self.verdicts);
        }
        chunk.verdicts.repeated.clear();
        chunk
            .verdicts
            .repeated
            .resize(chunk.records().div_ceil(64), 0);
        for (index, record) in self.records.iter().enumerate() {
            let first = !self.verdicts.is_duplicate(index);
            chunk.verdicts.repeated[record / 64] |= u64::from(first) << (record % 64);
        }
        for record in &chunk.unkeyed.frame {
            chunk.verdicts.repeated[record / 64] |= 1 << (record % 64);
        }
        self.keys.len() as u64 - self.verdicts.count_duplicates()
    }
}

impl Observer for Repeated {
    fn on_chunk(&mut self, chunk: &mut Chunk, counts: &mut RunCounts) -> Result<(), Failure> {
        counts.repeated += self.mark(chunk);
        Ok(())
    }

    fn stats(&self, counts: &RunCounts, fields: &mut Fields) {
        fields.add("repeated", counts.repeated);
    }

    fn words(&self, counts: &RunCounts, words: &mut Words) {
        let keys = counted(counts.repeated, "key");
        let _ = write!(words.records, ", {keys} with duplicates");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use echoless::{FilterSpec, FingerprintSpec, KeyHasher};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marked_records_are_the_second_of_their_keys(
            stream in vec(prop::option::weighted(0.9, 0_u64..40), 0..400),
            lengths in vec(1_usize..100, 1..8),
            window in prop::option::of(1_usize..90),
        ) {
            let timed = |window| format!("stamped:bits=64,memory=64KiB,refresh=false,window={window}");
            let spec = match window {
                None => FilterSpec::try_from(&FingerprintSpec::new(64 << 10)).unwrap(),
                Some(window) => timed(window).parse().unwrap(),
            };
            let mut first = spec.build().unwrap();
            let mut repeated = Repeated::new(Some(spec.build().unwrap()));
            let hasher = KeyHasher::seeded(3);
            // When each key was last passed, and last marked.
            let (mut passed, mut written) = (HashMap::new(), HashMap::new());
            let is_fresh = |last: &mut HashMap<u64, usize>, key, now: usize| {
                let inside = |last: &usize| window.is_none_or(|window| now - last <= window);
                let is_fresh = !last.get(&key).is_some_and(inside);
                if is_fresh {
                    last.insert(key, now);
                }
                is_fresh
            };
            let mut rest = stream.as_slice();
            for length in lengths.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (records, after) = rest.split_at((*length).min(rest.len()));
                rest = after;
                let start = stream.len() - after.len() - records.len();
                let mut chunk = Chunk::default();
                for (record, key) in records.iter().enumerate() {
                    match key {
                        Some(key) => {
                            chunk.keys.hashes.push(hasher.hash_u64(*key));
                            let tick = window.map(|_| (start + record) as u64);
                            chunk.clock.ticks.extend(tick);
                        }
                        None => chunk.unkeyed.all.push(record),
                    }
                }
                let (hashes, verdicts) = (&chunk.keys.hashes, &mut chunk.verdicts.of_keys);
                match window {
                    None => first.observe(hashes, verdicts),
                    Some(_) => first.observe_at(hashes, &chunk.clock.ticks, verdicts),
                }
                let marked = repeated.mark(&mut chunk);
                let expected: Vec<usize> = (0..records.len())
                    .filter(|record| {
                        let key = records[*record];
                        let now = start + record;
                        key.is_some_and(|key| {
                            !is_fresh(&mut passed, key, now) && is_fresh(&mut written, key, now)
                        })
                    })
                    .collect();
                let found: Vec<usize> = (0..records.len())
                    .filter(|record| chunk.verdicts.repeated[record / 64] >> (record % 64) & 1 == 1)
                    .collect();
                prop_assert_eq!(marked, expected.len() as u64);
                prop_assert_eq!(found, expected);
            }
        }
    }
}
