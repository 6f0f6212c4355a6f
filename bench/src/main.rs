//! `cargo run --release -p echoless-bench -- <command>`: one command for each request.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use echoless_bench::{limit, paper, peers, report, scaling, tools};

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
    /// Against the structures that a user would pick instead: the same keys, the same memory, one core.
    Peers(peers::Arguments),
    /// The command against sort, awk and other tools on generated files.
    Tools(tools::Arguments),
    /// Renders every recorded run as one page with plots.
    Report(report::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Limit(arguments) => limit::run(&arguments),
        Command::Paper(arguments) => paper::run(&arguments),
        Command::PaperPlan(arguments) => paper::run_plan(&arguments),
        Command::Scaling(arguments) => scaling::run(&arguments),
        Command::Peers(arguments) => peers::run(&arguments),
        Command::Tools(arguments) => tools::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echoless-bench: {error}");
            ExitCode::from(2)
        }
    }
}
