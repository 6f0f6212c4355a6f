//! Horizontal slices: each key belongs to one of S filters (paper 001, definition 1).

mod filter;
mod spec;

pub use spec::{FailedKeys, HorizontalSpec};
