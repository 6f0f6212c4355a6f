//! Filters and profiles of call records from TOML files.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use echoless::FilterSpec;
use echoless_ber::Profile;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::number::grouped;

/// `filters = ["bloom:k=4", { filter = "rlbsbf", k = 2 }]`, or the same as `[[filters]]` tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    filters: Vec<FilterSpec>,
}

/// Reads the filters of a file.
pub(crate) fn read_specs(path: &Path) -> Result<Vec<FilterSpec>, Failure> {
    Ok(read::<SpecFile>(path)?.filters)
}

/// Reads the only filter of a file: `filter = "rlbsbf"`, and its options on lines of their own.
pub(crate) fn read_spec(path: &Path) -> Result<FilterSpec, Failure> {
    read(path)
}

/// Reads the names of the fields of call records.
pub(crate) fn read_profile(path: &Path) -> Result<Profile, Failure> {
    read(path)
}

/// The longest file, in bytes: a device may have no end.
const LONGEST: u64 = 1 << 20;

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display().to_string();
    let failed = || Failure::file(name.as_str());
    let mut text = String::new();
    let file = File::open(path).map_err(failed())?;
    let mut start = file.take(LONGEST + 1);
    start.read_to_string(&mut text).map_err(failed())?;
    if start.limit() == 0 {
        let problem = format!("longer than {} bytes", grouped(LONGEST));
        return Err(failed()(io::Error::new(ErrorKind::FileTooLarge, problem)));
    }
    toml::from_str(&text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(&text);
        Failure::Data {
            name,
            unit: "line",
            number: before.matches('\n').count() as u64 + 1,
            problem: error.message().trim().replace('\n', " "),
        }
    })
}
