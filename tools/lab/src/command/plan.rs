//! `echoless plan`: recommends a filter for a stream and a memory.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Args as ClapArgs;
use echoless::spec::format_bytes;
use echoless::{MemoryError, SpecError, memory};
use echoless_records::failure::{Failure, warn};
use echoless_records::number::{parse_if_given, parse_seed, parse_size, parse_threads, parse_time};
use echoless_records::options::{RecordArgs, accept_hyphens, headed};
use echoless_records::progress::{Counted, ProgressLine};
use serde_json::{Value, json};

use super::input::{Input, RecordFileArgs, record_file};
use super::output::{LabOutputs, LabReport, LabTargets, aligned, percent, quoted};
use crate::plan::{
    self, Basis, Candidate, Costs, Goal, Interval, Plan, PlanRequest, nanoseconds_per_key,
};
use crate::stream::{Stream, format_count, parse_count};

/// Rank all filters for a stream and a memory, and recommend one
#[derive(Debug, ClapArgs)]
#[command(mut_args(accept_hyphens(&[])))]
#[command(mut_args(headed(&[
    ("Stream", &["records", "distinct", "sample", "window"]),
    ("Goal", &["max_fpr", "max_fnr", "cost_fpr", "cost_fnr"]),
    ("Output", &["measure", "all", "spec_only"]),
])))]
pub struct PlanArgs {
    /// Memory of the filter: 64k, 256MiB, 2G (powers of 1024), 500MB (powers of 1000) [default: the
    /// least that meets both bounds]
    #[arg(short, long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Number of records in the stream: 10M, 1G [default: as many as in the sample]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) records: Option<String>,

    /// Fraction of the records that is distinct, above 0 and below 1
    #[arg(long, value_name = "FRACTION", conflicts_with = "sample")]
    pub(crate) distinct: Option<String>,

    /// File whose records are like the stream, in place of --distinct; `-` means standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) sample: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) file: RecordFileArgs,

    /// Count only repeats within N records as duplicates, in an endless stream. Filters whose
    /// error rates grow without end are no candidates then
    #[arg(long, value_name = "N")]
    pub(crate) window: Option<String>,

    /// Highest false positive rate: the fraction of the fresh records reported as duplicates
    #[arg(long, value_name = "RATE")]
    pub(crate) max_fpr: Option<String>,

    /// Highest false negative rate: the fraction of the duplicates reported as fresh
    #[arg(long, value_name = "RATE")]
    pub(crate) max_fnr: Option<String>,

    /// Cost of a false positive
    #[arg(long, value_name = "COST", requires = "cost_fnr")]
    pub(crate) cost_fpr: Option<String>,

    /// Cost of a false negative
    #[arg(long, value_name = "COST", requires = "cost_fpr")]
    pub(crate) cost_fnr: Option<String>,

    /// CPU time for simulations, nominal: a model of their cost turns it into numbers of records,
    /// so that the plan is the same on every machine
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) budget: String,

    /// Seed of the filters and of the simulations
    #[arg(long, default_value = "0", allow_negative_numbers = true)]
    pub(crate) seed: String,

    /// Number of threads for simulations [default: one for each core]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) threads: Option<String>,

    /// Measure the speed of the filters shown, each with its full memory
    #[arg(long)]
    pub(crate) measure: bool,

    /// Show all candidates instead of the best of each kind
    #[arg(long)]
    pub(crate) all: bool,

    /// Write only the specification of the recommended filter as text; --to-csv and --to-json are
    /// as without this option
    #[arg(long, conflicts_with_all = ["measure", "all"])]
    pub(crate) spec_only: bool,

    #[command(flatten)]
    pub(crate) outputs: LabOutputs,
}

#[derive(Debug)]
pub(crate) struct PlanConfig {
    /// `None` searches for the least memory that meets the bounds.
    memory: Option<u64>,
    records: Option<u64>,
    pub(crate) input: Input,
    window: Option<u64>,
    goal: Goal,
    seed: u64,
    budget: Duration,
    threads: NonZeroUsize,
    pub(crate) measure: bool,
    pub(crate) all: bool,
    pub(crate) spec_only: bool,
    /// The options of `echoless dedup` that read the same records.
    pub(crate) record_options: String,
    pub(crate) outputs: LabOutputs,
}

