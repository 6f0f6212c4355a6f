//! Bit filters: k ranges of booleans in a line.

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Bits, Model, agree, below, number, piece, set_number, streams};

struct BitFilters {
    name: &'static str,
    hashes: usize,
    threshold: f64,
}

impl BitFilters {
    fn counts(&self) -> bool {
        self.name.starts_with("rsbf")
    }

    fn size(&self) -> usize {
        (if self.counts() { 496 } else { 512 }) / self.hashes
    }

    /// One position in each filter; set 0 or 1 of the positions that a hash gives.
    fn positions(&self, hash: KeyHash, set: usize, of_key: bool) -> Vec<usize> {
        let size = self.size();
        let within = |filter: usize| {
            if self.counts() || !size.is_power_of_two() || size < 64 {
                return piece(hash, 16 * set, filter, size);
            }
            let half = size.ilog2() as usize * self.hashes <= 32;
            let word = match (of_key, half) {
                (true, true) => hash.0,
                (_, true) => hash.remix(0) >> (32 * set),
                (_, false) => hash.remix(16 * set as u64),
            };
            (word >> (filter as u32 * size.ilog2())) as usize % size
        };
        (0..self.hashes)
            .map(|filter| filter * size + within(filter))
            .collect()
    }

    fn clear_one_of_each(&self, line: &mut Bits, draw: KeyHash) {
        for position in self.positions(draw, 0, false) {
            line[position] = false;
        }
    }

    /// Clears what the algorithm clears, and says whether the key goes in.
    fn make_room(&self, line: &mut Bits, own: &[usize], seen: bool, draw: KeyHash) -> bool {
        let size = self.size();
        let arrivals = number(line, 496, 16) as usize;
        match self.name {
            "rsbf:as=tabled" => {
                let insert = arrivals <= size || below(draw, 32, arrivals) < size;
                if insert {
                    self.clear_one_of_each(line, draw);
                }
                return insert;
            }
            "rsbf:as=described" if arrivals <= size => return true,
            _ if seen => return false,
            "bloom" => {}
            "bsbf" => self.clear_one_of_each(line, draw),
            "bsbfsd" => line[below(draw, 0, size * self.hashes)] = false,
            "rlbsbf" => {
                let before = *line;
                let picked = self.positions(draw, 0, false);
                for (picked, witness) in picked.into_iter().zip(self.positions(draw, 1, false)) {
                    if before[witness] {
                        line[picked] = false;
                    }
                }
            }
            "rsbf:as=described" if size as f64 <= self.threshold * arrivals as f64 => {
                for (filter, own) in own.iter().enumerate() {
                    let range = filter * size..(filter + 1) * size;
                    let ones: Vec<usize> = range.filter(|bit| line[*bit]).collect();
                    if !line[*own] && !ones.is_empty() {
                        line[ones[below(draw, 33 + filter, ones.len())]] = false;
                    }
                }
            }
            "rsbf:as=described" => {
                let insert = below(draw, 32, arrivals) < size;
                if insert {
                    self.clear_one_of_each(line, draw);
                }
                return insert;
            }
            name => unreachable!("{name}"),
        }
        true
    }
}

impl Model for BitFilters {
    fn visit(&self, line: &mut Bits, key: KeyHash, draw: KeyHash) -> bool {
        if self.counts() {
            let arrivals = number(line, 496, 16);
            set_number(line, 496, 16, (arrivals + 1).min(65535));
        }
        let own = self.positions(key, 0, true);
        let seen = own.iter().all(|bit| line[*bit]);
        if self.make_room(line, &own, seen, draw) {
            for bit in own {
                line[bit] = true;
            }
        }
        seen
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bit_filters_in_lines_are_their_model(
        name in prop::sample::select(vec![
            "bloom", "bsbf", "bsbfsd", "rlbsbf", "rsbf:as=tabled", "rsbf:as=described",
        ]),
        hashes in prop_oneof![1_usize..=8, 9_usize..=64],
        lines in 1_usize..6,
        threshold in 0.01_f64..1.0,
        seed in any::<u64>(),
        stream in streams(),
    ) {
        let model = BitFilters { name, hashes, threshold };
        let separator = if name.contains(':') { ',' } else { ':' };
        let mut spec = format!("{name}{separator}k={hashes}");
        if name == "rsbf:as=described" {
            spec += &format!(",pstar={threshold}");
        }
        agree(&spec, lines, seed, &model, &stream)?;
    }
}

#[test]
fn a_count_of_arrivals_that_is_full_stays_full() {
    let stream: Vec<u64> = (0..140_000).map(|arrival| arrival % 90_000).collect();
    for name in ["rsbf:as=tabled", "rsbf:as=described"] {
        let model = BitFilters {
            name,
            hashes: 2,
            threshold: 0.03,
        };
        agree(&format!("{name},k=2"), 2, 5, &model, &stream).unwrap();
    }
}
