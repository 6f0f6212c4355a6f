//! The calls of `bench/src/main/java/echoless/bench/ObserveBenchmark.java`, made from Rust:
//! `cargo bench -p echoless-java`.

use std::hint::black_box;
use std::time::Instant;

use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Filter, Fixed, Hashes, Keys};

const BATCH: u64 = 1024;
const BATCHES: u64 = 1024;
/// The passes over all batches whose median counts.
const PASSES: usize = 41;

fn main() {
    // `cargo test --benches` only builds and starts this.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let hasher = KeyHasher::seeded(0);
    let ids = |batch: u64| {
        (0..BATCH).map(move |index| match index % 2 {
            0 => batch * BATCH + index,
            _ => index,
        })
    };
    let hashes: Vec<Vec<KeyHash>> = (0..BATCHES)
        .map(|batch| ids(batch).map(|id| hasher.hash_u64(id)).collect())
        .collect();
    let packed: Vec<Vec<u8>> = (0..BATCHES)
        .map(|batch| {
            let key = |id: u64| [id.to_be_bytes(), [0; 8]].concat();
            ids(batch).flat_map(key).collect()
        })
        .collect();
    for memory in ["1MiB", "64MiB"] {
        let hashes = time(memory, &hashes, |batch, with| with(&Hashes(batch)));
        let packed = time(memory, &packed, |batch, with| {
            with(&Fixed::new(batch, 16, 16, BATCH as usize).expect("keys of 16 bytes"));
        });
        println!("{memory:>6}: hashes {hashes:.0} ns, packed {packed:.0} ns for {BATCH} keys");
    }
}

/// The median time of a call, in nanoseconds.
fn time<T>(
    memory: &str,
    batches: &[Vec<T>],
    keys: impl Fn(&[T], &mut dyn FnMut(&dyn Keys)),
) -> f64 {
    let spec = format!("fingerprint:fpr=1e-8,memory={memory}");
    let mut filter = Filter::new(&spec, KeyHasher::seeded(0)).expect("a filter");
    let mut verdicts = [0; BATCH as usize / 64];
    let mut times = Vec::new();
    for _ in 0..PASSES {
        let start = Instant::now();
        for batch in batches {
            keys(batch, &mut |keys| {
                let found = filter.observe(keys, None, &mut verdicts);
                black_box(found.expect("a mask for the batch"));
            });
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / batches.len() as f64);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
