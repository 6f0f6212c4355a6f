//! Trees of filters: their algorithms against a bit-level model, their promises, windows, threads
//! and formulas.

mod harness;
mod model;
mod models;
mod promises;
mod shared;
mod specs;
#[path = "../../../../engine/tests/testing/verdicts.rs"]
mod testing;
mod theory;
mod windows;
