//! `echoless eval`: any set of filters on a stream, measured against the exact oracle.

mod job;
mod report;

use std::fs;
use std::process::ExitCode;

use echoless_lab::evaluate::{Options, evaluate};
use echoless_lab::plots;

pub(crate) use job::{Input, Job};

use crate::failure::Failure;
use crate::lab_output::{LabTargets, Progress};
use report::Report;

/// Runs `echoless eval`.
pub(crate) fn run(job: &Job) -> Result<ExitCode, Failure> {
    let mut targets = LabTargets::open(&job.outputs, job.input.source())?;
    if let Some(folder) = &job.plots {
        let name = folder.display().to_string();
        fs::create_dir_all(folder).map_err(Failure::file(name))?;
    }
    let stream = job.input.stream()?;
    let options = Options {
        seed: job.seed,
        points: job.points,
        ages: true,
        window: job.window,
    };
    let progress = Progress::new(Some(stream.records()), job.outputs.quiet);
    let evaluations = evaluate(&job.specs, &stream, &options, &|records| {
        progress.add(records);
    })?;
    drop(progress);
    let report = Report {
        stream: &stream,
        options: &options,
        evaluations: &evaluations,
    };
    targets.write(&report)?;
    if let Some(folder) = &job.plots {
        plots::draw(&evaluations, folder)?;
    }
    Ok(ExitCode::SUCCESS)
}
