//! The ageing policies of bit filters: which bits are cleared, and whether the key is inserted.

use super::BitTable;
use crate::filters::published::draw::Draw;
use crate::hash::KeyHash;

/// How a bit filter makes room. All but Bloom are of paper 000; s is the size of one of the k filters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Ageing {
    /// Bloom (1970): a fresh key is inserted, nothing is ever cleared. FNR 0, FPR to 1.
    Never,
    /// RSBF (section 3): the chance of insertion falls as the stream grows.
    Reservoir(Reservoir),
    /// BSBF (section 4, algorithm 2): a fresh key clears one random bit in each filter, set or not.
    EachFilter,
    /// BSBFSD (section 4.2): a fresh key clears one random bit of one random filter.
    OneFilter,
    /// RLBSBF (section 5): a fresh key picks a random bit in each filter and clears it with probability load/s.
    ByLoad,
}

/// The two processes that go by the name RSBF. i is the number of arrivals so far, this one included.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reservoir {
    /// Algorithm 1: the first s arrivals are inserted and clear nothing; then a fresh key is inserted with probability s/i and clears a random
    /// bit of each filter; once s/i is at most `threshold` (the paper's p*, 0.03 in its runs) every fresh key is inserted, and where its bit was
    /// zero a random set bit of that filter is cleared.
    Described {
        /// p*: 0 never leaves the second phase.
        threshold: f64,
    },
    /// The process behind the printed tables: every arrival, duplicates too, is inserted with probability min(1, s/i) and clears a random bit of
    /// each filter, from the first on.
    Tabled,
}

impl Ageing {
    /// Clears what the policy clears for this arrival and says whether its bits are to be set.
    #[inline(always)]
    pub(super) fn make_room(
        self,
        table: &mut BitTable,
        key: KeyHash,
        seen: bool,
        arrivals: u64,
        draw: &mut Draw,
    ) -> bool {
        let size = table.size();
        match self {
            Self::Never => !seen,
            Self::EachFilter => {
                if !seen {
                    clear_one_of_each(table, draw);
                }
                !seen
            }
            Self::OneFilter => {
                if !seen {
                    let filter = draw.below(table.filters() as u64) as usize;
                    table.clear(filter, draw.below(size));
                }
                !seen
            }
            Self::ByLoad => {
                if !seen {
                    for filter in 0..table.filters() {
                        let bit = draw.below(size);
                        if draw.ratio(table.ones(filter), size) {
                            table.clear(filter, bit);
                        }
                    }
                }
                !seen
            }
            Self::Reservoir(Reservoir::Tabled) => {
                let insert = arrivals <= size || draw.ratio(size, arrivals);
                if insert {
                    clear_one_of_each(table, draw);
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
                            clear_a_set_bit(table, filter, draw);
                        }
                    }
                    return true;
                }
                let insert = draw.ratio(size, arrivals);
                if insert {
                    clear_one_of_each(table, draw);
                }
                insert
            }
        }
    }
}

#[inline(always)]
fn clear_one_of_each(table: &mut BitTable, draw: &mut Draw) {
    for filter in 0..table.filters() {
        table.clear(filter, draw.below(table.size()));
    }
}

/// Draws bits until a set one is found: 1/load draws on average, and the load of an RSBF stays above a half.
fn clear_a_set_bit(table: &mut BitTable, filter: usize, draw: &mut Draw) {
    while table.ones(filter) > 0 {
        let bit = draw.below(table.size());
        if table.get(filter, bit) {
            table.clear(filter, bit);
            return;
        }
    }
}
