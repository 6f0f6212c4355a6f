//! Compares engine and mesh with the undivided filter: equal verdicts for any number of threads,
//! and errors instead of hangs.

mod engine;
mod mesh;
mod streams;
mod stub;
mod verdicts;

#[path = "../testing/verdicts.rs"]
mod testing;
