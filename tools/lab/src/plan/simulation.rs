//! Quick simulations: the stream and the memory scaled down together, for rates depend on N/M and U/M alone.

use echoless::FilterSpec;

use super::goal::Prediction;
use super::request::PlanRequest;
use crate::error::LabError;
use crate::evaluate::{Options, evaluate};
use crate::parallel;
use crate::stream::Stream;

/// Smaller memories are too coarse: every filter of the grid has some cells of its own.
const LEAST_MEMORY: u64 = 8 << 10;

/// Specifications that share a pass over the stream, and so the draws and the oracle.
const GROUP: usize = 8;

/// A stream that is like that of a request but shorter.
#[derive(Debug)]
pub(super) struct Simulation<'a> {
    request: &'a PlanRequest,
    stream: Stream,
    /// The request's memory divided by this one's.
    scale: f64,
    seed: u64,
}

impl<'a> Simulation<'a> {
    /// A simulation of about so many records; of more if the memory would become too small, up to eight times as many, which is then the beginning
    /// of the stream.
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
        // Whole cache lines.
        let wanted = (memory as f64 * share / 64.0).round() as u64 * 64;
        let scaled = wanted.max(LEAST_MEMORY).min(memory);
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

    /// The records it takes.
    pub(super) const fn records(&self) -> u64 {
        self.stream.records()
    }

    fn options(&self) -> Options {
        Options {
            seed: self.seed,
            window: self.window(),
            ..Options::default()
        }
    }

    fn window(&self) -> Option<u64> {
        let window = self.request.window?;
        Some(self.scaled(window))
    }

    fn scaled(&self, count: u64) -> u64 {
        (count as f64 / self.scale).round().max(1.0) as u64
    }

    /// The filter in its share of the memory; a window of its own shrinks too.
    fn spec(&self, spec: &FilterSpec) -> FilterSpec {
        FilterSpec::new(spec.kind.scaled(self.scale))
            .form(spec.form)
            .memory(self.scaled(self.request.memory))
            .seed(spec.seed ^ self.seed)
            .tracked(spec.tracked)
    }

    /// What is predicted of each filter; `None` for one that cannot be built here.
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
                // The limit is that of the full memory, which it may depend on.
                Some(Prediction::counted(score, spec.fpr_limit()))
            })
            .collect())
    }

    /// The share of arrivals that are new.
    pub(super) fn fresh_share(&self) -> Result<f64, LabError> {
        let nothing = "bloom:k=1,memory=64B".parse()?;
        let evaluation = evaluate(&[nothing], &self.stream, &self.options(), &|_| ())?;
        let score = evaluation[0].score;
        Ok(score.distinct as f64 / score.arrivals() as f64)
    }
}
