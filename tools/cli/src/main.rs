//! The `echoless` command: removes duplicate records from streams in fixed memory, and makes streams to try it on.
//!
//! The way of a record: [`dedup::input`] cuts the stream in chunks, [`dedup::records`] finds the records of a chunk, [`dedup::keys`]
//! turns them into key hashes, [`dedup::detector`] judges those, [`dedup::output`] writes runs of records straight out of the chunk.

mod args;
mod config;
mod dedup;
mod failure;
mod files;
mod generate;
mod manual;
mod number;
mod signals;

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
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command } => manual::page(command.as_deref()),
    }
}
