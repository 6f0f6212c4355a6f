//! Event times: durations of options, times in records, and the ticks that a filter counts.

mod bcd;
pub(crate) mod calendar;
pub(crate) mod decimal;
mod directives;
pub(crate) mod format;
pub(crate) mod recurring;
