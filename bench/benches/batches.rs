//! Time of a key by the length of its batch and the size of the filter, from its hash to its
//! verdict, and the time to go through the verdicts.

mod common;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use echoless::{Filter, FingerprintSpec, KeyHash, KeyHasher, Verdicts};

/// Keys of a measurement: long enough for the longest batch.
const KEYS: usize = 1 << 16;

/// Batches of one key and more.
const LENGTHS: [usize; 6] = [1, 4, 16, 64, 1024, 16_384];

/// `KEYS` keys, of which `distinct` are distinct.
fn keys(distinct: usize) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(1);
    (0..KEYS)
        .map(|number| hasher.hash_u64((number % distinct) as u64))
        .collect()
}

/// Keys that stay in the cache: their few lines are hot. Every key is a duplicate.
fn hot(criterion: &mut Criterion) {
    measure(criterion, "batches/hot lines of 1 MiB", 1, &keys(64));
}

/// Keys spread over the whole filter. All are duplicates once the first round is over, so that
/// their number does not limit a measurement.
fn spread(criterion: &mut Criterion) {
    for mebibytes in [1, 64, 512] {
        let name = format!("batches/{mebibytes} MiB");
        measure(criterion, &name, mebibytes, &keys(KEYS));
    }
}

fn measure(criterion: &mut Criterion, name: &str, mebibytes: u64, keys: &[KeyHash]) {
    let mut group = common::group(criterion, name);
    group.throughput(Throughput::Elements(KEYS as u64));
    let spec = FingerprintSpec::new(mebibytes << 20);
    let mut filter = spec.build().expect("the memory is available");
    group.bench_function("single keys", |bencher| {
        bencher.iter(|| {
            let observed = keys.iter().map(|key| filter.observe_one(black_box(*key)));
            observed.filter(|verdict| verdict.is_duplicate()).count()
        });
    });
    let mut verdicts = Verdicts::new();
    for length in LENGTHS {
        group.bench_function(BenchmarkId::new("batches of", length), |bencher| {
            bencher.iter(|| {
                let mut duplicates = 0;
                for batch in keys.chunks(length) {
                    filter.observe(black_box(batch), &mut verdicts);
                    duplicates += verdicts.count_duplicates();
                }
                duplicates
            });
        });
    }
    group.finish();
}

/// Going through the verdicts of a batch of which half of the keys are fresh, in no order.
fn verdicts(criterion: &mut Criterion) {
    let mut group = common::group(criterion, "verdicts");
    group.throughput(Throughput::Elements(KEYS as u64));
    let hashes = keys(KEYS);
    let verdicts: Verdicts = hashes.iter().map(|key| key.get() % 2 == 0).collect();
    group.bench_function("get", |bencher| {
        let indices = || (0..verdicts.len()).filter(|index| !verdicts.get(*index).is_duplicate());
        bencher.iter(|| indices().fold(0, |sum, index| sum ^ black_box(index)));
    });
    group.bench_function("iter", |bencher| {
        let fresh = || (0..).zip(&verdicts).filter(|(_, one)| !one.is_duplicate());
        bencher.iter(|| fresh().fold(0_usize, |sum, (index, _)| sum ^ black_box(index)));
    });
    group.bench_function("fresh", |bencher| {
        bencher.iter(|| {
            verdicts
                .fresh()
                .fold(0, |sum, index| sum ^ black_box(index))
        });
    });
    group.finish();
}

criterion_group!(benches, hot, spread, verdicts);
criterion_main!(benches);
