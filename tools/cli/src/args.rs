//! The command line as it is typed; [`crate::config`] says what it means.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Parser, Subcommand};
use clap_complete::Shell;

use crate::dedup::keys::Missing;
use crate::failure::Failure;
use crate::generate::Kind;

/// Duplicate detection on endless streams, at line rate and in fixed memory
#[derive(Debug, Parser)]
#[command(
    name = "echoless",
    version,
    propagate_version = true,
    arg_required_else_help = false
)]
#[command(
    after_help = "Exit codes: 0 done, 1 duplicates were found and --fail-on-duplicates was given, 2 the run could not be done, 130 and 143 a signal ended the stream."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Pass on the first occurrence of every record, in order
    Dedup(DedupArgs),
    /// Write a reproducible stream of made-up records
    Gen(GenArgs),
    /// Measure filters on a stream against an exact oracle
    Eval(EvalArgs),
    /// Rank all filters for a stream and a memory, and say which to use
    Plan(PlanArgs),
    /// Write the completions of a shell
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
    /// Write a manual page (roff)
    Man {
        /// The subcommand to describe; without it, the command as a whole
        command: Option<String>,
    },
}

/// Pass on the first occurrence of every record, in order
#[derive(Debug, ClapArgs)]
pub(crate) struct DedupArgs {
    /// Files to read as one stream; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Records end at NUL instead of at newline
    #[arg(short = 'z', long, conflicts_with_all = ["csv", "crlf"], help_heading = "Records")]
    pub(crate) null: bool,

    /// A CR before the newline belongs to the line ending, not to the record
    #[arg(long, help_heading = "Records")]
    pub(crate) crlf: bool,

    /// Fields may be quoted (RFC 4180) and then hold delimiters, newlines and doubled quotes; implies --crlf
    #[arg(long, help_heading = "Records")]
    pub(crate) csv: bool,

    /// Longest record, terminator included: a stray quote or a missing terminator must not take all memory
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64MiB",
        allow_hyphen_values = true,
        help_heading = "Records"
    )]
    pub(crate) max_record: String,

    /// The first record is a header: it passes through, and --key may use its names
    #[arg(long, help_heading = "Records")]
    pub(crate) header: bool,

    /// Compare only these fields: numbers from 1, ranges (2,5-7,9-) or names of the header
    #[arg(
        short,
        long,
        value_name = "FIELDS",
        allow_hyphen_values = true,
        help_heading = "Key"
    )]
    pub(crate) key: Option<String>,

    /// The byte between fields [default: ,]; \t or tab is a tabulator, \xHH any byte
    #[arg(
        short,
        long,
        value_name = "BYTE",
        allow_hyphen_values = true,
        help_heading = "Key"
    )]
    pub(crate) delimiter: Option<String>,

    /// What becomes of a record that lacks a field of the key [default: error]
    #[arg(long, value_enum, requires = "key", help_heading = "Key")]
    pub(crate) missing: Option<Missing>,

    /// Memory of the filter: 64k, 256MiB, 2G (powers of 1024), 500MB (powers of 1000)
    #[arg(
        short,
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    pub(crate) memory: String,

    /// Highest allowed rate of fresh records mistaken for duplicates
    #[arg(
        long,
        value_name = "RATE",
        default_value = "1e-8",
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    pub(crate) fpr: String,

    /// Which key a full line forgets: the oldest, the least recently used, or the oldest counting repeats
    #[arg(long, default_value = "fifo", value_parser = PossibleValuesParser::new(["fifo", "lru", "qqhtd"]), help_heading = "Filter")]
    pub(crate) replacement: String,

    /// Which implementation of the hot loops to run; all give the same result
    #[arg(long, default_value = "auto", value_parser = PossibleValuesParser::new(["auto", "scalar", "portable", "avx2", "avx512"]), help_heading = "Filter")]
    pub(crate) kernel: String,

    /// Seed of the key hash
    #[arg(
        long,
        default_value_t = 0,
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    pub(crate) seed: u64,

    /// Threads that share the work; the output is the same for any number [default: one for each core]
    #[arg(long, value_name = "N", help_heading = "Threads")]
    pub(crate) threads: Option<u64>,

    /// Keep each thread on a core of its own
    #[arg(long, help_heading = "Threads")]
    pub(crate) pin: bool,

    /// Write the records here instead of to standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// Write the dropped records (the duplicates) here
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "invert",
        help_heading = "Output"
    )]
    pub(crate) duplicates: Option<PathBuf>,

    /// Pass on the duplicates instead of the first occurrences
    #[arg(long, help_heading = "Output")]
    pub(crate) invert: bool,

    /// Write how many records would pass instead of the records
    #[arg(long, help_heading = "Output")]
    pub(crate) count: bool,

    /// Exit with 1 if there was a duplicate
    #[arg(long, help_heading = "Output")]
    pub(crate) fail_on_duplicates: bool,

    /// Write statistics of the run here, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) stats: Option<PathBuf>,

    /// No summary and no progress, only errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Write a reproducible stream of made-up records
