//! Dense lines: the age at which misses begin, and the memory for it, without and with a window.

use echoless::theory::dense::DenseGeometry;
use echoless::{Batch, Filter, FilterSpec, KeyHash, KeyHasher};

/// Keys that never repeat.
fn fresh_keys(count: u64) -> impl Iterator<Item = KeyHash> {
    let hasher = KeyHasher::seeded(11);
    (0..count).map(move |key| hasher.hash_u64(key))
}

/// Fails unless the measured rate is within the relative error `within` of the expected one.
fn assert_close(measured: f64, expected: f64, within: f64, case: &str) {
    let error = (measured / expected - 1.0).abs();
    assert!(
        error < within,
        "{case}: {measured}, expected {expected} within {within}"
    );
}

/// The age at which 1 in 1000 recorded keys is missed, in keys, on streams of distinct keys and
/// over `rounds` fills of a filter of this shape.
fn measured_age(spec: FilterSpec, geometry: DenseGeometry, rounds: u64) -> f64 {
    /// The ages that are probed, around the expected one: 12 steps of 1 %.
    const STEPS: usize = 12;
    let expected = geometry.miss_age_keys();
    let filled = geometry.capacity() as usize * 3;
    let mut filter = spec.build().unwrap();
    let mut words = vec![0; filled.div_ceil(64)];
    let mut stream = fresh_keys(u64::MAX);
    let age_of = |step: usize| (expected * (0.94 + step as f64 * 0.01)) as usize;
    let (mut missed, mut probed) = ([0_u64; STEPS], [0_u64; STEPS]);
    for _ in 0..rounds {
        let keys: Vec<KeyHash> = stream.by_ref().take(filled).collect();
        filter.observe_batch(Batch::new(&keys), &mut words);
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
    let rates = (0..STEPS).map(|step| Rate {
        x: 0.945 + step as f64 * 0.01,
        missed: missed[step],
        probed: probed[step],
    });
    one_in_a_thousand(rates) * expected
}

/// How often keys were missed at some point `x`.
struct Rate {
    x: f64,
    missed: u64,
    probed: u64,
}

/// Where 1 in 1000 is missed. The logarithm of the rate rises nearly linearly in so short a range,
/// so that is where a line fitted to it has this value.
fn one_in_a_thousand(rates: impl Iterator<Item = Rate>) -> f64 {
    let (mut sum, mut sum_x, mut sum_y, mut sum_xx, mut sum_xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for Rate { x, missed, probed } in rates {
        let weight = missed as f64;
        let y = (weight / probed as f64).ln();
        sum += weight;
        sum_x += weight * x;
        sum_y += weight * y;
        sum_xx += weight * x * x;
        sum_xy += weight * x * y;
    }
    let slope = (sum * sum_xy - sum_x * sum_y) / (sum * sum_xx - sum_x * sum_x);
    let intercept = (sum_y - slope * sum_x) / sum;
    (1e-3_f64.ln() - intercept) / slope
}

/// The part of the age that a filter with a window reports: a bound that holds if keys recur.
const BOUND: f64 = 0.95;

fn dense_clocked(bits: u32, lines: u64, window: usize) -> FilterSpec {
    let text = format!("clocked:window={window},refresh=false,bits={bits},dense=true");
    text.parse::<FilterSpec>().unwrap().memory(lines * 64)
}

/// The keys of a window, for each line, of which 1 in 1000 is missed at the end of the window, over
/// `fills` windows of a filter of `lines` lines.
fn measured_window(bits: u32, lines: u64, fills: u64) -> f64 {
    let build = |window| dense_clocked(bits, lines, window).build().unwrap();
    let expected = build(1000).report().miss_age.unwrap().age / BOUND;
    let rates = (0..5).map(|step| {
        let x = 0.96 + f64::from(step) * 0.02;
        let window = (expected * x) as usize;
        let mut filter = build(window);
        let keys: Vec<KeyHash> = fresh_keys(window as u64 * (fills + 2)).collect();
        let (mut missed, mut probed) = (0, 0);
        let mut recorded = vec![false; keys.len()];
        for (tick, key) in keys.iter().enumerate() {
            filter.advance_to(tick as u64);
            // A key taken for another one was not recorded, and is missed when that one is.
            recorded[tick] = !filter.observe_one(*key).is_duplicate();
            let old = tick.saturating_sub(window - 1);
            if tick >= window * 2 && recorded[old] {
                probed += 1;
                missed += u64::from(!filter.contains(keys[old]));
            }
        }
        Rate { x, missed, probed }
    });
    one_in_a_thousand(rates) * expected / lines as f64
}

#[test]
fn dense_ages_are_those_of_the_formula() {
    // At most so many bits of memory for a key that is remembered.
    for (width, most_bits) in DenseGeometry::WIDTHS.iter().zip([20.0, 45.0, 115.0]) {
        for (lines, rounds, replacement) in [
            (1 << 10, 500, "lru"),
            (1 << 14, 30, "fifo"),
            (1 << 17, 4, "lru"),
        ] {
            let geometry = DenseGeometry::new(lines, width.bits()).unwrap();
            let text = format!("dense:replacement={replacement},bits={}", width.bits());
            let spec = text.parse::<FilterSpec>().unwrap().memory(lines * 64);
            let measured = measured_age(spec, geometry, rounds) / lines as f64;
            let expected = geometry.miss_age_keys() / lines as f64;
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

#[test]
fn dense_clocked_ages_are_those_of_the_formula() {
    // At most so many bits of memory for a key of the window.
    for (bits, most_bits) in [(16, 21.5), (32, 48.0), (64, 116.0)] {
        for (lines, fills) in [(1 << 10, 40), (1 << 14, 3)] {
            let measured = measured_window(bits, lines, fills);
            let filter = dense_clocked(bits, lines, 1000);
            let age = filter.build().unwrap().report().miss_age.unwrap().age;
            println!("{bits} bits, {lines} lines: {measured:.3} keys a line");
            assert_close(
                measured * BOUND,
                age / lines as f64,
                0.02,
                &format!("{bits} bits, {lines} lines"),
            );
            assert!(512.0 / measured <= most_bits, "{bits} bits: {measured}");
        }
    }
}

#[test]
fn more_lines_than_memory_can_have_are_rejected() {
    for lines in [0, (1 << 58), u64::MAX] {
        let error = DenseGeometry::new(lines, 16).unwrap_err();
        let text = format!("invalid lines={lines}: expected 1 to 288230376151711743");
        assert_eq!(error.to_string(), text);
    }
    let largest = DenseGeometry::new((1 << 58) - 1, 16).unwrap();
    assert_eq!(largest.capacity(), ((1 << 58) - 1) * 31);
}
