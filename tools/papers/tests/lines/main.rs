//! The line forms against plain models: on every kernel, whole and in partitions.
//!
//! A model keeps a line as 512 booleans and draws the same random numbers, so every single verdict
//! must agree. The other modules test what no model covers: how often recurring keys are missed,
//! and the rates that filters report.

mod bits;
mod cells;
mod harness;
#[path = "../../../../engine/tests/kernels/mod.rs"]
mod kernels;
mod partitions;
mod rates;
mod repeats;
mod rows;
#[path = "../../../../engine/tests/testing/verdicts.rs"]
mod verdicts;

use echoless::Kernel;
