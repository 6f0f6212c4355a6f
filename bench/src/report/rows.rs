//! The rows of a recorded CSV, accessed by column name.

use std::path::Path;

use csv::StringRecord;

use crate::failure::Failure;

/// The rows of one file.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    columns: Vec<String>,
    records: Vec<StringRecord>,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    columns: &'a [String],
    record: &'a StringRecord,
}

impl Rows {
    /// Reads a CSV file with a header line.
    ///
    /// # Errors
    /// If it cannot be read or has lines of unequal length; the error names it.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    pub(super) fn parse(text: &str) -> Result<Self, csv::Error> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers()?.iter().map(str::to_owned).collect();
        let records = reader.records().collect::<Result<_, _>>()?;
        Ok(Self { columns, records })
    }

    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.records.iter().map(|record| Row {
            columns: &self.columns,
            record,
        })
    }
}

impl<'a> Row<'a> {
    /// The text in a column; empty if the file has no such column.
    pub(super) fn text(self, column: &str) -> &'a str {
        let index = self.columns.iter().position(|name| name == column);
        index
            .and_then(|index| self.record.get(index))
            .unwrap_or_default()
    }

    /// The number in a column; `None` if it is missing or not a number.
    pub(super) fn number(self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }

    pub(super) fn cells(self) -> impl Iterator<Item = &'a str> {
        self.record.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_column() {
        let rows = Rows::parse("name,fpr,memory_mib\n\"a, b\",1.5e-4,\nc,,64\n").unwrap();
        assert_eq!(rows.len(), 2);
        let [first, second]: [Row; 2] = rows.iter().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(first.text("name"), "a, b");
        assert_eq!(first.number("fpr"), Some(1.5e-4));
        assert_eq!(first.number("memory_mib"), None);
        assert_eq!(second.number("memory_mib"), Some(64.0));
        assert_eq!(second.text("no such column"), "");
    }

    #[test]
    fn an_invalid_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, "a,b\n1\n").unwrap();
        let error = Rows::read(&path).unwrap_err().to_string();
        assert!(error.contains("rows.csv: "), "{error}");
        assert!(Rows::read(&folder.path().join("none.csv")).is_err());
    }
}
