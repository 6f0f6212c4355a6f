//! The record formats, one file per family, and the list of those that the command line can select.

mod csv;
mod terminated;
#[cfg(test)]
pub(super) mod tests;

use super::format::FormatOption;

pub(crate) use terminated::lines;

/// The formats besides plain lines, which need no option. `--help` shows them in this order.
pub(crate) static OPTIONS: [FormatOption; 3] = [terminated::NULL, terminated::CRLF, csv::CSV];
