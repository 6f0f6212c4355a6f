//! The record formats, one file per family, and the lists of those that the command line can
//! select.

mod ber;
mod containers;
mod csv;
mod fixed;
mod grouped;
mod json;
mod json_lists;
mod prefixed;
mod terminated;
#[cfg(test)]
pub(super) mod tests;

use super::format::{FormatName, FormatOption};

pub(crate) use terminated::lines;

/// The formats with an option of their own, besides plain lines, which need none. `--help` shows
/// them in this order.
pub(crate) static OPTIONS: &[FormatOption] = &[
    terminated::NULL,
    terminated::CRLF,
    csv::CSV,
    csv::CSV_BACKSLASH,
];

/// The values of `--format`. `--help` shows them in this order.
pub(crate) static NAMES: &[FormatName] = &[
    terminated::LINES,
    csv::NAMED_CSV,
    terminated::TSV,
    json::JSONL,
    json::JSON,
    json::JSON_IN,
    grouped::PARAGRAPHS,
    grouped::LINES_OF,
    fixed::FIXED,
    prefixed::PREFIXED,
    ber::BER,
    ber::BER_WITH,
];
