//! The text of the page: a section for each recorded run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::rows::Rows;
use crate::failure::Failure;
use crate::record::Provenance;

/// Tables with more rows than this are not on the page, which links to their CSV instead.
const LINKED_ABOVE: usize = 24;

/// What the page shows of one recorded run. Paths are relative to the page.
pub(super) struct Section {
    pub(super) provenance: Provenance,
    pub(super) csv: PathBuf,
    pub(super) rows: Rows,
    /// Title and file of the plot that is shown.
    pub(super) plot: Option<(String, PathBuf)>,
    /// How many plots the run has in all.
    pub(super) plots: usize,
}

/// The page. Sections of one machine must follow each other.
///
/// # Errors
/// If formatting fails, which it does not for strings.
pub(super) fn render(sections: &[Section]) -> Result<String, Failure> {
    let mut page = String::from(
        "# Recorded runs\n\n\
         Rendered by `cargo run --release -p echoless-bench -- report` from the rows below this \
         folder; the same with `--plots FOLDER` draws all plots. [BIAS.md](../BIAS.md) lists what \
         these numbers do not show, [DIFFERENCES.md](DIFFERENCES.md) where measured rates differ \
         from printed ones, [TRIED.md](TRIED.md) what was tried for speed.\n",
    );
    let mut machine = None;
    for section in sections {
        let here = &section.provenance.machine;
        if machine.as_ref() != Some(&here.slug()) {
            let gibibytes = here.memory_mib as f64 / 1024.0;
            write!(
                page,
                "\n## {}, {} cores\n\n{gibibytes:.0} GiB of memory, {}.\n",
                here.cpu_name(),
                here.cores,
                here.system
            )?;
            machine = Some(here.slug());
        }
        section.render(&mut page)?;
    }
    Ok(page)
}

impl Section {
    fn render(&self, page: &mut String) -> Result<(), Failure> {
        let about = &self.provenance;
        let machine = &about.machine;
        let look_ahead = match machine.look_ahead.as_str() {
            "" => String::new(),
            blocks => format!(", look-ahead of {blocks}"),
        };
        write!(page, "\n### {}, {}\n\n", about.benchmark, about.date)?;
        write!(page, "    {}\n\n", about.command)?;
        write!(
            page,
            "Machine: {}, {} cores, {} MiB, {}{look_ahead}. Date: {}. Commit: {}. Compiler: {}. Rows: [CSV]({}).\n\n",
            machine.cpu_name(),
            machine.cores,
            machine.memory_mib,
            machine.system,
            about.date,
            about.commit,
            about.rustc,
            link(&self.csv),
        )?;
        if let Some((title, file)) = &self.plot {
            write!(page, "![{title}]({})\n\n", link(file))?;
            if self.plots > 1 {
                write!(page, "One of {} plots of this run.\n\n", self.plots)?;
            }
        }
        self.render_rows(page)
    }

    fn render_rows(&self, page: &mut String) -> Result<(), Failure> {
        let count = self.rows.len();
        if count > LINKED_ABOVE {
            writeln!(page, "[{count} rows]({})", link(&self.csv))?;
        } else {
            table(page, &self.rows);
        }
        Ok(())
    }
}

/// A path as it is written in a link, with slashes on every system.
fn link(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
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
