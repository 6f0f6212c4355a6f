//! The options of `echoless gen`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::generate::Kind;
use crate::generate::cdr::CdrFormat;

/// Write a reproducible stream of generated records
#[derive(Debug, ClapArgs)]
pub(crate) struct GenArgs {
    /// Kind of records
    #[arg(value_enum)]
    pub(crate) kind: Kind,

    /// Number of records: 1000, 10k, 1M (powers of 1000)
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value = "1M",
        allow_hyphen_values = true
    )]
    pub(crate) count: String,

    /// Seed of the stream; equal seeds and options give equal bytes
    #[arg(long, default_value = "0", allow_hyphen_values = true)]
    pub(crate) seed: String,

    /// Fraction of the records that repeat an earlier one, 0 to 0.999
    #[arg(
        long,
        value_name = "FRACTION",
        default_value = "0",
        allow_hyphen_values = true
    )]
    pub(crate) duplicates: String,

    /// Which earlier record a duplicate repeats: all equally likely (uniform), or the earliest most
    /// often (zipf, zipf:EXPONENT) [default: uniform]
    #[arg(long, value_name = "NAME")]
    pub(crate) distribution: Option<String>,

    /// Make each duplicate repeat the record exactly N records before it: 1000, 10k, 1M
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        conflicts_with = "distribution"
    )]
    pub(crate) gap: Option<String>,

    /// Length of the records of `lines`, newline included: 64, 1k [default: 100]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) record_bytes: Option<String>,

    /// How the records of `cdr` are written [default: csv]
    #[arg(long, value_enum, value_name = "csv|ber")]
    pub(crate) format: Option<CdrFormat>,

    /// Begin with a header line (cdr in csv only)
    #[arg(long)]
    pub(crate) header: bool,

    /// Length of the frames of `packets`: 60 to 9216, or imix for 7 of 60, 4 of 590 and 1 of 1514
    /// bytes [default: imix]
    #[arg(
        long,
        value_name = "BYTES",
        allow_hyphen_values = true,
        help_heading = "Packets"
    )]
    pub(crate) frame_bytes: Option<String>,

    /// What differs in the copies of `packets`, with commas in between: ttl (one less), mac
    /// (another pair), vlan (one more tag) [default: none]
    #[arg(long, value_name = "FIELDS", help_heading = "Packets")]
    pub(crate) copies: Option<String>,

    /// Capture at most this many bytes of a packet
    #[arg(
        long,
        value_name = "BYTES",
        allow_negative_numbers = true,
        help_heading = "Packets"
    )]
    pub(crate) snap: Option<String>,

    /// Packets in a second of their times, 1 to 1G [default: 1M]
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Packets"
    )]
    pub(crate) rate: Option<String>,

    /// Write times in nanoseconds instead of microseconds
    #[arg(long, help_heading = "Packets")]
    pub(crate) nanoseconds: bool,

    /// Write a pcapng file instead of a pcap file
    #[arg(long, help_heading = "Packets")]
    pub(crate) pcapng: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write no progress, only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
