//! Filters that grow (paper 001, section 5): another filter of the same shape is opened whenever
//! the newest one is full.

mod filter;
mod spec;
#[cfg(test)]
mod tests;

use filter::Growing;
pub(crate) use spec::ROW;
use spec::Threshold;
