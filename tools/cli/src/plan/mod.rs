//! `echoless plan`: which filter to use for a stream and a memory, and why.

mod job;
mod report;

use std::process::ExitCode;

use echoless_lab::plan::nanoseconds_per_key;

pub(crate) use job::Job;

use crate::failure::Failure;
use crate::lab_output::{LabTargets, Progress, write_stdout};
use report::{Report, Row};

/// Runs `echoless plan`.
pub(crate) fn run(job: &Job) -> Result<ExitCode, Failure> {
    let mut targets = LabTargets::open(&job.outputs, job.input.source())?;
    let progress = Progress::new(None, job.outputs.quiet);
    let (question, plan) = job.answer(&progress)?;
    drop(progress);
    if job.spec_only {
        write_stdout(&format!("{}\n", plan.first().spec))?;
        return Ok(ExitCode::SUCCESS);
    }
    let choices: Vec<_> = if job.all {
        plan.choices.iter().collect()
    } else {
        plan.best_of_each().collect()
    };
    let mut rows = Vec::new();
    for choice in choices {
        let nanoseconds = job.measure.then(|| nanoseconds_per_key(&choice.spec));
        rows.push(Row {
            choice,
            nanoseconds: nanoseconds.transpose()?,
        });
    }
    targets.write(&Report {
        question: &question,
        rows: &rows,
        key_options: &job.key_options,
    })?;
    Ok(ExitCode::SUCCESS)
}
