//! The planner: predicts the rates of every filter over a grid of parameters and ranks them by a
//! goal.
//!
//! ```text
//! PlanRequest -> grid of candidates -> prediction (formula or simulation) -> rank -> Plan
//! ```

mod budget;
mod candidate;
mod formula;
mod goal;
mod grid;
mod interval;
mod planner;
mod prediction;
mod request;
mod simulation;
mod smallest;

pub use budget::nanoseconds_per_key;
pub use candidate::{Basis, Candidate, Plan};
pub use formula::uniform_rates;
pub use goal::{Costs, Goal, Rank};
pub use grid::settings;
pub use interval::Interval;
pub use planner::plan;
pub use prediction::{Prediction, Rates};
pub use request::PlanRequest;
pub use smallest::plan_smallest;
