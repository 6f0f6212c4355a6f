//! A sink that fails, and loses or doubles no record: keys are looked up, the fresh records are
//! written, and only then the keys of those that were written are recorded.
//!
//! `observe` records a key before its record is written. If the sink then fails, the record that is
//! sent again is a duplicate, and lost. In two phases it is fresh until it was written.
//!
//! Threads that share a filter hold a [`Ticket`](echoless::Ticket) for both phases: it has
//! `contains_each`, too.
//!
//! ```sh
//! cargo run --release -p echoless --example two_phase
//! ```

use std::collections::HashSet;
use std::error::Error;
use std::io;

use echoless::{Filter, FingerprintSpec, KeyHash, KeyHasher, Verdicts};

/// Fails at every tenth attempt to write, like a connection that drops.
#[derive(Default)]
struct Sink {
    written: Vec<String>,
    attempts: usize,
}

impl Sink {
    fn write(&mut self, record: &str) -> io::Result<()> {
        self.attempts += 1;
        if self.attempts.is_multiple_of(10) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.written.push(record.to_owned());
        Ok(())
    }
}

/// Writes the fresh records of a batch. After an error the batch can be passed again: its written
/// records are duplicates then, and the others are fresh.
fn pass(
    filter: &mut impl Filter,
    hasher: &KeyHasher,
    batch: &[String],
    sink: &mut Sink,
) -> io::Result<()> {
    let keys: Vec<KeyHash> = batch.iter().map(|record| hasher.hash(record)).collect();
    let mut verdicts = Verdicts::new();
    filter.contains_each(&keys, &mut verdicts);

    // A lookup records nothing, so equal keys of the batch are all fresh: write the first of them.
    let mut accepted = HashSet::new();
    let mut written = Vec::new();
    let mut outcome = Ok(());
    for index in verdicts
        .fresh()
        .filter(|index| accepted.insert(keys[*index]))
    {
        outcome = sink.write(&batch[index]);
        if outcome.is_err() {
            break;
        }
        written.push(keys[index]);
    }
    // The verdicts do not matter any more.
    filter.observe(&written, &mut verdicts);
    outcome
}

fn main() -> Result<(), Box<dyn Error>> {
    // Every third record comes twice in a row, and the last hundred repeat the first.
    let records: Vec<String> = (0..1_000)
        .map(|index| format!("call {}", (index - index % 3 / 2) % 900))
        .collect();
    let hasher = KeyHasher::seeded(0);
    let mut filter = FingerprintSpec::new(1 << 20).max_fpr(1e-8).build()?;
    let mut sink = Sink::default();
    let mut failures = 0;
    for batch in records.chunks(64) {
        while let Err(error) = pass(&mut filter, &hasher, batch, &mut sink) {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            failures += 1;
        }
    }
    let distinct: HashSet<&String> = records.iter().collect();
    println!(
        "{} of {} records written, {failures} failures",
        sink.written.len(),
        records.len()
    );
    assert!(failures > 0);
    // Nothing is lost, and nothing doubled.
    assert_eq!(sink.written.iter().collect::<HashSet<_>>(), distinct);
    assert_eq!(sink.written.len(), distinct.len());
    Ok(())
}
