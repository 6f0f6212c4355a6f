//! The experiments of paper 001, done again: slices, equal timers, growth in bursts and trees, with
//! the value of the formula beside each measured figure.
//!
//! | part | figures of the paper | file |
//! |---|---|---|
//! | `fpr` | 5(a), 7(a), 7(b): false positives by number of slices | `fpr` |
//! | `fairness` | 5(b), 5(c), 8: fairness of the load, the largest share | `fairness` |
//! | `failures` | 5(d), 1(a): rates with failed slices, for each policy | `failures` |
//! | `messages` | 7(c): slices and messages for each arrival, pipelined or not | `messages` |
//! | `timers` | 9: the equal-timers heuristic | `timers` |
//! | `bursts` | 10, 11: filters and false positives while the rate of arrivals rises | `bursts` |
//! | `tree` | table 1, 12: hits and accesses of each level, top-down testing | `tree` |
//!
//! The paper's streams are not public, and its plots have no printed values, so shapes are compared
//! with the paper and rates with the formulas. Each file states what agrees and what differs.

mod arguments;
mod bursts;
mod deliveries;
mod failures;
mod fairness;
mod fpr;
mod inputs;
mod messages;
mod rows;
mod run;
mod slicing;
mod timers;
mod tree;

pub use arguments::Arguments;
pub use run::run;
