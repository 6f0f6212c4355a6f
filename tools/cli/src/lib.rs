//! The `echoless` command: removes duplicate records from streams in fixed memory, generates test
//! streams, measures filters and selects one.
//!
//! The path of a record: [`echoless_records`] cuts the stream into chunks of whole records and hashes
//! their keys, the filter of the run returns a verdict for each hash, and `dedup::outputs` writes
//! runs of records straight from the chunk. `gen`, `eval` and `plan` are in `echoless_lab`.
//!
//! The command is a library with a short `main.rs`, so that fuzz targets and tests can run it
//! inside their process. It has no other interface: programs use the library `echoless`.

mod args;
mod config;
mod dedup;
mod manual;
mod packets;
mod state;

use std::convert;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use args::{Args, Command, DedupArgs, Parsed, Rejected};
use echoless_records::failure::{self, Failure};
use echoless_records::signals;

/// Runs the command of this process with its arguments, and reports how it ended.
#[must_use]
pub fn main() -> ExitCode {
    failure::keep_panics();
    echoless_papers::register();
    signals::fail_at_file_limit();
    match args::parse() {
        Ok(Some(parsed)) => failure::report(failure::catch_panics(|| {
            let Parsed { args, line } = parsed;
            run(args, |failure| line.explain(failure))
        })),
        Ok(None) => ExitCode::SUCCESS,
        Err(rejected) => {
            let Rejected {
                failure,
                stats_and_inputs,
            } = *rejected;
            failure::report(Err(match stats_and_inputs {
                Some((stats, inputs)) => unread(Some(&stats), &inputs, failure),
                None => failure,
            }))
        }
    }
}

/// Runs a command inside this process, for tests that run it very often. `arguments` begin with the
/// name of the subcommand.
///
/// # Errors
/// The line that the command would write before it exits with code 2.
///
/// # Examples
/// ```
/// let error = echoless_cli::run_in_process(&["dedup", "-m", "0"]).unwrap_err();
/// assert_eq!(error, "invalid --memory=0: expected 1 byte or more");
/// ```
#[doc(hidden)]
pub fn run_in_process(arguments: &[&str]) -> Result<(), String> {
    echoless_papers::register();
    let args = args::parse_from(arguments).map_err(|failure| failure.to_string())?;
    match run(args, convert::identity) {
        Ok(_) | Err(Failure::ReaderGone) => Ok(()),
        Err(failure) => Err(failure.to_string()),
    }
}

/// The failure of a run whose options cannot be read. The statistics of an earlier run do not
/// survive it.
fn unread(stats: Option<&Path>, inputs: &[PathBuf], failure: Failure) -> Failure {
    if let Some(stats) = stats {
        dedup::replace_unread(stats, inputs, &failure);
    }
    failure
}

fn inputs_of(args: &DedupArgs) -> Vec<PathBuf> {
    [&args.inputs[..], &args.known].concat()
}

/// Runs a command. `explain` adds to a failure where its options come from.
fn run(args: Args, explain: impl Fn(Failure) -> Failure) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Dedup(args) => {
            let (stats, inputs) = (args.run.stats.clone(), inputs_of(&args));
            let memory = args.memory.clone();
            let config = config::DedupConfig::try_from(*args)
                .map_err(|failure| unread(stats.as_deref(), &inputs, explain(failure)))?;
            dedup::run(config, |failure| {
                explain(failure.of_memory(memory.as_deref()))
            })
        }
        Command::Packets(args) => {
            let (stats, inputs) = (args.run.stats.clone(), args.inputs.clone());
            let config = config::DedupConfig::try_from(*args);
            dedup::run(
                config.map_err(|it| unread(stats.as_deref(), &inputs, it))?,
                convert::identity,
            )
        }
        Command::Gen(args) => echoless_lab::command::generate(args),
        Command::Eval(args) => echoless_lab::command::evaluate(args),
        Command::Plan(args) => echoless_lab::command::plan(args),
        Command::State(args) => state::run(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man {
            all: Some(folder), ..
        } => manual::pages(&folder),
        Command::Man { command, .. } => manual::page(command.as_deref()),
    }
}
