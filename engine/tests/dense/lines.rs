//! Dense lines: two queues and two counters for each key, as the documentation describes them.

use std::collections::VecDeque;

use echoless::filters::lines::LineFilter;
use echoless::theory::dense::DenseGeometry;
use echoless::{Filter, FilterSpec, KeyHash, KeyHasher, report_of};
use proptest::prelude::*;

use crate::kernels::kernels;
use crate::verdicts::observe_all;

fn parse(text: &str) -> FilterSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Every width and policy.
const SPECS: [&str; 6] = [
    "dense:replacement=fifo,bits=16",
    "dense:replacement=lru,bits=16",
    "dense:replacement=fifo,bits=32",
    "dense:replacement=lru,bits=32",
    "dense:replacement=fifo,bits=64",
    "dense:replacement=lru,bits=64",
];

/// A line: the fingerprints, newest first, and the load.
#[derive(Clone, Default)]
struct Queue {
    keys: VecDeque<u64>,
    load: i64,
}

/// A filter of dense lines.
struct Model {
    lines: Vec<Queue>,
    bits: u32,
    lru: bool,
    /// The fingerprints of a line, and from which one on the highest bit is not stored.
    slots: usize,
    whole: usize,
    /// The load: its bits, what an insertion adds, the divisor of the difference.
    load: (u32, i64, i64),
    evictions: u64,
}

impl Model {
    fn new(text: &str, pages: usize) -> Self {
        let (bits, slots, whole, load) = if text.ends_with("16") {
            (16, 31, 31, (16, 32, 8))
        } else if text.ends_with("32") {
            (32, 16, 11, (5, 2, 4))
        } else {
            (64, 8, 0, (8, 8, 4))
        };
        Self {
            lines: vec![Queue::default(); pages * 64],
            bits,
            lru: text.contains("lru"),
            slots,
            whole,
            load,
            evictions: 0,
        }
    }

    /// The lines of a key, and its random bits.
    fn position(&self, key: KeyHash) -> ([usize; 2], i64) {
        let home = key.line(self.lines.len() as u64) as usize;
        let product = key.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let step = (product >> 58).max(1) as usize;
        ([home, home ^ step], (product >> 32 & 0xff) as i64)
    }

    /// The low bits of the hash. One that is 0 where its highest bit is not stored is one more.
    fn fingerprint(&self, key: KeyHash) -> u64 {
        let low = key.get() & (u64::MAX >> (64 - self.bits));
        let stored = if self.whole == self.slots {
            low
        } else {
            self.shortened(low)
        };
        if stored == 0 { low + 1 } else { low }
    }

    fn shortened(&self, fingerprint: u64) -> u64 {
        fingerprint & (u64::MAX >> (65 - self.bits))
    }

    fn find(&self, line: usize, fingerprint: u64) -> Option<usize> {
        let mut keys = self.lines[line].keys.iter().enumerate();
        keys.position(|(slot, held)| {
            if slot < self.whole {
                *held == fingerprint
            } else {
                self.shortened(*held) == self.shortened(fingerprint)
            }
        })
    }

    fn contains(&self, key: KeyHash) -> bool {
        let (lines, _) = self.position(key);
        let fingerprint = self.fingerprint(key);
        lines
            .iter()
            .any(|line| self.find(*line, fingerprint).is_some())
    }

    /// Whether the key is a duplicate. Updates the lines.
    fn visit(&mut self, key: KeyHash) -> bool {
        let (lines, coin) = self.position(key);
        let fingerprint = self.fingerprint(key);
        for line in lines {
            if let Some(slot) = self.find(line, fingerprint) {
                if self.lru {
                    // The part of an insertion that the slot is of a line.
                    let slots = 512 / i64::from(self.bits);
                    let coin = (coin + 37 * self.lines[line].load) % slots;
                    let added = (self.load.1 * slot as i64 + coin) / slots;
                    self.add(line, added);
                    self.lines[line].keys.remove(slot);
                    self.push(line, fingerprint);
                }
                return true;
            }
        }
        let (load_bits, insertion, divisor) = self.load;
        let range = 1_i64 << load_bits;
        // By how much the partner is ahead of the home, from -range / 2 on.
        let ahead = self.lines[lines[1]].load - self.lines[lines[0]].load;
        let ahead = (ahead + range / 2).rem_euclid(range) - range / 2;
        let line = if ahead >= 0 { lines[0] } else { lines[1] };
        let coin = (coin + 37 * self.lines[line].load) % divisor;
        let added = insertion + (ahead.abs() + coin) / divisor;
        self.add(line, added);
        if self.lines[line].keys.len() == self.slots {
            self.lines[line].keys.pop_back();
            self.evictions += 1;
        }
        self.push(line, fingerprint);
        false
    }

