//! The mathematics of the filters of the papers, one module for each family. Nothing here depends on
//! a filter. Every formula is tested against a simulation of its filter (`tests/theory`), within the
//! error that its documentation states. Rates are fractions of 1: the false positive rate (FPR) of
//! the fresh arrivals, the false negative rate (FNR) of the duplicate ones.

pub mod bloom;
pub mod generations;
pub mod slices;
pub mod stable;
pub mod tree;
pub mod windows;
