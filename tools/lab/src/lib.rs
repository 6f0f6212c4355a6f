//! The lab: streams, an exact oracle, filters measured against it, and the planner that picks one.
//!
//! Everything is named as the tool names it: filters by [`FilterSpec`](echoless::FilterSpec), streams by [`stream::Stream`].
//!
//! # Examples
//! ```
//! use echoless_lab::evaluate::{Options, evaluate};
//! use echoless_lab::stream::Stream;
//!
//! let stream: Stream = "uniform:records=100k,distinct=0.6".parse()?;
//! let specs = ["bloom:k=2,memory=16KiB".parse()?, "rlbsbf:k=2,memory=16KiB".parse()?];
//! let evaluations = evaluate(&specs, &stream, &Options::default(), &|_| ())?;
//! // A Bloom filter never misses; RLBSBF trades misses for fewer false positives.
//! assert_eq!(evaluations[0].score.fnr(), 0.0);
//! assert!(evaluations[1].score.fnr() > 0.0);
//! assert!(evaluations[1].score.fpr() < evaluations[0].score.fpr());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod calendar;
#[cfg(feature = "plots")]
pub mod chart;
pub mod error;
pub mod evaluate;
pub mod oracle;
pub mod parallel;
pub mod plan;
#[cfg(feature = "plots")]
pub mod plots;
pub mod stream;
pub mod table;

pub use error::LabError;
