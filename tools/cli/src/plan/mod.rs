//! `echoless plan`: recommends a filter for a stream and a memory.

mod report;

use std::process::ExitCode;

use echoless::{MemoryError, memory};
use echoless_lab::plan::nanoseconds_per_key;

use crate::config::PlanConfig;
use crate::failure::{Failure, warn};
use crate::lab::output::{LabTargets, Progress};
use report::{PlanReport, Row};

/// Runs `echoless plan`.
pub(crate) fn run(config: &PlanConfig) -> Result<ExitCode, Failure> {
    let mut targets = LabTargets::open(&config.outputs, config.input.files())?;
    let progress = Progress::new(None, config.outputs.quiet);
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
