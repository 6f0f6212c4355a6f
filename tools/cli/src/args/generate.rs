//! The options of `echoless gen`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::generate::Kind;

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
