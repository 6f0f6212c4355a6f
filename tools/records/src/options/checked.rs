//! The configuration of reading: what a record is, what its key, and which faults it may have.

use std::path::PathBuf;
use std::sync::Arc;

use echoless::SpecError;

use super::RecordArgs;
use super::format::FormatUse;
use crate::comments::CommentLines;
use crate::compared::Compared;
use crate::delimiter::Delimiter;
use crate::failure::Failure;
use crate::fault::{BlankLines, FaultPolicy, Missing};
use crate::field_list::FieldList;
use crate::format::{BlankLineReading, CommentSupport, FieldNames, Format, FormatFacts};
use crate::formats::{ChosenFields, SelectedFormat};
use crate::keys::RecordReading;
use crate::number::{exact_bytes, parse_if_given, parse_size, parse_whole};
use crate::text_form::TextForm;

/// The longest record unless the options set another length.
const MAX_RECORD: u64 = 64 << 20;

/// What other options require of the records.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordUse<'a> {
    /// The fields with the time, as typed.
    pub time: Option<&'a str>,
    /// Whether verdicts are written into the records.
    pub tag: bool,
    /// Whether faulty records are set aside.
    pub rejects: bool,
}

/// The checked options of records.
#[derive(Debug)]
pub struct CheckedRecords {
    /// How records are read.
    pub reading: RecordReading,
    /// The fields with the time.
    pub time: Option<FieldList>,
    /// The files that options were read from. Like the inputs, they must not be outputs.
    pub files: Vec<PathBuf>,
}

impl CheckedRecords {
    /// Checks the options of records.
    ///
    /// # Errors
    /// [`Failure`] if the options contradict each other, the value of one is invalid, or a file
    /// that one names cannot be read.
    pub fn new(args: &RecordArgs, required: RecordUse<'_>) -> Result<Self, Failure> {
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
                text: text_form(args),
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
        let reads_fields = key.is_some() || time.is_some();
        let blank_lines = match args.blank_lines {
            None => match format.facts().blank_lines {
                BlankLineReading::SkippedWithFields if reads_fields => BlankLines::Skip,
                BlankLineReading::Skipped => BlankLines::Skip,
                BlankLineReading::SkippedWithFields | BlankLineReading::Records => BlankLines::Keep,
            },
            Some(_) if !format.facts().is_text => {
                let allowed = "records of text, not binary ones";
                return Err(Failure::option("--blank-lines", allowed));
            }
            Some(blank_lines) => blank_lines,
        };
        let has_fields = reads_fields || args.header || required.tag;
        let (comments, announced_comments) = comments(args, &*format, has_fields)?;
        let typed = comments
            .as_ref()
            .and_then(|comments| comments.typed.as_deref());
        let framing = typed.and_then(|prefix| format.with_comments(prefix));
        let format = framing.unwrap_or(format);
        let max_record = parse_if_given("--max-record", args.max_record.as_deref(), parse_size)?;
        let max_record = max_record.unwrap_or(MAX_RECORD);
        // No record could be read.
        if let Some(bytes) = format.facts().record_bytes
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
            comments,
            announced_comments,
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

/// Which lines are comments, and whether first lines may announce them. They do where fields are
/// read: lines that are compared whole are not known to be those of any file. Fails if the format
/// has no comments, or no line can begin like one.
fn comments(
    args: &RecordArgs,
    format: &dyn Format,
    has_fields: bool,
) -> Result<(Option<Arc<CommentLines>>, bool), Failure> {
    let support = format.facts().comments;
    let typed = match &args.comment {
        Some(_) if support == CommentSupport::Impossible => {
            let allowed = "records that are lines";
            return Err(Failure::option("--comment", allowed));
        }
        Some(prefix)
            if prefix
                .bytes()
                .any(|byte| format.terminator_of(&[byte]).is_some()) =>
        {
            let allowed = "bytes that end no record";
            return Err(SpecError::new("--comment", prefix, allowed).into());
        }
        Some(prefix) => Some(prefix.as_bytes()),
        None => None,
    };
    let is_off = typed == Some(b"");
    let announced = support == CommentSupport::Announced && has_fields && !is_off;
    let typed = typed.filter(|_| !is_off).map(<[u8]>::to_vec);
    let are_possible = typed.is_some() || announced;
    let comments = are_possible.then(|| Arc::new(CommentLines { typed }));
    Ok((comments, announced))
}

/// The form in which texts are compared.
fn text_form(args: &RecordArgs) -> TextForm {
    TextForm {
        trim: args.trim,
        ignored_case: args.ignore_case,
    }
}

/// The part of a key that is compared. Fails if a value is no number, or the keys of the format are
/// no text: folding letters would join values that differ.
fn compared(args: &RecordArgs, format: &dyn Format, has_key: bool) -> Result<Compared, Failure> {
    let number = |option, text: &Option<String>| {
        let parse = |option, text: &str| parse_whole(option, text, 0..=u64::MAX);
        parse_if_given(option, text.as_deref(), parse)
    };
    let mut compared = Compared {
        text: text_form(args),
        skip_fields: number("--skip-fields", &args.skip_fields)?.unwrap_or(0),
        skip_chars: number("--skip-chars", &args.skip_chars)?.unwrap_or(0),
        max_chars: number("--max-chars", &args.max_chars)?,
    };
    let FormatFacts {
        is_text,
        field_names,
        ..
    } = format.facts();
    // A format with fields of its own, JSON, compares strings in their form. Without a key, records
    // of it are compared by their bytes, like any text.
    if *is_text && has_key && matches!(field_names, FieldNames::Listed(_)) {
        compared.text = TextForm::default();
    }
    if *is_text || compared.is_all() {
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
        Compared {
            text: TextForm { trim: true, .. },
            ..
        } => "--trim",
        Compared { .. } => "--ignore-case",
    };
    let allowed = "records of text, not binary ones";
    Err(Failure::option(option, allowed))
}
