//! The batch loop, in every variant, and the loops of short batches against a plain loop.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::*;
use crate::kernels::block::{BlockLoop, SingleVisit};

/// Counts visits in the first word of a line. A key is a duplicate if its line was visited
/// before; every third visit displaces.
struct Counting;

impl LineStep for Counting {
    type Bucket = Line;

    const FINDS_LINES: bool = true;

    fn visit(&mut self, line: &mut Line, _: KeyHash) -> Outcome {
        line.0[0] += 1;
        Outcome {
            duplicate: line.0[0] > 1,
            displaced: line.0[0].is_multiple_of(3),
        }
    }

    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        duplicates & displaced
    }
}

/// The verdicts and counts of a plain loop over the keys.
fn plain_loop(lines: &mut [Line], range: LineRange, keys: &[KeyHash]) -> (Vec<u64>, u64, u64) {
    let mut words = vec![0; keys.len().div_ceil(BLOCK)];
    let (mut duplicates, mut evictions) = (0, 0);
    for (index, key) in keys.iter().enumerate() {
        let outcome = Counting.visit(&mut lines[range.position(*key)], *key);
        words[index / 64] |= u64::from(outcome.duplicate) << (index % 64);
        duplicates += u64::from(outcome.duplicate);
        evictions += u64::from(outcome.duplicate && outcome.displaced);
    }
    (words, duplicates, evictions)
}

/// The verdicts and counts of the loop over a batch that a filter runs, with a look-ahead.
fn batch_loop(
    look_ahead: LookAhead,
    lines: &mut [Line],
    range: LineRange,
    keys: &[KeyHash],
) -> (Vec<u64>, u64, u64) {
    let mut words = vec![u64::MAX; keys.len().div_ceil(BLOCK)];
    let batch = BatchLoop {
        lines,
        range,
        keys,
        duplicates: &mut words,
        look_ahead,
        step: Counting,
    };
    let counts = batch.run();
    (words, counts.duplicates, counts.evictions)
}

/// Every look-ahead.
fn look_aheads() -> impl Iterator<Item = LookAhead> {
    let caches = [CacheLevel::L1, CacheLevel::L2];
    let of = move |blocks| {
        caches.map(|cache| [true, false].map(|way| LookAhead::new(blocks, cache, way)))
    };
    (1..=3).flat_map(of).flatten()
}

/// The verdicts and counts of the loop for up to 64 keys, which single visits agree with.
fn block_loop(lines: &mut [Line], range: LineRange, keys: &[KeyHash]) -> (Vec<u64>, u64, u64) {
    let mut words = vec![u64::MAX; keys.len().div_ceil(BLOCK)];
    let mut single = lines.to_vec();
    let block = BlockLoop {
        lines: &mut *lines,
        range,
        keys,
        duplicates: &mut words,
        cache: CacheLevel::L1,
        step: Counting,
    };
    let counts = block.run();
    let (mut duplicates, mut evictions) = (0, 0);
    for key in keys {
        let bucket = &mut single[range.position(*key)];
        let (key, step) = (*key, Counting);
        let counts = SingleVisit { bucket, key, step }.run();
        duplicates += counts.duplicates;
        evictions += counts.evictions;
    }
    assert!(single == lines);
    assert_eq!(
        (duplicates, evictions),
        (counts.duplicates, counts.evictions)
    );
    (words, counts.duplicates, counts.evictions)
}

/// `count` keys of the lines from 100 on, of 300.
fn keys(count: usize) -> (LineRange, Vec<KeyHash>) {
    let range = LineRange {
        total: 300,
        first: 100,
    };
    let keys = (0..).map(|number| KeyHash(KeyHash(number).remix(7)));
    let keys = keys.filter(|key| key.line(300) >= 100).take(count);
    (range, keys.collect())
}

#[test]
fn every_variant_agrees_with_the_plain_loop() {
    for count in [
        0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 1000, 1024,
    ] {
        let (range, keys) = keys(count);
        let mut plain = vec![Line::EMPTY; 200];
        let expected = plain_loop(&mut plain, range, &keys);
        if count <= BLOCK {
            let mut lines = vec![Line::EMPTY; 200];
            assert_eq!(block_loop(&mut lines, range, &keys), expected);
            assert!(lines == plain, "{count} keys");
        }
        for look_ahead in look_aheads() {
            let mut lines = vec![Line::EMPTY; 200];
            let counted = batch_loop(look_ahead, &mut lines, range, &keys);
            assert_eq!(counted, expected, "{count} keys, {look_ahead}");
            assert!(lines == plain, "{count} keys, {look_ahead}");
        }
    }
}

