//! Filters with a window against plain models: on every kernel, whole and in partitions, in engines
//! and ordered filters, for clocks that rest, jump, go back and wrap around.
//!
//! `promise` checks what [`echoless::Window`] promises with a map of keys to times. `lists` checks
//! every verdict and counter with lines that are lists of keys, so that full lines evict.
//! `steps` checks lines that expire in steps against lines that expire at once. `assembly` checks
//! that threads change nothing, `skews` lines whose keys are judged at their own ticks, and `shared`
//! the words of shared filters, by one thread and by several.

#[path = "../testing/arrivals.rs"]
mod arrivals;
#[cfg(feature = "threads")]
mod assembly;
mod harness;
#[path = "../kernels/mod.rs"]
mod kernels;
mod lists;
mod promise;
#[path = "../testing/promises.rs"]
mod promises;
mod shared;
mod skews;
mod steps;

use echoless::Kernel;
