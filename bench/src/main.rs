//! `cargo run --profile dist -p echoless-bench -- COMMAND`: one command for each benchmark.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(target_os = "linux")]
use echoless_bench::live;
use echoless_bench::{
    cluster, durable, formats, limit, paper, peers, report, scaling, service, sliced, tools,
    windows,
};

#[derive(Parser)]
#[command(about = "Benchmarks of echoless; each checks its counts and fails on unexpected ones")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure line filters against the machine's rate of random line reads, by memory size.
    Limit(limit::Arguments),
    /// Reproduce the printed tables of the papers.
    Paper(paper::Arguments),
    /// Run the planner's first choice in the settings of a paper, against the paper's best filter.
    PaperPlan(paper::PlanArguments),
    /// Re-do the experiments of paper 001: slices, equal timers, growth in bursts and trees.
    Sliced(sliced::Arguments),
    /// Measure one thread against several, and what threads, partitions and ports cost.
    Scaling(scaling::Arguments),
    /// Measure a line service over TCP: an engine, the shared filter, and a filter behind a lock.
    Service(service::Arguments),
    /// Measure other structures on the same keys, in the same memory, on one core.
    Peers(peers::Arguments),
    /// Measure the command against sort, awk and other tools on generated files.
    Tools(tools::Arguments),
    /// Measure the formats of the command, packets among them.
    Formats(formats::Arguments),
    /// Measure live capture beside tcpdump, and beside the same packets in a file.
    #[cfg(target_os = "linux")]
    Live(live::Arguments),
    /// Measure what it costs to keep a filter over restarts, in the library and the command.
    Durable(durable::Arguments),
    /// Compute what a filter on the nodes of a cluster needs, and how unevenly streams load them.
    Cluster(cluster::Arguments),
    /// Find the bits that a remembered key costs in each filter with a window.
    Windows(windows::Arguments),
    /// Compare the error rates of the parts of a long stream, in line filters with a window.
    WindowDrift(windows::DriftArguments),
    /// Render all recorded runs as one page with plots.
    Report(report::Arguments),
}

fn main() -> ExitCode {
    echoless_papers::register();
    let result = match Arguments::parse().command {
        Command::Limit(arguments) => limit::run(&arguments),
        Command::Paper(arguments) => paper::run(&arguments),
        Command::PaperPlan(arguments) => paper::run_plan(&arguments),
        Command::Sliced(arguments) => sliced::run(&arguments),
        Command::Scaling(arguments) => scaling::run(&arguments),
        Command::Service(arguments) => service::run(&arguments),
        Command::Peers(arguments) => peers::run(&arguments),
        Command::Tools(arguments) => tools::run(&arguments),
        Command::Formats(arguments) => formats::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Live(arguments) => live::run(&arguments),
        Command::Durable(arguments) => durable::run(&arguments),
        Command::Cluster(arguments) => cluster::run(&arguments),
        Command::Windows(arguments) => windows::run(&arguments),
        Command::WindowDrift(arguments) => windows::run_drift(&arguments),
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
