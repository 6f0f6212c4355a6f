//! The file of `--stats`. It never holds the statistics of another run as if they were this one's.
//!
//! A regular file is replaced in one step: first by the statistics of a run that goes on, and at
//! its end by the final ones. An empty file, or one with statistics, is replaced before the first
//! input arrives; one with anything else only when nothing can reject the run any more, as its name
//! may be a mistake. A pipe or device gets the final ones only.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use echoless::Report;
use echoless_durable::ReplacementFile;
use echoless_records::failure::Failure;
use echoless_records::files::{Opened, Source, Target, Targets};
use same_file::is_same_file;

use super::run_outputs::targets;
use super::sink::Sink;
use crate::config::DedupConfig;
use crate::dedup::observers::Observers;
use crate::dedup::reports::ending::Ending;
use crate::dedup::reports::fields::Fields;
use crate::dedup::reports::stats::{Setup, Stats, Sums};

/// The output of the statistics.
#[derive(Debug)]
pub(in crate::dedup) enum StatsFile {
    /// A regular file.
    Regular {
        /// Its path without links.
        path: PathBuf,
        /// Its name in messages.
        name: String,
    },
    /// Anything else.
    Stream(Box<Sink>),
}

impl StatsFile {
    pub(super) fn new(opened: Opened, target: &Target) -> Result<Self, Failure> {
        match target {
            Target::File(path) if opened.is_replaceable() => {
                // A link stays one, to the file with the statistics.
                let name = target.name();
                let path = path.canonicalize().map_err(Failure::file(name.as_str()))?;
                Ok(Self::Regular { path, name })
            }
            Target::File(_) | Target::Stdout | Target::Replaced(_) => {
                Ok(Self::Stream(Box::new(Sink::side(opened, None))))
            }
        }
    }

    /// Whether the statistics replace earlier ones, rather than follow them.
    pub(in crate::dedup) const fn is_replaceable(&self) -> bool {
        match self {
            Self::Regular { .. } => true,
            Self::Stream(_) => false,
        }
    }

    /// Whether the file is empty or holds statistics, so that even a run that is rejected later
    /// may replace it.
    pub(in crate::dedup) fn is_expendable(&self) -> bool {
        match self {
            Self::Regular { path, .. } => {
                let is_empty = fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0);
                is_empty || holds_statistics(path)
            }
            Self::Stream(_) => false,
        }
    }

    /// Writes the statistics.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be written.
    pub(in crate::dedup) fn write(&mut self, json: &str) -> Result<(), Failure> {
        match self {
            Self::Regular { path, name } => {
                replace(path, json.as_bytes()).map_err(Failure::file(name.as_str()))
            }
            Self::Stream(sink) => {
                sink.write_bytes(json.as_bytes())?;
                sink.close()
            }
        }
    }
}

/// Replaces the content of a regular file, in one step unless its folder or its place in the file
/// system does not allow that. Writes another one if the file was removed meanwhile.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let replaced = ReplacementFile::begin(path).and_then(|next| {
        next.file().write_all(content)?;
        next.commit()
    });
    replaced.or_else(|error| match error.kind() {
        // The last two: the file itself is mounted, as into a container.
        ErrorKind::PermissionDenied
        | ErrorKind::NotFound
        | ErrorKind::ResourceBusy
        | ErrorKind::CrossesDevices => fs::write(path, content),
        _ => Err(error),
    })
}

/// Writes the statistics of a run that failed before it opened its outputs. If its command line is
/// at fault, only those of an earlier run are replaced: the name of the file may be a mistake, too.
/// An error in doing so is ignored: the failure of the run is reported.
pub(in crate::dedup) fn write_failed(config: &DedupConfig, failure: &Failure, began: Instant) {
    let Some(target) = &config.run.stats else {
        return;
    };
    if is_used_otherwise(config, target) {
        return;
    }
    if failure.rejects_options() && !matches!(target, Target::File(path) if holds_statistics(path))
    {
        return;
    }
    let mut targets = Targets::new(config.all_inputs())
        .with_settings(&config.run.settings)
        .with_state(config.state_folder());
    let opened = targets.open(target);
    let Ok(mut file) = opened.and_then(|opened| StatsFile::new(opened, target)) else {
        return;
    };
    let setup = Setup {
        began,
        threads: 0,
        filter_bytes: config.filter.memory.unwrap_or(0),
    };
    let (sums, observers) = (Sums::new(config), Observers::unbegun(config));
    let (none, ending) = (Report::default(), Ending::failed(failure));
    let stats = Stats::new(config, &sums, &observers, setup, None, none, ending);
    let _ = file.write(&stats.json());
}

/// Replaces the statistics of an earlier run if the options of this one are rejected, or a file
/// that they name is missing. Nothing is known of the filter then, so only the first fields are
/// written. A file that holds anything else is left alone, and so is an input.
pub(crate) fn replace_unread(path: &Path, inputs: &[PathBuf], failure: &Failure) {
    let is_input = || (inputs.iter()).any(|input| is_same_file(input, path).unwrap_or(false));
    if !holds_statistics(path) || is_input() {
        return;
    }
    if let Ok(path) = path.canonicalize() {
        let json = Fields::begin(&Ending::failed(failure)).json();
        let _ = replace(&path, json.as_bytes());
    }
}

/// Whether a regular file begins as statistics do.
fn holds_statistics(path: &Path) -> bool {
    let is_regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut begin = [0; FIRST_FIELD.len()];
    let read = |file: File| (&file).read_exact(&mut begin);
    is_regular && File::open(path).and_then(read).is_ok() && begin == *FIRST_FIELD
}

/// The bytes that every file of statistics begins with.
const FIRST_FIELD: &[u8; 21] = b"{\n  \"schema_version\":";

/// Whether the target is another output, too, or an input by name.
fn is_used_otherwise(config: &DedupConfig, target: &Target) -> bool {
    let Target::File(path) = target else {
        return false;
    };
    let others = targets(config).filter_map(|other| match other {
        Target::File(path) | Target::Replaced(path) => Some(path),
        Target::Stdout => None,
    });
    let inputs = config.sources.iter().filter_map(|source| match source {
        Source::File(path) => Some(path),
        Source::Stdin | Source::Spooled(_) | Source::Interfaces(_) => None,
    });
    others
        .chain(inputs)
        .any(|other| other == path || is_same_file(other, path).unwrap_or(false))
}
