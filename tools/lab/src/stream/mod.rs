//! Streams of keys: where they come from, how they are named in text, and their draws.

mod count;
mod definition;
mod draws;

pub use count::{format_count, parse_count};
pub use definition::Stream;
pub use draws::Draws;
