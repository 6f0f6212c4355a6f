//! Filters that grow (paper 001, section 5): another filter of the same shape is opened whenever
//! the newest one is full.

mod filter;
mod spec;
#[cfg(test)]
mod tests;

pub use filter::Growing;
pub use spec::{GrowingSpec, Threshold};
