//! Time of a kernel for each key in the first-level cache: every slot width on every kernel, at
//! several fractions of hits.

mod common;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use echoless::{Filter, FingerprintSpec, Kernel, KeyHash, KeyHasher, LineFilter, SlotWidth};
use echoless_bench::streams::BATCH;

/// Fits in the first-level cache, and holds fewer keys than a cycle.
const MEMORY_BYTES: u64 = 32 << 10;

/// Keys in a cycle: so many that a key is evicted before it recurs.
const CYCLE: usize = 1 << 18;

/// How many distinct keys ago the key of a hit was inserted.
const GAP: u64 = 300;

/// A cycle of keys, of which `quarters` in four repeat a recent one.
fn cycle(quarters: usize) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(1);
    let mut distinct = 0;
    let number = |index: usize| {
        if quarters == 4 {
            return index as u64 % BATCH as u64;
        }
        if index % 4 < quarters && distinct > GAP {
            return distinct - GAP + index as u64 % 4;
        }
        distinct += 1;
        distinct
    };
    let numbers: Vec<u64> = (0..CYCLE).map(number).collect();
    let mut keys = vec![KeyHash::from_uniform(0); CYCLE];
    hasher.hash_u64s(&numbers, &mut keys);
    keys
}

/// Fails unless the fraction of hits is the requested one, plus the false positives of the slot
/// width.
fn check(filter: &mut Box<dyn LineFilter>, keys: &[KeyHash], quarters: usize) {
    let mut words = vec![0; BATCH / 64];
    let mut hits = 0;
    for batch in keys.chunks_exact(BATCH).chain(keys.chunks_exact(BATCH)) {
        filter.observe_batch(batch.into(), &mut words);
        hits += words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum::<usize>();
    }
    let fraction = hits as f64 / (2 * keys.len()) as f64;
    let requested = quarters as f64 / 4.0;
    let false_hits = filter.report().expected_fpr.expect("a rate") * (1.0 - requested);
    assert!(
        fraction > requested - 0.01 && fraction < requested + false_hits + 0.01,
        "{fraction}"
    );
}

fn kernels(criterion: &mut Criterion) {
    for width in SlotWidth::ALL.iter().copied() {
        for kernel in Kernel::ALL
            .iter()
            .copied()
            .filter(|kernel| kernel.is_available())
        {
            let name = format!("kernels/{}x{}/{kernel}", width.slots(), width.bits());
            let mut group = common::group(criterion, &name);
            group.throughput(Throughput::Elements(BATCH as u64));
            for quarters in 0..=4 {
                let keys = cycle(quarters);
                let spec = FingerprintSpec::new(MEMORY_BYTES)
                    .slot_width(width)
                    .kernel(kernel);
                let mut filter = spec.build().expect("the kernel is available");
                check(&mut filter, &keys, quarters);
                let mut batches = keys.chunks_exact(BATCH).cycle();
                let mut words = vec![0; BATCH / 64];
                let hits = BenchmarkId::new("hits", format!("{}%", quarters * 25));
                group.bench_function(hits, |bencher| {
                    bencher.iter(|| {
                        let batch = batches.next().expect("a cycle has no end");
                        filter.observe_batch(batch.into(), &mut words);
                        words[0]
                    });
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
