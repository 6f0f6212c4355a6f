//! Where the results of a run go: its records in runs of adjacent ones, plain or compressed, their
//! positions, and the file of statistics. Elements around records get their lengths here.

mod compressed;
mod lines;
mod open_elements;
pub(super) mod rotation;
mod run_outputs;
mod runs;
mod saved_output;
mod sink;
pub(super) mod stats_file;

pub(super) use lines::Lines;
pub(crate) use run_outputs::Outputs;
pub(super) use saved_output::SavedOutput;
