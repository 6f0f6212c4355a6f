//! The formats of the command: bytes and records in a second of CPU time, with keys of two fields;
//! packets against `editcap`, long windows against short ones, two threads against one.
//!
//! To add a format, see `cases.rs`: it is the only file to change.

mod cases;
mod json;
mod measure;

pub(crate) use cases::EDITCAP_INPUT;
pub use measure::{Arguments, run};
