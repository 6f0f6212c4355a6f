//! What a kernel takes for a key when memory does not count: every slot width on every kernel, at each share of hits.

mod common;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use echoless::{Filter, FingerprintSpec, Kernel, KeyHash, KeyHasher, LineFilter, SlotWidth};
use echoless_bench::streams::BATCH;

/// Small enough for the first cache, and for the circle.
const MEMORY_BYTES: u64 = 32 << 10;

/// A circle of keys, so long that a key is forgotten when it comes round again.
const CIRCLE: usize = 1 << 18;

/// How far back a hit lies.
const GAP: u64 = 300;

/// A circle of keys of which `quarters` in four repeat a recent one.
fn circle(quarters: usize) -> Vec<KeyHash> {
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
    let numbers: Vec<u64> = (0..CIRCLE).map(number).collect();
    let mut keys = vec![KeyHash(0); CIRCLE];
    hasher.hash_u64s(&numbers, &mut keys);
    keys
}

/// Fails unless the share of hits is the one that is asked for, as far as the slots are wide enough to observe.
fn check(filter: &mut Box<dyn LineFilter>, keys: &[KeyHash], quarters: usize) {
    let mut words = vec![0; BATCH / 64];
    let mut hits = 0;
    for batch in keys.chunks_exact(BATCH).chain(keys.chunks_exact(BATCH)) {
        filter.observe_words(batch, &mut words);
        hits += words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum::<usize>();
    }
    let share = hits as f64 / (2 * keys.len()) as f64;
    let asked = quarters as f64 / 4.0;
    let false_hits = filter.geometry().full_fpr() * (1.0 - asked);
    assert!(
        share > asked - 0.01 && share < asked + false_hits + 0.01,
        "{share}"
    );
}

fn kernels(criterion: &mut Criterion) {
    for width in SlotWidth::ALL {
        for kernel in Kernel::ALL
            .into_iter()
            .filter(|kernel| kernel.is_available())
        {
            let name = format!("kernels/{}x{}/{kernel}", width.slots(), width.bits());
            let mut group = common::group(criterion, &name);
            group.throughput(Throughput::Elements(BATCH as u64));
            for quarters in 0..=4 {
                let keys = circle(quarters);
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
                        let batch = batches.next().expect("a circle");
                        filter.observe_words(batch, &mut words);
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
