//! The subcommands `gen`, `eval` and `plan` of `echoless`: their options, and their runs.

mod eval;
mod input;
mod output;
mod plan;

pub use crate::generate::{GenArgs, run as generate};
pub use eval::{EvalArgs, run as evaluate};
pub use plan::{PlanArgs, run as plan};

use echoless_records::failure::Failure;

use crate::LabError;

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        Self::Run(error.to_string())
    }
}
