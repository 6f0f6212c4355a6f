//! The paper lab: reproduces the printed tables of the papers, and compares the planner with them.

mod arguments;
mod plan;
mod run;
mod tables;

pub use arguments::Arguments;
pub use plan::{PlanArguments, run as run_plan};
pub use run::run;
pub use tables::Paper;
