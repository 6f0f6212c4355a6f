//! Streams of keys: their definition, their text form and their draws.

mod count;
mod definition;
mod draws;

pub use count::{format_count, parse_count};
pub use definition::{RecordedKeys, Stream};
pub use draws::Draws;
