//! The options of `echoless dedup`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;

use super::format::FormatArgs;
use crate::records::keys::Missing;

/// Pass on the first occurrence of every record, in order
#[derive(Debug, ClapArgs)]
pub(crate) struct DedupArgs {
    /// Files to read as one stream; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) format: FormatArgs,

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

    /// Memory of the filter: 64k, 256MiB, 2G (powers of 1024) or 500MB (powers of 1000) [default: 256MiB; for short files the least in which the probability of an eviction stays below 1e-6]
    #[arg(
        short,
        long,
        value_name = "SIZE",
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    pub(crate) memory: Option<String>,

    /// Another filter, as eval and plan name it (rlbsbf:k=2,form=line), or a TOML file with one (FILE.toml)
    #[arg(
        long,
        value_name = "SPEC",
        conflicts_with_all = ["fpr", "replacement", "kernel"],
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    pub(crate) filter: Option<String>,

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

    /// Seed of the key hash, which is fast and no secret: whoever can choose records can choose some that are taken for duplicates
    #[arg(
        long,
        default_value_t = 0,
        allow_hyphen_values = true,
        help_heading = "Hash"
    )]
    pub(crate) seed: u64,

    /// Hash under the secret key in this file (32 hexadecimal digits), so that nobody without it can choose such records; slower
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "seed",
        help_heading = "Hash"
    )]
    pub(crate) hash_key: Option<PathBuf>,

    /// Number of threads; the output is the same for any number [default: one for each core, and at most one for each 4 MiB of files]
    #[arg(long, value_name = "N", help_heading = "Threads")]
    pub(crate) threads: Option<u64>,

    /// Keep each thread on a core of its own; refused if there are more threads than cores
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
