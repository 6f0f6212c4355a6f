//! Filters with a window: the bits that a remembered key costs, and whether rates drift.
//!
//! `windows` fills each filter with ever more keys in a window and finds the most at which it still
//! meets a false positive rate and a miss rate. `window-drift` runs line filters over a long stream
//! and compares the rates of its tenths.

mod bound;
mod density;
mod drift;
mod load;

pub use density::{Arguments, run};
pub use drift::{Arguments as DriftArguments, run as run_drift};
