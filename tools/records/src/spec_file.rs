//! Filters from text and TOML files, and profiles of call records from TOML files.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

use echoless::{FilterSpec, SpecError};
use echoless_ber::Profile;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;
use crate::number::grouped;

/// `filters = ["bloom:k=4", { filter = "rlbsbf", k = 2 }]`, or the same as `[[filters]]` tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    filters: Vec<FilterSpec>,
}

/// Reads the filters of a file.
///
/// # Errors
/// [`Failure`] if the file cannot be read, or has others than filters.
pub fn read_specs(path: &Path) -> Result<Vec<FilterSpec>, Failure> {
    Ok(read::<SpecFile>(path)?.filters)
}

/// Reads the only filter of a file: `filter = "rlbsbf"`, and its options on lines of their own.
///
/// # Errors
/// [`Failure`] if the file cannot be read, or is no filter.
pub fn read_spec(path: &Path) -> Result<FilterSpec, Failure> {
    read(path)
}

/// Parses a filter. One whose options follow from its memory gets that of `--memory` if it names
/// none.
///
/// # Errors
/// [`SpecError`] if the text is no filter.
pub fn parse_filter(text: &str, memory: Option<u64>) -> Result<FilterSpec, SpecError> {
    match (text.parse(), memory) {
        (Err(SpecError { field, asked, .. }), Some(memory))
            if field == "memory" && asked.is_empty() =>
        {
            // The last part after any adapters has the options.
            let filter = text.rfind('/').map_or(0, |slash| slash + 1);
            let before = if text[filter..].contains(':') {
                ','
            } else {
                ':'
            };
            format!("{text}{before}memory={memory}").parse()
        }
        (parsed, _) => parsed,
    }
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
        let span = error.span().unwrap_or_default();
        let start = start_of_field(&text, &span, error.message()).unwrap_or(span.start);
        let before = text.get(..start).unwrap_or(&text);
        Failure::Data {
            name,
            unit: "line",
            number: before.matches('\n').count() as u64 + 1,
            problem: error.message().trim().replace('\n', " "),
        }
    })
}

/// Where the field is that the error of a table is about, in a text that is TOML. An error of
/// meaning covers the whole table, and serde keeps only its message, so the name of the field is
/// read back from there.
fn start_of_field(text: &str, span: &Range<usize>, message: &str) -> Option<usize> {
    let (field, rest) = message.strip_prefix("invalid ")?.split_once('=')?;
    let value = rest.split(": ").next()?;
    let document = DeTable::parse(text).ok()?;
    let whole = document.span();
    let document = DeValue::Table(document.into_inner());
    let table = table_at(&document, &whole, span)?;
    // An option of an adapter may have the name of one of the table. One that is not in the table
    // is that of an adapter, too.
    let (field, is_adapters) = match field {
        // An unknown option is the value of the message. Every filter takes `memory`, and no
        // adapter does.
        "option" => {
            let known = rest.rsplit("expected ").next()?;
            let mut known = known.trim_start_matches("one of ").split(", ");
            (value, !known.any(|option| option == "memory"))
        }
        field => (field, has_setting(table, field, value)),
    };
    let key_of = |name: &str| table.keys().find(|key| key.get_ref() == name);
    let adapters = key_of("adapters");
    let found = adapters
        .filter(|_| is_adapters)
        .or_else(|| key_of(field))
        .or(adapters);
    found.map(|key| key.span().start)
}

/// Whether the adapters of a table have this option with this value.
fn has_setting(table: &DeTable<'_>, field: &str, value: &str) -> bool {
    let adapters = table
        .get("adapters")
        .and_then(|text| text.get_ref().as_str());
    adapters.is_some_and(|text| {
        text.split(['/', ':', ','])
            .any(|setting| setting.split_once('=') == Some((field, value)))
    })
}

/// The table at `span`, in a value at `own`. The error of a document may have an empty span.
fn table_at<'a, 'text>(
    value: &'a DeValue<'text>,
    own: &Range<usize>,
    span: &Range<usize>,
) -> Option<&'a DeTable<'text>> {
    match value {
        DeValue::Table(table) if own == span || span.is_empty() => Some(table),
        DeValue::Table(table) => {
            let mut values = table.values();
            values.find_map(|value| table_at(value.get_ref(), &value.span(), span))
        }
        DeValue::Array(values) => {
            let mut values = values.iter();
            values.find_map(|value| table_at(value.get_ref(), &value.span(), span))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of the error of a file.
    fn line_of(text: &str) -> (u64, String) {
        echoless_papers::register();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let failure = match text.contains("filters") {
            true => read_specs(file.path()).unwrap_err(),
            false => read_spec(file.path()).unwrap_err(),
        };
        let Failure::Data {
            number, problem, ..
        } = failure
        else {
            panic!("{failure}");
        };
        (number, problem)
    }

    #[test]
    fn an_error_is_on_the_line_of_its_field() {
        for (text, line, problem) in [
            ("# c\nfilter = 'bloom'\nk = 65\n", 3, "invalid k=65: "),
            ("k = 65\nfilter = 'bloom'\n", 1, "invalid k=65: "),
            ("k = 2\n\nfilter = 'blom'", 3, "invalid filter=blom: "),
            ("filter = 'bloom'\nhashes = 2", 2, "invalid option=hashes: "),
            (
                "\nfilter = 'bloom'\nmemory = '2X'",
                3,
                "invalid memory=2X: ",
            ),
            (
                "filter = 'lru'\n'form' = 'lines'",
                2,
                "invalid form=lines: ",
            ),
            (
                "filter = 'bloom'\nfpr = 3\nadapters = 'growing:fpr=0.01'",
                2,
                "invalid option=fpr: ",
            ),
            (
                "filter = 'bloom'\np = 3\nadapters = 'growing:step=64k'",
                2,
                "invalid option=p: ",
            ),
            (
                "filter = 'bloom'\nk = 65\nadapters = 'horizontal:slices=650'",
                2,
                "invalid k=65: ",
            ),
            (
                "filter = 'bloom'\nk = 4\nadapters = 'horizontal:slices=0'",
                3,
                "invalid slices=0: ",
            ),
            (
                "filter = 'bloom'\nk = 4\nadapters = 'horizontal:slices=4/growing:k=4'",
                3,
                "invalid option=k: ",
            ),
            (
                "filters = [\n  { filter = 'bloom' },\n  { filter = 'lru',\n    k = 2 },\n]",
                4,
                "invalid option=k: ",
            ),
            (
                "[[filters]]\nfilter = 'bloom'\nk = 2\n[[filters]]\nfilter = 'bloom'\nk = 0\n",
                6,
                "invalid k=0: ",
            ),
            (
                "filters = [\n  'bloom:k=1',\n  'bloom:k=0',\n]",
                3,
                "invalid k=0: ",
            ),
            ("filters = [\n  {},\n]", 2, "missing field `filter`"),
        ] {
            let (number, found) = line_of(text);
            assert!(found.starts_with(problem), "{text}: {found}");
            assert_eq!(number, line, "{text}: {found}");
        }
    }
}
