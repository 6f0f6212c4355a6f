//! `echoless eval`: filters measured on a stream against an exact oracle.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use echoless::{FilterSpec, SpecError};
use echoless_records::failure::Failure;
use echoless_records::number::{grouped, parse_if_given, parse_seed, parse_size};
use echoless_records::options::{accept_hyphens, headed};
use echoless_records::progress::{Counted, ProgressLine};
use echoless_records::spec_file::{parse_filter, read_specs};
use serde_json::{Value, json};

use super::input::{Input, RecordFileArgs, record_file};
use super::output::{LabOutputs, LabReport, LabTargets, aligned, percent, quoted};
use crate::evaluate::{AgeBin, EvalOptions, Evaluation, evaluate};
use crate::oracle::Score;
use crate::plots;
use crate::stream::{Stream, parse_count};

/// Measure filters on a stream against an exact oracle
#[derive(Debug, ClapArgs)]
#[command(mut_args(accept_hyphens(&["stream"])))]
#[command(mut_args(headed(&[
    ("Filters", &["specs", "memory"]),
    ("Stream", &["stream", "input", "window", "seed"]),
    ("Output", &["points", "plots"]),
])))]
pub struct EvalArgs {
    /// Specifications of filters, such as rlbsbf:k=2,memory=64MiB
    #[arg(value_name = "SPEC")]
    pub(crate) filters: Vec<String>,

    /// Read filters from a TOML file: an array `filters` of strings, or of tables with the key
    /// `filter`
    #[arg(long, value_name = "FILE")]
    pub(crate) specs: Option<PathBuf>,

    /// Memory of the filters that do not specify one
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Generate the stream: uniform:records=10M,distinct=0.6 (or universe=),
    /// zipf:records=10M,universe=1M,exponent=1.1
    #[arg(
        long,
        value_name = "STREAM",
        default_value = "uniform:records=1M,distinct=0.6",
        conflicts_with = "input"
    )]
    pub(crate) stream: String,

    /// Use the records of this file as the stream; `-` means standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: RecordFileArgs,

    /// Count only repeats within N records as duplicates
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) window: Option<String>,

    /// Seed of the stream
    #[arg(long, default_value = "1", allow_negative_numbers = true)]
    pub(crate) seed: String,

    /// Number of positions in the stream at which rates and fill are recorded
    #[arg(
        long,
        value_name = "N",
        default_value = "50",
        allow_negative_numbers = true
    )]
    pub(crate) points: String,

    #[command(flatten)]
    pub(crate) outputs: LabOutputs,

    /// Draw SVG plots into this folder: rates and fill over the stream, misses by age, and the
    /// two rates against each other
    #[arg(long, value_name = "FOLDER")]
    pub(crate) plots: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct EvalConfig {
    pub(crate) specs: Vec<FilterSpec>,
    pub(crate) input: Input,
    pub(crate) window: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) points: u64,
    pub(crate) outputs: LabOutputs,
    pub(crate) plots: Option<PathBuf>,
}

impl TryFrom<EvalArgs> for EvalConfig {
    type Error = Failure;

    fn try_from(args: EvalArgs) -> Result<Self, Failure> {
        let memory = parse_if_given("--memory", args.memory.as_deref(), parse_size)?;
        let mut specs = Vec::new();
        for text in &args.filters {
            specs.push(parse_filter(text, memory)?);
        }
        if let Some(path) = &args.specs {
            specs.extend(read_specs(path)?);
        }
        if specs.is_empty() {
            let allowed = "SPEC arguments such as rlbsbf:k=2,memory=64MiB, or --specs FILE";
            return Err(SpecError::missing("filters", allowed).into());
        }
        if let Some(memory) = memory {
            let unsized_specs = specs.iter_mut();
            let unsized_specs =
                unsized_specs.filter(|spec: &&mut FilterSpec| spec.memory.is_none());
            unsized_specs.for_each(|spec| *spec = spec.memory(memory));
        }
        Ok(Self {
            specs,
            input: match record_file("--input", args.input, &args.file)? {
                Some(file) => Input::File(file),
                None => Input::Generated(args.stream.parse()?),
            },
            window: parse_if_given("--window", args.window.as_deref(), parse_count)?,
            seed: parse_seed(&args.seed)?,
            points: parse_count("--points", &args.points)?,
            outputs: args.outputs,
            plots: args.plots,
        })
    }
}

