//! The options of `echoless gen`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::generate::Kind;

/// Write a reproducible stream of generated records
#[derive(Debug, ClapArgs)]
pub(crate) struct GenArgs {
    /// Kind of records
    #[arg(value_enum)]
    pub(crate) kind: Kind,

    /// Number of records
    #[arg(
        short = 'n',
        long,
        default_value_t = 1_000_000,
        allow_hyphen_values = true
    )]
    pub(crate) count: u64,

    /// Seed of the stream; equal seeds and options give equal bytes
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) seed: u64,

    /// Fraction of the records that repeat an earlier one, 0 to 0.999
    #[arg(
        long,
        value_name = "FRACTION",
        default_value = "0",
        allow_hyphen_values = true
    )]
    pub(crate) duplicates: String,

    /// Which earlier record a duplicate repeats: all equally likely (uniform), or the earliest most
    /// often (zipf, zipf:EXPONENT)
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub(crate) distribution: String,

    /// Make each duplicate repeat the record exactly N records before it
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        conflicts_with = "distribution"
    )]
    pub(crate) gap: Option<u64>,

    /// Length of the records of `lines`, newline included [default: 100]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub(crate) record_bytes: Option<usize>,

    /// Begin with a header line (cdr only)
    #[arg(long)]
    pub(crate) header: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
