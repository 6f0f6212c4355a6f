//! One page of all recorded runs: each with what made it, its plots and its rows.

mod figures;
mod page;
mod plot;
mod rows;

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::table::Failure;

/// The options of `report`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The folder of recorded runs, to which the page and its plots are written.
    #[arg(default_value = "bench/record")]
    folder: PathBuf,
}

/// Writes `REPORT.md` and the plots that it shows into the folder of recorded runs.
///
/// # Errors
/// If a run cannot be read, or a file cannot be written; the error names it.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let page = arguments.folder.join("REPORT.md");
    let text = page::render(&arguments.folder)?;
    fs::write(&page, text).map_err(|error| format!("{}: {error}", page.display()))?;
    println!("{}", page.display());
    Ok(())
}
