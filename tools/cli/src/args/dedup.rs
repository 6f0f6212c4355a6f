//! The options of `echoless dedup`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, ValueEnum};
use echoless::{Kernel, Replacement};
use echoless_durable::{Decides, LastingOption, decides};
use echoless_records::options::{RecordArgs, accept_hyphens, headed};

use super::refused::RefusedArgs;
use super::run::{RunArgs, ThreadArgs};

/// Pass on the first occurrence of every record, in order
#[derive(Debug, ClapArgs)]
#[command(mut_args(accept_hyphens(&[])))]
#[command(mut_args(headed(&[
    ("Records", &["fix_header", "rejects"]),
    ("Window", &[
        "window", "time_field", "time_format", "time_year", "refresh", "lateness", "late",
        "max_advance",
    ]),
    ("Filter", &["memory", "filter", "fpr", "replacement", "exact", "dense", "kernel"]),
    ("Which records", &["keep", "unique", "all_repeated", "repeated", "tag"]),
    ("Where to", &["tag_file", "in_place", "top_keys", "top"]),
    ("Input", &["known", "known_state", "temp", "no_spool", "follow"]),
    ("State", &["state", "commit_interval", "again"]),
])))]
pub(crate) struct DedupArgs {
    /// Files to read as one stream; `-` or no file means standard input
    #[arg(value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) records: RecordArgs,

    /// Rewrite the file header of TS 32.297 at the end of the run, with the length and the number
    /// of records of the output; outputs must be regular files (-o FILE)
    #[arg(long)]
    pub(crate) fix_header: bool,

    /// Set faulty records aside instead of ending the run: write them to this file as they came,
    /// and to FILE.jsonl where each was and what is wrong with it
    #[arg(long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,

    /// A record is a duplicate only of one at most this long before, with the default filter up to
    /// a fifth and six ticks longer (a tick is one record below 4000, else at most a 2000th of the
    /// window): a time (500ms, 90s, 10m, 36h, 30d) or a number of records (1000, 10k, 5M)
    #[arg(long, value_name = "SPAN", conflicts_with = "replacement")]
    pub(crate) window: Option<String>,

    /// Field with the time of a record, a number from 1 or a name in the header (or what --key
    /// takes in the format); several, such as date,time, are joined with a blank; required if the
    /// window is a time
    #[arg(long, value_name = "FIELDS", requires = "window")]
    pub(crate) time_field: Option<String>,

    /// How times are written: numbers of s, ms, us or ns since 1970, rfc3339, bcd (call records), a
    /// strftime format (%Y-%m-%d %H:%M:%S; without the year or without the date the order of the
    /// records decides), or auto for numbers and rfc3339 [default: auto]
    #[arg(long, value_name = "FORMAT", requires = "window")]
    pub(crate) time_format: Option<String>,

    /// Year of the first record, if --time-format leaves the year out (%b %d %H:%M:%S); it rises
    /// each time the date falls back by more than half a year. Without it the year counts for
    /// nothing but February 29
    #[arg(long, value_name = "N", requires = "window")]
    pub(crate) time_year: Option<String>,

    /// A duplicate renews its key: the window counts from when the key was last seen, not from when
    /// it was last passed
    #[arg(long, requires = "window")]
    pub(crate) refresh: bool,

    /// How much older than the window a late record may be before --late applies [default: 0s]
    #[arg(long, value_name = "TIME", requires = "window")]
    pub(crate) lateness: Option<String>,

