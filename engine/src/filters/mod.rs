//! The filters: the trait that all of them implement, and the rows of all of them.
//!
//! | module | holds |
//! |---|---|
//! | `scattered` | the filters as published: the bits of a key lie all over the memory |
//! | [`lines`] | their line forms: all that a key reads and writes lies in one cache line |
//! | [`adapters`] | filters around another filter |
//!
//! To add
//!
//! - a scattered filter, write a file in `scattered` with its mechanism ([`Filter`]) and its row
//!   (`FilterRow`): name, options, build functions and facts. Declare the file and name the row in
//!   `scattered/mod.rs`;
//! - a line form, write a file in `lines` with its rule and a `build` function, and name that
//!   function in the row of the filter that it is a form of;
//! - an adapter, write a file in `adapters` with its mechanism and its row (`AdapterRow`), and name
//!   the row in the list there;
//! - a replacement policy for rows, write a type in `replacement.rs` and add it to the list there.

pub mod adapters;
mod batch;
mod cell_table;
mod filter;
pub mod lines;
mod random;
mod replacement;
pub(crate) mod row;
mod scattered;
mod sliced;
pub(crate) mod units;

pub use batch::{Batch, Ticks};
pub use filter::{Filter, report_of};
pub use replacement::Replacement;
pub use row::{Facts, Form};
pub use sliced::{SliceCounts, Sliced, SlicedFilter};
