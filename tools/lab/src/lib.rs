//! The lab: streams, an exact oracle, filters measured against it, and the planner that picks one.
//!
//! Filters are named by a [`FilterSpec`](echoless::FilterSpec) and streams by a [`stream::Stream`],
//! in the same text form as on the command line.
//!
//! # Examples
//! ```
//! use echoless_lab::evaluate::{EvalOptions, evaluate};
//! use echoless_lab::stream::Stream;
//!
//! let stream: Stream = "uniform:records=100k,distinct=0.6".parse()?;
//! let specs = ["bloom:k=2,memory=16KiB", "rlbsbf:k=2,memory=16KiB"];
//! let specs = [echoless_papers::parse(specs[0])?, echoless_papers::parse(specs[1])?];
//! let evaluations = evaluate(&specs, &stream, &EvalOptions::default(), &|_| ())?;
//! // A Bloom filter misses no duplicate; RLBSBF misses some and has fewer false positives.
//! assert_eq!(evaluations[0].score.fnr(), 0.0);
//! assert!(evaluations[1].score.fnr() > 0.0);
//! assert!(evaluations[1].score.fpr() < evaluations[0].score.fpr());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod calendar;
#[cfg(feature = "plots")]
pub mod chart;
#[cfg(feature = "command")]
pub mod command;
pub mod error;
pub mod evaluate;
#[cfg(feature = "command")]
mod generate;
pub mod oracle;
pub mod parallel;
pub mod plan;
#[cfg(feature = "plots")]
pub mod plots;
pub mod stream;
pub mod table;

pub use error::LabError;
