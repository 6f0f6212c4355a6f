//! Counters: vectors of integers.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Draws, Model, agree, hash_counts, position, streams};

struct Stable {
    cells: Vec<u32>,
    max: u32,
    hashes: usize,
    decrements: usize,
    every: bool,
    consecutive: bool,
    reach: usize,
    draws: Draws,
}

impl Model for Stable {
    fn observe(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        if seen && !self.every {
            return true;
        }
        let len = self.cells.len();
        let mut start = 0;
        for step in 0..self.decrements {
            if step == 0 || !self.consecutive {
                start = self.draws.below(self.reach);
            }
            let cell = if self.consecutive {
                (start + step) % len
            } else {
                start
            };
            self.cells[cell] = self.cells[cell].saturating_sub(1);
        }
        for hash in 0..self.hashes {
            self.cells[position(key, hash, len)] = self.max;
        }
        seen
    }

    fn contains(&self, key: KeyHash) -> bool {
        (0..self.hashes).all(|hash| self.cells[position(key, hash, self.cells.len())] > 0)
    }
}

struct FingerprintStable {
    /// Counter and fingerprint of each cell of each sub-table.
    tables: Vec<Vec<(u32, u32)>>,
    max: u32,
    fingerprint_bits: u32,
    eviction: f64,
    refill: &'static str,
    draws: Draws,
}

impl FingerprintStable {
    fn cell(&self, key: KeyHash, table: usize) -> usize {
        let prime = self.tables[0].len() as u128;
        let (start, step) = (u128::from(key.remix(0)), u128::from(key.remix(1)));
        ((start % prime + table as u128 * (step % prime)) % prime) as usize
    }

    fn fingerprint(&self, key: KeyHash) -> u32 {
        (key.remix(2) >> (64 - self.fingerprint_bits)) as u32
    }
}

impl Model for FingerprintStable {
    fn observe(&mut self, key: KeyHash) -> bool {
        if self.contains(key) {
            return true;
        }
        if self.draws.unit() < self.eviction {
            for _ in 0..self.tables.len() {
                let prime = self.tables[0].len();
                let cell = self.draws.below(prime * self.tables.len());
                let loss = 1 + self.draws.below(self.max as usize) as u32;
                let (counter, fingerprint) = &mut self.tables[cell / prime][cell % prime];
                *counter = counter.saturating_sub(loss);
                if *counter == 0 && self.refill == "repaired" {
                    *fingerprint = 0;
                }
            }
        }
        for table in 0..self.tables.len() {
            let cell = self.cell(key, table);
            let own = self.fingerprint(key);
            let (counter, fingerprint) = &mut self.tables[table][cell];
            *counter = self.max;
            *fingerprint = if self.refill == "overwrite" {
                own
            } else {
                *fingerprint ^ own
            };
        }
        false
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.tables.iter().enumerate().all(|(table, cells)| {
            let (counter, fingerprint) = cells[self.cell(key, table)];
            counter > 0 && fingerprint == self.fingerprint(key)
        })
    }
}

fn largest_prime(at_most: usize) -> usize {
    let is_prime = |number: &usize| !(2..*number).any(|divisor| number.is_multiple_of(divisor));
    (2..=at_most).rev().find(is_prime).expect("2 is a prime")
}

/// Block-decaying cells whose block numbers never wrap.
struct Decaying {
    set_in: Vec<Option<u64>>,
    hashes: usize,
    life: u64,
    block_len: u64,
    arrivals: u64,
}

impl Model for Decaying {
    fn observe(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        let len = self.set_in.len();
        for hash in 0..self.hashes {
            self.set_in[position(key, hash, len)] = Some(self.arrivals / self.block_len);
        }
        self.arrivals += 1;
        seen
    }

    fn contains(&self, key: KeyHash) -> bool {
        let block = self.arrivals / self.block_len;
        (0..self.hashes).all(|hash| {
            let set_in = self.set_in[position(key, hash, self.set_in.len())];
            set_in.is_some_and(|set_in| block - set_in <= self.life)
        })
    }
}

