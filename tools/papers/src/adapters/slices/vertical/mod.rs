//! Vertical slices: ranges of one table of cells, of which a key probes up to k (paper 001,
//! definition 2).

mod filter;
mod spec;

pub(crate) use spec::ROW;
use spec::{MissingCells, Probing, VerticalSpec};
