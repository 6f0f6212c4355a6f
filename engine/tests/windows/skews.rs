//! Keys that are judged at their own ticks, with lines that are lists of keys, and with all times
//! of a key.

use std::collections::HashMap;

use echoless::{Batch, Filter, FilterSpec};
use proptest::prelude::*;

use crate::harness::{Arrival, observe_at};
use crate::kernels::kernels;

/// The keys of a full line, and the most units that are remembered.
const SLOTS: usize = 8;
const MOST: u64 = 1 << 20;

/// Lines that are lists of keys with their units, in the order of their arrival.
struct Lists {
    unit: u64,
    window: u64,
    /// A key is alive while its unit is so far behind the clock.
    alive: u64,
    refresh: bool,
    lines: Vec<Vec<(u64, u64)>>,
    now: u64,
    evictions: u64,
}

impl Lists {
    fn observe(&mut self, arrival: Arrival) -> bool {
        let tick = arrival.tick / self.unit;
        self.now = self.now.max(tick);
        let earliest = self.now.saturating_sub(self.alive);
        let own = tick.max(earliest);
        let line = arrival.key.line(self.lines.len() as u64) as usize;
        let line = &mut self.lines[line];
        line.retain(|(_, unit)| *unit >= earliest);
        let key = arrival.key.get();
        let near = |(held, unit): &(u64, u64)| *held == key && unit.abs_diff(own) <= self.window;
        let found = line.iter().position(near);
        match found {
            Some(index) if self.refresh => {
                let (_, unit) = line.remove(index);
                line.insert(0, (key, own.max(unit)));
            }
            Some(_) => {}
            None => {
                if line.len() == SLOTS {
                    line.pop();
                    self.evictions += 1;
                }
                line.insert(0, (key, own));
            }
        }
        found.is_some()
    }

    fn live(&self) -> u64 {
        let units = self.lines.iter().flatten();
        units
            .filter(|(_, unit)| self.now - unit <= self.alive)
            .count() as u64
    }
}

fn spec(window: u64, skew: u64, refresh: bool, lines: usize) -> FilterSpec {
    let memory = lines * 64;
    format!("stamped:window={window},skew={skew},refresh={refresh},memory={memory}B")
        .parse()
        .expect("valid")
}

fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![
        1_u64..30,
        Just(1000_u64),
        1_000_000_u64..3_000_000,
        Just(1_u64 << 40)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_kernel_and_partitioning_agrees_with_lists(
        (window, skew, lines, stream) in (lengths(), lengths(), 1_usize..6).prop_flat_map(
            |(window, skew, lines)| {
                let wrap = (window + skew).div_ceil(MOST) << 24;
                let keys = 1..=(SLOTS * lines * 2) as u64;
                let stream = crate::arrivals::arrivals(window + skew, wrap / 2, keys, 800);
                (Just(window), Just(skew), Just(lines), stream)
            }
        ),
        refresh: bool,
        parts in 1_usize..6,
        batch in prop_oneof![1_usize..200, Just(800)],
    ) {
        let spec = spec(window, skew, refresh, lines);
        let unit = (window + skew).div_ceil(MOST);
        let mut model = Lists {
            unit,
            window: window.div_ceil(unit),
            alive: (window + skew).div_ceil(unit),
            refresh,
            lines: vec![Vec::new(); lines],
            now: 0,
            evictions: 0,
        };
        let expected: Vec<bool> = stream.iter().map(|arrival| model.observe(*arrival)).collect();
        for kernel in kernels() {
            let mut filter = spec.kernel(kernel).build_lines().expect("valid");
            prop_assert_eq!(&observe_at(&mut *filter, &stream, batch), &expected, "{} on {}", spec, kernel);
            let tally = filter.tally();
            prop_assert_eq!(tally.evictions, Some(model.evictions), "{}", spec);
            prop_assert_eq!(tally.cells.map(|cells| cells.occupied), Some(model.live()), "{}", spec);
            // Keys without ticks are judged at the clock.
            for arrival in &stream {
                let key = arrival.key;
                let held = &model.lines[key.line(lines as u64) as usize];
                let held = held.iter().any(|(held, unit)| {
                    *held == key.get() && model.now - unit <= model.window
                });
                prop_assert_eq!(filter.contains(key), held, "{}", spec);
            }
            if let Some(first) = stream.first() {
                let held = filter.contains(first.key);
                prop_assert_eq!(filter.observe_one(first.key).is_duplicate(), held, "{}", spec);
            }
        }
        let mut parts = spec.build_partitions(1 + parts % lines).expect("enough lines");
        let mut clock = 0;
        for (arrival, expected) in stream.iter().zip(&expected) {
            // Each partition gets the time of the stream with each of its keys.
            clock = clock.max(arrival.tick);
            let owner = parts.partitioning().partition_of(arrival.key);
            let part = &mut parts.filters_mut()[owner];
            part.advance_to(clock);
            let mut verdict = [0];
            part.observe_batch(Batch::at(&[arrival.key], arrival.tick), &mut verdict);
            prop_assert_eq!(verdict[0] == 1, *expected, "{}", spec);
        }
    }

    /// A key that is at most the skew late is a duplicate if and only if one was recorded at most a
    /// window before or after it.
    #[test]
    fn within_the_skew_verdicts_are_exact(
        window in 1_u64..500,
        skew in 1_u64..2000,
        steps in prop::collection::vec((0_u64..20, 0_u64..=1000, 0_u64..30), 0..600),
    ) {
        let mut filter = spec(window, skew, false, 4096).build_lines().expect("valid");
        let mut recorded: HashMap<u64, Vec<u64>> = HashMap::new();
        // When the line of a key was last full, and may have evicted one of its times.
        let mut full: HashMap<u64, u64> = HashMap::new();
        let mut clock = 100_000;
        for (step, late, key) in steps {
            clock += step;
            let tick = clock - skew * late / 1000;
            // Of 30 keys, no two share a line.
            let hash = echoless::KeyHash::from_uniform(key << 59 | 1);
            let times = recorded.entry(key).or_default();
            let expected = times.iter().any(|time| time.abs_diff(tick) <= window);
            filter.advance_to(clock);
            let mut verdict = [0];
            filter.observe_batch(Batch::at(&[hash], tick), &mut verdict);
            let live = times.iter().filter(|time| clock - **time <= window + skew);
            if live.count() >= SLOTS {
                full.insert(key, clock);
            }
            if full.get(&key).is_none_or(|since| clock - since > window + skew) {
                prop_assert_eq!(verdict[0] == 1, expected);
            }
            if verdict[0] == 0 {
                times.push(tick);
            }
        }
    }
}