#[derive(Debug, ClapArgs)]
pub(crate) struct GenArgs {
    /// What a record looks like
    #[arg(value_enum)]
    pub(crate) kind: Kind,

    /// How many records
    #[arg(
        short = 'n',
        long,
        default_value_t = 1_000_000,
        allow_hyphen_values = true
    )]
    pub(crate) count: u64,

    /// Equal seeds and options give equal bytes
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) seed: u64,

    /// Share of records that repeat an earlier one, 0 to 0.999
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0",
        allow_hyphen_values = true
    )]
    pub(crate) duplicates: String,

    /// Which earlier record is repeated: any alike (uniform), or the earliest ones most (zipf, zipf:EXPONENT)
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub(crate) distribution: String,

    /// A duplicate repeats the record exactly N records back instead of any earlier one
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        conflicts_with = "distribution"
    )]
    pub(crate) gap: Option<u64>,

    /// Length of a record of `lines`, newline included [default: 100]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) record_bytes: Option<usize>,

    /// Begin with a header line (cdr only)
    #[arg(long)]
    pub(crate) header: bool,

    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Measure filters on a stream against an exact oracle
#[derive(Debug, ClapArgs)]
pub(crate) struct EvalArgs {
    /// Filters, as in rlbsbf:k=2,memory=64MiB
    #[arg(value_name = "SPEC")]
    pub(crate) filters: Vec<String>,

    /// Filters from a TOML file: an array `filters` of texts, or of tables with the key `filter`
    #[arg(long, value_name = "FILE", help_heading = "Filters")]
    pub(crate) specs: Option<PathBuf>,

    /// Memory of the filters that do not say it themselves
    #[arg(
        short,
        long,
        value_name = "SIZE",
        allow_hyphen_values = true,
        help_heading = "Filters"
    )]
    pub(crate) memory: Option<String>,

    /// A made-up stream: uniform:records=10M,distinct=0.6 (or universe=), zipf:records=10M,universe=1M,exponent=1.1
    #[arg(
        long,
        value_name = "STREAM",
        default_value = "uniform:records=1M,distinct=0.6",
        conflicts_with = "input",
        help_heading = "Stream"
    )]
    pub(crate) stream: String,

    /// The lines of this file as the stream; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Stream")]
    pub(crate) input: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) fields: FieldArgs,

    /// Only records that came at most N records ago make duplicates
    #[arg(long, value_name = "N", help_heading = "Stream")]
    pub(crate) window: Option<String>,

    /// Seed of the stream
    #[arg(long, default_value_t = 1, help_heading = "Stream")]
    pub(crate) seed: u64,

    /// At how many places of the stream rates and load are noted
    #[arg(long, value_name = "N", default_value = "50", help_heading = "Output")]
    pub(crate) points: String,

    #[command(flatten)]
    pub(crate) outputs: LabOutputs,

    /// Draw rates and load over the stream, misses by age and the frontier of rates into this folder, as SVG
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) plots: Option<PathBuf>,
}