impl PlanConfig {
    /// Reads the sample, if there is one, and runs the planner.
    pub(crate) fn plan(&self, progress: &ProgressLine) -> Result<(PlanRequest, Plan), Failure> {
        let mut request = self.request()?;
        let progress = |records| progress.add(records);
        let plan = if self.memory.is_some() {
            plan::plan(&request, &progress)?
        } else {
            let (memory, plan) = plan::plan_smallest(&request, &progress)?;
            request.memory = memory;
            plan
        };
        Ok((request, plan))
    }

    fn request(&self) -> Result<PlanRequest, Failure> {
        let stream = self.input.stream(self.outputs.quiet)?;
        let records = self.records.unwrap_or(stream.records());
        Ok(PlanRequest::new(stream, self.memory.unwrap_or(0))
            .records(records)
            .window(self.window)
            .goal(self.goal)
            .seed(self.seed)
            .budget(self.budget)
            .threads(self.threads))
    }
}

impl TryFrom<PlanArgs> for PlanConfig {
    type Error = Failure;

    fn try_from(args: PlanArgs) -> Result<Self, Failure> {
        let records = parse_if_given("--records", args.records.as_deref(), parse_count)?;
        let distinct = parse_if_given("--distinct", args.distinct.as_deref(), parse_number)?;
        let file = record_file("--sample", args.sample, &args.file)?;
        let input = match (file, records, distinct) {
            (Some(file), ..) => Input::File(file),
            (None, Some(records), Some(share)) => {
                Input::Generated(Stream::with_distinct_fraction(records, share)?)
            }
            (None, records, _) => {
                let missing = if records.is_some() {
                    "--distinct"
                } else {
                    "--records"
                };
                let allowed =
                    "--records with --distinct, or --sample with a file that is like the stream";
                return Err(SpecError::missing(missing, allowed).into());
            }
        };
        let number =
            |option, text: &Option<String>| parse_if_given(option, text.as_deref(), parse_number);
        let (max_fpr, max_fnr) = (args.max_fpr, args.max_fnr);
        let goal = Goal::default()
            .max_fpr(number("--max-fpr", &max_fpr)?)
            .max_fnr(number("--max-fnr", &max_fnr)?);
        let costs = (
            number("--cost-fpr", &args.cost_fpr)?,
            number("--cost-fnr", &args.cost_fnr)?,
        );
        let goal = goal.costs(match costs {
            (Some(false_positive), Some(false_negative)) => Some(Costs {
                false_positive,
                false_negative,
            }),
            _ => None,
        });
        goal.check()?;
        Ok(Self {
            memory: parse_if_given("--memory", args.memory.as_deref(), parse_size)?,
            records,
            input,
            window: parse_if_given("--window", args.window.as_deref(), parse_count)?,
            goal,
            seed: parse_seed(&args.seed)?,
            budget: parse_budget(&args.budget)?,
            threads: parse_if_given("--threads", args.threads.as_deref(), parse_threads)?
                .unwrap_or_else(|| available_parallelism().unwrap_or(NonZeroUsize::MIN)),
            measure: args.measure,
            all: args.all,
            spec_only: args.spec_only,
            record_options: record_options(&args.file.records),
            outputs: args.outputs,
        })
    }
}

/// The options that read the same records in `echoless dedup`, quoted for a shell.
fn record_options(args: &RecordArgs) -> String {
    let quote = |text: String| format!(" '{}'", text.replace('\'', r"'\''"));
    let quoted = |(option, value): (String, Option<String>)| {
        format!(" {option}{}", value.map(quote).unwrap_or_default())
    };
    args.given().into_iter().map(quoted).collect()
}

/// Parses `--budget`.
fn parse_budget(text: &str) -> Result<Duration, SpecError> {
    let allowed = "a time above 0 such as 500ms, 90s or 10m (at most 106751d)";
    let invalid = || SpecError::new("--budget", text, allowed);
    let budget = Duration::from_nanos(parse_time("--budget", text).map_err(|_| invalid())?);
    if budget.is_zero() {
        return Err(invalid());
    }
    Ok(budget)
}

