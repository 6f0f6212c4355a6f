//! Which formula gives a filter's error rates on a stream of uniform draws.

/// The filters with a formula, and what it needs. A planner integrates it over a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
// Exhaustive, so that a new model is a compile error where models are integrated.
pub enum RateModel {
    /// A Bloom filter: no key is ever missed.
    Bloom {
        /// k: the bits of a key.
        hashes: u32,
        /// M: the bits of the filter.
        bits: u64,
    },
    /// A Bloom filter in lines of 512 bits.
    LineBloom {
        /// k: the bits of a key.
        hashes: u32,
        /// M: the bits of the filter.
        bits: u64,
    },
    /// A stable Bloom filter whose every arrival updates.
    Stable {
        /// K: the cells of a key.
        hashes: u32,
        /// Max: the value that a cell is set to.
        max: u32,
        /// P: the cells decremented for each arrival.
        decrements: u64,
        /// m: the number of cells.
        cells: u64,
    },
}
