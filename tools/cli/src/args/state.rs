//! The options of `echoless state`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

/// Show, check and move what dedup --state has kept
#[derive(Debug, ClapArgs)]
pub(crate) struct StateArgs {
    #[command(subcommand)]
    pub(crate) action: StateAction,
}

/// What to do with a state.
#[derive(Debug, Subcommand)]
pub(crate) enum StateAction {
    /// Write what a state holds: its filter and how full it is, counts, clock, age, inputs, sizes
    Show {
        /// The folder of --state, or a file of export
        #[arg(value_name = "DIR|FILE")]
        path: PathBuf,

        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Read all of a state and check it; damage is an error that names file and section
    Verify {
        /// The folder of --state, or a file of export
        #[arg(value_name = "DIR|FILE")]
        path: PathBuf,
    },
    /// Write a state as one file, as it was at the last commit
    Export {
        /// The folder of --state
        #[arg(value_name = "DIR")]
        folder: PathBuf,

        /// The file; one that exists is replaced at once, when the new one is complete
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Make a folder for --state of a file of export
    Import {
        /// The file of export
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// The folder, which must not have a state
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}
