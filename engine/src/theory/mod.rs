//! The mathematics of the filters: rates, fixed points and parameters, one module for each family.
//!
//! Nothing here depends on a filter; the filters take their parameters from here. Every formula is
//! tested against a simulation of its filter (`tests/theory`), within the error that its
//! documentation states. Rates are fractions of 1: the false positive rate (FPR) of the fresh
//! arrivals, the false negative rate (FNR) of the duplicate ones.

pub mod binomial;
pub mod dense;
pub mod fingerprints;
mod model;
pub mod poisson;

pub use model::RateModel;
