//! The options that define what a record is and what its key, the same wherever records are read.

use std::ffi::OsString;

use clap::{Arg, Args as ClapArgs, ValueEnum, value_parser};

use super::format::FormatArgs;
use crate::delimiter::as_text;
use crate::fault::{BlankLines, Missing};
use crate::text_form::IgnoredCase;

/// Lets the values of a command's text options begin with a hyphen, as that of `--key -1`, so that
/// one that is wrong is named by its own error: `Command::mut_args` takes this. It leaves out those
/// in `except`, numbers that may be negative, and options with a list of values.
pub fn accept_hyphens(except: &'static [&'static str]) -> impl FnMut(Arg) -> Arg {
    let texts = [
        value_parser!(String).type_id(),
        value_parser!(OsString).type_id(),
    ];
    move |arg| {
        let accepts = !arg.is_positional()
            && arg.get_action().takes_values()
            && texts.contains(&arg.get_value_parser().type_id())
            && !arg.is_allow_negative_numbers_set()
            && arg.get_possible_values().is_empty()
            && !except.contains(&arg.get_id().as_str());
        arg.allow_hyphen_values(accepts)
    }
}

/// Puts options below headings of the help, by their names: `Command::mut_args` takes this.
pub fn headed(
    headings: &'static [(&'static str, &'static [&'static str])],
) -> impl FnMut(Arg) -> Arg {
    |arg| {
        let mut headings = headings.iter();
        match headings.find(|(_, options)| options.contains(&arg.get_id().as_str())) {
            Some((heading, _)) => arg.help_heading(*heading),
            None => arg,
        }
    }
}

/// The options of records and their keys, for a command that [accepts hyphens](accept_hyphens).
#[derive(Debug, ClapArgs)]
#[command(mut_args(headed(&[
    ("Records", &["no_decompress", "max_record", "header", "comment"]),
    ("Key", &[
        "key", "delimiter", "whitespace", "ignore_case", "trim", "skip_fields", "skip_chars",
        "max_chars", "blank_lines", "missing",
    ]),
])))]
pub struct RecordArgs {
    /// Read files as they are. Without this option, files that begin like gzip, zstd, lz4, xz,
    /// bzip2 or lzip are decompressed, and binary records may begin so by chance; text may be in
    /// lzma, too, and is not read in UTF-16, as a tar archive or as a binary file such as Parquet
    #[arg(long)]
    pub(crate) no_decompress: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgs,

    /// Longest record allowed, terminator included; limits the memory that a stray quote or a
    /// missing terminator can take [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_record: Option<String>,

    /// Treat the first record as a header: copy it to the outputs, if there are any, and allow its
    /// names in --key
    #[arg(long)]
    pub(crate) header: bool,

    /// Lines that begin with these bytes are comments: copied in place, never judged. Without this
    /// option, inputs whose first line is that of VCF, GFF, Zeek or W3C logs have comments with #
    /// where fields are selected; '' turns that off
    #[arg(long, value_name = "PREFIX")]
    pub(crate) comment: Option<String>,

    /// Compare only these fields: numbers from 1, ranges (2,5-7,9-), -1 for the last field, !3 for
    /// all fields but that one, or names in the header; in some formats paths or byte ranges (see
    /// --format)
    #[arg(short, long, value_name = "FIELDS")]
    pub(crate) key: Option<String>,

    /// Bytes between fields, one or more: as they are, \t or tab, or \xHH for any byte [default: ,]
    #[arg(short, long, value_name = "BYTES")]
    pub(crate) delimiter: Option<OsString>,

    /// Fields are separated by runs of spaces and tabs, as in awk; those at the ends of a record
    /// separate nothing
    #[arg(short, long, conflicts_with = "delimiter")]
    pub(crate) whitespace: bool,

    /// Compare letters without their case: A to Z by default, all letters of Unicode with
    /// --ignore-case=unicode; in JSON, those of strings
    #[arg(
        short,
        long,
        value_enum,
        value_name = "ascii|unicode",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "ascii",
        hide_possible_values = true
    )]
    pub(crate) ignore_case: Option<IgnoredCase>,

    /// Leave white space at both ends out of the comparison, of each field, or of the whole record
    /// without --key; in JSON, of strings
    #[arg(long)]
    pub(crate) trim: bool,

    /// Compare records without their first N fields, as uniq -f: a field is a run of spaces and
    /// tabs, and what follows up to the next of them
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "key",
        allow_negative_numbers = true
    )]
    pub(crate) skip_fields: Option<String>,

    /// Compare records without their first N characters, as uniq -s: code points of UTF-8, or bytes
    /// that belong to none; after --skip-fields
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "key",
        allow_negative_numbers = true
    )]
    pub(crate) skip_chars: Option<String>,

    /// Compare at most N characters of a record, as uniq -w; after those that are skipped
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "key",
        allow_negative_numbers = true
    )]
    pub(crate) max_chars: Option<String>,

    /// How to treat a blank line: pass it on without a verdict, as a faulty record, or as a record
    /// [default: skip between JSON values and paragraphs, and where fields of CSV or JSON lines are
    /// selected, else keep]
    #[arg(long, value_enum, value_name = "skip|error|keep")]
    pub(crate) blank_lines: Option<BlankLines>,

    /// How to treat a record that lacks a field of the key, or a readable time [default: error]
    #[arg(long, value_enum, value_name = "error|skip|empty")]
    pub missing: Option<Missing>,
}

impl RecordArgs {
    /// The options that were given, each with its value if it takes one: a command line that reads
    /// the same records.
    pub fn given(&self) -> Vec<(String, Option<String>)> {
        let flags = [
            ("--no-decompress", self.no_decompress),
            ("--header", self.header),
            ("--whitespace", self.whitespace),
            (
                "--ignore-case",
                self.ignore_case == Some(IgnoredCase::Ascii),
            ),
            // Its value is optional, so it cannot be a word of its own.
            (
                "--ignore-case=unicode",
                self.ignore_case == Some(IgnoredCase::Unicode),
            ),
            ("--trim", self.trim),
        ];
        let values = [
            ("--max-record", self.max_record.clone()),
            ("--comment", self.comment.clone()),
            ("--key", self.key.clone()),
            ("--delimiter", self.delimiter.as_deref().map(as_text)),
            ("--skip-fields", self.skip_fields.clone()),
            ("--skip-chars", self.skip_chars.clone()),
            ("--max-chars", self.max_chars.clone()),
            ("--blank-lines", self.blank_lines.and_then(name)),
            ("--missing", self.missing.and_then(name)),
        ];
        let flags = flags.into_iter().filter(|(_, given)| *given);
        let flags = flags.map(|(option, _)| (option, None));
        let values = values.into_iter().filter(|(_, value)| value.is_some());
        let mut given = self.format.given();
        given.extend(
            flags
                .chain(values)
                .map(|(option, value)| (option.to_owned(), value)),
        );
        given
    }
}

/// A value as it is typed.
fn name(value: impl ValueEnum) -> Option<String> {
    let value = value.to_possible_value()?;
    Some(value.get_name().to_owned())
}
