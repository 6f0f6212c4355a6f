//! What a run of `echoless dedup` shall do: every value checked, every default filled in.

use std::num::NonZeroUsize;
use std::path::Path;
use std::str::FromStr;
use std::thread::available_parallelism;

use echoless::{Kernel, KeyHasher, Replacement, SpecError};

use super::hash_key::read_hash_key;
use super::thread_count;
use crate::args::DedupArgs;
use crate::dedup::filter::FilterChoice;
use crate::failure::Failure;
use crate::files::{Source, Target};
use crate::number::{parse_rate, parse_size};
use crate::records::fields::{FieldList, parse_delimiter};
use crate::records::format::SharedFormat;
use crate::records::keys::Missing;
use crate::spec_file::read_spec;

/// A run of `echoless dedup`.
#[derive(Debug)]
pub(crate) struct DedupConfig {
    pub(crate) sources: Vec<Source>,
    pub(crate) format: SharedFormat,
    /// The longest record, terminator included.
    pub(crate) max_record: usize,
    pub(crate) header: bool,
    /// The fields to compare; `None` compares whole records.
    pub(crate) key: Option<FieldList>,
    pub(crate) missing: Missing,
    pub(crate) hasher: KeyHasher,
    /// Whether the hash has a secret key.
    pub(crate) keyed_hash: bool,
    pub(crate) filter: FilterChoice,
    /// Files that options were read from: no output may overwrite them either.
    pub(crate) settings: Vec<Source>,
    pub(crate) output: Target,
    pub(crate) duplicates: Option<Target>,
    pub(crate) stats: Option<Target>,
    pub(crate) invert: bool,
    pub(crate) count: bool,
    pub(crate) fail_on_duplicates: bool,
    pub(crate) quiet: bool,
    pub(crate) threads: Threads,
    /// Whether each thread stays on a core of its own.
    pub(crate) pin: bool,
}

impl TryFrom<DedupArgs> for DedupConfig {
    type Error = Failure;

    fn try_from(args: DedupArgs) -> Result<Self, Failure> {
        if args.delimiter.is_some() && args.key.is_none() && !args.format.needs_delimiter() {
            return Err(SpecError::new(
                "delimiter",
                "a delimiter of whole records",
                "with --key or --csv, which have fields",
            )
            .into());
        }
        let delimiter = match &args.delimiter {
            Some(text) => parse_delimiter(text)?,
            None => b',',
        };
        let format = args.format.build(delimiter)?;
        let key = match &args.key {
            Some(text) => Some(FieldList::parse(text, args.header)?),
            None => None,
        };
        let mut settings = Vec::new();
        let filter = filter_choice(&args, &mut settings)?;
        let mut sources: Vec<Source> = args.inputs.into_iter().map(Source::from_path).collect();
        if sources.is_empty() {
            sources.push(Source::Stdin);
        }
        let keyed_hash = args.hash_key.is_some();
        let hasher = match args.hash_key {
            Some(path) => {
                let key = read_hash_key(&path)?;
                settings.push(Source::File(path));
                KeyHasher::keyed(key)
            }
            None => KeyHasher::seeded(args.seed),
        };
        Ok(Self {
            sources,
            format,
            max_record: parse_size("max-record", &args.max_record)?
                .try_into()
                .unwrap_or(usize::MAX),
            header: args.header,
            key,
            missing: args.missing.unwrap_or(Missing::Error),
            hasher,
            keyed_hash,
            filter,
            settings,
            output: Target::from_path(args.output),
            duplicates: args.duplicates.map(|path| Target::from_path(Some(path))),
            stats: args.stats.map(|path| Target::from_path(Some(path))),
            invert: args.invert,
            count: args.count,
            fail_on_duplicates: args.fail_on_duplicates,
            quiet: args.quiet,
            threads: match args.threads {
                None => Threads::AllCores,
                Some(count) => Threads::Count(thread_count(count)?),
            },
            pin: args.pin,
        })
    }
}

/// The filter of a run; a file that names it is one of the run's `settings`.
fn filter_choice(args: &DedupArgs, settings: &mut Vec<Source>) -> Result<FilterChoice, Failure> {
    let memory = (args.memory.as_deref()).map(|text| parse_size("memory", text));
    let memory = memory.transpose()?;
    if let Some(text) = &args.filter {
        let path = Path::new(text);
        let spec = if path.extension().is_some_and(|end| end == "toml") {
            settings.push(Source::File(path.into()));
            read_spec(path)?
        } else {
            text.parse()?
        };
        return Ok(FilterChoice::named(spec, memory)?);
    }
    let spec = FilterChoice::fingerprints(memory)
        .max_fpr(parse_rate("fpr", &args.fpr)?)
        .replacement(Replacement::from_str(&args.replacement)?);
    Ok(FilterChoice::Fingerprints(match args.kernel.as_str() {
        "auto" => spec,
        name => spec.kernel(Kernel::from_str(name)?),
    }))
}

/// How many threads share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// As many as this process may use cores.
    AllCores,
    /// So many.
    Count(NonZeroUsize),
}

impl Threads {
    /// The number of threads, of which so many can have a part of the work.
    pub(crate) fn count(self, most: u64) -> usize {
        match self {
            Self::Count(count) => count.get(),
            Self::AllCores => {
                let cores = available_parallelism().map_or(1, NonZeroUsize::get);
                cores
                    .min(usize::try_from(most).unwrap_or(usize::MAX))
                    .max(1)
            }
        }
    }
}
