//! The record formats, one file each, and the list of those that the command line can select.

mod crlf;
mod csv;
mod terminated;
#[cfg(test)]
pub(super) mod tests;

use super::format::FormatOption;

pub(crate) use terminated::lines;

/// The formats besides plain lines, which need no option. `--help` shows them in this order.
pub(crate) static OPTIONS: [FormatOption; 3] = [terminated::NULL, crlf::CRLF, csv::CSV];
