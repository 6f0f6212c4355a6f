//! The `echoless` command: removes duplicate records from streams in fixed memory, makes streams to try it on, measures filters and picks one.
//!
//! The way of a record: [`dedup::input`] cuts the stream in chunks, [`dedup::records`] finds the records of a chunk, [`dedup::keys`]
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
        Command::Dedup(typed) => dedup::run(dedup::Job::try_from(typed)?),
        Command::Gen(typed) => generate::run(&generate::Job::try_from(typed)?),
        Command::Eval(typed) => eval::run(&eval::Job::try_from(typed)?),
        Command::Plan(typed) => plan::run(&plan::Job::try_from(typed)?),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command } => manual::page(command.as_deref()),
    }
}
