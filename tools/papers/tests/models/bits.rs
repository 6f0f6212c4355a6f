//! Bit filters: k vectors of booleans.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Draws, Model, agree, hash_counts, position, streams};

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

    /// Clears the bits that the algorithm clears; returns whether the key is inserted.
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
                    let set: Vec<usize> = (0..size).filter(|bit| filter[*bit]).collect();
                    if filter[position(key, index, size)] || set.is_empty() {
                        continue;
                    }
                    // Where set bits are rare, one of them is drawn; otherwise bits are drawn until
                    // one is set.
                    let bit = if size / set.len() > 64 {
                        set[self.draws.below(set.len())]
                    } else {
                        loop {
                            let bit = self.draws.below(size);
                            if filter[bit] {
                                break bit;
                            }
                        }
                    };
                    filter[bit] = false;
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
                    let ones = filter.iter().filter(|bit| **bit).count();
                    if self.draws.below(size) < ones {
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
    fn bit_filters_agree_with_their_model(
        name in prop::sample::select(vec![
            "bloom", "bsbf", "bsbfsd", "rlbsbf", "rsbf:as=tabled", "rsbf:as=described",
        ]),
        hashes in hash_counts(),
        memory in 8_usize..60,
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

    #[test]
    fn reservoirs_of_few_ones_agree_with_their_model(
        hashes in 1_usize..4,
        memory in 60_usize..200,
        few in 1_u64..6,
        seed in any::<u64>(),
        fresh in prop::collection::vec(0_u64..500, 0..300),
    ) {
        // Phase one sees few keys; phase three follows at once and sees many.
        let size = memory * 8 / hashes;
        let mut model = Bits {
            name: "rsbf:as=described",
            threshold: 1.0,
            filters: vec![vec![false; size]; hashes],
            arrivals: 0,
            draws: Draws::new(seed),
        };
        let spec = format!("rsbf:k={hashes},pstar=1,memory={memory},seed={seed}");
        let stream: Vec<u64> = (0..size as u64).map(|arrival| arrival % few).chain(fresh).collect();
        agree(&spec, &mut model, &stream)?;
    }
}
