//! Dense lines: their verdicts against a plain model, and their formulas against simulations.

#[path = "../kernels/mod.rs"]
mod kernels;
mod lines;
mod theory;
#[path = "../testing/verdicts.rs"]
mod verdicts;

use echoless::Kernel;
