//! The exact verdict on every arrival of a stream, and the errors of a filter measured against it.

mod exact;
mod score;

pub use exact::{Oracle, Truth};
pub use score::Score;
