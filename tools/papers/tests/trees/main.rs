//! Trees of filters: their algorithms against a bit-level model, their promises, windows, threads
//! and formulas.

mod harness;
mod model;
mod models;
mod promises;
mod shared;
mod specs;
mod theory;
mod windows;
