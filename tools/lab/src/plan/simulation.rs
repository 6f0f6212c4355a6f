//! Short simulations: stream and memory are scaled down together.
//!
//! The rates of a filter of M bits on N records from a universe of U keys depend on N/M and U/M
//! alone, up to noise, so a scaled run predicts the full one.

use echoless::FilterSpec;

use super::goal::Prediction;
use super::request::PlanRequest;
use crate::error::LabError;
use crate::evaluate::{EvalOptions, evaluate};
use crate::parallel;
use crate::stream::Stream;

/// The smallest simulated memory in bytes. In less, some filters of the grid have too few cells for
/// the scaling to hold.
const LEAST_MEMORY: u64 = 8 << 10;

/// The shortest simulated window in records. A window of a few records has the granules of its
/// filters rounded to whole records, and the scaling does not hold.
const LEAST_WINDOW: u64 = 256;

/// Specifications in one pass over the stream, which share its draws and its oracle. Passes run on
/// different threads.
const GROUP: usize = 8;

/// A scaled-down stream and the scale of the memory that goes with it.
#[derive(Debug)]
pub(super) struct Simulation<'a> {
    request: &'a PlanRequest,
    stream: Stream,
    /// The memory of the request divided by that of the simulation, at least 1 for made streams.
    scale: f64,
    seed: u64,
}

impl<'a> Simulation<'a> {
    /// A simulation of about `records` records. It is longer if the memory would be smaller than
    /// [`LEAST_MEMORY`] or the window shorter than [`LEAST_WINDOW`], but at most eight times as
    /// long: then it covers the start of the stream.
    pub(super) fn new(request: &'a PlanRequest, records: u64, seed: u64) -> Result<Self, LabError> {
        let (memory, stream) = (request.memory, &request.stream);
        if stream.is_recorded() {
            let scale = request.records as f64 / stream.records() as f64;
            return Ok(Self {
                request,
                stream: stream.clone(),
                scale,
                seed,
            });
        }
        let share = (records as f64 / stream.records() as f64).min(1.0);
        // Memory comes in whole cache lines.
        let rounded = (memory as f64 * share / 64.0).round() as u64 * 64;
        // The memory in which the window is long enough.
        let of_window = request.window.map_or(0, |window| {
            (u128::from(memory) * u128::from(LEAST_WINDOW) / u128::from(window.max(1))) as u64
        });
        let scaled = rounded.max(LEAST_MEMORY).max(of_window).min(memory);
        let scale = memory as f64 / scaled as f64;
        let len = (stream.records() as f64 / scale).round().max(1.0) as u64;
        let universe = (stream.universe() as f64 / scale).round().max(1.0) as u64;
        Ok(Self {
            request,
            stream: Stream::uniform(len.min(8 * records), universe)?,
            scale,
            seed,
        })
    }

    /// The number of records of a run.
    pub(super) const fn records(&self) -> u64 {
        self.stream.records()
    }

    fn options(&self) -> EvalOptions {
        let window = self.request.window.map(|window| self.scaled(window));
        EvalOptions::default().seed(self.seed).window(window)
    }

    fn scaled(&self, count: u64) -> u64 {
        (count as f64 / self.scale).round().max(1.0) as u64
    }

    /// The filter in the scaled memory; the window of a decaying filter is scaled with it.
    fn spec(&self, spec: &FilterSpec) -> FilterSpec {
        spec.scaled(self.scale)
            .memory(self.scaled(self.request.memory))
            .seed(spec.seed ^ self.seed)
    }

    /// The prediction for each filter; `None` if it cannot be built in the scaled memory.
    pub(super) fn predict(
        &self,
        specs: &[FilterSpec],
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<Option<Prediction>>, LabError> {
        let scaled: Vec<FilterSpec> = specs.iter().map(|spec| self.spec(spec)).collect();
        let buildable: Vec<bool> = scaled.iter().map(|spec| spec.build().is_ok()).collect();
        let to_run: Vec<FilterSpec> = scaled
            .into_iter()
            .zip(&buildable)
            .filter_map(|(spec, buildable)| buildable.then_some(spec))
            .collect();
        let groups: Vec<&[FilterSpec]> = to_run.chunks(GROUP).collect();
        let options = self.options();
        let evaluations = parallel::map(&groups, self.request.threads, |group| {
            evaluate(group, &self.stream, &options, progress)
        })?;
        let mut scores = evaluations.iter().flatten().map(|run| &run.score);
        Ok(specs
            .iter()
            .zip(buildable)
            .map(|(spec, buildable)| {
                let score = buildable.then(|| scores.next()).flatten()?;
                Some(Prediction::counted(score, self.fpr_limit(spec)))
            })
            .collect())
    }

    /// The limit of the FPR in the memory of the request, not the scaled one. It is about keys that
    /// were never seen, so it does not hold for keys whose window is over.
    fn fpr_limit(&self, spec: &FilterSpec) -> Option<f64> {
        let unlimited = self.request.window.is_none();
        unlimited.then(|| spec.fpr_limit()).flatten()
    }

    /// The share of arrivals that are fresh.
    pub(super) fn fresh_share(&self) -> Result<f64, LabError> {
        // Only the counts of the oracle are used, so the smallest filter will do.
        let smallest = "bloom:k=1,memory=64B".parse()?;
        let evaluation = evaluate(&[smallest], &self.stream, &self.options(), &|_| ())?;
        let score = evaluation[0].score;
        Ok(score.distinct as f64 / score.arrivals() as f64)
    }
}