/// What of the lines of a file is compared.
#[derive(Debug, ClapArgs)]
pub(crate) struct FieldArgs {
    /// Compare only these fields: numbers from 1 and ranges (2,5-7,9-)
    #[arg(
        short,
        long,
        value_name = "FIELDS",
        allow_hyphen_values = true,
        help_heading = "Stream"
    )]
    pub(crate) key: Option<String>,

    /// The byte between fields [default: ,]; \t or tab is a tabulator
    #[arg(
        short,
        long,
        value_name = "BYTE",
        requires = "key",
        allow_hyphen_values = true,
        help_heading = "Stream"
    )]
    pub(crate) delimiter: Option<String>,
}

/// Where measurements are written besides standard output.
#[derive(Debug, ClapArgs)]
pub(crate) struct LabOutputs {
    /// Write the rows here, as CSV; to `-`, in place of the text
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,

    /// Write everything here, as JSON; to `-`, in place of the text
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,

    /// No progress, only results and errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Rank all filters for a stream and a memory, and say which to use
#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    /// Memory of the filter: 64k, 256MiB, 2G (powers of 1024), 500MB (powers of 1000) [default: the least that meets both bounds]
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<String>,

    /// How many records the stream has: 10M, 1G [default: those of the sample]
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Stream"
    )]
    pub(crate) records: Option<String>,

    /// The share of distinct records among them, above 0 and below 1
    #[arg(
        long,
        value_name = "SHARE",
        allow_hyphen_values = true,
        conflicts_with = "sample",
        help_heading = "Stream"
    )]
    pub(crate) distinct: Option<String>,

    /// A file whose lines are like the stream, instead of a share; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Stream")]
    pub(crate) sample: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) fields: FieldArgs,

    /// Only records that came at most N records ago make duplicates; the stream has no end
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Stream"
    )]
    pub(crate) window: Option<String>,

    /// Highest rate of distinct records taken for duplicates
    #[arg(
        long,
        value_name = "RATE",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) max_fpr: Option<String>,

    /// Highest rate of duplicates missed
    #[arg(
        long,
        value_name = "RATE",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) max_fnr: Option<String>,

    /// What a distinct record costs that is taken for a duplicate
    #[arg(
        long,
        value_name = "COST",
        requires = "cost_fnr",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) cost_fpr: Option<String>,

    /// What a duplicate costs that is missed
    #[arg(
        long,
        value_name = "COST",
        requires = "cost_fpr",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) cost_fnr: Option<String>,

    /// Seed of the filters and of the simulations
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    /// Threads that simulate [default: one for each core]
    #[arg(short, long, value_name = "N")]
    pub(crate) threads: Option<u64>,

    /// Measure the speed of the filters shown, each in its full memory
    #[arg(long, help_heading = "Output")]
    pub(crate) measure: bool,

    /// Show all candidates instead of the best of each kind
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,

    /// Write only the filter to use
    #[arg(long, conflicts_with_all = ["measure", "all"], help_heading = "Output")]
    pub(crate) spec_only: bool,

    #[command(flatten)]
    pub(crate) outputs: LabOutputs,
}

/// Parses the command line; `None` if all it asked for was help or the version, which is then written.
pub(crate) fn parse() -> Result<Option<Args>, Failure> {
    let error = match Args::try_parse() {
        Ok(args) => return Ok(Some(args)),
        Err(error) => error,
    };
    if error.use_stderr() {
        return Err(Failure::Usage(one_line(&error.to_string())));
    }
    error.print().map_err(Failure::writing_stdout)?;
    Ok(None)
}

/// A parser's message without its usage section, on one line.
fn one_line(message: &str) -> String {
    let paragraphs: Vec<String> = message
        .split("\n\n")
        .filter(|paragraph| {
            !paragraph.starts_with("Usage:") && !paragraph.starts_with("For more information")
        })
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let message = paragraphs.join("; ");
    message.strip_prefix("error: ").unwrap_or(&message).into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_usage_error_is_one_line() {
        let error = Args::try_parse_from(["echoless", "dedup", "--memry", "1G"]).unwrap_err();
        let line = one_line(&error.to_string());
        assert!(
            line.starts_with("unexpected argument '--memry' found"),
            "{line}"
        );
        assert!(line.contains("'--memory'"), "{line}");
        assert!(!line.contains('\n') && !line.contains("Usage"), "{line}");
    }
}
