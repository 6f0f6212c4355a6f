//! Which filter to use: every filter over a grid of its parameters, its rates predicted, ranked by what is asked for.

mod candidates;
mod choice;
mod cost;
mod formula;
mod goal;
mod planner;
mod question;
mod simulation;
mod smallest;

pub use choice::{Basis, Choice, Plan};
pub use cost::{lines_touched, nanoseconds_per_key};
pub use formula::{fpr_limit, uniform_rates};
pub use goal::{Costs, Goal, Prediction, Rates, Standing};
pub use planner::plan;
pub use question::Question;
pub use smallest::plan_smallest;
