//! Time from 16-byte keys to verdicts: hashing and observing in batches, by size and filter.

mod common;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use echoless::{
    Filter, FingerprintSpec, KeyHash, KeyHasher, Replacement, SharedLayout, SharedSpec, SlotWidth,
    Verdicts,
};
use echoless_bench::streams::BATCH;

const SIZES_MIB: [u64; 2] = [1, 64];

/// An endless stream of distinct keys, hashed in batches.
struct Source {
    hasher: KeyHasher,
    next: u128,
    keys: Vec<u128>,
    hashes: Vec<KeyHash>,
}

impl Source {
    fn new() -> Self {
        Self {
            hasher: KeyHasher::seeded(1),
            next: 0,
            keys: vec![0; BATCH],
            hashes: vec![KeyHash::from_uniform(0); BATCH],
        }
    }

    fn batch(&mut self) -> &[KeyHash] {
        for key in &mut self.keys {
            *key = self.next;
            self.next += 1;
        }
        self.hasher
            .hash_u128s(black_box(&self.keys), &mut self.hashes);
        &self.hashes
    }
}

/// Fails unless a batch is fresh except for a few false duplicates, and then a duplicate.
fn check(mut observe: impl FnMut(&[KeyHash], &mut Verdicts)) {
    let (mut source, mut verdicts) = (Source::new(), Verdicts::new());
    observe(source.batch(), &mut verdicts);
    assert!(
        verdicts.count_duplicates() <= 3,
        "{}",
        verdicts.count_duplicates()
    );
    observe(&source.hashes, &mut verdicts);
    assert_eq!(verdicts.count_duplicates(), BATCH as u64);
}

fn observe(criterion: &mut Criterion) {
    for mebibytes in SIZES_MIB {
        let mut group = common::group(criterion, &format!("observe/{mebibytes} MiB"));
        group.throughput(Throughput::Elements(BATCH as u64));
        let mut measure = |name: String, observe: &mut dyn FnMut(&[KeyHash], &mut Verdicts)| {
            check(&mut *observe);
            let (mut source, mut verdicts) = (Source::new(), Verdicts::new());
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter(|| {
                    observe(source.batch(), &mut verdicts);
                    verdicts.count_duplicates()
                });
            });
        };
        for width in [SlotWidth::Bits16, SlotWidth::Bits32] {
            for replacement in Replacement::ALL {
                let spec = FingerprintSpec::new(mebibytes << 20)
                    .slot_width(width)
                    .replacement(*replacement);
                let mut filter = spec.build().expect("the memory is available");
                let name = format!(
                    "fingerprint {} x {}, {replacement}",
                    width.slots(),
                    width.bits()
                );
                measure(name, &mut |keys, verdicts| filter.observe(keys, verdicts));
            }
        }
        for layout in [SharedLayout::Row4x16, SharedLayout::Bloom { k: 4 }] {
            let spec = SharedSpec::new(mebibytes << 20).layout(layout);
            let filter = spec.build().expect("the memory is available");
            let name = format!("shared {layout:?}");
            measure(name, &mut |keys, verdicts| filter.observe(keys, verdicts));
        }
        group.finish();
    }
}

criterion_group!(benches, observe);
criterion_main!(benches);
