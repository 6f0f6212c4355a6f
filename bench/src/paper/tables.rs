//! The cells of the printed tables: filter, stream and memory of each, and the rates that the paper
//! prints.

use std::num::NonZeroU64;

use clap::ValueEnum;
use echoless::FilterSpec;
use echoless::memory::LINE_BYTES;
use echoless::spec::Form;
use echoless_lab::stream::Stream;
use echoless_papers::theory::bloom::best_hashes;

use crate::failure::Failure;

/// A paper whose tables can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Paper {
    /// Biased sampling: tables 1 to 9.
    #[value(name = "000")]
    BiasedSampling,
    /// Quotient hash tables: table 4, its artificial streams.
    #[value(name = "002")]
    QuotientTables,
    /// Stable Bloom filters: table 2, on uniform streams instead of its crawl.
    #[value(name = "004")]
    StableBloom,
}

impl Paper {
    /// The number of the paper in this project.
    pub(super) const fn number(self) -> &'static str {
        match self {
            Self::BiasedSampling => "000",
            Self::QuotientTables => "002",
            Self::StableBloom => "004",
        }
    }
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub(super) struct TableCell {
    pub(super) paper: Paper,
    pub(super) table: u32,
    /// As printed, not scaled; the next two too.
    pub(super) stream_len: u64,
    pub(super) distinct_percent: f64,
    pub(super) memory_bits: u64,
    pub(super) algorithm: &'static str,
    pub(super) hashes: Option<u64>,
    /// Which interpretation of the algorithm or stream it is; empty if there is only one.
    pub(super) variant: &'static str,
    pub(super) printed_fpr: Option<f64>,
    pub(super) printed_fnr: Option<f64>,
    /// Whether this cell is expected to reproduce the printed rates.
    pub(super) comparable: bool,
    pub(super) spec: FilterSpec,
    pub(super) stream: Stream,
}

/// How cells are run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Stream lengths, universes and memories are divided by this.
    pub(super) scale: NonZeroU64,
    pub(super) seed: u64,
    pub(super) form: Form,
}

impl Setting {
    /// The filter of this specification, in scaled memory.
    fn spec(self, text: &str, memory_bits: u64) -> Result<FilterSpec, Failure> {
        let spec: FilterSpec = echoless_papers::parse(text)?;
        let memory = memory_bits / 8 / self.scale;
        Ok(spec.memory(memory).seed(self.seed).form(self.form))
    }

    /// A scaled stream with so many distinct keys.
    fn stream(self, len: u64, distinct_percent: f64) -> Result<Stream, Failure> {
        let fraction = distinct_percent / 100.0;
        Ok(Stream::with_distinct_fraction(len / self.scale, fraction)?)
    }
}

/// All cells of a paper. In line form, only those whose filter has a line form that fits in the
/// memory.
pub(super) fn cells(paper: Paper, setting: Setting) -> Result<Vec<TableCell>, Failure> {
    let mut cells = match paper {
        Paper::BiasedSampling => biased_sampling(setting)?,
        Paper::QuotientTables if setting.form == Form::Line => {
            return Err("paper 002 has rows of one slot, which have no line form".into());
        }
        Paper::QuotientTables => quotient_tables(setting)?,
        Paper::StableBloom => stable_bloom(setting)?,
    };
    if setting.form == Form::Line {
        let fits = |spec: &FilterSpec| spec.memory >= Some(LINE_BYTES);
        cells.retain(|cell| cell.spec.build_lines().is_ok() && fits(&cell.spec));
    }
    Ok(cells)
}

/// The records of a CSV text.
fn records(text: &str) -> Result<Vec<csv::StringRecord>, Failure> {
    Ok(csv::Reader::from_reader(text.as_bytes())
        .records()
        .collect::<Result<_, _>>()?)
}

fn field<T: std::str::FromStr>(record: &csv::StringRecord, column: usize) -> Result<T, Failure> {
    let text = record.get(column).unwrap_or_default();
    let wrong = |_| format!("invalid column {column} of {record:?}").into();
    text.parse().map_err(wrong)
}

fn unknown(algorithm: &str) -> Failure {
    format!("unknown algorithm in the tables: {algorithm}").into()
}

