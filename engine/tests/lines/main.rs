//! The line forms against plain models: on every kernel, whole and in partitions.
//!
//! A model keeps a line as 512 booleans and draws the same random numbers; so verdicts must agree one by one.

mod bits;
mod cells;
mod harness;
mod rows;
