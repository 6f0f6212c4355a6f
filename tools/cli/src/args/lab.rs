//! The options of `echoless eval` and `echoless plan`, and those they share.

use std::path::PathBuf;

use clap::Args as ClapArgs;

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