    /// How to treat a record that is older than the latest time by more than window and lateness
    /// [default: pass]
    #[arg(
        long,
        value_enum,
        value_name = "pass|judge|reject",
        requires = "window"
    )]
    pub(crate) late: Option<Late>,

    /// How far ahead of the latest time before it the time of a record may be: one in the far future
    /// does not move the clock, and is treated as a record without a time (--missing). With
    /// the 1000th such record in a row the clock goes on [default: any time moves the clock]
    #[arg(long, value_name = "TIME", requires = "window")]
    pub(crate) max_advance: Option<String>,

    /// Memory of the filter: 64k, 256MiB, 2G (powers of 1024) or 500MB (powers of 1000) [default:
    /// 256MiB; for short files less, as their number of records needs; with
    /// --window 256MiB, enough for 20 million distinct keys in a window: allow 13 bytes for each, 7
    /// with --dense]
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Use another filter: a specification as in eval and plan (rlbsbf:k=2,form=line), or a TOML
    /// file with one (FILE.toml). Not for endless streams: bloom, bsbfsd, bsbf and rlbsbf with
    /// k=1, rsbf:as=tabled and fpsbf:refill=xor, whose error rates drift
    #[arg(
        long,
        value_name = "SPEC",
        conflicts_with_all = ["fpr", "replacement", "dense", "kernel"]
    )]
    pub(crate) filter: Option<String>,

    /// Highest false positive rate: the fraction of the fresh records that is dropped as duplicates
    #[arg(long, value_name = "RATE", default_value = "1e-8")]
    pub(crate) fpr: String,

    /// Which key a full cache line of the filter evicts: the least recently seen (lru), the oldest
    /// even if it is in use (fifo), or the oldest, where a repeat is stored again as if it were new
    /// (qqhtd)
    #[arg(
        long,
        default_value = "lru",
        value_name = "fifo|lru|qqhtd",
        value_parser = PossibleValuesParser::new(replacements())
    )]
    pub(crate) replacement: String,

    /// Make no errors: no fresh record is dropped, and no duplicate passes. Reads the inputs twice,
    /// and compares what the filter takes for duplicates by a digest of 128 bits with a random key;
    /// more often if that needs more memory than the filter. For inputs that end; pipes are
    /// copied (--temp). Times of --window are exact, too. With --state, no record of any run is
    /// dropped or passes twice, with --window in it
    #[arg(
        long,
        conflicts_with_all = [
            "filter", "replacement", "dense", "known_state", "follow"
        ]
    )]
    pub(crate) exact: bool,

    /// Remember 1.3 to 1.8 times as many records in the same memory, with a window 1.6 to 2.8
    /// times, by a filter that is slower: a key has two cache lines of one page. Not with
    /// --replacement qqhtd
    #[arg(long)]
    pub(crate) dense: bool,

    /// Instruction set of the filter; all give the same result
    #[arg(
        long,
        default_value = "auto",
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(kernels())
    )]
    pub(crate) kernel: String,

    /// Which record of a key that occurs again to pass on: the first one, the last one, or none of
    /// them. last and none read the inputs several times, which must be plain, and take a bit of
    /// memory for each record beside the filter [default: first]
    #[arg(long, value_enum, value_name = "first|last|none")]
    pub(crate) keep: Option<Keep>,

    /// The same as `--keep last`
    #[arg(long, conflicts_with = "keep", hide = true)]
    pub(crate) last: bool,

    /// Pass on only the records whose key does not occur again, as uniq -u does on sorted files:
    /// --keep none
    #[arg(
        short,
        long,
        conflicts_with_all = ["keep", "last"]
    )]
    pub(crate) unique: bool,

    /// Pass on all records of each key that occurs again, as uniq -D does on sorted files: --keep
    /// none --invert
    #[arg(
        short = 'D',
        long,
        conflicts_with_all = [
            "keep", "last", "unique", "repeated", "invert", "tag", "tag_file", "duplicates", "explain"
        ]
    )]
    pub(crate) all_repeated: bool,

    /// Write one record for each key that occurs again, its first duplicate, as uniq -d does. Takes
    /// the memory of the filter twice
    #[arg(
        long,
        conflicts_with_all = ["invert", "tag", "tag_file"]
    )]
    pub(crate) repeated: bool,

    /// Pass every record on, with its verdict: fresh, duplicate, or unjudged if it lacks the key;
    /// as a last field, or as a member of JSON [name: verdict]
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "verdict",
        conflicts_with_all = ["invert", "count"]
    )]
    pub(crate) tag: Option<String>,

    /// Pass every record on as it came, and write its verdict to this file, a line for each
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["tag", "invert", "count"]
    )]
    pub(crate) tag_file: Option<PathBuf>,

    /// Replace the one input file by its records that would be written, once all of them are: a run
    /// that fails or is interrupted leaves it as it was
    #[arg(
        long,
        conflicts_with_all = ["output", "count", "skip_seen_files"]
    )]
    pub(crate) in_place: bool,

    /// Write the keys with the most duplicates to this file, and how many each has, as JSON lines:
    /// exact unless more than 10,000 keys have duplicates, else with bounds
    #[arg(long, value_name = "FILE")]
    pub(crate) top_keys: Option<PathBuf>,

    /// How many keys --top-keys writes at most, 1 to 10,000 [default: 100]
    #[arg(
        long,
        value_name = "N",
        requires = "top_keys",
        allow_negative_numbers = true
    )]
    pub(crate) top: Option<String>,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Read this file first: its records count as seen, and none of them is written. May be given
    /// several times
    #[arg(long, value_name = "FILE")]
    pub(crate) known: Vec<PathBuf>,

    /// Count the keys of this filter as seen, which is only read: a file of `echoless state
    /// export`, of a run with the same key options and the same hash. Takes the place of the
    /// records of
    /// --known. May be given several times
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["window", "keep", "last", "unique", "all_repeated"]
    )]
    pub(crate) known_state: Vec<PathBuf>,

    /// Copy inputs that can be read only once, such as standard input, to this folder, if the options
    /// ask for several passes [default: that of the system for temporary files, which may be
    /// memory]
    #[arg(long, value_name = "DIR", conflicts_with = "no_spool")]
    pub(crate) temp: Option<PathBuf>,

    /// Reject inputs that can be read only once instead, if the options ask for several passes
    #[arg(long)]
    pub(crate) no_spool: bool,

    /// Wait at the end of the last input for more, and go on with the next file of its name when it
    /// is rotated, as tail -F does, until SIGINT or SIGTERM ends the run. The inputs before it are
    /// read once. For a plain regular file, which is waited for if it does not exist yet
    #[arg(
        long,
        conflicts_with_all = [
            "keep", "last", "unique", "all_repeated", "in_place", "fix_header", "skip_seen_files"
        ]
    )]
    pub(crate) follow: bool,

    /// Keep what the run knows in this folder, and go on from there: after a kill with the rest of
    /// the inputs, and later with new ones or with what has been appended to the old ones. Outputs
    /// that are files go on, too
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = [
            "keep", "last", "unique", "all_repeated", "repeated", "top_keys", "in_place", "count",
            "fix_header", "skip_seen_files"
        ]
    )]
    pub(crate) state: Option<PathBuf>,

    /// How often the state is put on the disk; a kill costs the work since [default: 1s]
    #[arg(long, value_name = "TIME", requires = "state")]
    pub(crate) commit_interval: Option<String>,

    /// Read inputs again that were read to their end before
    #[arg(long, requires = "state")]
    pub(crate) again: bool,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) refused: RefusedArgs,
}

