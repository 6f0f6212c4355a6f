//! Event times: durations of options, times in records, and the ticks that a filter counts.

mod bcd;
pub mod calendar;
pub(crate) mod decimal;
mod directives;
pub mod format;
pub mod recurring;
