//! Threads that judge in turns and deliver in parallel to a sink that cannot be truncated, with
//! crashes: what is delivered again has the same positions, and a commit waits for the answers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::simulated::SimulatedStorage;
use echoless::filters::lines::Progress;
use echoless::{Batch, Filter, FilterSpec, KeyHash, LineFilter, OrderedFilter, Verdicts};
use echoless_durable::Journal;

use crate::program::{FOLDER, hasher};

const RECORDS: u64 = 6_000;
const THREADS: usize = 3;

/// The key of the record at a position: many come again, also after the filter has forgotten them.
fn key(position: u64) -> KeyHash {
    let back = (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) % 900;
    let number = match back % 2 {
        0 => position.saturating_sub(back),
        _ => position,
    };
    hasher().hash_u64(number)
}

/// The positions that a plain run passes on.
fn plain(spec: &FilterSpec) -> Vec<u64> {
    let mut filter = spec.build_lines().unwrap();
    (0..RECORDS)
        .filter(|position| !filter.observe_one(key(*position)).is_duplicate())
        .collect()
}

/// A sink that only appends, as a pipe or a queue does.
#[derive(Debug, Default)]
struct Sink(Mutex<Vec<(u64, KeyHash)>>);

impl Sink {
    /// Each position once, as its receiver sees it.
    fn received(&self) -> BTreeMap<u64, KeyHash> {
        let mut received = BTreeMap::new();
        for (position, key) in &*self.0.lock().unwrap() {
            let before = received.insert(*position, *key);
            assert!(before.is_none_or(|before| before == *key));
        }
        received
    }
}

/// What a batch adds to the journal once the sink has answered.
struct Answered {
    keys: Vec<KeyHash>,
    verdicts: Verdicts,
    progress: Progress,
}

/// The journal, and batches that wait for those before, by their first position.
struct Commits {
    journal: Journal,
    position: u64,
    waiting: BTreeMap<u64, Answered>,
    commits: u64,
}

impl Commits {
    fn answer(&mut self, first: u64, answered: Answered) {
        self.waiting.insert(first, answered);
        while let Some(next) = self.waiting.remove(&self.position) {
            let batch = Batch::new(&next.keys);
            (self.journal)
                .append_observed(batch, 0, &next.verdicts)
                .unwrap();
            self.position += next.keys.len() as u64;
            let bytes = self.position.to_le_bytes();
            self.journal.commit(next.progress, &bytes).unwrap();
            self.commits += 1;
        }
    }
}

/// Goes on where the journal is, until the process "dies" after so many deliveries. Returns the
/// position that it began at.
fn run(storage: &SimulatedStorage, spec: &FilterSpec, sink: &Sink, batch: u64, life: u64) -> u64 {
    let storage = Arc::new(storage.clone());
    let opened = Journal::open(storage, Path::new(FOLDER), spec, &hasher(), 2).unwrap();
    let first = opened.commit.map_or(0, |commit| {
        u64::from_le_bytes(commit.bytes.try_into().unwrap())
    });
    let commits = Mutex::new(Commits {
        journal: opened.journal,
        position: first,
        waiting: BTreeMap::new(),
        commits: 0,
    });
    let filter = OrderedFilter::builder(opened.filter).build();
    let next = Mutex::new(first);
    let life = AtomicU64::new(life);
    let worker = || {
        let mut handle = filter.handle();
        loop {
            // A batch and its ticket are taken together, so tickets are in the order of the stream.
            let mut from = next.lock().unwrap();
            let records: Range<u64> = *from..RECORDS.min(*from + batch);
            if records.is_empty() {
                return;
            }
            let ticket = handle.ticket();
            *from = records.end;
            drop(from);
            let keys: Vec<KeyHash> = records.clone().map(key).collect();
            let mut verdicts = Verdicts::new();
            let mut progress = Progress::default();
            let passed = ticket.observe_then(&keys, &mut verdicts, |_, filter| {
                let of_partition = filter.progress();
                progress.observed += of_partition.observed;
                progress.fresh += of_partition.fresh;
                progress.evictions += of_partition.evictions;
            });
            passed.unwrap();
            for index in verdicts.fresh() {
                // The process dies before it delivers, or after it, without an answer.
                let left = life.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    Some(left.saturating_sub(1))
                });
                let left = left.unwrap();
                if left == 0 {
                    return;
                }
                let record = (records.start + index as u64, keys[index]);
                sink.0.lock().unwrap().push(record);
                thread::yield_now();
            }
            if life.load(Ordering::Relaxed) == 0 {
                return;
            }
            let answered = Answered {
                keys,
                verdicts,
                progress,
            };
            commits.lock().unwrap().answer(records.start, answered);
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(worker);
        }
    });
    first
}

#[test]
fn deliveries_in_parallel_are_repeated_identically_and_lose_nothing() {
    for spec in [
        "fingerprint:replacement=lru,memory=2KiB",
        "fingerprint:replacement=qqhtd,bits=16,memory=2KiB",
    ] {
        let spec: FilterSpec = spec.parse().unwrap();
        let expected = plain(&spec);
        let keys: BTreeMap<u64, KeyHash> = expected
            .iter()
            .map(|position| (*position, key(*position)))
            .collect();
        let (storage, sink) = (SimulatedStorage::new(), Sink::default());
        let mut lives = 0;
        loop {
            lives += 1;
            // Other batches in each life: verdicts do not depend on them.
            let batch = 20 + lives * 37 % 90;
            let first = run(&storage, &spec, &sink, batch, 40 + lives * 131 % 900);
            // Nothing before the commit is missing, and nothing is delivered that a plain run
            // drops.
            let received = sink.received();
            assert!(received.range(..first).eq(keys.range(..first)), "{spec}");
            assert!(received.keys().all(|position| keys.contains_key(position)));
            if first == RECORDS {
                break;
            }
            assert!(lives < 1000, "at {first}");
        }
        assert_eq!(sink.received(), keys, "{spec}");
        let delivered = sink.0.lock().unwrap().len();
        assert!(lives > 10 && delivered > expected.len(), "{lives} lives");
    }
}
