//! Passes batches of keys through one filter, so that a profiler can count its instructions:
//!
//! ```sh
//! cargo build --release -p echoless-bench --example line_forms
//! valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*pass_batch*' \
//!     target/release/examples/line_forms 'bloom:k=3,form=line,memory=64KiB' 14
//! ```
//!
//! The difference between 14 and 6 batches, over the keys of 8, is that of a key. Half of the keys
//! are those of the batch before. `bench/record/LINE_FORMS.md` has the table.

use std::error::Error;

use echoless::{Filter, KeyHash, KeyHasher};

/// The keys of a batch.
const KEYS: u64 = 4096;

#[inline(never)]
fn pass_batch(filter: &mut dyn Filter, keys: &[KeyHash], words: &mut [u64]) {
    filter.observe_batch(keys.into(), words);
}

fn main() -> Result<(), Box<dyn Error>> {
    let [filter, batches] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "expected a filter and a number of batches")?;
    let mut filter = echoless_papers::parse(&filter)?.build()?;
    let hasher = KeyHasher::seeded(1);
    let mut words = vec![0; KEYS as usize / 64];
    let mut duplicates = 0;
    for batch in 0..batches.parse()? {
        let key = |index: u64| match (index % 2, batch) {
            (0, _) | (_, 0) => batch * KEYS + index,
            (_, later) => (later - 1) * KEYS + index - 1,
        };
        let keys: Vec<KeyHash> = (0..KEYS).map(|index| hasher.hash_u64(key(index))).collect();
        pass_batch(&mut *filter, &keys, &mut words);
        duplicates += words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum::<u64>();
    }
    println!("{duplicates} duplicates");
    Ok(())
}
