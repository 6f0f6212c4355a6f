//! Tables of results: named columns and typed cells, printed aligned, written as CSV or JSON.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::Context;

/// One value of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Integer(u64),
    /// A measured number and the decimals it is shown with; CSV and JSON hold the same digits.
    Number(f64, usize),
    /// Not measured, or not printed in the paper.
    Absent,
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
    fn from(integer: u64) -> Self {
        Self::Integer(integer)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Integer(integer) => write!(formatter, "{integer}"),
            Self::Number(number, decimals) => write!(formatter, "{number:.decimals$}"),
            Self::Absent => Ok(()),
        }
    }
}

impl Cell {
    fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Integer(integer) => (*integer).into(),
            Self::Number(..) => self
                .to_string()
                .parse::<f64>()
                .map_or_else(|_| serde_json::Value::Null, serde_json::Value::from),
            Self::Absent => serde_json::Value::Null,
        }
    }
}

/// Rows under named columns.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) const fn new(columns: Vec<&'static str>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// # Panics
    /// If the row has not one cell for each column.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "one cell for each column");
        self.rows.push(row);
    }

    /// The table in aligned columns: text to the left, numbers to the right.
    pub(crate) fn aligned(&self) -> String {
        let texts: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(Cell::to_string).collect())
            .collect();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(column, name)| {
                let cells = texts.iter().map(|row| row[column].chars().count());
                cells.chain([name.len()]).max().unwrap_or(0)
            })
            .collect();
        let mut output = String::new();
        for (name, width) in self.columns.iter().zip(&widths) {
            let _ = write!(output, "{name:<width$}  ");
        }
        for (row, texts) in self.rows.iter().zip(&texts) {
            output.truncate(output.trim_end().len());
            output.push('\n');
            for ((cell, text), width) in row.iter().zip(texts).zip(&widths) {
                let _ = match cell {
                    Cell::Text(_) => write!(output, "{text:<width$}  "),
                    _ => write!(output, "{text:>width$}  "),
                };
            }
        }
        output.truncate(output.trim_end().len());
        output.push('\n');
        output
    }

    /// The table as CSV, with a header line.
    pub(crate) fn write_csv(&self, output: impl std::io::Write) -> anyhow::Result<()> {
        let mut writer = csv::Writer::from_writer(output);
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Cell::to_string))?;
        }
        writer.flush()?;
        Ok(())
    }

    /// The table as a JSON array of objects.
    pub(crate) fn write_json(&self, output: impl std::io::Write) -> anyhow::Result<()> {
        let objects: Vec<serde_json::Map<String, serde_json::Value>> = self
            .rows
            .iter()
            .map(|row| {
                let names = self.columns.iter().map(|name| (*name).to_owned());
                names.zip(row.iter().map(Cell::to_json)).collect()
            })
            .collect();
        serde_json::to_writer_pretty(output, &objects)?;
        Ok(())
    }
}

/// Where a command leaves its table besides the terminal.
#[derive(Debug, clap::Args)]
pub(crate) struct Outputs {
    /// Write the table as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the table as a JSON array of objects.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Outputs {
    /// Prints the table on standard output and writes the files that were asked for.
    pub(crate) fn emit(&self, table: &Table) -> anyhow::Result<()> {
        print!("{}", table.aligned());
        if let Some(path) = &self.csv {
            let file =
                File::create(path).with_context(|| format!("creating {}", path.display()))?;
            table.write_csv(BufWriter::new(file))?;
        }
        if let Some(path) = &self.json {
            let file =
                File::create(path).with_context(|| format!("creating {}", path.display()))?;
            table.write_json(BufWriter::new(file))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec!["filter", "keys", "fpr"]);
        table.push(vec![
            "a, \"quoted\" one".into(),
            12_u64.into(),
            Cell::Number(0.12345, 3),
        ]);
        table.push(vec!["b".into(), 7_u64.into(), Cell::Absent]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        let expected = "filter           keys  fpr\n\
                        a, \"quoted\" one    12  0.123\n\
                        b                   7\n";
        assert_eq!(table().aligned(), expected);
    }

    #[test]
    fn csv_is_quoted() {
        let mut bytes = Vec::new();
        table().write_csv(&mut bytes).expect("memory");
        let expected = "filter,keys,fpr\n\"a, \"\"quoted\"\" one\",12,0.123\nb,7,\n";
        assert_eq!(String::from_utf8(bytes).expect("text"), expected);
    }

    #[test]
    fn json_is_typed() {
        let mut bytes = Vec::new();
        table().write_json(&mut bytes).expect("memory");
        let value: serde_json::Value = serde_json::from_slice(&bytes).expect("valid");
        assert_eq!(value[0]["keys"], 12);
        assert_eq!(value[0]["fpr"], 0.123);
        assert!(value[1]["fpr"].is_null());
    }

    #[test]
    #[should_panic(expected = "one cell for each column")]
    fn a_row_of_the_wrong_length_is_a_mistake() {
        table().push(vec![Cell::Absent]);
    }
}
