//! Filters and profiles of call records from TOML files.

use std::fs;
use std::path::Path;

use echoless::FilterSpec;
use echoless_ber::Profile;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

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

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(Failure::file(name.as_str()))?;
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