/// Parses a number that may have a fraction, for the option `field`.
fn parse_number(field: &'static str, text: &str) -> Result<f64, SpecError> {
    let number = text.parse();
    number.map_err(|_| SpecError::new(field, text, "a number"))
}

/// Runs `echoless plan`.
pub fn run(args: PlanArgs) -> Result<ExitCode, Failure> {
    let config = &PlanConfig::try_from(args)?;
    let mut targets = LabTargets::open(&config.outputs, config.input.files())?;
    let progress = ProgressLine::new(Counted::Simulated, None, !config.outputs.quiet);
    let (request, plan) = config.plan(&progress)?;
    drop(progress);
    warn_if_unavailable(request.memory, config.outputs.quiet);
    if config.spec_only && plan.recommended().is_none() {
        let nearest = plan.first();
        let allowed = if nearest.rank.meets_bounds() {
            "a --budget that shows the rates of the first filter"
        } else {
            "bounds that some filter is shown to meet"
        };
        let nearest = format!("the nearest is {}, {}", nearest.spec, nearest.why);
        let allowed = format!("{allowed}; {nearest}");
        return Err(Failure::option("--spec-only", allowed));
    }
    let candidates: Vec<_> = if config.all {
        plan.candidates.iter().collect()
    } else {
        plan.best_of_each().collect()
    };
    let mut rows = Vec::new();
    for candidate in candidates {
        let nanoseconds = config.measure.then(|| nanoseconds_per_key(&candidate.spec));
        rows.push(Row {
            candidate,
            nanoseconds: nanoseconds.transpose()?,
        });
    }
    targets.write(&PlanReport {
        request: &request,
        rows: &rows,
        spec_only: config.spec_only,
        record_options: &config.record_options,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Warns if this machine cannot run the filter. A plan may be for another one, and is the same on
/// every machine, so this is no error as it is for a run.
fn warn_if_unavailable(bytes: u64, quiet: bool) {
    let available = memory::available().filter(|available| bytes > *available);
    if let Some(available) = available.filter(|_| !quiet) {
        let reason = format!("{available} bytes are available here");
        warn(&Failure::Memory(MemoryError { bytes, reason }).to_string());
    }
}

/// A filter, and its speed if that is measured.
pub(crate) struct Row<'a> {
    pub(crate) candidate: &'a Candidate,
    pub(crate) nanoseconds: Option<f64>,
}

/// The filters, best first.
pub(crate) struct PlanReport<'a> {
    pub(crate) request: &'a PlanRequest,
    pub(crate) rows: &'a [Row<'a>],
    /// Whether the text is the specification of the first filter alone.
    pub(crate) spec_only: bool,
    /// The options that read the records, quoted for a shell.
    pub(crate) record_options: &'a str,
}

impl PlanReport<'_> {
    /// The command that removes duplicates with this filter.
    fn command(&self, candidate: &Candidate) -> String {
        let (filter, window) = match candidate.spec.facts().window {
            None => (candidate.spec.to_string(), String::new()),
            // The window of a specification is in ticks, whose length `dedup` chooses.
            Some(window) => (
                without_option(&candidate.spec.to_string(), "window"),
                format!(" --window {}", window.ticks),
            ),
        };
        format!(
            "echoless dedup{window} --filter '{filter}'{}",
            self.record_options
        )
    }
}

/// The text of a specification without one of its options.
fn without_option(spec: &str, key: &str) -> String {
    let (name, options) = spec.split_once(':').unwrap_or((spec, ""));
    let is_other = |option: &&str| option.split_once('=').is_none_or(|(name, _)| name != key);
    let others: Vec<&str> = options.split(',').filter(is_other).collect();
    format!("{name}:{}", others.join(","))
}

const CSV_HEADER: &str = "rank,spec,fpr,fpr_low,fpr_high,fnr,fnr_low,fnr_high,shown,basis,simulated_records,lines_per_key,ns_per_key,meets_bounds,why\n";