proptest! {
    /// A filter that measures changes its look-ahead from batch to batch.
    #[test]
    fn any_sequence_of_look_aheads_agrees_with_the_plain_loop(
        batches in prop::collection::vec((65_usize..700, 0_usize..12), 1..20),
    ) {
        let choices: Vec<LookAhead> = look_aheads().collect();
        let (range, all) = keys(batches.iter().map(|batch| batch.0).sum());
        let (mut plain, mut lines) = (vec![Line::EMPTY; 200], vec![Line::EMPTY; 200]);
        let mut rest = &all[..];
        for (count, choice) in batches {
            let (keys, later) = rest.split_at(count);
            let expected = plain_loop(&mut plain, range, keys);
            prop_assert_eq!(batch_loop(choices[choice], &mut lines, range, keys), expected);
            rest = later;
        }
        prop_assert!(lines == plain);
    }
}

#[test]
fn short_batches_and_many_lines_are_not_found_in_vectors() {
    let many = u64::from(u32::MAX);
    for (count, total, in_vectors) in [
        (255, 300, false),
        (256, 300, true),
        (1000, many, true),
        (1000, many + 1, false),
    ] {
        let look_ahead = LookAhead::new(3, CacheLevel::L1, true);
        let batch = BatchLoop {
            lines: &mut [],
            range: LineRange { total, first: 0 },
            keys: &vec![KeyHash(0); count],
            duplicates: &mut [],
            look_ahead,
            step: Counting,
        };
        assert_eq!(
            batch.finds_in_vectors(),
            in_vectors,
            "{count} keys, {total} lines"
        );
    }
}

/// Lines whose numbers have more than 32 bits, in a part of the filter that exists.
#[test]
fn more_than_32_bits_of_lines_agree_with_the_plain_loop() {
    let total = 1 << 33;
    for first in [0, (1 << 32) - 50, (1 << 32) + 7, total - 100] {
        let range = LineRange { total, first };
        // A line is the 33 high bits of a hash.
        let key = |number: u64| (first + number * 37 % 100) << 31 | KeyHash(number).remix(1) >> 33;
        for count in [1, 64, 65, 255, 256, 1000] {
            let keys: Vec<KeyHash> = (0..count).map(|number| KeyHash(key(number))).collect();
            let (mut plain, mut lines) = (vec![Line::EMPTY; 100], vec![Line::EMPTY; 100]);
            let expected = plain_loop(&mut plain, range, &keys);
            assert_eq!(
                batch_loop(LookAhead::INITIAL, &mut lines, range, &keys),
                expected
            );
            assert!(lines == plain, "{count} keys from line {first} on");
            if count <= 64 {
                let mut lines = vec![Line::EMPTY; 100];
                assert_eq!(block_loop(&mut lines, range, &keys), expected);
            }
        }
    }
}

#[test]
fn a_key_outside_the_range_panics() {
    let (range, mut keys) = keys(2000);
    keys.retain(|key| key.line(300) < 200);
    for (stray, index) in [(0, 3), (0, 300), (u64::MAX, 3), (u64::MAX, 300)] {
        let mut keys = keys.clone();
        let mut lines = vec![Line::EMPTY; 100];
        batch_loop(LookAhead::INITIAL, &mut lines, range, &keys);
        keys[index] = KeyHash(stray);
        for look_ahead in look_aheads() {
            let rejected = catch_unwind(AssertUnwindSafe(|| {
                batch_loop(look_ahead, &mut lines, range, &keys);
            }));
            assert!(rejected.is_err(), "key {stray} at {index}");
        }
        // The loop of a short batch, and the bucket that `LineFilter` finds for a single visit.
        let short = &keys[index..][..1];
        let rejected = catch_unwind(AssertUnwindSafe(|| {
            block_loop(&mut lines, range, short);
        }));
        assert!(rejected.is_err(), "key {stray} alone");
        let rejected = catch_unwind(AssertUnwindSafe(|| {
            let bucket = Line::at_mut(&mut lines, range.position(keys[index]));
            let (key, step) = (keys[index], Counting);
            SingleVisit { bucket, key, step }.run()
        }));
        assert!(rejected.is_err(), "a single visit of key {stray}");
    }
}
