//! The line forms against plain models: on every kernel, whole and in partitions.
//!
//! And what the models cannot tell: how often keys that keep coming back are missed, the rates that filters report, batches in region order.
//!
//! A model keeps a line as 512 booleans and draws the same random numbers; so verdicts must agree one by one.

mod bits;
mod cells;
mod harness;
#[path = "../kernels/mod.rs"]
mod kernels;
mod rates;
mod regions;
mod repeats;
mod rows;

use echoless::Kernel;
