//! Filters whose lines expire in steps against partitions of them that are so small that all of
//! their lines expire when an era begins.

use echoless::memory::Line;
use echoless::{Filter, KeyHash, LineFilter, Tally, Verdicts};
use proptest::prelude::*;

use crate::harness::{Arrival, key_hash, kinds, streams, windows};

/// The most lines that expire at once.
const AT_ONCE: usize = 2048;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn steps_change_nothing(
        (kind, window, stream) in (kinds(), windows()).prop_flat_map(|(kind, window)| {
            (Just(kind), Just(window), streams(kind, window, 1..=400, 600))
        }),
        refresh: bool,
        pages in 33_usize..160,
        batch in prop_oneof![Just(1_usize), 2..70_usize, Just(300)],
        looked_at in 0_usize..8,
        slice in 1_usize..100,
    ) {
        let spec = kind.spec(window, refresh, pages * 64 / kind.bucket());
        let mut whole = spec.build_lines().expect("valid");
        let count = whole.lines().len() / (AT_ONCE / 2);
        let mut parts = spec.build_line_partitions(count).expect("enough lines");
        prop_assert!(whole.lines().len() > AT_ONCE);
        prop_assert!(parts.filters().iter().all(|part| part.lines().len() <= AT_ONCE));
        let mut clock = 0;
        let mut verdicts = Verdicts::new();
        for (number, batch) in stream.chunks(batch).enumerate() {
            let mut one_by_one = |arrival: &Arrival| {
                clock = clock.max(arrival.tick);
                for part in parts.filters_mut() {
                    part.advance_to(clock);
                }
                let owner = parts.partitioning().partition_of(arrival.key);
                parts.filters_mut()[owner].observe_one(arrival.key).is_duplicate()
            };
            let expected: Vec<bool> = batch.iter().map(&mut one_by_one).collect();
            let keys: Vec<KeyHash> = batch.iter().map(|arrival| arrival.key).collect();
            let ticks: Vec<u64> = batch.iter().map(|arrival| arrival.tick).collect();
            whole.observe_at(&keys, &ticks, &mut verdicts);
            let judged: Vec<bool> = (0..keys.len()).map(|at| verdicts.is_duplicate(at)).collect();
            prop_assert_eq!(judged, expected, "{}", spec);
            if number % 8 == looked_at {
                // Also where a look at the filter finds lines that wait for a step.
                for key in (0..20).map(key_hash).chain(stream.iter().map(|arrival| arrival.key)) {
                    let owner = parts.partitioning().partition_of(key);
                    let expected = parts.filters()[owner].contains(key);
                    prop_assert_eq!(whole.contains(key), expected, "{}", spec);
                }
                let expected: Tally = parts.filters().iter().map(Filter::tally).sum();
                let tally = whole.tally();
                prop_assert_eq!(tally, expected, "{}", spec);
                let pages = (0..whole.lines().len()).step_by(slice * 64);
                let slices = pages.map(|first| {
                    let end = whole.lines().len().min(first + slice * 64);
                    whole.count_lines(first..end)
                });
                let slices: Tally = slices.sum();
                prop_assert_eq!(slices.memory_bytes, tally.memory_bytes);
                let mut joint = whole.counters();
                joint.cells = slices.cells;
                joint.rates = slices.rates;
                prop_assert_eq!(joint, tally, "{}", spec);
            }
        }
        // As a state does it: copied with lines that wait, and loaded over others that wait.
        let mut copied = vec![Line::EMPTY; whole.lines().len()];
        for (number, lines) in copied.chunks_mut(701).enumerate() {
            whole.copy_lines(number * 701, lines);
        }
        let mut other = spec.build_lines().expect("valid");
        other.observe_at(&[key_hash(1), key_hash(2)], &[0, 0], &mut verdicts);
        other.advance_to(clock);
        other.load_lines(0, &copied);
        prop_assert!(other.lines() == copied);
        whole.finish_expiry();
        prop_assert!(whole.lines() == copied, "{}", spec);
        let expected: Vec<_> = parts.filters().iter().flat_map(LineFilter::lines).collect();
        prop_assert!(whole.lines().iter().collect::<Vec<_>>() == expected, "{}", spec);
    }
}
