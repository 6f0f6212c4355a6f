//! `cargo run --release -p echoless-bench -- <command>`: one command for each question.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use echoless_bench::{limit, paper, scaling};

#[derive(Parser)]
#[command(about = "Benchmarks of echoless; every one checks what it counts")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Line filters against the machine's rate of random line reads, by memory size.
    Limit(limit::Arguments),
    /// The printed tables of the papers, run again.
    Paper(paper::Arguments),
    /// The planner on the settings of a paper: does its first choice beat the paper's best filter?
    PaperPlan(paper::PlanArguments),
    /// One thread against several: engine, mesh and the shared filter.
    Scaling(scaling::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Limit(arguments) => limit::run(&arguments),
        Command::Paper(arguments) => paper::run(&arguments),
        Command::PaperPlan(arguments) => paper::run_plan(&arguments),
        Command::Scaling(arguments) => scaling::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echoless-bench: {error}");
            ExitCode::from(2)
        }
    }
}
