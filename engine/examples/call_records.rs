//! Drops duplicate call records that four threads receive, with an engine of two workers.
//!
//! Each thread attaches a port of its own. It submits a batch, reads the next one meanwhile, and
//! gets the records of a batch back together with their verdicts. Over all threads, one of several
//! equal records is fresh.
//!
//! ```sh
//! cargo run --release -p echoless --example call_records
//! ```

use std::collections::{HashSet, VecDeque};
use std::error::Error;

use echoless::{Attacher, Engine, FingerprintSpec, KeyHasher, Port, Verdicts};

const THREADS: u64 = 4;
const BATCHES: u64 = 50;
const BATCH: u64 = 1000;

/// A bound for the batches that wait for their verdicts.
const MOST_IN_FLIGHT: usize = 8;

type Records = Vec<String>;

/// A batch that a switch sends: time, caller, called number, seconds. A fifth of its records are
/// those of another switch.
fn receive(thread: u64, batch: u64) -> Records {
    // Every fifth record is the next one of another switch.
    let number = |index: u64| match index % 5 {
        0 => ((thread + 1) % THREADS * BATCHES + batch) * BATCH + index + 1,
        _ => (thread * BATCHES + batch) * BATCH + index,
    };
    let record = |call: u64| {
        let (caller, called) = (call % 9_973, call % 7_919);
        format!(
            "{},+4930{caller:06},+4989{called:06},{}",
            1_700_000_000 + call,
            call % 600
        )
    };
    (0..BATCH).map(|index| record(number(index))).collect()
}

/// Takes the oldest batch, and keeps its fresh records.
fn pass_one(
    port: &mut Port,
    waiting: &mut VecDeque<Records>,
    verdicts: &mut Verdicts,
    passed: &mut Records,
) -> Result<bool, echoless::ExchangeError> {
    if !port.drain(verdicts)? {
        return Ok(false);
    }
    // Batches come back in the order of submission.
    let mut records = waiting.pop_front().expect("a batch in flight");
    verdicts.retain_fresh(&mut records);
    passed.append(&mut records);
    Ok(true)
}

/// The work of one thread. Returns the records that passed.
fn ingest(attacher: &Attacher, thread: u64) -> Result<Records, Box<dyn Error + Send + Sync>> {
    let mut port = attacher.attach()?;
    let mut waiting = VecDeque::new();
    let hasher = KeyHasher::seeded(0);
    let (mut keys, mut verdicts, mut passed) = (Vec::new(), Verdicts::new(), Vec::new());
    for batch in 0..BATCHES {
        let records = receive(thread, batch);
        keys.clear();
        // A call is known by its time and both numbers.
        keys.extend(
            records
                .iter()
                .map(|record| hasher.hash_parts(record.split(',').take(3))),
        );
        port.submit(&keys)?;
        waiting.push_back(records);
        while port.in_flight() > MOST_IN_FLIGHT {
            pass_one(&mut port, &mut waiting, &mut verdicts, &mut passed)?;
        }
    }
    while pass_one(&mut port, &mut waiting, &mut verdicts, &mut passed)? {}
    Ok(passed)
}

fn main() -> Result<(), Box<dyn Error>> {
    let halves = FingerprintSpec::new(16 << 20).build_partitions(2)?;
    let (engine, _) = Engine::builder(halves).ports(0).build()?;
    let passed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let attacher = engine.attacher();
                scope.spawn(move || ingest(&attacher, thread))
            })
            .collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        results.collect::<Result<Vec<Records>, _>>()
    })
    .map_err(|error| error.to_string())?;

    let counts = engine.counts();
    let passed: Records = passed.into_iter().flatten().collect();
    println!(
        "{} of {} records are duplicates",
        counts.duplicates, counts.judged
    );
    let all = (0..THREADS).flat_map(|thread| (0..BATCHES).map(move |batch| (thread, batch)));
    let distinct: HashSet<String> = all
        .flat_map(|(thread, batch)| receive(thread, batch))
        .collect();
    let all = THREADS * BATCHES * BATCH;
    assert_eq!((counts.judged, counts.duplicates), (all, all / 5));
    assert_eq!(passed.len(), distinct.len());
    assert_eq!(passed.into_iter().collect::<HashSet<_>>(), distinct);
    engine.shutdown()?;
    Ok(())
}
