//! Charts of point series as SVG, for the figures of the lab and the plots of the benchmark report.
//!
//! A chart has two axes with units, linear or logarithmic. The legend stands beside the data and
//! never covers it.
//!
//! # Examples
//! ```
//! use echoless_lab::chart::{Axis, Chart, Scale, Series};
//!
//! let chart = Chart {
//!     title: "Speed by size".into(),
//!     x: Axis::new("memory, MiB", Scale::Log2),
//!     y: Axis::new("million keys per second", Scale::Linear),
//!     series: vec![Series::line("fifo", vec![(1.0, 500.0), (64.0, 200.0)])],
//! };
//! assert!(chart.svg()?.starts_with("<svg"));
//! # Ok::<(), echoless_lab::chart::ChartError>(())
//! ```

mod bars;
mod definition;
mod page;
mod scale;
mod svg;

pub use bars::Bars;
pub use definition::{Axis, Chart, Series, Style};
pub use page::page;
pub use scale::Scale;
pub use svg::ChartError;