/// A rate in percent with its interval, if it has one.
fn rate(candidate: &Candidate, rate: f64, interval: Interval) -> String {
    let text = percent(rate);
    match candidate.basis {
        Basis::Formula => text,
        Basis::Simulation { shown: false, .. } => format!("{text} (not shown)"),
        Basis::Simulation { shown: true, .. } => {
            let Interval { low, high } = interval;
            format!("{text} ({}..{})", percent(low), percent(high))
        }
    }
}

impl LabReport for PlanReport<'_> {
    fn text(&self) -> String {
        let Some(Row { candidate, .. }) = self.rows.first() else {
            return String::new();
        };
        if self.spec_only {
            return format!("{}\n", candidate.spec);
        }
        let request = self.request;
        let spec = &candidate.spec;
        let first = if !candidate.rank.meets_bounds() {
            format!("no filter is shown to meet the bounds; the nearest is {spec}")
        } else if candidate.is_shown() {
            format!("use {spec}\n    {}", self.command(candidate))
        } else {
            format!(
                "no filter is recommended: the rates of the first one are not shown; a larger \
                 --budget may show them; it is {spec}"
            )
        };
        let mut text = format!(
            "{first}\n    {}\n    for {} records in {}, like {}",
            candidate.why,
            format_count(request.records),
            format_bytes(request.memory),
            request.stream
        );
        if let Some(window) = request.window {
            let _ = write!(text, ", duplicates within {} records", format_count(window));
        }
        let timed = self.rows.iter().any(|row| row.nanoseconds.is_some());
        let mut header = vec!["filter", "FPR %", "FNR %", "lines"];
        header.extend(timed.then_some("ns/key"));
        header.extend(["predicted by", "why"]);
        let mut rows = vec![header.into_iter().map(String::from).collect::<Vec<_>>()];
        for row in self.rows {
            let candidate = row.candidate;
            let mut cells = vec![
                candidate.spec.to_string(),
                rate(
                    candidate,
                    candidate.predicted.rates.fpr,
                    candidate.predicted.fpr,
                ),
                rate(
                    candidate,
                    candidate.predicted.rates.fnr,
                    candidate.predicted.fnr,
                ),
                format!("{:.1}", candidate.lines),
            ];
            cells.extend(row.nanoseconds.map(|time| format!("{time:.1}")));
            cells.push(match candidate.basis.parts() {
                (basis, Some(records)) => format!("{basis} of {} records", format_count(records)),
                (basis, None) => basis.into(),
            });
            cells.push(candidate.why.clone());
            rows.push(cells);
        }
        format!("{text}\n\n{}", aligned(&rows))
    }

    fn csv(&self) -> String {
        let mut text = String::from(CSV_HEADER);
        let optional = |value: Option<String>| value.unwrap_or_default();
        for (row, rank) in self.rows.iter().zip(1..) {
            let candidate = row.candidate;
            let (basis, records) = candidate.basis.parts();
            let predicted = &candidate.predicted;
            let _ = writeln!(
                text,
                "{rank},{},{},{},{},{},{},{},{},{basis},{},{},{},{},\"{}\"",
                quoted(&candidate.spec),
                predicted.rates.fpr,
                predicted.fpr.low,
                predicted.fpr.high,
                predicted.rates.fnr,
                predicted.fnr.low,
                predicted.fnr.high,
                candidate.is_shown(),
                optional(records.map(|records| records.to_string())),
                candidate.lines,
                optional(row.nanoseconds.map(|time| time.to_string())),
                candidate.rank.meets_bounds(),
                candidate.why,
            );
        }
        text
    }

    fn json(&self) -> Value {
        let row = |row: &Row<'_>| {
            let mut value = row.candidate.to_json();
            value["spec"] = json!(row.candidate.spec);
            value["command"] = json!(self.command(row.candidate));
            value["ns_per_key"] = json!(row.nanoseconds);
            value
        };
        let goal = &self.request.goal;
        json!({
            "memory_bytes": self.request.memory,
            "records": self.request.records,
            "stream": self.request.stream.to_string(),
            "window": self.request.window,
            "budget_seconds": self.request.budget.as_secs_f64(),
            "max_fpr": goal.max_fpr,
            "max_fnr": goal.max_fnr,
            "candidates": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
