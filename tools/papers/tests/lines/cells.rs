//! Counters: the cells of a line as integers.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Bits, Model, agree, below, number, piece, ranges, set_number, streams};

struct Stable {
    width: usize,
    hashes: usize,
    decrements: usize,
    every: bool,
    consecutive: bool,
}

impl Model for Stable {
    fn visit(&self, line: &mut Bits, key: KeyHash, draw: KeyHash) -> bool {
        let len = 504 / self.width;
        let cell = |line: &Bits, cell: usize| number(line, cell * self.width, self.width);
        let own: Vec<usize> = ranges(len, self.hashes)
            .enumerate()
            .map(|(hash, range)| range.start + piece(key, 0, hash, range.len()))
            .collect();
        let seen = own.iter().all(|own| cell(line, *own) > 0);
        if seen && !self.every {
            return true;
        }
        for step in 0..self.decrements {
            let decremented = if self.consecutive {
                (below(draw, 0, len) + step) % len
            } else {
                piece(draw, 0, step, len)
            };
            let value = cell(line, decremented).saturating_sub(1);
            set_number(line, decremented * self.width, self.width, value);
        }
        for own in own {
            set_number(line, own * self.width, self.width, (1 << self.width) - 1);
        }
        let updates = number(line, 504, 8);
        set_number(line, 504, 8, updates + 1);
        seen
    }
}

struct FingerprintStable {
    hashes: usize,
    counter_bits: usize,
    fingerprint_bits: usize,
    eviction: f64,
    refill: &'static str,
}

impl FingerprintStable {
    fn change(&self, line: &mut Bits, cell: usize, change: impl Fn(u64, u64) -> (u64, u64)) {
        let width = self.counter_bits + self.fingerprint_bits;
        let (start, middle) = (cell * width, cell * width + self.counter_bits);
        let counter = number(line, start, self.counter_bits);
        let fingerprint = number(line, middle, self.fingerprint_bits);
        let (counter, fingerprint) = change(counter, fingerprint);
        set_number(line, start, self.counter_bits, counter);
        set_number(line, middle, self.fingerprint_bits, fingerprint);
    }
}

impl Model for FingerprintStable {
    fn visit(&self, line: &mut Bits, key: KeyHash, draw: KeyHash) -> bool {
        let width = self.counter_bits + self.fingerprint_bits;
        let size = 512 / width / self.hashes;
        let own_fingerprint = key.remix(16) >> (64 - self.fingerprint_bits);
        let own: Vec<usize> = (0..self.hashes)
            .map(|table| table * size + piece(key, 0, table, size))
            .collect();
        let seen = own.iter().all(|cell| {
            let fingerprint = cell * width + self.counter_bits;
            number(line, cell * width, self.counter_bits) > 0
                && number(line, fingerprint, self.fingerprint_bits) == own_fingerprint
        });
        if seen {
            return true;
        }
        let max = (1_u64 << self.counter_bits) - 1;
        if (draw.remix(0) >> 11) as f64 / 2_f64.powi(53) < self.eviction {
            for index in 0..self.hashes {
                let cell = piece(draw, 1, index, size * self.hashes);
                let loss = 1 + below(draw, 17 + index, max as usize) as u64;
                self.change(line, cell, |counter, fingerprint| {
                    let counter = counter.saturating_sub(loss);
                    let clears = counter == 0 && self.refill == "repaired";
                    (counter, if clears { 0 } else { fingerprint })
                });
            }
        }
        for cell in own {
            self.change(line, cell, |_, fingerprint| {
                let filled = if self.refill == "overwrite" {
                    own_fingerprint
                } else {
                    fingerprint ^ own_fingerprint
                };
                (max, filled)
            });
        }
        false
    }
}

proptest! {
    #[test]
    fn stable_bloom_filters_in_lines_agree_with_their_model(
        (width, hashes) in prop::sample::select(vec![1_usize, 2, 4, 8]).prop_flat_map(|width| {
            let most = (504 / width / 2).min(64);
            (Just(width), prop_oneof![1_usize..=8, 1..=most])
        }),
        decrements in prop_oneof![1_usize..=12, 13_usize..=504],
        (every, consecutive) in any::<(bool, bool)>(),
        lines in 1_usize..6,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let decrements = decrements.min(504 / width);
        let model = Stable { width, hashes, decrements, every, consecutive };
        let update = if every { "every" } else { "distinct" };
        let decrement = if consecutive { "consecutive" } else { "independent" };
        let spec = format!("sbf:k={hashes},d={width},p={decrements},update={update},decrement={decrement}");
        agree(&spec, lines, seed, &model, &stream)?;
    }

    #[test]
    fn fingerprint_stable_bloom_filters_in_lines_agree_with_their_model(
        hashes in 1_usize..=16,
        (counter_bits, fingerprint_bits) in prop::sample::select(vec![(1, 7), (2, 6), (7, 1), (2, 14), (8, 8), (15, 1)]),
        eviction in 0.0_f64..=1.0,
        refill in prop::sample::select(vec!["xor", "overwrite", "repaired"]),
        lines in 1_usize..6,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let model = FingerprintStable { hashes, counter_bits, fingerprint_bits, eviction, refill };
        let spec = format!("fpsbf:k={hashes},c={counter_bits},f={fingerprint_bits},xi={eviction},refill={refill}");
        agree(&spec, lines, seed, &model, &stream)?;
    }
}
