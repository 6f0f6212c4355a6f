//! The statistics of a run that goes on, as OpenMetrics text over HTTP.
//!
//! ```text
//! fields of the statistics -> rows of METRICS -> text -> GET /metrics
//! ```
//!
//! A metric has the name and the value of a field of the statistics (`--stats`), so there is one
//! place that counts, and what a dashboard shows is what the run reports at its end.
//!
//! # Examples
//! ```
//! use echoless_metrics::{Fields, text};
//! let fields = serde_json::json!({"records": 12, "fill": 0.25, "clock_to": null, "version": "1"});
//! let Some(fields) = fields.as_object() else {
//!     unreachable!();
//! };
//! let text = text(fields);
//! assert!(text.contains("\necholess_records_total 12\n"));
//! assert!(text.contains("\necholess_fill 0.25\n"));
//! assert!(text.ends_with("# EOF\n"));
//! // What is not known, or no metric, is left out.
//! assert!(!text.contains("clock") && !text.contains("version"));
//! ```

mod endpoint;
mod table;

pub use endpoint::{Endpoint, Served, parse_address};
pub use table::{Kind, METRICS, Metric, text};

/// The fields of the statistics of a run, and their values.
pub type Fields = serde_json::Map<String, serde_json::Value>;
