//! The bounds of the audit of a window hold on at least 95 of 100 streams.

use std::collections::HashMap;

use echoless::audit::{Moment, WindowAudit};
use echoless::{Filter, FilterSpec, KeyHasher};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::bounds::holds;

const LENGTH: u64 = 60_000;

/// The keys of stream `number`: uniform, skewed, new ones with a few hot ones, or repeated after a
/// gap.
fn keys(number: u64) -> Vec<u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let size = 500 << (number / 4 % 6);
    (0..LENGTH)
        .map(|index| {
            let (first, second) = (random.next_u64(), random.next_u64());
            match number % 4 {
                0 => first % size,
                // A random bound makes small keys more frequent.
                1 => first % (second % (4 * size) + 1),
                2 if index % (2 + number) == 0 => index % 7,
                3 if index % 3 == 0 && index > size => index - size,
                2 | 3 => index + (1 << 40),
                4.. => unreachable!("a remainder of 4"),
            }
        })
        .collect()
}

#[test]
fn bounds_hold_on_at_least_95_of_100_streams() {
    for filter in [
        "clocked:window=2000,refresh=true,bits=32",
        "clocked:window=2000,refresh=false,bits=16",
        "clocked:window=2000,refresh=false,bits=32,dense=true",
        "stamped:window=2000,refresh=true,bits=64",
        "stamped:window=2000,refresh=false,bits=32",
        "tbf:window=2000",
        "gbf:window=2000",
        "apbf:window=2000",
        "apbf:window=2000,k=4,l=3",
    ] {
        let (mut missed_held, mut mistaken_held, mut rate_held) = (0, 0, 0);
        for number in 0..100 {
            // From a few lines on, or from one page on.
            let least = if filter.contains("dense=true") {
                4096
            } else {
                256
            };
            let memory = least << (number % 5);
            let spec: FilterSpec = format!("{filter},memory={memory}B").parse().unwrap();
            let refresh = spec.renews_keys();
            let window = spec.window().unwrap();
            let mut filter = spec.build().unwrap();
            let mut audit = WindowAudit::new(window, refresh);
            let hasher = KeyHasher::seeded(number);
            let mut recorded: HashMap<u64, u64> = HashMap::new();
            let (mut missed, mut mistaken, mut inside_window) = (0, 0, 0);
            for (index, key) in (0..).zip(keys(number)) {
                let tick = index / (1 + number % 9);
                filter.advance_to(tick);
                let hash = hasher.hash_u64(key);
                let verdict = filter.observe_one(hash);
                let duplicate = verdict.is_duplicate();
                let number = index;
                audit.observe(hash, || Moment { tick, number }, verdict);
                let age = recorded.get(&key).map(|then| tick - then);
                let inside = age.is_some_and(|age| age <= window.ticks);
                let over = age.is_none_or(|age| age >= window.ticks + window.granule);
                inside_window += u64::from(inside);
                missed += u64::from(inside && !duplicate);
                mistaken += u64::from(over && duplicate);
                if refresh || !duplicate {
                    recorded.insert(key, tick);
                }
            }
            let report = filter.report();
            let errors = audit.estimates(Some(&report));
            missed_held += u64::from(holds(errors.missed_duplicates, missed));
            mistaken_held += u64::from(holds(errors.false_duplicates, mistaken));
            let fnr = missed as f64 / inside_window.max(1) as f64;
            // There is no rate if there can have been no duplicate.
            rate_held += u64::from(errors.fnr().map_or(inside_window == 0, |rate| {
                rate.low <= fnr + 1e-9 && fnr <= rate.high + 1e-9
            }));
        }
        println!(
            "{filter}: missed {missed_held}, mistaken {mistaken_held}, rate {rate_held} of 100"
        );
        assert!(missed_held >= 95, "{filter}: {missed_held}");
        assert!(mistaken_held >= 95, "{filter}: {mistaken_held}");
        assert!(rate_held >= 95, "{filter}: {rate_held}");
    }
}
