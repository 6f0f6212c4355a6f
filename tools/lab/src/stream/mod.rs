//! Streams of keys: their definition, their text form and their draws.

mod definition;
mod draws;
mod recorded;
mod text;

pub use definition::Stream;
pub use draws::Draws;
pub use recorded::RecordedKeys;
pub use text::{format_count, parse_count};
