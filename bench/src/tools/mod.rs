//! The command against the tools that a user would choose instead, on generated files: time, memory
//! and correct output.
//!
//! A tool that is not installed has a row that reports it. Outputs are compared with that of an
//! exact tool: byte for byte if the tool keeps the order, else as a multiset of lines.
//!
//! To add a tool, see `catalogue.rs`: it is the only file to change.

mod catalogue;
mod child;
mod digest;
mod measure;

pub(crate) use catalogue::{echoless, find};
pub(crate) use child::{Usage, Usages, run as run_child, run_with_pipe};
pub use measure::{Arguments, run};
