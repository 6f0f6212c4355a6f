//! Streams of keys: their definition, their text form and their draws.

mod count;
mod definition;
mod draws;
mod recorded;
mod text;

pub use count::{format_count, parse_count};
pub use definition::Stream;
pub use draws::Draws;
pub use recorded::RecordedKeys;