fn biased_sampling(setting: Setting) -> Result<Vec<TableCell>, Failure> {
    let mut cells = Vec::new();
    for record in records(include_str!("data/biased_sampling_tables.csv"))? {
        let stream_len: u64 = field(&record, 1)?;
        let distinct_percent: f64 = field(&record, 2)?;
        let memory_mib: u64 = field(&record, 3)?;
        let memory_bits = memory_mib << 23;
        let hashes: u64 = record[5].parse().unwrap_or(2);
        // The first interpretation is the one that reproduces the printed values.
        let variants: Vec<(&'static str, &'static str, String)> = match &record[4] {
            "bsbf" => vec![("bsbf", "", format!("bsbf:k={hashes}"))],
            "bsbfsd" => vec![("bsbfsd", "", format!("bsbfsd:k={hashes}"))],
            "rlbsbf" => vec![("rlbsbf", "", format!("rlbsbf:k={hashes}"))],
            "rsbf" => vec![
                ("rsbf", "as tabled", format!("rsbf:k={hashes},as=tabled")),
                (
                    "rsbf",
                    "as described",
                    format!("rsbf:k={hashes},as=described"),
                ),
            ],
            // In a line, random numbers below 2^31 reach all cells.
            "sbf" if memory_mib == 512 && setting.form == Form::Scattered => vec![
                // Random numbers below 2^31 decrement only the first half of 2^32 cells.
                (
                    "sbf",
                    "31-bit random numbers",
                    "sbf:k=2,d=1,p=4,reach=0.5".into(),
                ),
                ("sbf", "as described", "sbf:k=2,d=1,p=4".into()),
            ],
            "sbf" => vec![("sbf", "", "sbf:k=2,d=1,p=4".into())],
            other => return Err(unknown(other)),
        };
        for (index, (algorithm, variant, text)) in variants.into_iter().enumerate() {
            cells.push(TableCell {
                paper: Paper::BiasedSampling,
                table: field(&record, 0)?,
                stream_len,
                distinct_percent,
                memory_bits,
                algorithm,
                hashes: Some(hashes),
                variant,
                printed_fpr: Some(field(&record, 6)?),
                printed_fnr: Some(field(&record, 7)?),
                comparable: index == 0,
                spec: setting.spec(&text, memory_bits)?,
                stream: setting.stream(stream_len, distinct_percent)?,
            });
        }
    }
    Ok(cells)
}

fn quotient_tables(setting: Setting) -> Result<Vec<TableCell>, Failure> {
    const FAULTY: &str = "printed from a faulty baseline";
    let mut cells = Vec::new();
    for record in records(include_str!("data/quotient_table4.csv"))? {
        if &record[1] != "artificial" {
            continue; // the crawl is not available
        }
        let duplicate_percent: f64 = field(&record, 2)?;
        let stream_len: u64 = field(&record, 3)?;
        let memory_bits: u64 = field(&record, 4)?;
        let alphabet: u64 = if duplicate_percent > 50.0 {
            1 << 24
        } else {
            1 << 27
        };
        let (algorithm, variant, text) = match &record[5] {
            "sqf" => ("sqf", "", "sqf:slots=1,r=2,kept=1".to_owned()),
            "qht" => ("qht", "", "qht:slots=1,bits=3".to_owned()),
            "cuckoo" => ("cuckoo", FAULTY, "cuckoo:slots=1,bits=3".to_owned()),
            "sbf" => ("sbf", FAULTY, "sbf:k=2,d=2,fps=0.02".to_owned()),
            "a2" => ("a2", FAULTY, "a2:fpr=0.25".to_owned()),
            "bdbf" => (
                "bdbf",
                FAULTY,
                format!("bdbf:window={}", 6000_u64.div_ceil(setting.scale.get())),
            ),
            other => return Err(unknown(other)),
        };
        cells.push(TableCell {
            paper: Paper::QuotientTables,
            table: field(&record, 0)?,
            stream_len,
            distinct_percent: 100.0 - duplicate_percent,
            memory_bits,
            algorithm,
            hashes: None,
            variant,
            printed_fpr: Some(field(&record, 6)?),
            printed_fnr: Some(field(&record, 7)?),
            comparable: variant.is_empty(),
            spec: setting.spec(&text, memory_bits)?,
            stream: Stream::uniform(
                stream_len / setting.scale,
                (alphabet / setting.scale).max(1),
            )?,
        });
    }
    Ok(cells)
}

