//! Dense lines: the age at which misses begin, and the memory for it.

use echoless::spec::DenseSpec;
use echoless::theory::dense::DenseGeometry;
use echoless::{Filter, FilterSpec, KeyHash, Replacement};

use crate::trial::{assert_close, fresh_keys};

/// The age at which 1 in 1000 recorded keys is missed, in keys for each line, on streams of
/// distinct keys and over `rounds` fills of a filter of `lines` lines.
fn measured_age(spec: DenseSpec, lines: u64, rounds: u64) -> f64 {
    /// The ages that are probed, around the expected one: 12 steps of 1 %.
    const STEPS: usize = 12;
    let geometry = spec.geometry(lines * 64).unwrap();
    let expected = geometry.miss_age_keys();
    let filled = geometry.capacity() as usize * 3;
    let mut filter = FilterSpec::new(spec).memory(lines * 64).build().unwrap();
    let mut words = vec![0; filled.div_ceil(64)];
    let mut stream = fresh_keys(u64::MAX);
    let age_of = |step: usize| (expected * (0.94 + step as f64 * 0.01)) as usize;
    let (mut missed, mut probed) = ([0_u64; STEPS], [0_u64; STEPS]);
    for _ in 0..rounds {
        let keys: Vec<KeyHash> = stream.by_ref().take(filled).collect();
        filter.observe_words(&keys, &mut words);
        for step in 0..STEPS {
            for age in age_of(step)..age_of(step + 1) {
                let index = filled - 1 - age;
                // A key taken for another one was not recorded, and is missed when that one is.
                if words[index / 64] >> (index % 64) & 1 == 0 {
                    probed[step] += 1;
                    missed[step] += u64::from(!filter.contains(keys[index]));
                }
            }
        }
    }
    // The logarithm of the rate rises nearly linearly with the age, in so short a range: a line
    // fitted to it is that of 1 in 1000 at the age.
    let (mut sum, mut sum_x, mut sum_y, mut sum_xx, mut sum_xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for step in 0..STEPS {
        let x = 0.945 + step as f64 * 0.01;
        let (weight, y) = (
            missed[step] as f64,
            (missed[step] as f64 / probed[step] as f64).ln(),
        );
        sum += weight;
        sum_x += weight * x;
        sum_y += weight * y;
        sum_xx += weight * x * x;
        sum_xy += weight * x * y;
    }
    let slope = (sum * sum_xy - sum_x * sum_y) / (sum * sum_xx - sum_x * sum_x);
    let intercept = (sum_y - slope * sum_x) / sum;
    (1e-3_f64.ln() - intercept) / slope * expected / lines as f64
}

#[test]
fn dense_ages_are_those_of_the_formula() {
    // At most so many bits of memory for a key that is remembered.
    for (width, most_bits) in DenseGeometry::WIDTHS.iter().zip([20.0, 45.0, 115.0]) {
        for (lines, rounds, replacement) in [
            (1 << 10, 500, Replacement::Lru),
            (1 << 14, 30, Replacement::Fifo),
            (1 << 17, 4, Replacement::Lru),
        ] {
            let spec = DenseSpec::new(*width).replacement(replacement);
            let measured = measured_age(spec, lines, rounds);
            let expected = spec.geometry(lines * 64).unwrap().miss_age_keys() / lines as f64;
            println!("{width:?}, {lines} lines: {measured:.3} keys a line");
            assert_close(
                measured,
                expected,
                0.02,
                &format!("{width:?}, {lines} lines"),
            );
            assert!(512.0 / measured <= most_bits, "{width:?}: {measured}");
        }
    }
}