/// Whether a run that goes on must have the same value of an option.
pub(crate) fn must_not_change(option: &str) -> bool {
    decides(option) != Decides::Faults
}

/// Those of the options that decide what a key is.
pub(crate) fn key_options(options: &[LastingOption]) -> Vec<LastingOption> {
    let is_of_key = |(option, _): &&LastingOption| decides(option) == Decides::Key;
    options.iter().filter(is_of_key).cloned().collect()
}

impl DedupArgs {
    /// The options that decide what a key is, what the filter says and how outputs are written, as
    /// they were given, each with its value if it takes one. A run that goes on has the same.
    pub(crate) fn lasting(&self) -> Vec<LastingOption> {
        let values = [
            ("--window", self.window.clone()),
            ("--time-field", self.time_field.clone()),
            ("--time-format", self.time_format.clone()),
            ("--time-year", self.time_year.clone()),
            ("--tag", self.tag.clone()),
            ("--compress", self.run.compress.clone()),
        ];
        let flags = [
            ("--refresh", self.refresh),
            ("--exact", self.exact),
            ("--invert", self.run.invert),
            // The file may have another name.
            ("--tag-file", self.tag_file.is_some()),
        ];
        let values = values
            .into_iter()
            .filter_map(|(option, value)| Some((option, Some(value?))));
        let flags = flags.into_iter().filter(|(_, given)| *given);
        let flags = flags.map(|(option, _)| (option, None));
        let mut lasting = self.records.given();
        lasting.retain(|(option, _)| must_not_change(option));
        lasting.extend(
            values
                .chain(flags)
                .map(|(option, value)| (option.to_owned(), value)),
        );
        lasting
    }
}

/// The values of `--kernel`.
fn kernels() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Kernel::ALL.iter().map(|kernel| kernel.name()))
}

/// The values of `--replacement`.
fn replacements() -> impl Iterator<Item = &'static str> {
    Replacement::ALL.iter().map(|policy| policy.name())
}

/// Which record of a key passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    First,
    Last,
    /// Records whose key occurs once
    None,
}

/// What to do with a record that is later than the window and the lateness allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Late {
    /// Pass the record on without a verdict
    #[default]
    Pass,
    /// Judge it at the clock, at one time with all other late records
    Judge,
    /// End the run with an error that names the file and the line; with --rejects, set the record
    /// aside
    Reject,
}
