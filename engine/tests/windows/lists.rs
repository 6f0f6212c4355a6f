//! Every verdict and counter, with lines that are lists of keys.

use echoless::report_of;
use proptest::prelude::*;

use crate::harness::{Arrival, Kind, kinds, observe, observe_at, streams, windows};
use crate::kernels::kernels;

/// Lines that are lists of keys with the units of their times, newest first.
struct Lists {
    kind: Kind,
    unit: u64,
    /// A key is alive while its unit is so far behind the clock.
    alive: u64,
    refresh: bool,
    lines: Vec<Vec<(u64, u64)>>,
    now: u64,
    evictions: u64,
    /// Keys that expired and were dropped when their line was visited.
    dropped: u64,
}

impl Lists {
    fn new(kind: Kind, window: u64, refresh: bool, lines: usize) -> Self {
        let unit = kind.unit(window);
        Self {
            kind,
            unit,
            alive: window.div_ceil(unit),
            refresh,
            lines: vec![Vec::new(); lines],
            now: 0,
            evictions: 0,
            dropped: 0,
        }
    }

    fn observe(&mut self, arrival: Arrival) -> bool {
        self.now = self.now.max(arrival.tick / self.unit);
        let (now, alive) = (self.now, self.alive);
        let lines = self.kind.lines_of(arrival.key, self.lines.len());
        for line in &lines {
            let line = &mut self.lines[*line];
            let before = line.len();
            line.retain(|(_, unit)| now - unit <= alive);
            self.dropped += (before - line.len()) as u64;
        }
        let place = |line: usize| {
            let mut keys = self.lines[line].iter();
            keys.position(|(key, _)| *key == arrival.key.get())
        };
        // The line that holds the key. Else the one with fewer keys; of equal ones, with fewer that
        // are younger by a unit, and so on; of equal ones the first.
        let holding = lines.iter().copied().find(|line| place(*line).is_some());
        let line = holding.unwrap_or_else(|| {
            let ages = |line: usize| -> Vec<usize> {
                let at_most = |age| {
                    self.lines[line]
                        .iter()
                        .filter(move |key| now - key.1 <= age)
                };
                (0..=alive).rev().map(|age| at_most(age).count()).collect()
            };
            let fewest = if self.kind.bucket() == 1 {
                None
            } else {
                lines.iter().copied().min_by_key(|line| ages(*line))
            };
            fewest.unwrap_or(lines[0])
        });
        let found = place(line);
        let line = &mut self.lines[line];
        match found {
            Some(index) if self.refresh => {
                line.remove(index);
            }
            Some(_) => return true,
            None if line.len() == self.kind.slots => {
                line.pop();
                self.evictions += 1;
            }
            None => {}
        }
        line.insert(0, (arrival.key.get(), now));
        found.is_some()
    }

    fn live(&self) -> u64 {
        let lines = self.lines.iter().flatten();
        let live = lines.filter(|(_, unit)| self.now - unit <= self.alive);
        live.count() as u64
    }

    fn expired(&self) -> u64 {
        let held = self.lines.iter().map(Vec::len).sum::<usize>() as u64;
        self.dropped + held - self.live()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_kernel_and_partitioning_agrees_with_lists(
        (kind, window, lines, stream) in (kinds(), windows(), 1_usize..6).prop_flat_map(
            |(kind, window, lines)| {
                let keys = 1..=(kind.slots * lines * 2) as u64;
                (Just(kind), Just(window), Just(lines), streams(kind, window, keys, 800))
            }
        ),
        refresh: bool,
        parts in 1_usize..6,
        batch in prop_oneof![1_usize..200, Just(800)],
    ) {
        let (spec, buckets) = (kind.spec(window, refresh, lines), lines);
        let lines = buckets * kind.bucket();
        let stream = kind.crowded(stream, lines);
        let mut model = Lists::new(kind, window, refresh, lines);
        let expected: Vec<bool> = stream.iter().map(|arrival| model.observe(*arrival)).collect();
        let mut reports = Vec::new();
        let mut bytes = Vec::new();
        for kernel in kernels() {
            let mut filter = spec.kernel(kernel).build_lines().expect("valid");
            prop_assert_eq!(&observe(&mut *filter, &stream), &expected, "{} on {}", spec, kernel);
            let others = (0..20).map(crate::harness::key_hash);
            for key in others.chain(stream.iter().map(|arrival| arrival.key)) {
                let held = kind.lines_of(key, lines);
                let held = held.iter().flat_map(|line| &model.lines[*line]);
                let mut held = held.filter(|(_, unit)| model.now - unit <= model.alive);
                prop_assert_eq!(filter.contains(key), held.any(|(other, _)| *other == key.get()));
            }
            let mut report = filter.report();
            prop_assert_eq!(report.tally.evictions, Some(model.evictions));
            prop_assert_eq!(report.tally.cells.map(|cells| cells.occupied), Some(model.live()));
            prop_assert_eq!(report.expired, Some(model.expired()));
            bytes.push(filter.lines().to_vec());
            filter.clear();
            prop_assert_eq!(&observe(&mut *filter, &stream), &expected, "{} cleared", spec);
            // Keys with their own ticks, in batches that eras begin anywhere in.
            let mut ticked = spec.kernel(kernel).build_lines().expect("valid");
            prop_assert_eq!(&observe_at(&mut *ticked, &stream, batch), &expected, "{} at", spec);
            prop_assert!(ticked.lines() == filter.lines(), "{} at", spec);
            prop_assert_eq!(ticked.report().tally, filter.report().tally, "{} at", spec);
            report.kernel = None;
            reports.push(report);
        }
        prop_assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]), "{}", spec);
        let count = 1 + parts % buckets;
        let mut parts = spec.build_partitions(count).expect("enough lines");
        let mut clock = 0;
        for (arrival, expected) in stream.iter().zip(&expected) {
            // Each partition gets the time of the stream with each of its keys, and at the end.
            clock = clock.max(arrival.tick);
            let owner = parts.partitioning().partition_of(arrival.key);
            let part = &mut parts.filters_mut()[owner];
            part.advance_to(clock);
            prop_assert_eq!(part.observe_one(arrival.key).is_duplicate(), *expected, "{}", spec);
        }
        for part in parts.filters_mut() {
            part.advance_to(clock);
        }
        let mut report = report_of(parts.filters());
        report.kernel = None;
        for whole in reports {
            prop_assert_eq!(whole, report, "{}", spec);
        }
    }
}
