//! The output of all benchmarks: a table, aligned on the terminal and written as CSV or JSON.

use std::path::{Path, PathBuf};

use clap::Args;
use echoless_lab::table;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::record::{self, Provenance};

/// Where a benchmark writes its rows besides the terminal.
#[derive(Debug, Clone, Default, Args)]
pub struct Outputs {
    /// Also write the rows as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Also write the rows as a JSON array of objects.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also record the run with its machine, date and commit in this folder, such as
    /// `bench/record`.
    #[arg(long, value_name = "FOLDER")]
    pub record: Option<PathBuf>,
}

/// One cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A name, aligned to the left.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A measurement, shown with about five significant digits.
    Number(f64),
    /// No value: the column does not apply.
    Nothing,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Number(number) if number.abs() >= 1e5 => format!("{number:.0}"),
            Self::Number(number) if *number == 0.0 || number.abs() >= 1e-3 => {
                format!("{number:.4}")
            }
            Self::Number(number) => format!("{number:.3e}"),
            Self::Nothing => String::new(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Count(count) => Value::from(*count),
            Self::Number(number) => Value::from(*number),
            Self::Nothing => Value::Null,
        }
    }
}

/// Rows under named columns.
///
/// # Examples
/// ```
/// use echoless_bench::table::Table;
/// let mut table = Table::new(&["name", "keys_per_second"]);
/// table.push(vec!["read".into(), 2.5e8.into()]);
/// assert_eq!(table.aligned(), "name  keys_per_second\nread        250000000\n");
/// assert_eq!(table.csv().unwrap(), "name,keys_per_second\nread,250000000\n");
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: &[&'static str]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of cells is not that of the columns.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "one cell for each column");
        self.rows.push(row);
    }

    /// The table for the terminal: text to the left, numbers to the right.
    #[must_use]
    pub fn aligned(&self) -> String {
        let header = self.columns.iter().map(|name| (*name).to_owned());
        let mut texts = vec![header.collect::<Vec<String>>()];
        texts.extend(
            self.rows
                .iter()
                .map(|row| row.iter().map(Cell::text).collect()),
        );
        let is_text = |column: usize| {
            let mut cells = self.rows.iter().map(|row| &row[column]);
            cells.all(|cell| matches!(cell, Cell::Text(_) | Cell::Nothing))
        };
        table::aligned(&texts, is_text)
    }

    /// The table as CSV with a header line.
    ///
    /// # Errors
    /// If the writer fails, which it does not for memory.
    pub fn csv(&self) -> Result<String, Failure> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Cell::text))?;
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }

    /// The table as a JSON array of objects.
    #[must_use]
    pub fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let fields = self.columns.iter().zip(row);
            fields
                .map(|(name, cell)| ((*name).to_owned(), cell.json()))
                .collect::<Map<_, _>>()
        };
        self.rows.iter().map(object).collect()
    }

    /// Prints the table, and writes it to the outputs.
    ///
    /// # Errors
    /// If a file cannot be written; the error names it.
    pub fn publish(&self, outputs: &Outputs) -> Result<(), Failure> {
        print!("{}", self.aligned());
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        if let Some(path) = &outputs.csv {
            write(path, self.csv()?)?;
        }
        if let Some(path) = &outputs.json {
            write(path, format!("{:#}\n", self.json()))?;
        }
        if let Some(folder) = &outputs.record {
            record::write(folder, Provenance::of_this_run(), &self.csv()?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_and_json_hold_every_row() {
        let mut table = Table::new(&["name", "fpr", "keys"]);
        table.push(vec!["a, b".into(), 3.7e-9.into(), 7u64.into()]);
        table.push(vec!["c".into(), Cell::Nothing, 8u64.into()]);
        assert_eq!(
            table.csv().unwrap(),
            "name,fpr,keys\n\"a, b\",3.700e-9,7\nc,,8\n"
        );
        let json = table.json();
        assert_eq!(json[0]["name"], "a, b");
        assert_eq!(json[0]["fpr"], 3.7e-9);
        assert_eq!(json[1]["fpr"], Value::Null);
        assert_eq!(json[1]["keys"], 8);
    }

    #[test]
    fn an_unwritable_file_is_named() {
        let outputs = Outputs {
            csv: Some("/nowhere/rows.csv".into()),
            ..Outputs::default()
        };
        let error = Table::new(&["name"]).publish(&outputs).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/rows.csv: "));
    }
}
