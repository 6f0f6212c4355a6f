//! The filters: the trait that all of them implement, and the rows of all of them.
//!
//! | module | holds |
//! |---|---|
//! | [`lines`] | the filters in lines: all that a key reads and writes lies in one cache line |
//! | `adapters` | what filters around another filter are to a specification |

pub(crate) mod adapters;
mod batch;
pub(crate) mod filter;
pub mod lines;
pub(crate) mod replacement;
pub(crate) mod row;
mod sliced;
pub mod units;

pub use batch::{Batch, Ticks};
pub use filter::{Filter, report_of};
pub use replacement::Replacement;
pub use row::{Facts, Form};
pub use sliced::{SliceCounts, Sliced};
