//! What more threads gain: one inline thread against an engine, a mesh and the shared filter.

mod candidates;
mod measure;

pub use measure::{Arguments, run};
