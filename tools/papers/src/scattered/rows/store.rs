//! The storage of rows: slot by slot, or each row as the rank of its sorted content.

use std::num::NonZeroU64;

use crate::limits::at_least_bits;
use crate::scattered::storage::{PackedCells, packed_lines};
use echoless::extend::Named;
use echoless::{BuildError, Cells, SpecError};

/// How a row is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowEncoding {
    /// Slot after slot, in their order.
    Packed,
    /// Semi-sorted (paper 002, section 3.3): the rank of the sorted row among all sorted rows. It
    /// saves bits and loses the order of the slots. Ranks are decoded with a table of 8 k 2^b
    /// bytes, which counts as memory of the filter.
    Sorted,
}

/// The shape of the rows of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowShape {
    /// k: the number of slots of a row (1 to 64).
    pub(super) slots: u32,
    /// b: the number of bits of a slot (1 to 32; 64 in lines).
    pub(super) bits: u32,
    encoding: RowEncoding,
}

impl RowShape {
    /// The shape by the options of a row, with slots of so many bits.
    pub(super) fn new(named: &Named, bits: u32) -> Self {
        Self {
            slots: named.small("slots"),
            bits,
            encoding: named.choice("rows", &ENCODINGS),
        }
    }

    /// The bits of a row whose slots are packed.
    const fn packed_bits(self) -> u64 {
        self.slots as u64 * self.bits as u64
    }

    /// The number of rows that fit in the memory, at least one. Semi-sorted rows share the memory
    /// with the table that decodes their ranks. Fails if semi-sorted rows have too many states, or
    /// the memory holds no row.
    pub(super) fn rows_in(self, memory_bytes: u64) -> Result<NonZeroU64, SpecError> {
        let (row_bits, table_bits, least) = match self.encoding {
            RowEncoding::Packed => (self.packed_bits(), 0, "one row".to_owned()),
            RowEncoding::Sorted => {
                let row_bits = u64::from(sorted_bits(self.slots, self.bits)?);
                let table_bytes = RankCoder::bytes_for(self.slots, self.bits);
                let least = format!("one row and the ranks' table of {table_bytes} B");
                (row_bits, 8 * table_bytes, least)
            }
        };
        let bits = at_least_bits(memory_bytes, u128::from(row_bits + table_bits), &least)?;
        let rows = (bits - table_bits) / row_bits;
        Ok(NonZeroU64::new(rows).unwrap_or(NonZeroU64::MIN))
    }

    /// The mean number of cache lines of a row, at most. The table that decodes ranks does not
    /// count: all keys use it, so that it stays in the cache.
    pub(super) fn cache_lines(self) -> f64 {
        let packed = self.packed_bits();
        let bits = match self.encoding {
            RowEncoding::Packed => packed,
            RowEncoding::Sorted => sorted_bits(self.slots, self.bits).map_or(packed, u64::from),
        };
        packed_lines(bits, bits)
    }
}

/// R rows of k slots.
#[derive(Debug, Clone)]
pub(super) enum RowStore {
    Packed {
        slots: PackedCells,
        rows: u64,
        row_slots: u64,
    },
    Ranked {
        ranks: PackedCells,
        coder: RankCoder,
    },
}

impl RowStore {
    /// `rows` empty rows.
    pub(super) fn new(shape: RowShape, rows: u64) -> Result<Self, BuildError> {
        let row_slots = u64::from(shape.slots);
        Ok(match shape.encoding {
            RowEncoding::Packed => Self::Packed {
                slots: PackedCells::new(rows.saturating_mul(row_slots), shape.bits)?,
                rows,
                row_slots,
            },
            RowEncoding::Sorted => {
                let coder = RankCoder::new(shape.slots, shape.bits)?;
                Self::Ranked {
                    ranks: PackedCells::new(rows, coder.bits)?,
                    coder,
                }
            }
        })
    }

    pub(super) fn rows(&self) -> u64 {
        match self {
            Self::Packed { rows, .. } => *rows,
            Self::Ranked { ranks, .. } => ranks.len(),
        }
    }

    /// Reads row `row` into `into`, whose length is that of the row.
    #[inline(always)]
    pub(super) fn read(&self, row: u64, into: &mut [u32]) {
        match self {
            Self::Packed {
                slots, row_slots, ..
            } => {
                for (slot, value) in (row * row_slots..).zip(into) {
                    *value = slots.get(slot);
                }
            }
            Self::Ranked { ranks, coder } => coder.decode(ranks.get(row), into),
        }
    }

