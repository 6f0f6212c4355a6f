//! The configuration of reading: what a record is, what its key, and which faults it may have.

use std::path::PathBuf;

use echoless::SpecError;
use echoless_lab::stream::parse_count;

use super::parse_if_given;
use crate::args::{FormatUse, RecordArgs, RecordFileArgs};
use crate::failure::Failure;
use crate::lab::input::RecordFile;
use crate::number::{exact_bytes, parse_size, parse_whole};
use crate::records::compared::Compared;
use crate::records::delimiter::Delimiter;
use crate::records::fault::{BlankLines, FaultPolicy, Missing};
use crate::records::field_list::FieldList;
use crate::records::format::{ChosenFields, Format, SelectedFormat};
use crate::records::reading::RecordReading;
use crate::records::tag::TagStyle;

/// The longest record unless the options set another length.
const MAX_RECORD: u64 = 64 << 20;

/// What other options require of the records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecordUse<'a> {
    /// The fields with the time, as typed.
    pub(super) time: Option<&'a str>,
    /// Whether verdicts are written into the records.
    pub(super) tag: bool,
    /// Whether faulty records are set aside.
    pub(super) rejects: bool,
}

/// The checked options of records.
#[derive(Debug)]
pub(super) struct CheckedRecords {
    pub(super) reading: RecordReading,
    /// The fields with the time.
    pub(super) time: Option<FieldList>,
    /// The files that options were read from. Like the inputs, they must not be outputs.
    pub(super) files: Vec<PathBuf>,
}

impl CheckedRecords {
    /// Checks the options of records.
    ///
    /// # Errors
    /// [`Failure`] if the options contradict each other, the value of one is invalid, or a file
    /// that one names cannot be read.
    pub(super) fn new(args: &RecordArgs, required: RecordUse<'_>) -> Result<Self, Failure> {
        let delimiter = match &args.delimiter {
            None if args.whitespace => Some(Delimiter::Blanks),
            None => None,
            Some(typed) => Some(Delimiter::parse(typed)?),
        };
        let SelectedFormat {
            format,
            key,
            time,
            files,
        } = args.format.select(FormatUse {
            fields: ChosenFields {
                key: args.key.as_deref(),
                time: required.time,
            },
            delimiter: delimiter.as_ref(),
            header: args.header,
            tag: required.tag,
        })?;
        if args.missing.is_some() && key.is_none() && time.is_none() {
            let allowed = "--key or --time-field beside --missing";
            return Err(SpecError::missing("--key", allowed).into());
        }
        let compared = compared(args, &*format, key.is_some())?;
        let blank_lines = match (args.blank_lines, format.skips_blank_lines()) {
            (None, false) => BlankLines::Keep,
            (None, true) => BlankLines::default(),
            (Some(blank_lines), true) => blank_lines,
            (Some(_), false) => {
                let allowed = "--csv beside --blank-lines";
                return Err(SpecError::missing("--csv", allowed).into());
            }
        };
        let max_record = parse_if_given("--max-record", args.max_record.as_deref(), parse_size)?;
        let max_record = max_record.unwrap_or(MAX_RECORD);
        // No record could be read.
        if let Some(bytes) = format.record_bytes()
            && bytes as u64 > max_record
        {
            let asked = format!("fixed:{bytes}");
            let longest = exact_bytes(max_record);
            let allowed = format!("records of at most {longest} (--max-record)");
            return Err(SpecError::new("--format", asked, allowed).into());
        }
        let reading = RecordReading {
            format,
            as_they_are: args.no_decompress,
            max_record: max_record.try_into().unwrap_or(usize::MAX),
            header: args.header,
            key,
            compared,
            faults: FaultPolicy {
                missing: args.missing.unwrap_or(Missing::Error),
                blank_lines,
                rejects: required.rejects,
            },
        };
        Ok(Self {
            reading,
            time,
            files,
        })
    }
}

/// The part of a key that is compared.
///
/// # Errors
/// [`Failure`] if a value is no number, or the keys of the format are no text: folding letters
/// would join values that differ.
fn compared(args: &RecordArgs, format: &dyn Format, has_key: bool) -> Result<Compared, Failure> {
    let number = |option, text: &Option<String>| {
        let parse = |option, text: &str| parse_whole(option, text, 0..=u64::MAX);
        parse_if_given(option, text.as_deref(), parse)
    };
    let compared = Compared {
        ignore_case: args.ignore_case,
        skip_fields: number("--skip-fields", &args.skip_fields)?.unwrap_or(0),
        skip_chars: number("--skip-chars", &args.skip_chars)?.unwrap_or(0),
        max_chars: number("--max-chars", &args.max_chars)?,
    };
    let is_text = match format.tag_style() {
        Some(TagStyle::Field(_)) => true,
        // Without a key, lines of JSON are compared by their bytes.
        Some(TagStyle::Member) => !has_key,
        None => false,
    };
    if is_text || compared.is_all() {
        return Ok(compared);
    }
    let option = match compared {
        Compared {
            skip_fields: 1.., ..
        } => "--skip-fields",
        Compared {
            skip_chars: 1.., ..
        } => "--skip-chars",
        Compared {
            max_chars: Some(_), ..
        } => "--max-chars",
        Compared { .. } => "--ignore-case",
    };
    let allowed = "lines or fields of text, not JSON values or binary records";
    Err(Failure::option(option, allowed))
}

/// The most records of a file for `eval` and `plan`, unless the options set another number.
const MAX_RECORDS: u64 = 10_000_000;

/// The file of records that `option` names, as `echoless dedup` would read it; `None` without a
/// path.
///
/// # Errors
/// [`Failure`] as for [`CheckedRecords::new`], or if options of records are given without a path.
pub(super) fn record_file(
    option: &'static str,
    path: Option<PathBuf>,
    args: &RecordFileArgs,
) -> Result<Option<RecordFile>, Failure> {
    let Some(path) = path else {
        let of_file = args.max_records.as_ref();
        let of_file = of_file.map(|_| "--max-records".to_owned());
        let given = args.records.given().into_iter().map(|(given, _)| given);
        return match given.chain(of_file).next() {
            Some(given) => {
                let allowed = format!("{option} FILE beside {given}");
                Err(SpecError::missing(option, allowed).into())
            }
            None => Ok(None),
        };
    };
    let most = parse_if_given("--max-records", args.max_records.as_deref(), parse_count)?;
    let records = CheckedRecords::new(&args.records, RecordUse::default())?;
    Ok(Some(RecordFile::new(
        path,
        records.reading,
        records.files,
        most.unwrap_or(MAX_RECORDS),
    )))
}
