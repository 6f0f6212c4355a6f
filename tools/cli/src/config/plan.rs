//! What a run of `echoless plan` shall do: every value checked, every default filled in.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use echoless::SpecError;
use echoless_lab::plan::{Costs, Goal, Plan, PlanRequest, plan, plan_smallest};
use echoless_lab::stream::{Stream, parse_count};

use super::Input;
use super::thread_count;
use crate::args::{FieldArgs, PlanArgs};
use crate::failure::Failure;
use crate::lab_output::{LabOutput, Progress};
use crate::number::parse_size;
use crate::recorded::Recorded;

/// A run of `echoless plan`.
#[derive(Debug)]
pub(crate) struct PlanConfig {
    /// Without it the least memory that meets the bounds is looked for.
    memory: Option<u64>,
    records: Option<u64>,
    pub(crate) input: Input,
    window: Option<u64>,
    goal: Goal,
    seed: u64,
    threads: NonZeroUsize,
    pub(crate) measure: bool,
    pub(crate) all: bool,
    pub(crate) spec_only: bool,
    /// The options of the key, as they are args for `echoless dedup`.
    pub(crate) key_options: String,
    pub(crate) outputs: LabOutput,
}

impl PlanConfig {
    /// Reads the sample, if there is one, and asks the planner.
    pub(crate) fn answer(&self, progress: &Progress) -> Result<(PlanRequest, Plan), Failure> {
        let mut request = self.request()?;
        let progress = |records| progress.add(records);
        let plan = if self.memory.is_some() {
            plan(&request, &progress)?
        } else {
            let (memory, plan) = plan_smallest(&request, &progress)?;
            request.memory = memory;
            plan
        };
        Ok((request, plan))
    }

    fn request(&self) -> Result<PlanRequest, Failure> {
        let stream = self.input.stream()?;
        let records = self.records.unwrap_or(stream.records());
        Ok(PlanRequest::new(stream, self.memory.unwrap_or(0))
            .records(records)
            .window(self.window)
            .goal(self.goal)
            .seed(self.seed)
            .threads(self.threads))
    }
}

impl TryFrom<PlanArgs> for PlanConfig {
    type Error = Failure;

    fn try_from(args: PlanArgs) -> Result<Self, Failure> {
        let records = args.records.map(|text| parse_count("records", &text));
        let records = records.transpose()?;
        let distinct = number("distinct", args.distinct)?;
        let key_options = key_options(&args.fields);
        let recorded = Recorded::from_args(args.sample, args.fields, "sample")?;
        let input = match (recorded, records, distinct) {
            (Some(recorded), ..) => Input::Recorded(recorded),
            (None, Some(records), Some(share)) => {
                Input::Made(Stream::with_distinct_share(records, share)?)
            }
            (None, records, _) => {
                let missing = if records.is_some() {
                    "distinct"
                } else {
                    "records"
                };
                let allowed =
                    "--records with --distinct, or --sample with a file that is like the stream";
                return Err(SpecError::missing(missing, allowed).into());
            }
        };
        let (max_fpr, max_fnr) = (args.max_fpr, args.max_fnr);
        let goal = Goal::default()
            .max_fpr(number("max-fpr", max_fpr)?)
            .max_fnr(number("max-fnr", max_fnr)?);
        let costs = (
            number("cost-fpr", args.cost_fpr)?,
            number("cost-fnr", args.cost_fnr)?,
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
            memory: args
                .memory
                .map(|text| parse_size("memory", &text))
                .transpose()?,
            records,
            input,
            window: args
                .window
                .map(|text| parse_count("window", &text))
                .transpose()?,
            goal,
            seed: args.seed,
            threads: match args.threads {
                Some(count) => thread_count(count)?,
                None => available_parallelism().unwrap_or(NonZeroUsize::MIN),
            },
            measure: args.measure,
            all: args.all,
            spec_only: args.spec_only,
            key_options,
            outputs: args.outputs.into(),
        })
    }
}

/// The options that take the same key out of a record, quoted for a shell.
fn key_options(fields: &FieldArgs) -> String {
    let quoted = |option: &str, value: &Option<String>| {
        let quote = |text: &String| format!(" {option} '{}'", text.replace('\'', r"'\''"));
        value.as_ref().map(quote).unwrap_or_default()
    };
    quoted("-k", &fields.key) + &quoted("-d", &fields.delimiter)
}

/// A number that may have a fraction, if it was given.
fn number(field: &'static str, args: Option<String>) -> Result<Option<f64>, SpecError> {
    let parse = |text: String| {
        let number = text.parse::<f64>();
        number.map_err(|_| SpecError::new(field, text, "a number"))
    };
    args.map(parse).transpose()
}
