//! The configuration of `echoless plan`.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use echoless::SpecError;
use echoless_lab::plan::{self, Costs, Goal, Plan, PlanRequest};
use echoless_lab::stream::{Stream, parse_count};

use super::records::record_file;
use super::{parse_if_given, parse_seed, parse_threads};
use crate::args::{PlanArgs, RecordArgs};
use crate::failure::Failure;
use crate::lab::input::Input;
use crate::lab::output::{LabOutput, Progress};
use crate::number::{parse_size, parse_time};

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
    pub(crate) outputs: LabOutput,
}

impl PlanConfig {
    /// Reads the sample, if there is one, and runs the planner.
    pub(crate) fn plan(&self, progress: &Progress) -> Result<(PlanRequest, Plan), Failure> {
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
            outputs: args.outputs.into(),
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
