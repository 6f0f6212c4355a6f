//! Lines of fingerprints: one filter, with slots of some width, a policy that says which key a full
//! line evicts, an age for each key or none, and one line or two for a key.

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
