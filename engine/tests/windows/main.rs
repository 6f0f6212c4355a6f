//! Filters with a window against plain models: on every kernel, whole and in partitions, for clocks
//! that rest, jump, go back and wrap around.
//!
//! `promise` checks what [`echoless::Window`] promises with a map of keys to times. `lists` checks every
//! verdict and counter with lines that are lists of keys, so that full lines evict.

mod harness;
#[path = "../kernels/mod.rs"]
mod kernels;
mod lists;
mod promise;

use echoless::Kernel;
