//! `echoless-kafka`: passes on the first record of every key from one Kafka topic to another,
//! exactly once, as a member of a consumer group. `README.md` is its manual.
//!
//! From the top: `session.rs` reads, judges and writes in transactions; `assignment.rs` has the
//! partitions that come and go; `partition.rs` is the filter of one and its journal.

mod args;
mod assignment;
mod config;
mod failure;
mod key;
mod messages;
mod partition;
mod position;
mod report;
mod session;
mod shared_keys;
mod topic_id;
mod topics;
mod window;

use std::hash::{BuildHasher, RandomState};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use args::Args;
use config::Config;
use failure::Failure;
use messages::{say, say_lines};

fn main() -> ExitCode {
    #[cfg(feature = "papers")]
    echoless_papers::register();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            say_lines(&error.to_string());
            return ExitCode::from(2);
        }
        // Help, and the version.
        Err(error) => error.exit(),
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure.to_string());
            ExitCode::from(2)
        }
    }
}

/// Runs until SIGINT or SIGTERM, and then ends the transaction at hand.
fn run(args: Args) -> Result<(), Failure> {
    // Random, since numbers of processes repeat on other machines.
    let unique = format!("{:016x}", RandomState::new().hash_one(process::id()));
    let config = Config::new(args, &unique)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process at once.
        flag::register_conditional_shutdown(signal, 130, stop.clone()).map_err(Failure::Signals)?;
        flag::register(signal, stop.clone()).map_err(Failure::Signals)?;
    }
    session::run(&config, &stop)
}
