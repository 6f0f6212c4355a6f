//! The ageing policies of bit filters: which bits an arrival clears, and whether it is inserted.

use super::BitTable;
use crate::scattered::random::SeededRng;
use echoless::KeyHash;

/// How a bit filter makes room. All but Bloom are from paper 000; s is the number of bits of one of
/// the k filters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ageing {
    /// Bloom (1970): a fresh key is inserted, no bit is ever cleared. The FNR is 0, the FPR tends
    /// to 1.
    Never,
    /// RSBF (section 3): the probability of insertion falls as the stream grows.
    Reservoir(Reservoir),
    /// BSBF (section 4, algorithm 2): a fresh key clears one random bit of each filter, set or not.
    EachFilter,
    /// BSBFSD (section 4.2): a fresh key clears one random bit of one random filter.
    OneFilter,
    /// RLBSBF (section 5): a fresh key picks one random bit of each filter and clears it with a
    /// probability equal to the fill of that filter (the paper's load/s).
    ByFill,
}

/// The two processes called RSBF. i is the number of arrivals so far, including this one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reservoir {
    /// Algorithm 1, in three phases. The first s arrivals are inserted and clear nothing. Then a
    /// fresh key is inserted with probability s/i and clears a random bit of each filter. Once s/i
    /// is at most `threshold` (the paper's p*, 0.03 in its runs), every fresh key is inserted, and
    /// clears a random set bit of each filter in which its own bit was zero.
    Described {
        /// p*, 0 to 1. With 0 the second phase never ends.
        threshold: f64,
    },
    /// The process behind the printed tables: every arrival, duplicates included, is inserted with
    /// probability min(1, s/i) and clears a random bit of each filter, from the first arrival on.
    Tabled,
}

impl Ageing {
    /// Clears the bits that the policy picks for this arrival; returns whether to insert the key.
    ///
    /// `arrivals` includes this one. A draw is made only where the policy has one, so that a model
    /// with the same generator draws the same numbers.
    #[inline(always)]
    pub(super) fn make_room(
        self,
        table: &mut BitTable,
        key: KeyHash,
        seen: bool,
        arrivals: u64,
        rng: &mut SeededRng,
    ) -> bool {
        let size = table.size();
        match self {
            Self::Never => !seen,
            Self::EachFilter => {
                if !seen {
                    clear_one_of_each(table, rng);
                }
                !seen
            }
            Self::OneFilter => {
                if !seen {
                    let filter = rng.below(table.filters() as u64) as usize;
                    table.clear(filter, rng.below(size));
                }
                !seen
            }
            Self::ByFill => {
                if !seen {
                    for filter in 0..table.filters() {
                        let bit = rng.below(size);
                        if rng.ratio(table.ones(filter), size) {
                            table.clear(filter, bit);
                        }
                    }
                }
                !seen
            }
            Self::Reservoir(Reservoir::Tabled) => {
                let insert = arrivals <= size || rng.ratio(size, arrivals);
                if insert {
                    clear_one_of_each(table, rng);
                }
                insert
            }
            Self::Reservoir(Reservoir::Described { threshold }) => {
                if arrivals <= size {
                    return true;
                }
                if seen {
                    return false;
                }
                if size as f64 <= threshold * arrivals as f64 {
                    for filter in 0..table.filters() {
                        if !table.get(filter, table.position(key, filter)) {
                            clear_a_set_bit(table, filter, rng);
                        }
                    }
                    return true;
                }
                let insert = rng.ratio(size, arrivals);
                if insert {
                    clear_one_of_each(table, rng);
                }
                insert
            }
        }
    }
}

#[inline(always)]
fn clear_one_of_each(table: &mut BitTable, rng: &mut SeededRng) {
    for filter in 0..table.filters() {
        table.clear(filter, rng.below(table.size()));
    }
}

/// Clears a set bit of the filter, each with the same probability; no bit if none is set.
///
/// An RSBF keeps the fill of its first phases, which is close to 0 if they saw few keys. Drawing
/// bits until one is set takes 1/fill draws. Where counting through the words is less work, the
/// rank of a set bit is drawn instead.
fn clear_a_set_bit(table: &mut BitTable, filter: usize, rng: &mut SeededRng) {
    let (size, ones) = (table.size(), table.ones(filter));
    if ones == 0 {
        return;
    }
    let bit = if size / ones <= MOST_DRAWS.max(size / BITS_A_DRAW) {
        loop {
            let bit = rng.below(size);
            if table.get(filter, bit) {
                break bit;
            }
        }
    } else {
        table.set_bit(filter, rng.below(ones))
    };
    table.clear(filter, bit);
}

/// Up to this mean number of draws, drawing is never worse than counting.
const MOST_DRAWS: u64 = 64;

/// The approximate number of bits that are counted through in the time of one draw.
const BITS_A_DRAW: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_bit_is_cleared_as_often_at_any_fill() {
        // Of 2^16 bits: by drawing, on both sides of the border, and by rank.
        for ones in [1040_u64, 1000, 63, 30, 3, 1] {
            let mut table = BitTable::new(3, 3 << 13).expect("small");
            let set: Vec<u64> = (0..ones).map(|index| index * index * 61 % 65_521).collect();
            for bit in &set {
                for filter in 0..3 {
                    table.set(filter, *bit);
                }
            }
            let ones = table.ones(1);
            let mut rng = SeededRng::seeded(ones);
            let mut cleared = std::collections::BTreeMap::new();
            let rounds = 100 * ones;
            for _ in 0..rounds {
                clear_a_set_bit(&mut table, 1, &mut rng);
                assert_eq!(table.ones(1), ones - 1);
                let gone = set.iter().find(|bit| !table.get(1, **bit)).expect("one");
                table.set(1, *gone);
                *cleared.entry(*gone).or_insert(0_u64) += 1;
            }
            // Pearson's statistic is within five deviations of its mean.
            let statistic: f64 = (set.iter().collect::<std::collections::BTreeSet<_>>().iter())
                .map(|bit| (*cleared.get(bit).unwrap_or(&0) as f64 - 100.0).powi(2) / 100.0)
                .sum();
            let freedom = (ones - 1) as f64;
            let most = freedom + 5.0 * (2.0 * freedom).sqrt();
            assert!(statistic <= most, "{ones} ones: {statistic}");
            assert_eq!((table.ones(0), table.ones(2)), (ones, ones));
        }
    }

    #[test]
    fn a_filter_of_few_ones_takes_fresh_keys_in_bounded_time_and_keeps_its_fill() {
        use crate::scattered::bits::BitsSpec;
        use crate::scattered::mechanism::Mechanism;
        let ageing = Ageing::Reservoir(Reservoir::Described { threshold: 1.0 });
        let mut filter = BitsSpec { hashes: 2, ageing }
            .build(1 << 20, 7)
            .expect("small");
        // The first phase sees ten keys: about ten ones in each filter of 2^22 bits.
        for arrival in 0..1 << 22 {
            filter.observe_key(KeyHash::from_uniform(
                KeyHash::from_uniform(arrival % 10).remix(1),
            ));
        }
        let fill = filter.fill();
        // Finding those ones by drawing would take 400,000 draws for each filter and key.
        for key in 0..500_u64 {
            filter.observe_key(KeyHash::from_uniform(KeyHash::from_uniform(key).remix(2)));
        }
        assert_eq!(filter.fill(), fill);
        let fill = fill.0.fill();
        assert!((0.0..4e-6).contains(&fill), "{fill}");
    }
}
