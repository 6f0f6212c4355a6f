//! The record formats, one file per family, and the lists of those that the command line can
//! select.

mod ber;
mod csv;
mod fixed;
mod grouped;
mod json;
mod pieces;
mod prefixed;
mod terminated;
#[cfg(test)]
pub(super) mod tests;

use std::path::PathBuf;

use super::delimiter::Delimiter;
use super::failure::Failure;
use super::field_list::FieldList;
use super::keys::SharedFormat;
use super::text_form::TextForm;

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

/// A flag that selects a format.
#[derive(Debug)]
pub(crate) struct FormatOption {
    /// The name of the option.
    pub(crate) long: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) help: &'static str,
    /// Options that may be given as well and change nothing; all others conflict with this one.
    pub(crate) implies: &'static [&'static str],
    /// Whether the field delimiter affects where records end.
    pub(crate) needs_delimiter: bool,
    /// Makes the format from the field delimiter.
    pub(crate) build: fn(&Delimiter) -> Result<SharedFormat, Failure>,
}

/// How `--format` names a format.
#[derive(Debug)]
pub(crate) struct FormatName {
    pub(crate) name: &'static str,
    /// The name of the value that follows the name and a colon; `None` if there is none.
    pub(crate) value_name: Option<&'static str>,
    pub(crate) help: &'static str,
    /// The options that may be given as well; all others conflict with the name.
    pub(crate) options: &'static [&'static str],
    pub(crate) build: FormatBuild,
}

/// How a named format is made.
#[derive(Debug)]
pub(crate) enum FormatBuild {
    /// Fields between delimiters: the format of the option, plain lines without one.
    Delimited {
        option: Option<&'static FormatOption>,
        /// The delimiter, if the name determines it.
        delimiter: Option<u8>,
    },
    /// Fields of the format's own, made from the value after the colon and the chosen fields.
    OwnFields(fn(&str, &ChosenFields<'_>) -> Result<SelectedFormat, Failure>),
}

/// The fields that the options name, as typed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChosenFields<'a> {
    /// The value of `--key`.
    pub(crate) key: Option<&'a str>,
    /// The value of `--time-field`.
    pub(crate) time: Option<&'a str>,
    /// The form in which texts are compared, for a format whose keys hold more than text.
    pub(crate) text: TextForm,
}

/// A format, and the fields of its records that the options name.
#[derive(Debug)]
pub(crate) struct SelectedFormat {
    pub(crate) format: SharedFormat,
    /// The fields to compare; `None` compares whole records.
    pub(crate) key: Option<FieldList>,
    /// The fields of the time, in the order in which they are joined.
    pub(crate) time: Option<FieldList>,
    /// The files that the format was read from. Like the inputs, they must not be outputs.
    pub(crate) files: Vec<PathBuf>,
}

impl SelectedFormat {
    /// A format whose fields are listed, by their names, too, if there is a `header`.
    pub(crate) fn listed(
        format: SharedFormat,
        fields: &ChosenFields<'_>,
        header: bool,
    ) -> Result<Self, Failure> {
        let key = fields.key.map(|text| FieldList::parse(text, header));
        let each = |text| FieldList::parse_each("--time-field", text, header);
        Ok(Self {
            format,
            key: key.transpose()?,
            time: fields.time.map(each).transpose()?,
            files: Vec::new(),
        })
    }

    /// A format that numbers its own fields: `keys` fields of the key from 0 on, none to compare
    /// whole records, and then `times` fields of the time.
    pub(crate) fn numbered(format: SharedFormat, keys: usize, times: usize) -> Self {
        Self {
            format,
            key: (keys > 0).then(|| FieldList::numbered(0..=keys - 1)),
            time: (times > 0).then(|| FieldList::numbered(keys..=keys + times - 1)),
            files: Vec::new(),
        }
    }
}
