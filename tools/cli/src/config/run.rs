//! What every run that removes duplicates has: key hash, threads and outputs.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use echoless::hash::{SecretKeyError, read_secret_key};
use echoless::{KeyHasher, SpecError};
use echoless_metrics::parse_address;
use echoless_records::compression::codec::Compression;
use echoless_records::failure::Failure;
use echoless_records::files::{Source, Target};
use echoless_records::number::{parse_if_given, parse_seed, parse_threads, parse_time};

use crate::args::{RunArgs, Summary, ThreadArgs};

/// The key hash, the threads and the outputs of a run.
#[derive(Debug)]
pub(crate) struct RunConfig {
    pub(crate) hasher: KeyHasher,
    /// Whether the hash has a secret key.
    pub(crate) keyed_hash: bool,
    /// Files that options are read from. Like the inputs, they must not be outputs.
    pub(crate) settings: Vec<Source>,
    /// The list of files that are not read again.
    pub(crate) skip_seen_files: Option<PathBuf>,
    /// Whether an input that cannot be read to its end ends the run.
    pub(crate) strict: bool,
    pub(crate) output: Target,
    pub(crate) duplicates: Option<Target>,
    /// Gets the positions of the dropped records.
    pub(crate) explain: Option<Target>,
    pub(crate) stats: Option<Target>,
    /// How often the statistics so far are written.
    pub(crate) stats_every: Option<Duration>,
    /// Where the statistics so far can be asked for.
    pub(crate) metrics: Option<SocketAddr>,
    /// How the outputs of records are compressed.
    pub(crate) compress: Option<Compression>,
    pub(crate) invert: bool,
    pub(crate) count: bool,
    pub(crate) fail_on_duplicates: bool,
    pub(crate) quiet: bool,
    /// What is written at the end unless the run is quiet.
    pub(crate) summary: Option<Summary>,
    /// The most bytes of a read.
    pub(crate) read_bytes: NonZeroUsize,
    pub(crate) threads: Threads,
    /// Whether each thread is pinned to a core of its own.
    pub(crate) pin: bool,
}

impl RunConfig {
    /// Checks the options. `settings` are the files that other options are read from.
    pub(super) fn new(
        args: RunArgs,
        threads: ThreadArgs,
        mut settings: Vec<Source>,
    ) -> Result<Self, Failure> {
        let ThreadArgs {
            threads,
            pin,
            read_bytes,
        } = threads;
        let keyed_hash = args.hash_key.is_some();
        let hasher = match args.hash_key {
            Some(path) => {
                let key = read_secret_key("--hash-key", &path).map_err(|error| match error {
                    SecretKeyError::Invalid(error) => error.into(),
                    SecretKeyError::Io(error) => Failure::file(path.display().to_string())(error),
                })?;
                settings.push(Source::File(path));
                KeyHasher::keyed(key)
            }
            None => KeyHasher::seeded(parse_seed(&args.seed)?),
        };
        if let Some(path) = &args.skip_seen_files {
            settings.push(Source::File(path.clone()));
        }
        let duplicates = args.duplicates.map(Target::from);
        let explain = match (args.explain, &duplicates) {
            (None, _) => None,
            (Some(Some(path)), _) => Some(Target::from(path)),
            (Some(None), Some(duplicates)) => Some(duplicates.record_positions("--explain")?),
            (Some(None), None) => {
                let allowed = "--explain=FILE, or --duplicates FILE beside --explain";
                return Err(SpecError::missing("--explain", allowed).into());
            }
        };
        Ok(Self {
            hasher,
            keyed_hash,
            settings,
            skip_seen_files: args.skip_seen_files,
            strict: args.strict,
            output: Target::from_path(args.output),
            duplicates,
            explain,
            stats: args.stats.map(Target::from),
            stats_every: parse_if_given("--stats-every", args.stats_every.as_deref(), interval)?,
            metrics: parse_if_given("--metrics", args.metrics.as_deref(), parse_address)?,
            compress: parse_if_given("--compress", args.compress.as_deref(), Compression::parse)?,
            invert: args.invert,
            count: args.count,
            fail_on_duplicates: args.fail_on_duplicates,
            quiet: args.quiet,
            summary: args.summary,
            read_bytes,
            threads: parse_if_given("--threads", threads.as_deref(), parse_threads)?
                .map_or(Threads::AllCores, Threads::Count),
            pin,
        })
    }
}

/// More reports would be all that a run does.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// Parses the time between two reports.
fn interval(option: &'static str, text: &str) -> Result<Duration, SpecError> {
    let every = parse_time(option, text).map(Duration::from_nanos).ok();
    every
        .filter(|every| *every >= LEAST_INTERVAL)
        .ok_or_else(|| {
            let allowed = "a time of 1ms or more, such as 500ms, 90s or 10m (at most 106751d)";
            SpecError::new(option, text, allowed)
        })
}

/// The number of cores that this process may use.
pub(crate) fn core_count() -> usize {
    available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The number of threads that the user requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// One for each core that this process may use.
    AllCores,
    Count(NonZeroUsize),
}

impl Threads {
    /// The number of threads to start, if at most `useful` of them can have work and more than
    /// `worthwhile` gain nothing.
    pub(crate) fn count(self, useful: u64, worthwhile: u64) -> usize {
        let (wanted, most) = match self {
            Self::Count(count) => (count.get(), useful),
            Self::AllCores => (core_count(), useful.min(worthwhile)),
        };
        wanted
            .min(usize::try_from(most).unwrap_or(usize::MAX))
            .max(1)
    }
}
