//! Tests of the sample of fresh verdicts: even choices, hot keys, bursts, windows.

use std::collections::{HashMap, HashSet};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::hash::KeyHasher;

fn observe(sample: &mut FreshSample<u64>, key: u64, now: u64, window: u64) {
    let key = KeyHasher::seeded(1).hash_u64(key);
    let chosen = sample.choices.choose();
    if chosen || sample.may_hold(key) {
        let over = |then: &u64| now - then > window;
        sample.fresh(key, now, chosen, |then| !over(then), over);
    }
}

fn value(sample: &FreshSample<u64>) -> u64 {
    sample.surely_missed + sample.missed.estimate().value
}

#[test]
fn few_keys_are_counted_exactly() {
    let mut sample = FreshSample::new();
    let (mut seen, mut missed) = (HashSet::new(), 0);
    for number in 0..100_000_u64 {
        let key = number * number % 7001;
        observe(&mut sample, key, number, u64::MAX);
        missed += u64::from(!seen.insert(key));
    }
    assert_eq!(value(&sample), missed);
    assert!(sample.missed.estimate().is_exact());
}

#[test]
fn verdicts_are_chosen_evenly() {
    let mut sample = FreshSample::new();
    for key in 0..1_000_000 {
        observe(&mut sample, key, key, u64::MAX);
    }
    assert!(sample.held.len() <= CAPACITY);
    let expected = 1_000_000 >> sample.choices.halvings();
    let error = sample.held.len() as f64 / f64::from(expected) - 1.0;
    assert!(error.abs() < 0.05, "{error}");
    let early = (sample.held.values()).filter(|held| held.last < 500_000);
    let early = early.count() as f64 / sample.held.len() as f64;
    assert!((early - 0.5).abs() < 0.05, "{early}");
}

#[test]
fn the_choices_of_one_stream_are_not_those_of_another() {
    // The same stream under different hashes: 100,000 keys, and 25,000 of them twice again.
    let ratios: Vec<f64> = (0..40)
        .map(|seed| {
            let hasher = KeyHasher::seeded(seed);
            let mut sample = FreshSample::new();
            for key in (0..100_000).chain(75_000..100_000).chain(75_000..100_000) {
                let key = hasher.hash_u64(key);
                let chosen = sample.choices.choose();
                if chosen || sample.may_hold(key) {
                    sample.fresh(key, (), chosen, |()| true, |()| false);
                }
            }
            let counted = sample.surely_missed + sample.missed.estimate().value;
            counted as f64 / 50_000.0
        })
        .collect();
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
    let squares = ratios.iter().map(|ratio| (ratio - mean).powi(2));
    let deviation = (squares.sum::<f64>() / count).sqrt();
    assert!((0.01..0.1).contains(&deviation), "{deviation}");
}

#[test]
fn hot_keys_are_found_wherever_they_begin() {
    // 20 keys of 1000 misses each among a million fresh ones.
    for first in [0_u64, 500_000] {
        let mut sample = FreshSample::new();
        let mut missed = 0;
        for number in 0..1_000_000 {
            observe(&mut sample, number + 1000, number, u64::MAX);
            if number >= first && number % 20 == 0 && missed < 20_000 {
                observe(&mut sample, number / 20 % 20, number, u64::MAX);
                missed += 1;
            }
        }
        let error = value(&sample) as f64 / f64::from(missed - 20) - 1.0;
        assert!(error.abs() < 0.2, "{first}: {error}");
    }
}

#[test]
fn bursts_are_counted_without_bias() {
    // Each key up to 60 times in a row, and most only once.
    let mut sample = FreshSample::new();
    let (mut missed, mut random) = (0, SplitMix64::seed_from_u64(8));
    for key in 0..1_000_000 {
        let times = match random.next_u64() % 100 {
            0 => 1 + random.next_u64() % 60,
            _ => 1,
        };
        for _ in 0..times {
            observe(&mut sample, key, key, u64::MAX);
        }
        missed += times - 1;
    }
    assert!(sample.choices.halvings() >= 7);
    let error = value(&sample) as f64 / missed as f64 - 1.0;
    assert!(error.abs() < 0.05, "{error}");
}

#[test]
fn estimates_are_unbiased_under_every_rule_of_leaving() {
    // More repeating keys than the table keeps, of different frequencies.
    let mut sample = FreshSample::new();
    let mut seen: HashMap<u64, ()> = HashMap::new();
    let mut missed = 0_u64;
    let mut random = SplitMix64::seed_from_u64(5);
    for number in 0..2_000_000_u64 {
        let bound = 1 << (random.next_u64() % 20);
        let key = random.next_u64() % bound + bound;
        missed += u64::from(seen.insert(key, ()).is_some());
        observe(&mut sample, key, number, u64::MAX);
    }
    assert!(sample.choices.halvings() >= 5 && sample.surely_missed > 0);
    let error = value(&sample) as f64 / missed as f64 - 1.0;
    assert!(error.abs() < 0.02, "{error}");
}

#[test]
fn what_is_over_is_no_miss_and_makes_room() {
    let mut sample = FreshSample::new();
    // Every key comes again 1000 later, at first inside the window and then beyond it.
    for number in 0..400_000_u64 {
        let window = if number < 200_000 { 1000 } else { 999 };
        observe(&mut sample, number % 1000, number, window);
    }
    assert_eq!(value(&sample), 199_000);
    // Keys that never repeat leave with the window, so all of them are sampled.
    for number in 400_000..800_000_u64 {
        observe(&mut sample, number, number, 1000);
    }
    assert_eq!((sample.choices.halvings(), value(&sample)), (0, 199_000));
}

#[test]
fn a_duplicate_renews_its_key_or_ends_it() {
    for (age, held) in [(10, true), (11, false)] {
        let mut sample = FreshSample::new();
        observe(&mut sample, 1, 0, 10);
        let key = KeyHasher::seeded(1).hash_u64(1);
        sample.duplicate(key, age, |then| age - then > 10);
        observe(&mut sample, 1, age + 10, 10);
        assert_eq!(value(&sample), u64::from(held));
    }
}