    /// Writes row `row`; the semi-sorted encoding sorts `from` in place.
    #[inline(always)]
    pub(super) fn write(&mut self, row: u64, from: &mut [u32]) {
        match self {
            Self::Packed {
                slots, row_slots, ..
            } => {
                for (slot, value) in (row * *row_slots..).zip(from) {
                    slots.set(slot, *value);
                }
            }
            Self::Ranked { ranks, coder } => {
                from.sort_unstable();
                ranks.set(row, coder.encode(from));
            }
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Packed { slots, .. } => slots.clear(),
            Self::Ranked { ranks, .. } => ranks.clear(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Packed { slots, .. } => slots.bytes(),
            Self::Ranked { ranks, coder } => ranks.bytes() + coder.bytes(),
        }
    }

    /// How many slots hold a fingerprint.
    pub(super) fn occupied(&self) -> Cells {
        match self {
            Self::Packed { slots, .. } => slots.occupied(),
            Self::Ranked { ranks, coder } => {
                let mut row = vec![0; coder.terms.len() / coder.values];
                let mut occupied = 0;
                for rank in ranks.iter() {
                    coder.decode(rank, &mut row);
                    occupied += row.iter().filter(|slot| **slot != 0).count();
                }
                Cells::new(occupied as u64, ranks.len() * row.len() as u64)
            }
        }
    }
}

/// The number of bits of a rank, or an error if such rows cannot be semi-sorted.
fn sorted_bits(slots: u32, slot_bits: u32) -> Result<u32, SpecError> {
    const MOST_SLOT_BITS: u32 = 12; // the coder's table has slots * 2^bits terms
    let states = sorted_states(slots, slot_bits);
    if slot_bits > MOST_SLOT_BITS || states > 1 << PackedCells::MOST_BITS {
        return Err(SpecError::new(
            "rows",
            format!("{slots} slots of {slot_bits} bits, sorted"),
            format!(
                "slots of at most {MOST_SLOT_BITS} bits and rows of at most 2^32 sorted states"
            ),
        ));
    }
    Ok((u128::BITS - (states - 1).leading_zeros()).max(1))
}

/// C(2^b + k - 1, k), the number of sorted rows.
fn sorted_states(slots: u32, slot_bits: u32) -> u128 {
    choose((1 << slot_bits) + u64::from(slots) - 1, slots)
}

/// Ranks of sorted rows by the combinatorial number system: the sorted values v0 <= v1 <= ... have
/// the rank C(v0, 1) + C(v1 + 1, 2) + ...
#[derive(Debug, Clone)]
pub(super) struct RankCoder {
    /// C(v + i, i + 1) at `i * values + v`.
    terms: Vec<u64>,
    values: usize,
    bits: u32,
}

impl RankCoder {
    fn new(slots: u32, slot_bits: u32) -> Result<Self, SpecError> {
        let bits = sorted_bits(slots, slot_bits)?;
        let values = 1_u64 << slot_bits;
        let terms = (0..slots)
            .flat_map(|slot| (0..values).map(move |value| (slot, value)))
            .map(|(slot, value)| choose(value + u64::from(slot), slot + 1) as u64)
            .collect();
        Ok(Self {
            terms,
            values: values as usize,
            bits,
        })
    }

    fn encode(&self, sorted: &[u32]) -> u32 {
        let terms = self.terms.chunks_exact(self.values).zip(sorted);
        terms
            .map(|(terms, value)| terms[*value as usize])
            .sum::<u64>() as u32
    }

    fn decode(&self, rank: u32, into: &mut [u32]) {
        let mut rank = u64::from(rank);
        for (terms, value) in self.terms.chunks_exact(self.values).zip(into).rev() {
            // The largest value whose term does not exceed the rank. The term of value 0 is 0, so
            // there always is one.
            let found = terms.partition_point(|term| *term <= rank) - 1;
            rank -= terms[found];
            *value = found as u32;
        }
    }

    fn bytes(&self) -> u64 {
        size_of_val(self.terms.as_slice()) as u64
    }

    /// The number of bytes of the table for rows of `slots` slots of `slot_bits` bits.
    fn bytes_for(slots: u32, slot_bits: u32) -> u64 {
        u64::from(slots) * (1 << slot_bits) * size_of::<u64>() as u64
    }
}

/// The binomial coefficient n over k; saturates far above any rank in use.
fn choose(n: u64, k: u32) -> u128 {
    if n < u64::from(k) {
        return 0;
    }
    let mut result = 1_u128;
    for step in 0..u64::from(k) {
        match result.checked_mul(u128::from(n - step)) {
            Some(product) => result = product / u128::from(step + 1),
            None => return u128::MAX,
        }
    }
    result
}

/// The largest number of slots of a row.
pub(crate) const MOST_SLOTS: u32 = 64;

/// The names of the encodings.
pub(super) const ENCODINGS: [(&str, RowEncoding); 2] = [
    ("packed", RowEncoding::Packed),
    ("sorted", RowEncoding::Sorted),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_slots_of_four_bits_take_twelve_bits() {
        assert_eq!((sorted_states(4, 4), sorted_bits(4, 4)), (3876, Ok(12)));
    }

    #[test]
    fn every_rank_decodes_to_a_sorted_row_that_encodes_to_it() {
        for (slots, bits) in [(1, 3), (2, 3), (3, 2), (4, 4), (8, 1)] {
            let coder = RankCoder::new(slots, bits).expect("small");
            assert_eq!(coder.bytes(), RankCoder::bytes_for(slots, bits));
            let mut row = vec![0; slots as usize];
            for rank in 0..sorted_states(slots, bits) as u32 {
                coder.decode(rank, &mut row);
                assert!(row.is_sorted() && row.iter().all(|value| value >> bits == 0));
                assert_eq!(coder.encode(&row), rank);
            }
        }
    }

    #[test]
    fn rows_with_too_many_states_are_rejected() {
        for (slots, bits) in [(64, 8), (1, 13)] {
            assert_eq!(
                sorted_bits(slots, bits).map_err(|error| error.field),
                Err("rows")
            );
        }
        assert_eq!(choose(u64::MAX, 64), u128::MAX);
    }
}
