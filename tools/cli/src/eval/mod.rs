//! `echoless eval`: measures filters on a stream against an exact oracle.

mod report;

use std::fs;
use std::process::ExitCode;

use echoless_lab::evaluate::{EvalOptions, evaluate};
use echoless_lab::plots;

use crate::config::EvalConfig;
use crate::failure::Failure;
use crate::lab::output::{LabTargets, Progress};
use report::EvalReport;

/// Runs `echoless eval`.
pub(crate) fn run(config: &EvalConfig) -> Result<ExitCode, Failure> {
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
    let progress = Progress::new(Some(stream.records()), config.outputs.quiet);
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
