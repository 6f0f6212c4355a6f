//! What mathematics says about the filters: rates, fixed points and parameters, one module for each family.
//!
//! Every formula is tested against a simulation of the filter itself, within the error that its documentation states. Rates are shares (0 to 1),
//! FPR of the fresh arrivals and FNR of the duplicate ones.

pub mod biased;
pub mod bloom;
pub mod buffers;
mod counts;
pub mod fingerprints;
pub mod generations;
mod model;
pub mod rows;
pub mod stable;
#[cfg(test)]
mod trial;

pub use model::RateModel;
