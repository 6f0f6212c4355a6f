//! From arguments to configurations: every value checked, every default filled in. One file for
//! each subcommand.

mod dedup;
mod default_filter;
mod eval;
mod generate;
mod inputs;
mod keep;
mod known_states;
mod lasting;
mod memory_size;
mod packets;
mod plan;
mod records;
mod run;
mod window;

use std::num::NonZeroUsize;

use echoless::{FilterSpec, SpecError};

use crate::args::LabOutputs;
use crate::files::Target;
use crate::lab::output::LabOutput;
use crate::number::parse_whole;

pub(crate) use crate::args::{Keep, Late, Summary};
pub(crate) use dedup::{Content, DedupConfig, RecordConfig, StateConfig};
pub(crate) use eval::EvalConfig;
pub(crate) use known_states::KnownStates;
pub(crate) use lasting::check_options;
pub(crate) use plan::PlanConfig;
pub(crate) use run::{RunConfig, core_count};
pub(crate) use window::{ClockSource, MaxAdvance, WindowConfig};

/// The highest number of threads: more than most machines have cores. The rings between so many
/// take 3.5 GB, reserved before the threads start; chunks and batches take 2 GB and more as they
/// are used.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Parses `--threads`.
fn parse_threads(option: &'static str, text: &str) -> Result<NonZeroUsize, SpecError> {
    parse_whole(option, text, NonZeroUsize::MIN..=MOST_THREADS)
}

/// Parses `--seed`.
fn parse_seed(text: &str) -> Result<u64, SpecError> {
    parse_whole("--seed", text, 0..=u64::MAX)
}

/// Parses a filter. One whose options follow from its memory gets that of `--memory` if it names
/// none.
fn parse_filter(text: &str, memory: Option<u64>) -> Result<FilterSpec, SpecError> {
    match (text.parse(), memory) {
        (Err(SpecError { field, asked, .. }), Some(memory))
            if field == "memory" && asked.is_empty() =>
        {
            // The last part after any adapters has the options.
            let filter = text.rfind('/').map_or(0, |slash| slash + 1);
            let before = if text[filter..].contains(':') {
                ','
            } else {
                ':'
            };
            format!("{text}{before}memory={memory}").parse()
        }
        (parsed, _) => parsed,
    }
}

impl From<LabOutputs> for LabOutput {
    fn from(args: LabOutputs) -> Self {
        Self {
            csv: args.to_csv.map(Target::from),
            json: args.to_json.map(Target::from),
            quiet: args.quiet,
        }
    }
}

/// Applies the parser of an option to its value, if it was given.
fn parse_if_given<T>(
    option: &'static str,
    text: Option<&str>,
    parse: impl FnOnce(&'static str, &str) -> Result<T, SpecError>,
) -> Result<Option<T>, SpecError> {
    text.map(|text| parse(option, text)).transpose()
}
