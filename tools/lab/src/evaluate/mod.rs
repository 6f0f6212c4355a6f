//! Filters measured on a stream, all in one pass, beside the exact oracle.

mod block;
mod evaluation;
mod run;
mod trial;

pub use evaluation::{AgeBin, Evaluation, Point};
pub use run::{Options, evaluate};
