//! `report`: reads the recorded runs, draws their plots and writes the page.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::figures::{Figure, bars, figures};
use super::page::{self, Section};
use super::rows::Rows;
use crate::failure::Failure;
use crate::record::{self, Run};

/// The options of `report`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The folder of recorded runs; REPORT.md and the plots it shows are written there.
    #[arg(default_value = "bench/record")]
    folder: PathBuf,
    /// Also write every plot of every run, as FOLDER/MACHINE/DATE/PLOT.svg.
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

/// Writes `REPORT.md` and the plots that it shows into the folder of recorded runs; with `--plots`,
/// writes all plots too.
///
/// # Errors
/// If a run cannot be read or a file cannot be written; the error names the file.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let mut sections = Vec::new();
    for run in record::read(folder)? {
        let rows = Rows::read(&run.rows)?;
        let figures = figures(&run.provenance.benchmark, &rows);
        let path = |figure: &Figure| relative_path(folder, &run, &figure.slug);
        if let Some(plots) = &arguments.plots {
            for figure in &figures {
                write(&plots.join(path(figure)?), &figure.chart.svg()?)?;
            }
        }
        let mut plot = None;
        if let Some(figure) = example(&figures) {
            let path = path(figure)?;
            write(&folder.join(&path), &figure.chart.svg()?)?;
            plot = Some((figure.chart.title.clone(), path));
        }
        if let Some((slug, bars)) = bars(&run.provenance.benchmark, &rows) {
            let path = relative_path(folder, &run, slug)?;
            let svg = bars.svg()?;
            if let Some(plots) = &arguments.plots {
                write(&plots.join(&path), &svg)?;
            }
            write(&folder.join(&path), &svg)?;
            plot = Some((bars.title, path));
        }
        sections.push(Section {
            csv: run.rows.strip_prefix(folder)?.to_owned(),
            provenance: run.provenance,
            rows,
            plot,
            plots: figures.len(),
        });
    }
    let page = folder.join("REPORT.md");
    write(&page, &page::render(&sections)?)?;
    println!("{}", page.display());
    Ok(())
}

/// The plot that stands for a run on the page: the one with the most points, and among equals the
/// last, which is that of the largest memory.
fn example(figures: &[Figure]) -> Option<&Figure> {
    figures
        .iter()
        .max_by_key(|figure| figure.chart.points().count())
}

/// Where a plot belongs below a folder: `MACHINE/DATE/BENCHMARK-SLUG.svg`.
fn relative_path(folder: &Path, run: &Run, slug: &str) -> Result<PathBuf, Failure> {
    let name = format!("{}-{}.svg", run.provenance.benchmark, slug);
    Ok(run
        .rows
        .with_file_name(name)
        .strip_prefix(folder)?
        .to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(named)?;
    }
    Ok(fs::write(path, text).map_err(named)?)
}
