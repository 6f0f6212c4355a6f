//! Estimates of the errors of a filter while it runs, with bounds, in fixed memory.
//!
//! Two samples are remembered exactly:
//!
//! - **Of the `Fresh` verdicts**, chosen at random and independently of the key (`fresh_sample`).
//!   A duplicate is missed exactly if an earlier `Fresh` verdict on its key is followed by this
//!   one, so the sampled verdicts that are followed by another one count the missed duplicates. A
//!   few hot keys that are missed all the time are found as surely as many keys that are missed
//!   once each.
//! - **Of the keys**, chosen by their hashes. They show which `Duplicate` verdicts were on keys
//!   that had never been seen.
//!
//! A filter with a window that does not renew keys mistakes a key again and again (`series`).
//! There, the keys with the most `Duplicate` verdicts are followed one by one (`frequent`).
//!
//! [`Audit`] has both for a filter without a window, and [`WindowAudit`] for a filter with one,
//! where errors depend on the age of a key. [`ErrorCounts`] turns what the samples found into
//! estimates with bounds.

mod errors;
mod frequent;
mod fresh_sample;
mod gamma;
mod sampling;
mod saved;
mod series;
mod stream;
#[cfg(test)]
#[path = "../../../engine/tests/kernels/mod.rs"]
mod tested;
mod turnover;
mod weighted_count;
mod window;

#[cfg(test)]
use echoless::Kernel;
pub use errors::{ErrorCounts, ErrorEstimates, RateEstimate};
pub use saved::SavedAudit;
pub use series::{SeriesCounts, SeriesSum};
pub use stream::Audit;
pub use weighted_count::{Estimate, WeightedCount};
pub use window::{Moment, WindowAudit};
