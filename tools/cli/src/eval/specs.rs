//! Filters from a TOML file.

use std::fs;
use std::path::Path;

use echoless::FilterSpec;
use serde::Deserialize;

use crate::failure::Failure;

/// `filters = ["bloom:k=4", { filter = "rlbsbf", k = 2 }]`, or the same as `[[filters]]` tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    filters: Vec<FilterSpec>,
}

/// Reads the filters of a file.
pub(crate) fn read_specs(path: &Path) -> Result<Vec<FilterSpec>, Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(Failure::file(name.as_str()))?;
    let file: SpecFile = toml::from_str(&text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(&text);
        Failure::Data {
            name,
            unit: "line",
            number: before.matches('\n').count() as u64 + 1,
            problem: error.message().trim().replace('\n', " "),
        }
    })?;
    Ok(file.filters)
}
