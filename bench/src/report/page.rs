//! The page: a section for each recorded run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::figures::figures;
use super::rows::Rows;
use crate::record::{self, Run};
use crate::table::Failure;

/// Tables longer than this are folded.
const LONG: usize = 24;

/// Writes the plots beside the runs' rows, and gives the page that shows them, with links from `folder`.
///
/// # Errors
/// If a run cannot be read or a plot cannot be written; the error names the file.
pub(super) fn render(folder: &Path) -> Result<String, Failure> {
    let mut page = String::from(
        "# Recorded runs\n\n\
         Rendered by `cargo run --release -p echoless-bench -- report` from the rows below this folder. \
         What these numbers do not show is said in [BIAS.md](../BIAS.md), where rates differ from printed ones in \
         [DIFFERENCES.md](DIFFERENCES.md), what was tried for speed in [TRIED.md](TRIED.md).\n",
    );
    let mut machine = None;
    for run in record::read(folder)? {
        let here = &run.provenance.machine;
        if machine.as_ref() != Some(here) {
            let gibibytes = here.memory_mib as f64 / 1024.0;
            write!(
                page,
                "\n## {}, {} cores\n\n{gibibytes:.0} GiB of memory, {}.\n",
                here.cpu, here.cores, here.system
            )?;
            machine = Some(here.clone());
        }
        section(&mut page, folder, &run)?;
    }
    Ok(page)
}

fn section(page: &mut String, folder: &Path, run: &Run) -> Result<(), Failure> {
    let about = &run.provenance;
    let machine = &about.machine;
    write!(page, "\n### {}, {}\n\n", about.benchmark, about.date)?;
    write!(page, "    {}\n\n", about.command)?;
    write!(
        page,
        "Machine: {}, {} cores, {} MiB, {}. Date: {}. Commit: {}. Compiler: {}.\n\n",
        machine.cpu,
        machine.cores,
        machine.memory_mib,
        machine.system,
        about.date,
        about.commit,
        about.rustc
    )?;
    let rows = Rows::read(&run.rows)?;
    for figure in figures(&about.benchmark, &rows) {
        let name = format!("{}-{}.svg", about.benchmark, figure.slug);
        let path = run.rows.with_file_name(name);
        fs::write(&path, figure.plot.svg()?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let link = path
            .strip_prefix(folder)?
            .to_string_lossy()
            .replace('\\', "/");
        write!(page, "![{}]({link})\n\n", figure.plot.title)?;
    }
    let is_long = rows.len() > LONG;
    if is_long {
        write!(page, "<details><summary>{} rows</summary>\n\n", rows.len())?;
    }
    table(page, &rows);
    if is_long {
        page.push_str("\n</details>\n");
    }
    Ok(())
}

fn table(page: &mut String, rows: &Rows) {
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        page.push('|');
        for cell in cells {
            page.push(' ');
            page.push_str(&cell.replace('|', "\\|"));
            page.push_str(" |");
        }
        page.push('\n');
    };
    line(&mut rows.columns().iter().map(String::as_str));
    line(&mut rows.columns().iter().map(|_| "---"));
    for row in rows.iter() {
        line(&mut row.cells());
    }
}
