//! Bit filters (paper 000; Bloom 1970): k filters of M/k bits, one bit of each for a key, and an
//! ageing policy that picks the bits to clear.

mod ageing;
mod filter;
mod table;

pub(crate) use ageing::{Ageing, Reservoir};
pub(crate) use filter::{BitsSpec, ROWS, cell_table};
pub(crate) use table::BitTable;
