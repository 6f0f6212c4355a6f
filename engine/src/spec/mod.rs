//! One way to name a filter: in text, in a file, or in code; shared by the tool, the planner, the lab and the engine.

mod filter;
mod kind;
mod options;
mod serde_form;
mod size;

pub use filter::{FilterSpec, Form};
pub use kind::FilterKind;
pub use options::Options;
pub use size::{format_bytes, parse_bytes};
