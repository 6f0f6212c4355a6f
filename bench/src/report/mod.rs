//! One page of all recorded runs: each with its provenance, one plot and its rows.
//!
//! A run can have dozens of plots, one for each setting of a paper's tables. The page shows one of
//! them, which is kept beside the recorded rows; `--plots FOLDER` draws all of them elsewhere.

mod command;
mod figures;
mod page;
mod rows;

pub use command::{Arguments, run};
