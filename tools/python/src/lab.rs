//! The planner and the lab, whose results are passed on as JSON.

use std::num::NonZeroUsize;
use std::time::Duration;

use echoless::spec::parse_bytes;
use echoless::{FilterSpec, KeyHasher};
use echoless_lab::evaluate::{EvalOptions, Evaluation};
use echoless_lab::plan::{Candidate, Goal, PlanRequest, plan_smallest};
use echoless_lab::stream::Stream;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::json;

use crate::errors::{invalid, raise_of_lab, raise_of_spec};
use crate::keys::{Hashing, Input};
use crate::options;

/// A stream by its description, or one of recorded keys.
fn stream_of(stream: &Bound<'_, PyAny>, seed: u64) -> PyResult<Stream> {
    if let Ok(text) = stream.cast::<PyString>() {
        return text.to_str()?.parse().map_err(raise_of_spec);
    }
    let hashing = Hashing {
        hasher: KeyHasher::seeded(seed),
        digester: None,
    };
    let hashes = Input::read(stream, &hashing)?.into_hashes(&hashing.hasher);
    Stream::recorded(hashes).map_err(raise_of_spec)
}

#[pyfunction]
#[pyo3(signature = (stream, memory, window, max_fpr, max_fnr, records, seed, budget, threads))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments")]
pub(crate) fn plan(
    py: Python<'_>,
    stream: &Bound<'_, PyAny>,
    memory: Option<&Bound<'_, PyAny>>,
    window: Option<u64>,
    max_fpr: Option<f64>,
    max_fnr: Option<f64>,
    records: Option<u64>,
    seed: u64,
    budget: f64,
    threads: usize,
) -> PyResult<String> {
    let bytes = match memory {
        Some(memory) => Some(parse_bytes(&options::memory(memory)?).map_err(raise_of_spec)?),
        None => None,
    };
    let budget = Duration::try_from_secs_f64(budget)
        .map_err(|_| invalid("budget", budget, "seconds, 0 or more"))?;
    let threads =
        NonZeroUsize::new(threads).ok_or_else(|| invalid("threads", threads, "1 or more"))?;
    let goal = Goal::default().max_fpr(max_fpr).max_fnr(max_fnr);
    let stream = stream_of(stream, seed)?;
    let mut request = PlanRequest::new(stream, bytes.unwrap_or(0))
        .goal(goal)
        .window(window)
        .seed(seed)
        .budget(budget)
        .threads(threads);
    if let Some(records) = records {
        request = request.records(records);
    }
    let planned = py.detach(|| match bytes {
        Some(bytes) => echoless_lab::plan::plan(&request, &|_| ()).map(|plan| (bytes, plan)),
        None => plan_smallest(&request, &|_| ()),
    });
    let (memory, plan) = planned.map_err(|error| raise_of_lab(&error))?;
    let recommended = plan
        .recommended()
        .map(|candidate| candidate.spec.to_string());
    Ok(json!({
        "memory_bytes": memory,
        "records": request.records,
        "stream": request.stream.to_string(),
        "window": request.window,
        "budget_seconds": request.budget.as_secs_f64(),
        "max_fpr": goal.max_fpr,
        "max_fnr": goal.max_fnr,
        "recommended": recommended,
        "candidates": plan.best_of_each().map(Candidate::to_json).collect::<Vec<_>>(),
    })
    .to_string())
}

#[pyfunction]
#[pyo3(signature = (specs, stream, seed, points, ages, window))]
pub(crate) fn evaluate(
    py: Python<'_>,
    specs: Vec<String>,
    stream: &Bound<'_, PyAny>,
    seed: u64,
    points: u64,
    ages: bool,
    window: Option<u64>,
) -> PyResult<String> {
    let specs = specs.iter().map(|spec| spec.parse().map_err(raise_of_spec));
    let specs = specs.collect::<PyResult<Vec<FilterSpec>>>()?;
    let stream = stream_of(stream, seed)?;
    let options = EvalOptions::default()
        .seed(seed)
        .points(points)
        .ages(ages)
        .window(window);
    let measured =
        py.detach(|| echoless_lab::evaluate::evaluate(&specs, &stream, &options, &|_| ()));
    let measured = measured.map_err(|error| raise_of_lab(&error))?;
    Ok(json!({
        "stream": stream.to_string(),
        "seed": seed,
        "window": window,
        "records": stream.records(),
        "filters": measured.iter().map(Evaluation::to_json).collect::<Vec<_>>(),
    })
    .to_string())
}
