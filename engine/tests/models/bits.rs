//! Bit filters: k vectors of booleans.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Draws, Model, agree, position, streams};

struct Bits {
    name: &'static str,
    threshold: f64,
    filters: Vec<Vec<bool>>,
    arrivals: usize,
    draws: Draws,
}

impl Bits {
    fn size(&self) -> usize {
        self.filters[0].len()
    }

    fn clear_one_of_each(&mut self) {
        for filter in &mut self.filters {
            let bit = self.draws.below(filter.len());
            filter[bit] = false;
        }
    }

    /// Clears what the algorithm clears, and says whether the key goes in.
    fn make_room(&mut self, key: KeyHash, seen: bool) -> bool {
        let size = self.size();
        match self.name {
            "bloom" => !seen,
            "rsbf:as=tabled" => {
                let insert = self.arrivals <= size || self.draws.below(self.arrivals) < size;
                if insert {
                    self.clear_one_of_each();
                }
                insert
            }
            "rsbf:as=described" if self.arrivals <= size => true,
            _ if seen => false,
            "rsbf:as=described" if size as f64 / self.arrivals as f64 <= self.threshold => {
                for (index, filter) in self.filters.iter_mut().enumerate() {
                    while !filter[position(key, index, size)] && filter.contains(&true) {
                        let bit = self.draws.below(size);
                        if filter[bit] {
                            filter[bit] = false;
                            break;
                        }
                    }
                }
                true
            }
            "rsbf:as=described" => {
                let insert = self.draws.below(self.arrivals) < size;
                if insert {
                    self.clear_one_of_each();
                }
                insert
            }
            "bsbf" => {
                self.clear_one_of_each();
                true
            }
            "bsbfsd" => {
                let filter = self.draws.below(self.filters.len());
                let bit = self.draws.below(size);
                self.filters[filter][bit] = false;
                true
            }
            "rlbsbf" => {
                for filter in &mut self.filters {
                    let bit = self.draws.below(size);
                    let load = filter.iter().filter(|bit| **bit).count();
                    if self.draws.below(size) < load {
                        filter[bit] = false;
                    }
                }
                true
            }
            name => unreachable!("{name}"),
        }
    }
}

impl Model for Bits {
    fn observe(&mut self, key: KeyHash) -> bool {
        self.arrivals += 1;
        let seen = self.contains(key);
        if self.make_room(key, seen) {
            for (index, filter) in self.filters.iter_mut().enumerate() {
                let bit = position(key, index, filter.len());
                filter[bit] = true;
            }
        }
        seen
    }

    fn contains(&self, key: KeyHash) -> bool {
        let mut filters = self.filters.iter().enumerate();
        filters.all(|(index, filter)| filter[position(key, index, filter.len())])
    }
}

proptest! {
    #[test]
    fn bit_filters_are_their_model(
        name in prop::sample::select(vec![
            "bloom", "bsbf", "bsbfsd", "rlbsbf", "rsbf:as=tabled", "rsbf:as=described",
        ]),
        hashes in 1_usize..6,
        memory in 1_usize..60,
        threshold in 0.0_f64..1.0,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let mut model = Bits {
            name,
            threshold,
            filters: vec![vec![false; memory * 8 / hashes]; hashes],
            arrivals: 0,
            draws: Draws::new(seed),
        };
        let separator = if name.contains(':') { ',' } else { ':' };
        let mut spec = format!("{name}{separator}k={hashes},memory={memory},seed={seed}");
        if name == "rsbf:as=described" {
            spec += &format!(",pstar={threshold}");
        }
        agree(&spec, &mut model, &stream)?;
    }
}
