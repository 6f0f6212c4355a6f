//! Filters with a window against plain models: on every kernel, whole and in partitions, in engines
//! and ordered filters, for clocks that rest, jump, go back and wrap around.
//!
//! `scattered` checks the published forms, whose plain models are in `tests/models`; the others are
//! about lines.
//!
//! `promise` checks what [`echoless::Window`] promises with a map of keys to times. `lists` checks
//! every verdict and counter with lines that are lists of keys, so that full lines evict.
//! `steps` checks lines that expire in steps against lines that expire at once. `assembly` checks
//! that threads change nothing, `skews` lines whose keys are judged at their own ticks, `wrapped` that a filter around a window cannot forget its clock.

#[path = "../testing/arrivals.rs"]
mod arrivals;
#[cfg(feature = "threads")]
mod assembly;
mod harness;
#[path = "../kernels/mod.rs"]
mod kernels;
mod lists;
mod promise;
mod scattered;
mod skews;
mod steps;
#[cfg(feature = "threads")]
#[path = "../testing/verdicts.rs"]
mod testing;
mod wrapped;

use echoless::Kernel;
