//! How close the line filters come to the machine's limit: one random line read for each key.
//!
//! Each filter alternates with reads of its own array, so that both see the same machine.
//! `machine` measures arrays that belong to no filter.

mod arguments;
mod candidates;
mod compare;
mod machine;
mod measure;
mod rate;

pub use arguments::Arguments;
pub use measure::run;
