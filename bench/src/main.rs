//! The laboratory: `echoless-bench <command>` re-runs what the papers print and measures what this machine does.

mod paper;
mod report;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Re-runs the papers' tables and measures this machine")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Re-run the printed tables of the papers and compare.
    Paper(paper::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Paper(arguments) => paper::run(&arguments),
    }
}
