//! Horizontal slices: each key belongs to one of S filters (paper 001, definition 1).

mod filter;
mod spec;

use spec::FailedKeys;
pub(super) use spec::pieces;
pub(crate) use spec::{NAME, ROW};
