//! What the command line means: every value checked, every default filled in.

use std::num::NonZeroUsize;
use std::path::Path;
use std::str::FromStr;

use echoless::{Kernel, KeyHasher, Replacement, SpecError};

use crate::args::{DedupArgs, GenArgs};
use crate::dedup::fields::{FieldList, parse_delimiter};
use crate::dedup::filter::FilterChoice;
use crate::dedup::hash_key::read_hash_key;
use crate::dedup::keys::Missing;
use crate::dedup::records::Framing;
use crate::dedup::{self, Threads};
use crate::failure::Failure;
use crate::files::{Source, Target};
use crate::generate::repeats::{Choice, Repeats};
use crate::generate::{self, Kind};
use crate::number::{parse_rate, parse_size};
use crate::spec_file::read_spec;

impl TryFrom<DedupArgs> for dedup::Job {
    type Error = Failure;

    fn try_from(typed: DedupArgs) -> Result<Self, Failure> {
        if typed.delimiter.is_some() && typed.key.is_none() && !typed.csv {
            return Err(SpecError::new(
                "delimiter",
                "a delimiter of whole records",
                "with --key or --csv, which have fields",
            )
            .into());
        }
        let delimiter = match &typed.delimiter {
            Some(text) => parse_delimiter(text)?,
            None => b',',
        };
        let framing = if typed.null {
            Framing::Nul
        } else if typed.csv {
            Framing::Csv { delimiter }
        } else if typed.crlf {
            Framing::CrLf
        } else {
            Framing::Lf
        };
        framing.check_delimiter(delimiter)?;
        let key = match &typed.key {
            Some(text) => Some(FieldList::parse(text, typed.header)?),
            None => None,
        };
        let mut settings = Vec::new();
        let filter = filter_choice(&typed, &mut settings)?;
        let mut sources: Vec<Source> = typed.inputs.into_iter().map(Source::from_path).collect();
        if sources.is_empty() {
            sources.push(Source::Stdin);
        }
        let keyed_hash = typed.hash_key.is_some();
        let hasher = match typed.hash_key {
            Some(path) => {
                let key = read_hash_key(&path)?;
                settings.push(Source::File(path));
                KeyHasher::keyed(key)
            }
            None => KeyHasher::seeded(typed.seed),
        };
        Ok(Self {
            sources,
            framing,
            max_record: parse_size("max-record", &typed.max_record)?
                .try_into()
                .unwrap_or(usize::MAX),
            header: typed.header,
            key,
            delimiter,
            missing: typed.missing.unwrap_or(Missing::Error),
            hasher,
            keyed_hash,
            filter,
            settings,
            output: Target::from_path(typed.output),
            duplicates: typed.duplicates.map(|path| Target::from_path(Some(path))),
            stats: typed.stats.map(|path| Target::from_path(Some(path))),
            invert: typed.invert,
            count: typed.count,
            fail_on_duplicates: typed.fail_on_duplicates,
            quiet: typed.quiet,
            threads: match typed.threads {
                None => Threads::AllCores,
                Some(count) => Threads::Count(thread_count(count)?),
            },
            pin: typed.pin,
        })
    }
}

/// The filter of a run; a file that names it is one of the run's `settings`.
fn filter_choice(typed: &DedupArgs, settings: &mut Vec<Source>) -> Result<FilterChoice, Failure> {
    let memory = (typed.memory.as_deref()).map(|text| parse_size("memory", text));
    let memory = memory.transpose()?;
    if let Some(text) = &typed.filter {
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
        .max_fpr(parse_rate("fpr", &typed.fpr)?)
        .replacement(Replacement::from_str(&typed.replacement)?);
    Ok(FilterChoice::Fingerprints(match typed.kernel.as_str() {
        "auto" => spec,
        name => spec.kernel(Kernel::from_str(name)?),
    }))
}

/// The most threads: more than most machines have cores. The rings of so many take 3.5 GB, which is asked for before they start;
/// chunks and batches, 2 GB and more, come as they are used.
const MOST_THREADS: u64 = 1024;

pub(crate) fn thread_count(count: u64) -> Result<NonZeroUsize, SpecError> {
    usize::try_from(count.min(MOST_THREADS + 1))
        .ok()
        .filter(|count| *count as u64 <= MOST_THREADS)
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| SpecError::new("threads", count.to_string(), format!("1 to {MOST_THREADS}")))
}

impl TryFrom<GenArgs> for generate::Job {
    type Error = SpecError;

    fn try_from(typed: GenArgs) -> Result<Self, SpecError> {
        if typed.record_bytes.is_some() && typed.kind != Kind::Lines {
            return Err(SpecError::new(
                "record-bytes",
                "a length for such records",
                "with `lines` only",
            ));
        }
        if typed.header && typed.kind != Kind::Cdr {
            return Err(SpecError::new(
                "header",
                "a header line before such records",
                "with `cdr` only, whose records have fields",
            ));
        }
        let choice = match typed.gap {
            Some(gap) => Choice::gap(gap)?,
            None => typed.distribution.parse()?,
        };
        Ok(Self {
            kind: typed.kind,
            count: typed.count,
            seed: typed.seed,
            repeats: Repeats::new(typed.seed, parse_share(&typed.duplicates)?, choice),
            record_bytes: typed.record_bytes.unwrap_or(100),
            header: typed.header,
            output: Target::from_path(typed.output),
        })
    }
}

/// Parses the share of duplicates. Past 0.999 nearly every step back along the stream meets another duplicate.
fn parse_share(text: &str) -> Result<f64, SpecError> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=0.999).contains(&share) => Ok(share),
        _ => Err(SpecError::new(
            "duplicates",
            text,
            "a share from 0 to 0.999",
        )),
    }
}
