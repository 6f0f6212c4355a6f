//! The paper lab: the printed tables, run again.

mod arguments;
mod plan;
mod run;
mod tables;

pub use arguments::Arguments;
pub use plan::{PlanArguments, run as run_plan};
pub use run::run;
pub use tables::Paper;