proptest! {
    #[test]
    fn stable_bloom_filters_agree_with_their_model(
        (hashes, width) in (hash_counts(), 1_u32..17),
        cells in 65_usize..300,
        decrements in 1_usize..10,
        (every, consecutive) in any::<(bool, bool)>(),
        reach in 0.1_f64..=1.0,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let memory = (cells * width as usize).div_ceil(8);
        let cells = memory * 8 / width as usize;
        let mut model = Stable {
            cells: vec![0; cells],
            max: (1 << width) - 1,
            hashes,
            decrements,
            every,
            consecutive,
            reach: (cells as f64 * reach) as usize,
            draws: Draws::new(seed),
        };
        let update = if every { "every" } else { "distinct" };
        let decrement = if consecutive { "consecutive" } else { "independent" };
        let spec = format!(
            "sbf:k={hashes},d={width},p={decrements},update={update},decrement={decrement},\
             reach={reach},memory={memory},seed={seed}"
        );
        agree(&spec, &mut model, &stream)?;
    }

    #[test]
    fn fingerprint_stable_bloom_filters_agree_with_their_model(
        hashes in hash_counts(),
        (counter_bits, fingerprint_bits) in (1_u32..17, 1_u32..17),
        memory in 20_usize..400,
        eviction in 0.0_f64..=1.0,
        refill in prop::sample::select(vec!["xor", "overwrite", "repaired"]),
        seed in any::<u64>(),
        stream in streams(),
    ) {
        // At least two cells in each sub-table.
        let memory = memory + hashes * 8;
        let cells = memory * 8 / (counter_bits + fingerprint_bits) as usize;
        let prime = largest_prime(cells / hashes);
        let mut model = FingerprintStable {
            tables: vec![vec![(0, 0); prime]; hashes],
            max: (1 << counter_bits) - 1,
            fingerprint_bits,
            eviction,
            refill,
            draws: Draws::new(seed),
        };
        let spec = format!(
            "fpsbf:k={hashes},c={counter_bits},f={fingerprint_bits},xi={eviction},\
             refill={refill},memory={memory},seed={seed}"
        );
        agree(&spec, &mut model, &stream)?;
    }

    #[test]
    fn block_decaying_filters_agree_with_their_model_and_miss_nothing_in_their_window(
        given_hashes in prop::option::of(hash_counts()),
        given_width in prop::option::of(2_u32..33),
        memory in 256_usize..600,
        window in 1_u64..300,
        stream in streams(),
    ) {
        let best = ((memory * 8) as f64 * std::f64::consts::LN_2 / window as f64).sqrt().ceil();
        let hashes = given_hashes.unwrap_or(best as usize);
        let width = given_width.unwrap_or(hashes.max(2) as u32);
        let option = |name: &str, value: Option<String>| {
            value.map_or(String::new(), |value| format!("{name}={value},"))
        };
        let spec = format!(
            "bdbf:{}{}window={window},memory={memory}",
            option("k", given_hashes.map(|hashes| hashes.to_string())),
            option("c", given_width.map(|width| width.to_string())),
        );
        let parsed: echoless::FilterSpec = echoless_papers::parse(&spec).expect("valid");
        if hashes > 64 || width > 32 {
            prop_assert!(parsed.build().is_err(), "{spec}");
            return Ok(());
        }
        let block_len = window.div_ceil((1 << (width - 1)) - 1);
        let mut model = Decaying {
            set_in: vec![None; memory * 8 / width as usize],
            hashes,
            life: window.div_ceil(block_len),
            block_len,
            arrivals: 0,
        };
        agree(&spec, &mut model, &stream)?;

        let mut filter = parsed.build().expect("valid");
        let mut last = std::collections::HashMap::new();
        for (index, key) in (0_u64..).zip(&stream) {
            let found = filter.observe_one(KeyHash::from_uniform(*key)) == echoless::Verdict::Duplicate;
            let inside = last.insert(key, index).is_some_and(|last| index - last <= window);
            prop_assert!(found || !inside, "missed a duplicate inside the window");
        }
    }
}
