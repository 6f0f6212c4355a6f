//! The options that every command that removes duplicates has: outputs, key hash, inputs and
//! threads.

use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use echoless_records::options::headed;

/// The outputs, the key hash and the inputs of a run. A packet is the record of a capture file.
#[derive(Debug, ClapArgs)]
#[command(mut_args(headed(&[
    ("Which records", &["invert", "count"]),
    ("Where to", &["output", "duplicates", "explain", "stats", "stats_every", "metrics"]),
    ("How", &["compress", "summary", "quiet", "fail_on_duplicates"]),
    ("Hash", &["seed", "hash_key"]),
    ("Input", &["skip_seen_files", "strict"]),
])))]
pub(crate) struct RunArgs {
    /// Pass on the duplicates instead of the first occurrences
    #[arg(long)]
    pub(crate) invert: bool,

    /// Write only the number of records that would be written
    #[arg(long)]
    pub(crate) count: bool,

    /// Write the records to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write the dropped records (the duplicates) to this file
    #[arg(long, value_name = "FILE", conflicts_with = "invert")]
    pub(crate) duplicates: Option<PathBuf>,

    /// Write where each dropped record was (input, record number, byte offset) as JSON lines, to
    /// this file or next to that of --duplicates, as FILE.jsonl
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with = "invert"
    )]
    pub(crate) explain: Option<Option<PathBuf>>,

    /// Write statistics of the run to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) stats: Option<PathBuf>,

    /// Write the statistics so far every so often, too: 10s, 5m. SIGUSR1 writes them at once, and a
    /// line to standard error
    #[arg(long, value_name = "TIME", requires = "stats")]
    pub(crate) stats_every: Option<String>,

    /// Serve the statistics so far as OpenMetrics at http://ADDRESS:PORT/metrics, and /health. A port
    /// alone is one of 127.0.0.1; anyone who reaches another address can read them
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,

    /// Compress the records and --duplicates: zstd, gzip, lz4, xz or bzip2, with a level if wanted
    /// (zstd:1 to 22, gzip:0 to 9, xz:0 to 9, bzip2:1 to 9)
    #[arg(long, value_name = "CODEC[:LEVEL]")]
    pub(crate) compress: Option<String>,

    /// What to write to standard error at the end [default: full on a terminal, else line]
    #[arg(long, value_enum, value_name = "full|line")]
    pub(crate) summary: Option<Summary>,

    /// Write neither summary nor progress, only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Exit with code 1 if there was a duplicate
    #[arg(long)]
    pub(crate) fail_on_duplicates: bool,

    /// Seed of the key hash. The hash is fast and not secret: anyone who can choose records can
    /// craft some that are dropped as duplicates
    #[arg(long, default_value = "0")]
    pub(crate) seed: String,

    /// Hash with the secret key in this file (32 hexadecimal digits), which prevents crafted
    /// records; slower
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    pub(crate) hash_key: Option<PathBuf>,

    /// Skip files whose content an earlier run with this list has read. Hashes all inputs first,
    /// and adds them to the list after a run that ended well
    #[arg(long, value_name = "LIST")]
    pub(crate) skip_seen_files: Option<PathBuf>,

    /// End the run at an input that is cut or damaged. Without this option, what is before is
    /// passed on, a warning names the input, and the next one is read
    #[arg(long)]
    pub(crate) strict: bool,
}

/// The threads of a run.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Threads")]
pub(crate) struct ThreadArgs {
    /// Number of threads; the output is the same for any number [default: one for each core, and at
    /// most one for each 10 MiB of files; in any case at most one for each 4 KiB of files]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) threads: Option<String>,

    /// Pin each thread to a core of its own; an error if there are more threads than cores
    #[arg(long)]
    pub(crate) pin: bool,

    /// Read at most this many bytes at once: tests show that outputs do not depend on it
    #[arg(long, value_name = "N", hide = true, default_value_t = NonZeroUsize::MAX)]
    pub(crate) read_bytes: NonZeroUsize,
}

/// What a run writes to standard error at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Summary {
    /// The counts, the filter, and the errors to expect
    Full,
    /// The counts, and what was lost
    Line,
}

impl Summary {
    /// All of it for people, and one line for logs.
    pub(crate) fn of_terminal() -> Self {
        if io::stderr().is_terminal() {
            Self::Full
        } else {
            Self::Line
        }
    }
}