/// Runs `echoless eval`.
pub fn run(args: EvalArgs) -> Result<ExitCode, Failure> {
    let config = &EvalConfig::try_from(args)?;
    let mut targets = LabTargets::open(&config.outputs, config.input.files())?;
    if let Some(folder) = &config.plots {
        let name = folder.display().to_string();
        fs::create_dir_all(folder).map_err(Failure::file(name))?;
    }
    let stream = config.input.stream(config.outputs.quiet)?;
    // A shorter stream has a point for each record.
    let points = config.points.min(stream.records());
    let options = EvalOptions::default()
        .seed(config.seed)
        .points(points)
        .ages(true)
        .window(config.window);
    let progress = ProgressLine::new(
        Counted::Records,
        Some(stream.records()),
        !config.outputs.quiet,
    );
    let evaluations = evaluate(&config.specs, &stream, &options, &|records| {
        progress.add(records);
    })?;
    drop(progress);
    let report = EvalReport {
        stream: &stream,
        options: &options,
        evaluations: &evaluations,
    };
    targets.write(&report)?;
    if let Some(folder) = &config.plots {
        plots::draw(&evaluations, folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The results of a run.
pub(crate) struct EvalReport<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) options: &'a EvalOptions,
    pub(crate) evaluations: &'a [Evaluation],
}

const CSV_HEADER: &str = "spec,part,from,to,distinct,false_positives,duplicates,false_negatives,fpr,fnr,fill,bits_per_key,ns_per_key\n";

impl EvalReport<'_> {
    /// A row for each age that occurs, a column for each filter.
    fn by_age(&self) -> String {
        let bins = |evaluation: &'_ Evaluation| evaluation.ages.clone();
        let mut ages: Vec<AgeBin> = self.evaluations.iter().flat_map(bins).collect();
        ages.sort_by_key(|bin| bin.from);
        ages.dedup_by_key(|bin| bin.from);
        let numbers = (1..=self.evaluations.len()).map(|number| format!("({number})"));
        let mut rows = vec![
            ["age in records".to_owned(), "duplicates".to_owned()]
                .into_iter()
                .chain(numbers)
                .collect::<Vec<_>>(),
        ];
        for age in ages {
            let range = format!("{} to {}", grouped(age.from), grouped(age.below - 1));
            let mut row = vec![range, grouped(age.duplicates)];
            for evaluation in self.evaluations {
                let bin = evaluation.ages.iter().find(|bin| bin.from == age.from);
                row.push(bin.map_or(String::new(), |bin| percent(bin.fnr())));
            }
            rows.push(row);
        }
        aligned(&rows)
    }
}

impl LabReport for EvalReport<'_> {
    fn text(&self) -> String {
        let mut rows = vec![
            ["filter", "FPR %", "FNR %", "fill %", "bits/key", "ns/key"]
                .map(String::from)
                .to_vec(),
        ];
        for (evaluation, number) in self.evaluations.iter().zip(1..) {
            rows.push(vec![
                format!("({number}) {}", evaluation.spec),
                percent(evaluation.score.fpr()),
                percent(evaluation.score.fnr()),
                evaluation.fill.map_or("-".into(), percent),
                format!("{:.2}", evaluation.bits_per_key()),
                format!("{:.1}", evaluation.nanoseconds_per_key),
            ]);
        }
        let score = self.evaluations[0].score;
        let mut text = format!(
            "{}\n{} records: {} distinct, {} duplicates",
            self.stream,
            grouped(score.arrivals()),
            grouped(score.distinct),
            grouped(score.duplicates)
        );
        if let Some(window) = self.options.window {
            let _ = write!(text, " within {} records", grouped(window));
        }
        format!(
            "{text}\n\n{}\nFNR % by age\n{}",
            aligned(&rows),
            self.by_age()
        )
    }

    fn csv(&self) -> String {
        let mut text = String::from(CSV_HEADER);
        for evaluation in self.evaluations {
            let spec = quoted(&evaluation.spec);
            let mut row = |part, from: u64, to: u64, score: &Score, rest: &str| {
                let _ = writeln!(
                    text,
                    "{spec},{part},{from},{to},{},{},{},{},{},{},{rest}",
                    score.distinct,
                    score.false_positives,
                    score.duplicates,
                    score.false_negatives,
                    score.fpr(),
                    score.fnr(),
                );
            };
            let fill = |fill: Option<f64>| fill.map_or(String::new(), |fill| fill.to_string());
            let totals = format!(
                "{},{},{}",
                fill(evaluation.fill),
                evaluation.bits_per_key(),
                evaluation.nanoseconds_per_key
            );
            let score = &evaluation.score;
            row("total", 0, score.arrivals(), score, &totals);
            let mut from = 0;
            for point in &evaluation.points {
                let rest = format!("{},,", fill(point.fill));
                row("stream", from, point.records, &point.recent, &rest);
                from = point.records;
            }
            for bin in &evaluation.ages {
                let score = Score {
                    duplicates: bin.duplicates,
                    false_negatives: bin.missed,
                    ..Score::default()
                };
                row("age", bin.from, bin.below, &score, ",,");
            }
        }
        text
    }

    fn json(&self) -> Value {
        let evaluations = self.evaluations.iter().map(Evaluation::to_json);
        json!({
            "stream": self.stream.to_string(),
            "seed": self.options.seed,
            "window": self.options.window,
            "records": self.stream.records(),
            "filters": evaluations.collect::<Vec<_>>(),
        })
    }
}
