//! Every published filter against a plain model of its paper's description.
//!
//! The models keep whole vectors of booleans and integers and draw the same random numbers in the
//! same order, so every single verdict must agree.

#[path = "../../../../engine/tests/testing/arrivals.rs"]
mod arrivals;
mod bits;
mod buffers;
mod cells;
mod equal_timers;
mod generations;
mod harness;
mod rows;
mod windows;
