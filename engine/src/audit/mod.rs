//! Estimates of the errors of a filter while it runs, with bounds, in fixed memory.
//!
//! Two samples are remembered exactly:
//!
//! - **Of the `Fresh` verdicts**, chosen at random and independently of the key ([`FreshSample`]).
//!   A duplicate is missed exactly if an earlier `Fresh` verdict on its key is followed by this
//!   one, so the sampled verdicts that are followed by another one count the missed duplicates. A
//!   few hot keys that are missed all the time are found as surely as many keys that are missed
//!   once each.
//! - **Of the keys**, chosen by their hashes. They show which `Duplicate` verdicts were on keys
//!   that had never been seen.
//!
//! [`Audit`] has both for a filter without a window. [`ErrorCounts`] turns what the samples found
//! into estimates with bounds, for [`Audit`] and for audits of windows, which pass the tick of each
//! verdict to a [`FreshSample`] of their own: `echoless dedup --window` has one.

mod estimate;
mod fresh_sample;
mod key_map;
mod stream;

pub use estimate::{ErrorCounts, ErrorEstimates, Estimate, RateEstimate, WeightedCount};
pub use fresh_sample::FreshSample;
pub use stream::Audit;
