//! The options as typed.

use std::path::PathBuf;

use clap::Parser;

/// Pass on the first record of every key from one Kafka topic to another, exactly once
///
/// Members of a group share the partitions of the input topic. Each partition has a filter of its
/// own, so equal keys must be in one partition: the producer must key its records by what
/// identifies them.
#[derive(Debug, Parser)]
#[command(name = "echoless-kafka", version, max_term_width = 100)]
pub(crate) struct Args {
    /// Brokers to ask first: HOST:PORT, several with commas; or bootstrap.servers in --config
    #[arg(long, value_name = "HOSTS")]
    pub(crate) brokers: Option<String>,

    /// Consumer group; its members share the partitions
    #[arg(long, value_name = "NAME")]
    pub(crate) group: String,

    /// Topic to read; records of transactions that did not commit are skipped
    #[arg(long = "in", value_name = "TOPIC")]
    pub(crate) input: String,

    /// Topic for fresh records, unchanged and in the partition of their number; needs as many
    /// partitions as the input
    #[arg(long = "out", value_name = "TOPIC")]
    pub(crate) output: String,

    /// Topic for duplicates, otherwise dropped
    #[arg(long, value_name = "TOPIC")]
    pub(crate) duplicates: Option<String>,

    /// Topic for records that an output does not accept, such as those that are too long for it;
    /// otherwise the first one ends the member
    #[arg(long, value_name = "TOPIC")]
    pub(crate) reject: Option<String>,

    /// Folder for the filters; members may share one, over a network, too
    #[arg(long, value_name = "DIR", required_unless_present = "repartition")]
    pub(crate) state: Option<PathBuf>,

    /// What identifies a record: its key, its value, a header, or a string or whole number in a
    /// value in JSON by its pointer, such as /call/id; several with commas. Records without it pass
    #[arg(
        long,
        value_name = "key|value|header:NAME|/POINTER",
        default_value = "key"
    )]
    pub(crate) key: String,

    /// File with the secret key of the hash, 32 hexadecimal digits as `openssl rand -hex 16` writes:
    /// without it nobody can craft records that are taken for duplicates of others
    #[arg(long, value_name = "FILE")]
    pub(crate) hash_key: Option<PathBuf>,

    /// Judge nothing, and copy all records to --out, into partitions by what identifies them, which
    /// becomes their key: for topics that are keyed by something else. A second group judges the copy
    #[arg(
        long,
        conflicts_with_all = ["duplicates", "state", "memory", "window", "max_advance", "filter", "strict", "hash_key"]
    )]
    pub(crate) repartition: bool,

    /// Memory of the filter of each partition: 64k, 256MiB, 2G (powers of 1024) or 500MB (powers
    /// of 1000)
    #[arg(
        short,
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        allow_hyphen_values = true
    )]
    pub(crate) memory: String,

    /// A record is a duplicate only of one at most this long before, by the times of the records in
    /// Kafka (500ms, 90s, 10m, 36h, 30d) or by their offsets (1000, 10k, 5M)
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    pub(crate) window: Option<String>,

    /// How far ahead of the latest time before it the time of a record may be: one in the far future
    /// does not move the clock, and is judged as one without a time. After 1000 such records in a
    /// row the clock goes on with them. By default any time moves the clock
    #[arg(
        long,
        value_name = "TIME",
        requires = "window",
        allow_hyphen_values = true
    )]
    pub(crate) max_advance: Option<String>,

    /// Use another filter: the specification of one in lines, such as dense:bits=16
    #[arg(long, value_name = "SPEC")]
    pub(crate) filter: Option<String>,

    /// How long records are gathered for a transaction: the delay of a record on a quiet topic
    #[arg(
        long,
        value_name = "TIME",
        default_value = "500ms",
        allow_hyphen_values = true
    )]
    pub(crate) interval: String,

    /// How often to write a line of counts and estimates to standard error; always at the end. It
    /// reads the memory of all filters
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) report: Option<String>,

    /// Serve counts and the last report as OpenMetrics at http://ADDRESS:PORT/metrics, and /health. A
    /// port alone is one of 127.0.0.1; anyone who reaches another address can read them
    #[arg(long, value_name = "ADDRESS:PORT", allow_hyphen_values = true)]
    pub(crate) metrics: Option<String>,

    /// Name of this member, which no other has: after a restart it goes on where it was, without
    /// the group waiting for its absence
    #[arg(long, value_name = "NAME")]
    pub(crate) instance: Option<String>,

    /// End if one key is found in two partitions, instead of warning once
    #[arg(long)]
    pub(crate) strict: bool,

    /// File of settings of librdkafka, NAME=VALUE in each line, # in front of comments: every user
    /// of the machine can see those of -c, so passwords belong in the file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Setting of librdkafka, such as security.protocol=ssl; may be repeated, and replaces that of
    /// --config
    #[arg(short = 'c', value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<String>,
}
