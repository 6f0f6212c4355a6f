//! The options of `echoless eval` and `echoless plan`, and those they share.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::records::RecordArgs;

/// Measure filters on a stream against an exact oracle
#[derive(Debug, ClapArgs)]
pub(crate) struct EvalArgs {
    /// Specifications of filters, such as rlbsbf:k=2,memory=64MiB
    #[arg(value_name = "SPEC")]
    pub(crate) filters: Vec<String>,

    /// Read filters from a TOML file: an array `filters` of strings, or of tables with the key
    /// `filter`
    #[arg(long, value_name = "FILE", help_heading = "Filters")]
    pub(crate) specs: Option<PathBuf>,

    /// Memory of the filters that do not specify one
    #[arg(
        short,
        long,
        value_name = "SIZE",
        allow_hyphen_values = true,
        help_heading = "Filters"
    )]
    pub(crate) memory: Option<String>,

    /// Generate the stream: uniform:records=10M,distinct=0.6 (or universe=),
    /// zipf:records=10M,universe=1M,exponent=1.1
    #[arg(
        long,
        value_name = "STREAM",
        default_value = "uniform:records=1M,distinct=0.6",
        conflicts_with = "input",
        help_heading = "Stream"
    )]
    pub(crate) stream: String,

    /// Use the records of this file as the stream; `-` means standard input
    #[arg(long, value_name = "FILE", help_heading = "Stream")]
    pub(crate) input: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: RecordFileArgs,

    /// Count only repeats within N records as duplicates
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Stream"
    )]
    pub(crate) window: Option<String>,

    /// Seed of the stream
    #[arg(
        long,
        default_value = "1",
        allow_negative_numbers = true,
        help_heading = "Stream"
    )]
    pub(crate) seed: String,

    /// Number of positions in the stream at which rates and fill are recorded
    #[arg(
        long,
        value_name = "N",
        default_value = "50",
        allow_negative_numbers = true,
        help_heading = "Output"
    )]
    pub(crate) points: String,

    #[command(flatten)]
    pub(crate) outputs: LabOutputs,

    /// Draw SVG plots into this folder: rates and fill over the stream, misses by age, and the
    /// two rates against each other
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub(crate) plots: Option<PathBuf>,
}

/// The options of the file whose records are a stream.
#[derive(Debug, ClapArgs)]
pub(crate) struct RecordFileArgs {
    #[command(flatten)]
    pub(crate) records: RecordArgs,

    /// The most records to read: the stream takes 4 bytes of memory for each, and while it is read
    /// up to 40 more for each distinct one [default: 10M]
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Records"
    )]
    pub(crate) max_records: Option<String>,
}

/// The options for outputs besides standard output.
#[derive(Debug, ClapArgs)]
pub(crate) struct LabOutputs {
    /// Write the rows to this file, as CSV; `-` replaces the text on standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) to_csv: Option<PathBuf>,

    /// Write everything to this file, as JSON; `-` replaces the text on standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) to_json: Option<PathBuf>,

    /// Write no progress, only results and errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Rank all filters for a stream and a memory, and recommend one
#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    /// Memory of the filter: 64k, 256MiB, 2G (powers of 1024), 500MB (powers of 1000) [default: the
    /// least that meets both bounds]
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) memory: Option<String>,

    /// Number of records in the stream: 10M, 1G [default: as many as in the sample]
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Stream"
    )]
    pub(crate) records: Option<String>,

    /// Fraction of the records that is distinct, above 0 and below 1
    #[arg(
        long,
        value_name = "FRACTION",
        allow_hyphen_values = true,
        conflicts_with = "sample",
        help_heading = "Stream"
    )]
    pub(crate) distinct: Option<String>,

    /// File whose records are like the stream, in place of --distinct; `-` means standard input
    #[arg(long, value_name = "FILE", help_heading = "Stream")]
    pub(crate) sample: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: RecordFileArgs,

    /// Count only repeats within N records as duplicates, in an endless stream. Filters whose
    /// error rates grow without end are no candidates then
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Stream"
    )]
    pub(crate) window: Option<String>,

    /// Highest false positive rate: the fraction of the fresh records reported as duplicates
    #[arg(
        long,
        value_name = "RATE",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) max_fpr: Option<String>,

    /// Highest false negative rate: the fraction of the duplicates reported as fresh
    #[arg(
        long,
        value_name = "RATE",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) max_fnr: Option<String>,

    /// Cost of a false positive
    #[arg(
        long,
        value_name = "COST",
        requires = "cost_fnr",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) cost_fpr: Option<String>,

    /// Cost of a false negative
    #[arg(
        long,
        value_name = "COST",
        requires = "cost_fpr",
        allow_hyphen_values = true,
        help_heading = "Goal"
    )]
    pub(crate) cost_fnr: Option<String>,

    /// CPU time for simulations, nominal: a model of their cost turns it into numbers of records,
    /// so that the plan is the same on every machine
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        allow_hyphen_values = true
    )]
    pub(crate) budget: String,

    /// Seed of the filters and of the simulations
    #[arg(long, default_value = "0", allow_negative_numbers = true)]
    pub(crate) seed: String,

    /// Number of threads for simulations [default: one for each core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) threads: Option<String>,

    /// Measure the speed of the filters shown, each with its full memory
    #[arg(long, help_heading = "Output")]
    pub(crate) measure: bool,

    /// Show all candidates instead of the best of each kind
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,

    /// Write only the specification of the recommended filter as text; --to-csv and --to-json are
    /// as without this option
    #[arg(long, conflicts_with_all = ["measure", "all"], help_heading = "Output")]
    pub(crate) spec_only: bool,

    #[command(flatten)]
    pub(crate) outputs: LabOutputs,
}
