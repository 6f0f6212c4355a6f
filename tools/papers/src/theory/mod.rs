//! The mathematics of the filters of the papers, one module for each family: the formulas that
//! filters, benchmarks and tests here compute with. Nothing here depends on a filter. Rates and
//! fills are tested against simulations of the filters (`tests/theory`, `tests/trees`), within the
//! error that their documentation states; what ageing filters and full rows tend to is computed and
//! tested in `tests/theory/limits.rs` alone. Rates are fractions of 1: the false positive rate
//! (FPR) of the fresh arrivals, the false negative rate (FNR) of the duplicate ones.

pub mod bloom;
pub mod generations;
pub mod slices;
pub mod stable;
pub mod tree;
pub mod windows;
