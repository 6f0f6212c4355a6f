//! Bit filters: k ranges of booleans in a line.

use std::ops::Range;

use echoless::KeyHash;
use proptest::prelude::*;

use crate::harness::{Bits, Model, agree, below, number, piece, ranges, set_number, streams};

struct BitFilters {
    name: &'static str,
    hashes: usize,
    threshold: f64,
}

impl BitFilters {
    fn counts(&self) -> bool {
        self.name.starts_with("rsbf")
    }

    fn bits(&self) -> usize {
        if self.counts() { 496 } else { 512 }
    }

    fn filters(&self) -> Vec<Range<usize>> {
        ranges(self.bits(), self.hashes).collect()
    }

    /// Whether filters are whole words, with positions packed in one hash.
    fn whole_words(&self) -> bool {
        !self.counts() && [1, 2, 4, 8].contains(&self.hashes)
    }

    /// The position within filter `filter`, of those packed in a word.
    fn packed(&self, word: u64, filter: usize) -> usize {
        let size = 512 / self.hashes;
        (word >> (filter as u32 * size.ilog2())) as usize % size
    }

    fn own(&self, key: KeyHash) -> Vec<usize> {
        let word = if self.hashes == 8 {
            key.remix(0)
        } else {
            key.get()
        };
        self.each(|filter, size| {
            if self.whole_words() {
                self.packed(word, filter)
            } else {
                piece(key, 0, filter, size)
            }
        })
    }

    /// A random bit of each filter that is not the key's.
    fn others(&self, key: KeyHash, draw: KeyHash) -> Vec<usize> {
        let (own, filters) = (self.own(key), self.filters());
        self.each(|filter, size| {
            let own = own[filter] - filters[filter].start;
            if self.whole_words() {
                own ^ (self.packed(draw.remix(0), filter) | 1)
            } else {
                (own + 1 + piece(draw, 0, filter, size - 1)) % size
            }
        })
    }

    /// The bits that decide whether a filter clears its random bit.
    fn witnesses(&self, draw: KeyHash) -> Vec<usize> {
        let word = if self.hashes == 8 {
            draw.remix(16)
        } else {
            draw.remix(0) >> 32
        };
        self.each(|filter, size| {
            if self.whole_words() {
                self.packed(word, filter)
            } else {
                piece(draw, 16, filter, size)
            }
        })
    }

    /// One position of the line for each filter, from the number of the filter and its size.
    fn each(&self, within: impl Fn(usize, usize) -> usize) -> Vec<usize> {
        let filters = self.filters().into_iter().enumerate();
        filters
            .map(|(filter, bits)| bits.start + within(filter, bits.len()))
            .collect()
    }

    /// Clears the bits that the algorithm clears; returns whether the key is inserted.
    fn make_room(&self, line: &mut Bits, key: KeyHash, seen: bool, draw: KeyHash) -> bool {
        let size = self.bits() / self.hashes;
        // The 255 counts above only distinguish one arrival from the next.
        let arrivals = number(line, 496, 16).min(65_280) as usize;
        let before = *line;
        let cleared: Vec<usize> = match self.name {
            "rsbf:as=tabled" if arrivals <= size || below(draw, 33, arrivals) < size => {
                self.others(key, draw)
            }
            "rsbf:as=tabled" => return false,
            "rsbf:as=described" if arrivals <= size => return true,
            _ if seen => return false,
            "bloom" => Vec::new(),
            "bsbf" => self.others(key, draw),
            "bsbfsd" => vec![self.others(key, draw)[below(draw, 32, self.hashes)]],
            "rlbsbf" => {
                let pairs = self.others(key, draw).into_iter().zip(self.witnesses(draw));
                let cleared = pairs.filter(|(_, witness)| before[*witness]);
                cleared.map(|(other, _)| other).collect()
            }
            "rsbf:as=described" if size as f64 <= self.threshold * arrivals as f64 => {
                let filters = self.filters().into_iter().zip(self.own(key)).enumerate();
                let zero = filters.filter(|(_, (_, own))| !before[*own]);
                zero.filter_map(|(filter, (bits, _))| {
                    let ones: Vec<usize> = bits.filter(|bit| before[*bit]).collect();
                    (!ones.is_empty()).then(|| ones[below(draw, 34 + filter, ones.len())])
                })
                .collect()
            }
            "rsbf:as=described" if below(draw, 33, arrivals) < size => self.others(key, draw),
            "rsbf:as=described" => return false,
            name => unreachable!("{name}"),
        };
        for bit in cleared {
            line[bit] = false;
        }
        true
    }
}

impl Model for BitFilters {
    fn visit(&self, line: &mut Bits, key: KeyHash, draw: KeyHash) -> bool {
        if self.counts() {
            let arrivals = number(line, 496, 16) + 1;
            set_number(
                line,
                496,
                16,
                if arrivals > 65_535 { 65_280 } else { arrivals },
            );
        }
        let own = self.own(key);
        let seen = own.iter().all(|bit| line[*bit]);
        if self.make_room(line, key, seen, draw) {
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
    fn bit_filters_in_lines_agree_with_their_model(
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
fn a_full_count_of_arrivals_cycles_above_the_highest_i() {
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
