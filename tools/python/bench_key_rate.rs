//! The key rate of the library on one thread, for `bench.py`: seconds for 10 million keys of 16
//! bytes from one piece of memory, the fastest of the runs.

use std::time::Instant;

use echoless::KeyHasher;
use echoless_foreign::{Filter, Fixed};

const KEYS: usize = 10_000_000;
const RUNS: u32 = 5;

fn main() {
    // The keys of bench.py: a number in the last bytes of each, half of them duplicates.
    let mut bytes = vec![0; KEYS * 16];
    for (index, key) in bytes.chunks_exact_mut(16).enumerate() {
        let id = (index % (KEYS / 2)) as u64;
        key[..8].copy_from_slice(&id.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        key[8..].copy_from_slice(&id.to_le_bytes());
    }
    let keys = Fixed::new(&bytes, 16, 16, KEYS).expect("16 bytes a key");
    let mut duplicates = vec![0; KEYS.div_ceil(64)];
    let mut fastest = f64::INFINITY;
    for _ in 0..RUNS {
        let spec = "fingerprint:fpr=1e-8,memory=64MiB";
        let mut filter = Filter::new(spec, KeyHasher::seeded(0)).expect("64 MiB");
        let start = Instant::now();
        let count = filter
            .observe(&keys, None, &mut duplicates)
            .expect("enough words");
        fastest = fastest.min(start.elapsed().as_secs_f64());
        assert!(
            count.abs_diff(KEYS as u64 / 2) < KEYS as u64 / 1000,
            "half are duplicates"
        );
    }
    println!("{fastest}");
}
