//! Lines of fingerprints: one filter, with slots of some width, a policy that says which key a full
//! line evicts, an age for each key or none, and one line or two for a key.
//!
//! | file | holds |
//! |---|---|
//! | `spec` | the specification, its names and options, and which of the files below builds it |
//! | `rows` | the shape of a row: slots and their bits |
//! | `queue` | visits of lines without ages |
//! | `clocked` | visits of lines with a clock word |
//! | `stamped` | visits of lines with a stamp in each slot |
//! | `pages` | visits of two lines of a page, and their loads in `page_slot` |
//! | `clocked_pages` | the same with clock words |
//! | `shape` | the reports of lines with ages |

mod clocked;
mod clocked_pages;
mod page_slot;
mod pages;
mod queue;
pub mod rows;
mod shape;
pub(crate) mod spec;
mod stamped;

#[cfg(test)]
pub(super) use clocked::ClockedRule;
