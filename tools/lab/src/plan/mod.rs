//! Which filter to use: every filter over a grid of its parameters, its rates predicted, ranked by what is asked for.

mod candidate;
mod cost;
mod formula;
mod goal;
mod grid;
mod planner;
mod request;
mod simulation;
mod smallest;

pub use candidate::{Basis, Candidate, Plan};
pub use cost::nanoseconds_per_key;
pub use formula::uniform_rates;
pub use goal::{Costs, Goal, Prediction, Rank, Rates};
pub use planner::plan;
pub use request::PlanRequest;
pub use smallest::plan_smallest;
