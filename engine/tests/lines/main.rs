//! The line forms against plain models: on every kernel, whole and in partitions.
//!
//! A model keeps a line as 512 booleans and draws the same random numbers, so every single verdict
//! must agree. The other modules test what no model covers: how often recurring keys are missed,
//! the rates that filters report, and batches in region order.

mod bits;
mod cells;
mod dense;
mod harness;
#[path = "../kernels/mod.rs"]
mod kernels;
mod rates;
mod regions;
mod repeats;
mod rows;

use echoless::Kernel;
