//! Generations: two Bloom filters, each of k vectors of booleans.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Model, agree, hash_counts, position, streams};

#[derive(Clone)]
struct Bloom {
    filters: Vec<Vec<bool>>,
    inserted: usize,
}

impl Bloom {
    fn new(hashes: usize, bits: usize) -> Self {
        Self {
            filters: vec![vec![false; bits / hashes]; hashes],
            inserted: 0,
        }
    }

    fn holds(&self, key: KeyHash) -> bool {
        let mut filters = self.filters.iter().enumerate();
        filters.all(|(index, filter)| filter[position(key, index, filter.len())])
    }

    fn insert(&mut self, key: KeyHash) {
        for (index, filter) in self.filters.iter_mut().enumerate() {
            let bit = position(key, index, filter.len());
            filter[bit] = true;
        }
        self.inserted += 1;
    }

    fn fill(&self) -> f64 {
        let bits = self.filters.iter().flatten();
        let ones = bits.clone().filter(|bit| **bit).count();
        ones as f64 / bits.count() as f64
    }
}

struct Pair {
    name: &'static str,
    by_fill: bool,
    empty: Bloom,
    active: Bloom,
    other: Bloom,
    capacity: usize,
}

impl Pair {
    fn full(&self) -> bool {
        if self.by_fill {
            self.active.fill() >= 0.5
        } else {
            self.active.inserted >= self.capacity
        }
    }

    /// Half of the keys that set half of its bits set 1 - sqrt(1/2) of them.
    fn half_full(&self) -> bool {
        if self.by_fill {
            self.active.fill() >= 1.0 - 0.5_f64.sqrt()
        } else {
            2 * self.active.inserted >= self.capacity
        }
    }
}

impl Model for Pair {
    fn observe(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        let in_active = self.active.holds(key);
        if !in_active {
            self.active.insert(key);
        }
        if self.name == "a2" {
            if !in_active && self.full() {
                self.other = std::mem::replace(&mut self.active, self.empty.clone());
                self.active.insert(key);
            }
        } else {
            if self.half_full() && !self.other.holds(key) {
                self.other.insert(key);
            }
            if self.full() {
                self.active = std::mem::replace(&mut self.other, self.empty.clone());
            }
        }
        seen
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.active.holds(key) || self.name == "a2" && self.other.holds(key)
    }
}

proptest! {
    #[test]
    fn generations_agree_with_their_model(
        name in prop::sample::select(vec!["a2", "dbuf"]),
        by_fill in any::<bool>(),
        hashes in hash_counts(),
        memory in 10_usize..200,
        stream in streams(),
    ) {
        // Room for two keys in each generation.
        let memory = memory + hashes * 3 / 4;
        let half = memory / 2;
        let empty = Bloom::new(hashes, half * 8);
        let capacity = ((half * 8) as f64 * std::f64::consts::LN_2 / hashes as f64) as usize;
        let mut model = Pair {
            name,
            by_fill,
            active: empty.clone(),
            other: empty.clone(),
            empty,
            capacity,
        };
        let rotate = if by_fill { "fill" } else { "count" };
        let spec = format!("{name}:k={hashes},rotate={rotate},memory={memory}");
        agree(&spec, &mut model, &stream)?;
    }
}