    fn add(&mut self, line: usize, added: i64) {
        let load = &mut self.lines[line].load;
        *load = (*load + added) % (1 << self.load.0);
    }

    /// Puts a fingerprint in front. The one that enters the shortened slots loses a bit.
    fn push(&mut self, line: usize, fingerprint: u64) {
        self.lines[line].keys.push_front(fingerprint);
        if let Some(entered) = self.lines[line].keys.get(self.whole).copied() {
            self.lines[line].keys[self.whole] = self.shortened(entered);
        }
    }
}

fn spec(text: &str, pages: usize) -> FilterSpec {
    parse(&format!("{text},memory={}KiB", pages * 4))
}

fn keys(stream: &[u64]) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(9);
    stream.iter().map(|key| hasher.hash_u64(*key)).collect()
}

/// Streams of some pages: many repeats, near and far; some keys crowd into few lines and some
/// have fingerprints that are nearly 0 or differ in their highest bit alone.
fn streams() -> impl Strategy<Value = Vec<KeyHash>> {
    let hash = KeyHasher::seeded(9);
    let key = (0_u64..4000, 0_u32..8).prop_map(move |(number, kind)| match kind {
        0..=4 => hash.hash_u64(number),
        // The first lines, few fingerprints.
        5 => KeyHash::from_uniform(((number % 50) << 32) | (number % 7)),
        6 => KeyHash::from_uniform(
            (hash.hash_u64(number % 300).get() & !0xffff_ffff) | ((number % 3) << 31),
        ),
        _ => KeyHash::from_uniform((hash.hash_u64(number % 300).get() & !0xffff) | (number % 3)),
    });
    prop::collection::vec(key, 0..6000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn dense_lines_agree_with_two_queues_and_their_loads(
        text in prop::sample::select(SPECS.to_vec()),
        stream in streams(),
        pages in 1_usize..4,
        batch in 1_usize..700,
    ) {
        let spec = spec(text, pages);
        let mut model = Model::new(text, pages);
        let expected: Vec<bool> = stream.iter().map(|key| model.visit(*key)).collect();
        let others = keys(&(2000..5000).collect::<Vec<_>>());
        for kernel in kernels() {
            let mut filter = spec.kernel(kernel).build_lines().unwrap();
            prop_assert_eq!(&observe_all(&mut *filter, &stream, batch), &expected, "{} {}", text, kernel);
            for key in others.iter().chain(&stream) {
                prop_assert_eq!(filter.contains(*key), model.contains(*key), "{} {}", text, kernel);
            }
            let report = filter.report();
            let fresh = expected.iter().filter(|duplicate| !**duplicate).count() as u64;
            prop_assert_eq!(report.tally.evictions, Some(model.evictions));
            prop_assert_eq!(report.tally.fresh, Some(fresh));
            let held: usize = model.lines.iter().map(|line| line.keys.len()).sum();
            prop_assert_eq!(report.tally.cells.unwrap().occupied, held as u64);
            filter.clear();
            prop_assert_eq!(&observe_all(&mut *filter, &stream, 1000), &expected, "{} cleared", text);
        }
    }

    #[test]
    fn partitions_equal_the_whole(
        text in prop::sample::select(SPECS.to_vec()),
        stream in streams(),
        pages in 3_usize..40,
        count in 1_usize..4,
        batch in 1_usize..6000,
    ) {
        let spec = spec(text, pages);
        let mut whole = spec.build_lines().unwrap();
        let expected = observe_all(&mut *whole, &stream, 512);
        let mut other = spec.build_lines().unwrap();
        prop_assert_eq!(&observe_all(&mut *other, &stream, batch), &expected);
        prop_assert_eq!(other.lines(), whole.lines());

        let mut parts = spec.build_line_partitions(count).unwrap();
        for (key, expected) in stream.iter().zip(&expected) {
            let owner = parts.partitioning().partition_of(*key);
            let part = &mut parts.filters_mut()[owner];
            prop_assert_eq!(part.observe_one(*key).is_duplicate(), *expected);
        }
        let lines: Vec<_> = parts.filters().iter().flat_map(|part| part.lines().iter()).copied().collect();
        prop_assert_eq!(&lines[..], whole.lines());
        prop_assert_eq!(report_of(parts.filters()), whole.report());
    }

    #[test]
    fn keys_crowded_into_a_page_change_nothing_beyond_it(
        text in prop::sample::select(SPECS.to_vec()),
        stream in prop::collection::vec(0_u64..9000, 1..9000),
        crowd in prop::collection::vec(any::<u64>(), 1..5000),
        page in 0_u64..4,
    ) {
        // The keys of a page are an interval of hashes: a quarter of all in a filter of four pages.
        let crowd: Vec<KeyHash> = (crowd.iter().map(|hash| KeyHash::from_uniform(hash >> 2 | page << 62))).collect();
        let stream = keys(&stream);
        let spec = spec(text, 4);
        let mut alone = spec.build_lines().unwrap();
        let expected = observe_all(&mut *alone, &stream, 100);
        let mut crowded = spec.build_lines().unwrap();
        let mut crowd = crowd.into_iter();
        for (key, expected) in stream.iter().zip(&expected) {
            if let Some(key) = crowd.next() {
                crowded.observe_one(key);
            }
            let verdict = crowded.observe_one(*key).is_duplicate();
            if key.get() >> 62 != page {
                prop_assert_eq!(verdict, *expected);
            }
        }
        let lines = alone.lines().chunks(64).zip(crowded.lines().chunks(64));
        for (index, (alone, crowded)) in lines.enumerate() {
            prop_assert!(index as u64 == page || alone == crowded, "page {}", index);
        }
    }
}

#[test]
fn long_streams_agree_on_every_kernel() {
    // Long enough that blocks of 64 keys are prefetched ahead, and that loads wrap many times.
    let hasher = KeyHasher::seeded(4);
    let stream: Vec<KeyHash> = (0..200_000_u64)
        .map(|key| hasher.hash_u64(key / 3 * 2 % 30_000))
        .collect();
    for text in SPECS {
        let mut model = Model::new(text, 3);
        let expected: Vec<bool> = stream.iter().map(|key| model.visit(*key)).collect();
        for kernel in kernels() {
            let mut filter = spec(text, 3).kernel(kernel).build_lines().unwrap();
            assert!(
                observe_all(&mut *filter, &stream, 4096) == expected,
                "{text} on {kernel}"
            );
        }
    }
}

#[test]
fn without_evictions_no_duplicate_is_missed() {
    for text in SPECS {
        let mut filter = spec(text, 64).build().unwrap();
        let stream = keys(&(0..20_000).map(|key| key % 12_000).collect::<Vec<_>>());
        let verdicts = observe_all(&mut *filter, &stream, 64);
        assert_eq!(filter.report().tally.evictions, Some(0), "{text}");
        for (number, duplicate) in verdicts.iter().enumerate() {
            assert!(*duplicate || number < 12_000, "{text}: key {number}");
        }
    }
}

#[test]
fn false_positive_rates_are_as_predicted() {
    // Slots of 16 bits: wider ones match too rarely to be counted.
    for text in [
        "dense:replacement=fifo,bits=16",
        "dense:replacement=lru,bits=16",
    ] {
        let mut filter = spec(text, 64).build().unwrap();
        let distinct = keys(&(0..3_000_000).collect::<Vec<_>>());
        let false_duplicates = observe_all(&mut *filter, &distinct, 1024);
        let found = false_duplicates
            .iter()
            .filter(|duplicate| **duplicate)
            .count() as f64;
        let report = filter.report();
        let expected = report.expected_false_duplicates.unwrap();
        assert!(
            (found / expected - 1.0).abs() < 0.05,
            "{text}: {found}, expected {expected}"
        );
        let probes = keys(&(10_000_000..13_000_000).collect::<Vec<_>>());
        let found = probes.iter().filter(|key| filter.contains(**key)).count() as f64;
        let rate = found / probes.len() as f64;
        let expected = report.expected_fpr.unwrap();
        assert!(
            (rate / expected - 1.0).abs() < 0.05,
            "{text}: {rate}, expected {expected}"
        );
        assert!(expected <= DenseGeometry::new(64 * 64, 16).unwrap().full_fpr());
    }
}

#[test]
fn filters_that_cannot_be_built_are_rejected() {
    let error = |text: &str| match text.parse::<FilterSpec>() {
        Ok(spec) => spec.build().err().unwrap().to_string(),
        Err(error) => error.to_string(),
    };
    for (text, expected) in [
        (
            "dense:memory=4095B",
            "invalid memory=4095 B: expected 4096 B (one page) to 256 GiB (2^32 lines)",
        ),
        (
            "dense:bits=24,memory=1MiB",
            "invalid bits=24: expected 16, 32 or 64",
        ),
        (
            "dense:replacement=qqhtd,memory=1MiB",
            "invalid replacement=qqhtd: expected one of lru, fifo",
        ),
        (
            "dense:form=scattered,memory=1MiB",
            "invalid form=scattered: expected line, the only form of dense",
        ),
    ] {
        assert_eq!(error(text), expected);
    }
    let error = parse("dense:memory=8KiB").build_partitions(3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid partitions=3: expected 1 to 2 (one page each)"
    );
    // The rest of a page is not used.
    let filter = parse("dense:memory=8191B").build_lines().unwrap();
    assert_eq!(filter.lines().len(), 64);
}
