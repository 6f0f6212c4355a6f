//! Bit filters: k filters of M/k bits, one bit of each for a key, and a policy that decides which bits are cleared to make room.

mod ageing;
mod filter;
mod table;

pub use ageing::{Ageing, Reservoir};
pub use filter::{BitFilters, BitsSpec};
pub(crate) use table::BitTable;