fn stable_bloom(setting: Setting) -> Result<Vec<TableCell>, Failure> {
    // Shorter streams are not scaled, as noise would hide their rates.
    const LEAST_LEN: u64 = 10_000_000;
    let mut cells = Vec::new();
    for record in records(include_str!("data/stable_bloom_table2.csv"))? {
        let distinct_percent: f64 = field(&record, 1)?;
        let stream_len: u64 = field(&record, 2)?;
        let memory_bits: u64 = field(&record, 3)?;
        let [guessing_fnr, sbf_fnr, sbf_fpr, lru_fnr, bloom_fpr]: [f64; 5] = [
            field(&record, 4)?,
            field(&record, 5)?,
            field(&record, 6)?,
            field(&record, 7)?,
            field(&record, 8)?,
        ];
        let most = NonZeroU64::new(stream_len / LEAST_LEN).unwrap_or(NonZeroU64::MIN);
        let setting = Setting {
            scale: setting.scale.min(most),
            ..setting
        };
        let distinct = (stream_len as f64 * distinct_percent / 100.0) as u64;
        let hashes = best_hashes(distinct, memory_bits);
        let runs = [
            ("sbf", "sbf:k=2,d=1,p=4".to_owned(), sbf_fpr, sbf_fnr),
            (
                "fpbuffer",
                format!("fpbuffer:charge=hash,q={}", sbf_fpr / 100.0),
                sbf_fpr,
                guessing_fnr,
            ),
            ("lru", "lru:charge=hash".to_owned(), 0.0, lru_fnr),
            ("bloom", format!("bloom:k={hashes}"), bloom_fpr, 0.0),
        ];
        for (algorithm, text, printed_fpr, printed_fnr) in runs {
            cells.push(TableCell {
                paper: Paper::StableBloom,
                table: field(&record, 0)?,
                stream_len,
                distinct_percent,
                memory_bits,
                algorithm,
                hashes: (algorithm == "bloom").then_some(u64::from(hashes)),
                variant: "uniform stream in place of the crawl",
                printed_fpr: Some(printed_fpr),
                printed_fnr: Some(printed_fnr),
                comparable: false,
                spec: setting.spec(&text, memory_bits)?,
                stream: setting.stream(stream_len, distinct_percent)?,
            });
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(form: Form) -> Setting {
        Setting {
            scale: NonZeroU64::new(64).unwrap(),
            seed: 1,
            form,
        }
    }

    #[test]
    fn every_printed_cell_has_one_comparable_run() {
        let comparable = |paper| {
            let cells = cells(paper, setting(Form::Scattered)).unwrap();
            cells.iter().filter(|cell| cell.comparable).count()
        };
        assert_eq!(comparable(Paper::BiasedSampling), 165);
        assert_eq!(comparable(Paper::QuotientTables), 16);
        assert_eq!(comparable(Paper::StableBloom), 0);
    }

    #[test]
    fn every_cell_can_be_built_at_scale() {
        let runs = [
            (Paper::BiasedSampling, Form::Scattered),
            (Paper::BiasedSampling, Form::Line),
            (Paper::QuotientTables, Form::Scattered),
            (Paper::StableBloom, Form::Scattered),
            (Paper::StableBloom, Form::Line),
        ];
        for (paper, form) in runs {
            for cell in cells(paper, setting(form)).unwrap() {
                assert!(cell.spec.build().is_ok(), "{}", cell.spec);
            }
        }
    }

    #[test]
    fn cells_without_a_line_form_are_left_out_or_rejected() {
        let lines = |paper| cells(paper, setting(Form::Line));
        let biased = lines(Paper::BiasedSampling).unwrap();
        assert_eq!(biased.iter().filter(|cell| cell.comparable).count(), 165);
        let stable = lines(Paper::StableBloom).unwrap();
        assert!(
            stable
                .iter()
                .all(|cell| ["sbf", "bloom"].contains(&cell.algorithm))
        );
        assert!(lines(Paper::QuotientTables).is_err());
    }
}
