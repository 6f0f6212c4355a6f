//! Engine and mesh against the undivided filter: equal verdicts, whatever the number of threads, and errors instead of hangs.

mod engine;
mod fragile;
mod mesh;
mod streams;
mod verdicts;
