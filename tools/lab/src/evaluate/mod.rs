//! Filters measured on a stream, all in one pass, against the exact oracle.

mod block;
mod evaluation;
mod options;
mod run;
mod trial;

pub use evaluation::{AgeBin, Evaluation, Point};
pub use options::EvalOptions;
pub use run::evaluate;
