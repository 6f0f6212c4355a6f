//! The `echoless` command: removes duplicate records from streams in fixed memory, makes streams to try it on, measures filters and picks one.
//!
//! The way of a record: [`dedup::input`] cuts the stream in chunks, [`records::framing`] finds the records of a chunk, [`records::keys`]
//! turns them into key hashes, [`dedup::filter`] judges those, [`dedup::output`] writes runs of records straight out of the chunk.

mod args;
mod config;
mod dedup;
mod eval;
mod failure;
mod files;
mod generate;
mod lab_output;
mod manual;
mod number;
mod plan;
mod recorded;
mod records;
mod signals;
mod spec_file;

use std::process::ExitCode;

use args::{Args, Command};
use failure::Failure;

fn main() -> ExitCode {
    match args::parse() {
        Ok(Some(args)) => failure::report(run(args)),
        Ok(None) => ExitCode::SUCCESS,
        Err(failure) => failure::report(Err(failure)),
    }
}

fn run(args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Command::Dedup(args) => dedup::run(config::DedupConfig::try_from(args)?),
        Command::Gen(args) => generate::run(&config::GenConfig::try_from(args)?),
        Command::Eval(args) => eval::run(&config::EvalConfig::try_from(args)?),
        Command::Plan(args) => plan::run(&config::PlanConfig::try_from(args)?),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command } => manual::page(command.as_deref()),
    }
}
